/* Writes a step's part of a file. */
#include "verde/log/internal.h"

#include <stdlib.h>

/* Bytes that are collected before a write: a system call per section would take most of a small
 * job's time. */
enum { PIECE = 1 << 17 };

static vd_status write_bytes(vd_log_step *step, vd_err *err) {
    vd_status status = vd_writer_put(step->file, step->bytes.data, step->bytes.size, err);
    step->bytes.size = 0;
    return status;
}

vd_status vd_log_step_open(vd_log_step *step, const vd_log_run *run, vd_writer *file,
                           int64_t number, vd_log_node *node, uint32_t count, vd_err *err) {
    *step = (vd_log_step){.run = run, .file = file, .step = number, .node = node, .count = count};
    step->entry = calloc(count ? count : 1, sizeof *step->entry);
    vd_log_put_header(&step->bytes, run, number, count);
    if (!step->entry || !vd_buf_ok(&step->bytes))
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the log of step %lld", (long long)number);
    step->at = step->bytes.size;
    return VD_OK;
}

vd_status vd_log_step_put(vd_log_step *step, vd_sha *sha, const vd_log_section *section,
                          const vd_buf *coded, vd_err *err) {
    const size_t before = step->bytes.size;
    vd_log_entry *entry = &step->entry[step->written];
    vd_status status = vd_log_section_put(section, coded, &step->bytes, err);
    if (status != VD_OK)
        return status;
    entry->at = step->at;
    entry->size = step->bytes.size - before;
    entry->coded_size = coded->size;
    entry->count = (uint64_t)section->count;
    entry->escapes = (uint64_t)section->escapes;
    if (!vd_log_section_hash_with(sha, step->bytes.data + before, entry->size, &entry->hash))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, while hashing a log");
    step->at += entry->size;
    step->written++;
    return step->bytes.size < PIECE ? VD_OK : write_bytes(step, err);
}

/* Appends index and trailer to step->bytes. */
static vd_status finish(vd_log_step *step, vd_hash *root, vd_err *err) {
    vd_buf header = {0};
    vd_tree tree = {0};
    vd_hash tree_root;
    vd_log_trailer trailer = {.index_at = step->at};
    vd_status status = vd_log_tree(step->entry, step->count, &tree, &tree_root, err);
    if (status != VD_OK)
        return status;
    vd_tree_free(&tree);
    const size_t before = step->bytes.size;
    vd_log_put_header(&header, step->run, step->step, step->count);
    vd_log_put_index(&step->bytes, step->node, step->entry, step->count);
    if (!vd_buf_ok(&header) || !vd_buf_ok(&step->bytes) ||
        !vd_log_digest(header.data, step->bytes.data + before, step->bytes.size - before,
                       &trailer.digest) ||
        !vd_log_root(step->run, step->step, step->count, &tree_root, &trailer.root))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory for the log's index of step %lld",
                         (long long)step->step);
    vd_log_put_trailer(&step->bytes, &trailer);
    if (status == VD_OK && !vd_buf_ok(&step->bytes))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory for the log of step %lld",
                         (long long)step->step);
    vd_buf_free(&header);
    step->at += step->bytes.size - before;
    *root = trailer.root;
    return status;
}

vd_status vd_log_step_end(vd_log_step *step, vd_log_done *done, vd_err *err) {
    *done = (vd_log_done){.step = step->step};
    vd_log_sum_up(step->node, step->entry, step->count, done);
    vd_status status = finish(step, &done->root, err);
    if (status == VD_OK)
        status = write_bytes(step, err);
    done->bytes = step->at;
    vd_log_step_drop(step);
    return status;
}

void vd_log_step_drop(vd_log_step *step) {
    vd_buf_free(&step->bytes);
    free(step->entry);
    free(step->node);
    *step = (vd_log_step){0};
}
