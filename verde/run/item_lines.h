/* Lines of results.jsonl, made from records: the last states of a job's prompts. Records come from
 * strangers; the run roots prove them. */
#ifndef VD_ITEM_LINES_H
#define VD_ITEM_LINES_H

#include "verde/run/answers.h"
#include "verde/run/results.h"

/* results.proof begins with this string, its NUL, and version 1 as u16. The run roots and the
 * records follow (PROTOCOL.md section 8.6). */
#define VD_RESULTS_MAGIC "verde results"
enum { VD_RESULTS_VERSION = 1, VD_RESULTS_HEAD = sizeof VD_RESULTS_MAGIC + 2 };
void vd_results_head(uint8_t head[VD_RESULTS_HEAD]);
/* Checks this beginning. VD_ERR_PEER: it differs. */
VD_MUST_USE vd_status vd_results_head_read(const char *path, const vd_map *file, vd_err *err);

/* Starts as all zeros. */
typedef struct {
    vd_loaded *job; /* programs are loaded one by one, since they define the records */
    vd_items items; /* vd_item_lines_roots sets run_root */
    vd_hash collection;
    uint32_t loaded; /* index of the prompt whose program is loaded; UINT32_MAX: none */
    vd_score_sum sum;
    const char *dir; /* for files of answers; NULL: not wanted */
    vd_answers answers;
} vd_item_lines;

/* Borrows the job (vd_load_prompts) until vd_item_lines_free. */
VD_MUST_USE vd_status vd_item_lines_open(vd_loaded *job, vd_item_lines *out, vd_err *err);
/* Takes items.count run roots of VD_HASH_SIZE bytes; *job_root receives the root over them. */
VD_MUST_USE vd_status vd_item_lines_roots(vd_item_lines *lines, const void *roots,
                                          vd_hash *job_root, vd_err *err);
/* Computes the size of an item's record in bytes. */
VD_MUST_USE vd_status vd_item_line_size(vd_item_lines *lines, uint32_t item, uint64_t *size,
                                        vd_err *err);
/* Checks the record at `bytes`, sets *used to its size, and appends its line to `out`. VD_ERR_PEER
 * names the prompt whose run root does not prove its record. */
VD_MUST_USE vd_status vd_item_line(vd_item_lines *lines, uint32_t item, const void *bytes,
                                   size_t size, size_t *used, vd_buf *out, vd_err *err);
void vd_item_lines_free(vd_item_lines *lines); /* may be called twice */

#endif
