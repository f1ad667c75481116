/* Jobs whose programs are given in a pack: a folder with `pack`, `data.json` and the files that it
 * names, which the Python package writes for batches of answers. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verde/load/load.h"

enum { PATH_SIZE = VD_JOB_PATH_SIZE + 16 };

static void pack_path(const char *dir, char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, "%s/pack", dir);
}

bool vd_has_pack(const char *dir) {
    return vd_lies_in(dir, "pack");
}

void vd_given_free(vd_given *given) {
    for (uint32_t i = 0; i < VD_PACK_OWN_MAX; i++)
        free(given->own[i]);
    vd_placed_data_free(&given->shared);
    vd_pack_free(&given->pack);
    vd_map_free(&given->file);
    *given = (vd_given){0};
}

/* Turns a peer's fault into a usage error: files of a job are the user's own. */
static vd_status own_fault(const char *path, vd_status status, vd_err *err) {
    return status == VD_ERR_PEER ? vd_fail(err, VD_ERR_USAGE, "%s: %s", path, err->text) : status;
}

/* Refuses a folder with a pack and a program, because either could be meant. */
static vd_status refuse_program(const char *dir, vd_err *err) {
    return !vd_lies_in(dir, "program")
               ? VD_OK
               : vd_fail(err, VD_ERR_USAGE,
                         "%s: has a `program` and a `pack`; a job is one of them", dir);
}

static vd_status open_pack(vd_loaded *l, vd_err *err) {
    char path[PATH_SIZE];
    struct stat info;
    vd_given *g = &l->given;
    pack_path(l->job.model_dir, path);
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return vd_fail(err, VD_ERR_USAGE, "%s: must be a plain file, and no link", path);
    vd_status status = vd_map_file(path, &g->file, err);
    if (status != VD_OK)
        return status;
    status = vd_pack_open(g->file.data, g->file.size, &g->pack, err);
    return own_fault(path, status, err);
}

/* Loads the data that all programs share, and compares it with the first program. */
static vd_status load_shared(vd_loaded *l, bool own_files, vd_err *err) {
    l->program = l->given.pack.first; /* borrowed */
    const vd_status status =
        vd_load_shared_data(l->job.model_dir, l->given.pack.own, own_files, l, err);
    l->program = (vd_program){0};
    l->given.shared = l->placed;
    l->placed = (vd_placed_data){0};
    l->exec.data = NULL;
    return status;
}

vd_status vd_load_sent_pack(const char *dir, vd_loaded *l, vd_err *err) {
    l->exec.program = &l->program;
    snprintf(l->job.model_dir, sizeof l->job.model_dir, "%s", dir);
    const vd_status status = open_pack(l, err);
    return status == VD_OK ? load_shared(l, false, err) : status;
}

static vd_status check_hash(const vd_loaded *l, vd_err *err) {
    static const uint8_t none[VD_HASH_SIZE];
    const vd_job *job = &l->job;
    char place[VD_JOB_PLACE_SIZE], hex[2 * VD_HASH_SIZE + 1];
    vd_items items = {0};
    vd_hash hash;
    if (memcmp(job->model_sha256, none, sizeof none) == 0)
        return VD_OK;
    vd_status status = vd_list_prompts(l, &items, err);
    if (status == VD_OK)
        status = vd_collection_hash(items.program, items.count, &hash, err);
    vd_items_free(&items);
    if (status != VD_OK || memcmp(job->model_sha256, hash.b, sizeof hash.b) == 0)
        return status;
    vd_hex(hash.b, VD_HASH_SIZE, hex);
    return vd_fail(err, VD_ERR_USAGE, "%s: `model.sha256` is not the collection of %s/pack, %s",
                   vd_job_place(job, "model.sha256", place), job->model_dir, hex);
}

vd_status vd_load_packed_job(vd_loaded *l, vd_err *err) {
    char place[VD_JOB_PLACE_SIZE];
    if (l->job.training.evaluates || l->job.start.run[0] || l->job.start.dir[0])
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: %s has a pack of programs, which have their weights: no `weights` and "
                       "no `task`",
                       vd_job_place(&l->job, "weights", place), l->job.model_dir);
    l->job.packed = true;
    vd_status status = refuse_program(l->job.model_dir, err);
    if (status == VD_OK)
        status = open_pack(l, err);
    if (status == VD_OK)
        status = check_hash(l, err);
    if (status == VD_OK && !l->bare)
        status = load_shared(l, true, err);
    return status;
}

/* ---- items ---- */

vd_status vd_list_packed(const vd_loaded *l, vd_items *out, vd_err *err) {
    const vd_pack *pack = &l->given.pack;
    vd_status status = vd_items_create(pack->count, out, err);
    for (uint32_t i = 0; status == VD_OK && i < pack->count; i++) {
        vd_program program = {0};
        out->key[i] = pack->item[i].key;
        status = vd_pack_program(pack, i, &program, &out->program[i], err);
        vd_program_free(&program);
    }
    if (status != VD_OK)
        vd_items_free(out);
    return own_fault(l->given.file.path, status, err);
}

vd_status vd_load_packed(vd_loaded *l, uint32_t item, vd_err *err) {
    vd_given *g = &l->given;
    vd_placed_data *to = &l->placed;
    vd_status status = vd_pack_program(&g->pack, item, &l->program, NULL, err);
    if (status != VD_OK)
        return own_fault(g->file.path, status, err);
    const uint32_t count = l->program.data_count;
    to->place = calloc((size_t)count + 1, sizeof *to->place);
    to->tensor = calloc((size_t)count + 1, sizeof *to->tensor);
    if (!to->place || !to->tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = g->pack.own; g->shared.tensor && i < count; i++) {
        to->place[i] = g->shared.place[i];
        to->tensor[i] = g->shared.tensor[i];
    }
    for (uint32_t i = 0; i < g->pack.own; i++) {
        free(g->own[i]);
        to->tensor[i] = g->own[i] = vd_pack_own(&g->pack, item, &l->program, i);
        if (!g->own[i])
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    l->exec.data = to->tensor;
    return VD_OK;
}
