/* Lines of results.jsonl that are made of records, which say what the runs of a job with prompts
 * end with. The records come from strangers; the run roots prove them. */
#ifndef VD_ITEM_LINES_H
#define VD_ITEM_LINES_H

#include "verde/run/answers.h"
#include "verde/run/results.h"

/* results.proof begins with this string, its zero, and u16 version 1; then come the run roots, and
 * the records (PROTOCOL.md section 8.6). */
#define VD_RESULTS_MAGIC "verde results"
enum { VD_RESULTS_VERSION = 1, VD_RESULTS_HEAD = sizeof VD_RESULTS_MAGIC + 2 };
void vd_results_head(uint8_t head[VD_RESULTS_HEAD]);
/* VD_ERR_PEER: it begins in another way. */
VD_MUST_USE vd_status vd_results_head_read(const char *path, const vd_map *file, vd_err *err);

/* Empty to begin with. */
typedef struct {
    vd_loaded *job; /* its programs say what a record holds; loaded one by one */
    vd_items items; /* run_root is filled in by vd_item_lines_roots */
    vd_hash collection;
    uint32_t loaded; /* the prompt whose program is loaded; UINT32_MAX: none */
    vd_score_sum sum;
    const char *dir; /* of files of answers; NULL: none are wanted */
    vd_answers answers;
} vd_item_lines;

/* Borrows the job (vd_load_prompts) until vd_item_lines_free. */
VD_MUST_USE vd_status vd_item_lines_open(vd_loaded *job, vd_item_lines *out, vd_err *err);
/* Takes the run roots, items.count times VD_HASH_SIZE bytes; *job_root receives what they give. */
VD_MUST_USE vd_status vd_item_lines_roots(vd_item_lines *lines, const void *roots,
                                          vd_hash *job_root, vd_err *err);
/* How many bytes the record of an item has. */
VD_MUST_USE vd_status vd_item_line_size(vd_item_lines *lines, uint32_t item, uint64_t *size,
                                        vd_err *err);
/* Appends to `out` the line of the record that begins at `bytes`; *used receives the record's size.
 * VD_ERR_PEER names the prompt whose record is not what its run root proves. */
VD_MUST_USE vd_status vd_item_line(vd_item_lines *lines, uint32_t item, const void *bytes,
                                   size_t size, size_t *used, vd_buf *out, vd_err *err);
void vd_item_lines_free(vd_item_lines *lines); /* harmless twice */

#endif
