/* This file makes lines of results.jsonl from records that others sent. */
#include "verde/run/item_lines.h"

#include <string.h>

#include "verde/delivery/item_results.h"

void vd_results_head(uint8_t head[VD_RESULTS_HEAD]) {
    memcpy(head, VD_RESULTS_MAGIC, sizeof VD_RESULTS_MAGIC);
    head[VD_RESULTS_HEAD - 2] = VD_RESULTS_VERSION;
    head[VD_RESULTS_HEAD - 1] = 0;
}

vd_status vd_results_head_read(const char *path, const vd_map *file, vd_err *err) {
    vd_cursor c = vd_cursor_of(file->data, file->size);
    const uint8_t *magic = vd_get(&c, sizeof VD_RESULTS_MAGIC);
    const uint16_t version = vd_get_u16(&c);
    if (c.failed || memcmp(magic, VD_RESULTS_MAGIC, sizeof VD_RESULTS_MAGIC) != 0)
        return vd_fail(err, VD_ERR_PEER, "%s: is no proof of results", path);
    return version == VD_RESULTS_VERSION ? VD_OK
                                         : vd_fail_version(err, path, version, "a proof of results",
                                                           VD_RESULTS_VERSION, VD_RESULTS_VERSION);
}

vd_status vd_item_lines_open(vd_loaded *job, vd_item_lines *out, vd_err *err) {
    *out = (vd_item_lines){.job = job, .loaded = UINT32_MAX};
    vd_status status = vd_list_prompts(job, &out->items, err);
    return status == VD_OK
               ? vd_collection_hash(out->items.program, out->items.count, &out->collection, err)
               : status;
}

vd_status vd_item_lines_roots(vd_item_lines *x, const void *roots, vd_hash *job_root, vd_err *err) {
    memcpy(x->items.run_root, roots, x->items.count * sizeof *x->items.run_root);
    return vd_collection_root(x->items.run_root, x->items.count, job_root, err);
}

static vd_status need_program(vd_item_lines *x, uint32_t item, vd_err *err) {
    vd_status status = VD_OK;
    if (x->loaded != item)
        status = vd_load_prompt(x->job, item, err);
    x->loaded = status == VD_OK ? item : UINT32_MAX;
    return status;
}

vd_status vd_item_line_size(vd_item_lines *x, uint32_t item, uint64_t *size, vd_err *err) {
    const vd_status status = need_program(x, item, err);
    *size = status == VD_OK ? vd_item_record_bytes(&x->job->program) : 0;
    return status;
}

vd_status vd_item_line(vd_item_lines *x, uint32_t item, const void *bytes, size_t size,
                       size_t *used, vd_buf *out, vd_err *err) {
    const int64_t key = x->items.key[item];
    vd_err why = {0};
    vd_state state = {0};
    vd_status status = need_program(x, item, err);
    if (status != VD_OK)
        return status;
    status = vd_item_record_read(&x->job->program, &x->items.program[item],
                                 &x->items.run_root[item], bytes, size, used, &state, &why);
    if (status != VD_OK)
        vd_fail(err, status, "the result of the %s with key %lld: %.300s",
                vd_prompt_word(x->job, 1), (long long)key, why.text);
    else
        status = vd_result_line(&x->job->program, &state, key, &x->sum, out, err);
    if (status == VD_OK && x->dir && vd_program_answers(&x->job->program))
        status = vd_answers_put(&x->answers, x->dir, x->job, &state, err);
    vd_state_free(&state);
    return status;
}

void vd_item_lines_free(vd_item_lines *x) {
    vd_answers_free(&x->answers);
    vd_items_free(&x->items);
}
