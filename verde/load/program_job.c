/* Jobs whose program is given: a folder with `program`, `data.json` and the files that it names,
 * which the Python package writes when it captures a training step. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/commit/json.h"
#include "verde/load/load.h"

enum { PLACE_BYTES = 3 }; /* fewest bytes of a node's place in JSON */

bool vd_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

vd_status vd_folder_job(const char *path, vd_job *out, vd_err *err) {
    *out = (vd_job){.version = 1, .program = true};
    out->training.model.kind = (vd_model_kind)VD_JOB_GIVEN_PROGRAM;
    if (strlen(path) >= sizeof out->path)
        return vd_fail(err, VD_ERR_USAGE, "the name of a job must be below %d bytes",
                       VD_JOB_PATH_SIZE);
    memcpy(out->path, path, strlen(path) + 1);
    memcpy(out->model_dir, path, strlen(path) + 1);
    return VD_OK;
}

static vd_status check_hash(const vd_loaded *loaded, vd_err *err) {
    static const uint8_t none[VD_HASH_SIZE];
    const vd_job *job = &loaded->job;
    char place[VD_JOB_PLACE_SIZE], hex[2 * VD_HASH_SIZE + 1];
    vd_hash hash;
    const vd_status status = vd_program_hash(&loaded->program, &hash, err);
    if (status != VD_OK || memcmp(job->model_sha256, none, sizeof none) == 0 ||
        memcmp(job->model_sha256, hash.b, sizeof hash.b) == 0)
        return status;
    vd_hex(hash.b, VD_HASH_SIZE, hex);
    return vd_fail(err, VD_ERR_USAGE, "%s: `model.sha256` is not the hash of %s/program, %s",
                   vd_job_place(job, "model.sha256", place), job->model_dir, hex);
}

/* Counts steps only: just the program's author knows what a sample is. */
static void take_sizes(vd_loaded *loaded) {
    vd_training *t = &loaded->job.training;
    t->steps = loaded->program.steps;
    t->checkpoint_interval = loaded->program.checkpoint_interval;
    t->batch = t->sequence = t->micro_batches = 1;
}

vd_status vd_load_program_job(vd_loaded *loaded, vd_err *err) {
    if (vd_has_pack(loaded->job.model_dir))
        return vd_load_packed_job(loaded, err);
    vd_status status = vd_store_program(loaded->job.model_dir, &loaded->program, err);
    if (status == VD_ERR_PEER) /* a job's files are the user's, so a bad one is a usage error */
        status = vd_fail(err, VD_ERR_USAGE, "%s", err->text);
    if (status == VD_OK)
        status = check_hash(loaded, err);
    if (status != VD_OK)
        return status;
    if (!loaded->bare)
        status = vd_load_own_data(loaded->job.model_dir, loaded, err);
    if (status == VD_OK)
        status = vd_give_weights(loaded, err);
    if (status == VD_OK && !loaded->job.training.evaluates)
        status = vd_begin_program(loaded, err);
    take_sizes(loaded);
    return status;
}

static vd_status check_places(const json_t *step, uint32_t nodes, vd_err *err) {
    const size_t count = json_array_size(step);
    if (!json_is_array(step) || count > nodes)
        return vd_fail(err, VD_ERR_PEER,
                       "`step` must be a list of at most %u places, one of each node", nodes);
    for (size_t i = 0; i < count; i++)
        if (!json_is_string(json_array_get(step, i)))
            return vd_fail(err, VD_ERR_PEER, "`step`[%zu] must be a string", i);
    return VD_OK;
}

vd_status vd_load_node_places(const vd_loaded *loaded, json_t **out, vd_err *err) {
    static const char *const names[] = {"verde_places", "step", NULL};
    char path[VD_JOB_PATH_SIZE + 16];
    struct stat info;
    vd_err why = {0};
    *out = NULL;
    snprintf(path, sizeof path, "%s/places.json", loaded->job.model_dir);
    if (lstat(path, &info) != 0)
        return VD_OK;
    vd_status status = vd_json_load(path, VD_NODE_PLACES_BYTES_MAX, PLACE_BYTES, out, err);
    if (status != VD_OK)
        return status;
    status = vd_json_begin(*out, "verde_places", "a list of places", names, &why);
    if (status == VD_OK)
        status = check_places(json_object_get(*out, "step"), loaded->program.step.node_count, &why);
    if (status == VD_OK)
        return VD_OK;
    json_decref(*out);
    *out = NULL;
    return vd_fail(err, status == VD_ERR_PEER ? VD_ERR_USAGE : status, "%s: %s", path, why.text);
}

bool vd_is_program_file(const char *path) {
    static const char begin[] = "\x0d\0verde program";
    char bytes[sizeof begin - 1];
    uint64_t size;
    int fd = -1;
    const bool same = vd_open_file(path, &fd, &size, NULL) == VD_OK &&
                      read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes &&
                      memcmp(bytes, begin, sizeof bytes) == 0;
    if (fd >= 0)
        close(fd);
    return same;
}
