/* This file prepares what is sent to several daemons, and determines the providers. */
#include "verde/delegate/delegation.h"

#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"
#include "verde/run/dry_run.h"
#include "verde/run/results.h"
#include "verde/run/run_items.h"

enum { HASH_CHUNK = 1 << 20 };

/* ---- what is sent ---- */

/* Hashes a parcel piece by piece, so that a file of any size takes little memory. */
static bool hash_parcel(vd_parcel *parcel) {
    vd_sha *sha = vd_sha_create();
    for (uint64_t at = 0; sha && at < parcel->size; at += HASH_CHUNK) {
        const uint64_t left = parcel->size - at;
        const size_t size = left < HASH_CHUNK ? (size_t)left : HASH_CHUNK;
        vd_sha_put(sha, parcel->bytes + at, size);
        vd_map_pass(parcel->bytes + at, size);
    }
    const bool done = sha && vd_sha_finish(sha, &parcel->hash);
    vd_sha_destroy(sha);
    return done;
}

static vd_status put_parcel(vd_delegation *d, const void *bytes, uint64_t size) {
    vd_parcel *to = &d->parcel[d->parcel_count++];
    *to = (vd_parcel){.bytes = bytes, .size = size};
    d->parcel_bytes += size;
    return hash_parcel(to)
               ? VD_OK
               : vd_fail(d->err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, in hashing data");
}

static vd_status put_data(vd_delegation *d, uint32_t i) {
    const ro_shape *shape = &d->loaded.program.data[i].tensor.shape;
    const size_t size = vd_shape_bytes(shape);
    const void *bytes = vd_to_little(d->loaded.exec.data[i], size, ro_dtype_size(shape->dtype),
                                     &d->copy[d->copies++]);
    return bytes ? put_parcel(d, bytes, size) : vd_fail(d->err, VD_ERR_LOCAL, "out of memory");
}

static vd_status make_parcels(vd_delegation *d) {
    const vd_program *p = &d->loaded.program;
    d->parcel = calloc((size_t)p->data_count + 1, sizeof *d->parcel);
    d->copy = calloc((size_t)p->data_count + 1, sizeof *d->copy);
    if (!d->prompts)
        vd_program_encode(p, &d->bytes);
    if (!d->parcel || !d->copy || !vd_buf_ok(&d->bytes))
        return vd_fail(d->err, VD_ERR_LOCAL, "out of memory");
    vd_status status = put_parcel(d, d->bytes.data, d->bytes.size);
    const uint32_t own = d->prompts ? vd_prompt_own_data(&d->loaded) : 0;
    for (uint32_t i = own; i < p->data_count && status == VD_OK; i++)
        status = put_data(d, i);
    return status;
}

/* Returns the last part of a path, as a name for people. */
static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static vd_status write_submission(vd_delegation *d) {
    char key[2 * VD_KEY_SIZE + 1], name[60];
    json_t *data = json_array();
    vd_hex(d->client.b, VD_KEY_SIZE, key);
    snprintf(name, sizeof name, "%s", name_of(d->o->job));
    for (uint32_t i = 1; i < d->parcel_count; i++)
        json_array_append_new(data, vd_hash_text(&d->parcel[i].hash));
    json_t *root =
        json_pack("{so ss so s[s] si}", "data", data, "name", name, d->prompts ? "pack" : "program",
                  vd_hash_text(&d->parcel[0].hash), "referees", key, "verde", 1);
    const bool written = root && vd_json_dump(root, &d->submission);
    json_decref(root);
    return written ? VD_OK
                   : vd_fail(d->err, VD_ERR_USAGE, "%s: its name cannot be sent", d->o->job);
}

/* Computes the job's id as daemons do (PROTOCOL.md section 8.7): it is the same at all of them. */
static vd_status name_job(vd_delegation *d) {
    vd_buf bytes = {0};
    vd_hash id;
    vd_put(&bytes, d->client.b, VD_KEY_SIZE);
    vd_put(&bytes, d->submission.data, d->submission.size);
    const bool named =
        vd_buf_ok(&bytes) && vd_hash_tagged("verde/job/1", bytes.data, bytes.size, &id);
    vd_buf_free(&bytes);
    if (!named)
        return vd_fail(d->err, VD_ERR_LOCAL, "out of memory");
    vd_hex(id.b, VD_HASH_SIZE, d->id);
    return VD_OK;
}

/* ---- the providers ---- */

static vd_status parse_providers(vd_delegation *d) {
    for (uint32_t i = 0; i < d->o->urls; i++) {
        vd_status status = vd_endpoint_parse(d->o->url[i], &d->endpoint[i], d->err);
        if (status != VD_OK)
            return status;
        if (!d->endpoint[i].pinned)
            return vd_fail(d->err, VD_ERR_USAGE,
                           "%s: `#KEY` is missing; give the URL as `verde provide` prints it",
                           d->o->url[i]);
        for (uint32_t k = 0; k < i; k++)
            if (memcmp(&d->endpoint[k].key, &d->endpoint[i].key, VD_KEY_SIZE) == 0)
                return vd_fail(d->err, VD_ERR_USAGE, "providers %u and %u have the same key", k + 1,
                               i + 1);
    }
    return VD_OK;
}

static vd_status check_kind(const vd_delegation *d) {
    if (vd_backend_of(&d->loaded.program))
        return vd_fail(d->err, VD_ERR_USAGE,
                       "%s: has `rounding`, and daemons run jobs in fixed order alone; leave it "
                       "out, or start `verde run --backend log` and `verde serve` on each machine "
                       "(docs/rounding-logs.md)",
                       d->o->job);
    return VD_OK;
}

static uint64_t upload_bytes(const vd_delegation *d) {
    const vd_program *p = &d->loaded.program;
    uint64_t bytes = d->bytes.size;
    for (uint32_t i = d->prompts ? vd_prompt_own_data(&d->loaded) : 0; i < p->data_count; i++)
        bytes += vd_shape_bytes(&p->data[i].tensor.shape);
    return bytes;
}

vd_status vd_delegation_dry_run(vd_delegation *d) {
    vd_status status = vd_load_prompts(d->o->job, &d->loaded, d->err);
    d->prompts = vd_job_has_prompts(&d->loaded.job);
    if (status == VD_OK)
        status = vd_need_weights(&d->loaded, d->err);
    if (status == VD_OK)
        status = check_kind(d);
    if (status == VD_OK && d->prompts)
        status = vd_delegation_pack(d);
    else if (status == VD_OK)
        vd_program_encode(&d->loaded.program, &d->bytes);
    if (status == VD_OK)
        status = vd_load_backend(&d->loaded, &d->o->common, d->err);
    const vd_dry_run_options options = {.job = d->o->job,
                                        .together = VD_TOGETHER,
                                        .upload = upload_bytes(d),
                                        .json = d->o->common.json};
    return status == VD_OK ? vd_dry_run(&options, &d->loaded, d->err) : status;
}

vd_status vd_delegation_prepare(vd_delegation *d) {
    vd_status status = parse_providers(d);
    if (status == VD_OK)
        status = vd_load_prompts(d->o->job, &d->loaded, d->err);
    d->prompts = vd_job_has_prompts(&d->loaded.job);
    if (status == VD_OK)
        status = vd_need_weights(&d->loaded, d->err);
    if (status == VD_OK)
        status = check_kind(d);
    if (status == VD_OK)
        status = d->prompts ? vd_delegation_pack(d)
                            : vd_program_hash(&d->loaded.program, &d->program, d->err);
    if (status == VD_OK && !d->prompts)
        d->slow_s = vd_delegation_slow_s(&d->loaded.program);
    if (status == VD_OK)
        status = vd_load_key(d->o->key_dir, &d->key, d->err);
    if (status != VD_OK)
        return status;
    status = vd_delegation_score_open(d);
    if (status != VD_OK)
        return status;
    vd_key_public(d->key, &d->client);
    status = make_parcels(d);
    if (status == VD_OK)
        status = write_submission(d);
    return status == VD_OK ? name_job(d) : status;
}

void vd_delegation_free(vd_delegation *d) {
    for (uint32_t i = 0; i < d->copies; i++)
        free(d->copy[i]);
    free(d->copy);
    free(d->parcel);
    vd_buf_free(&d->bytes);
    vd_buf_free(&d->submission);
    vd_key_destroy(d->key);
    json_decref(d->audited);
    vd_evaluation_close(&d->evaluation);
    vd_loaded_free(&d->loaded);
}
