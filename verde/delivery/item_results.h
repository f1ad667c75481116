/* The results of a job with many programs, for download (PROTOCOL.md section 8.6): the run root of
 * each item, and a record of its last state with the proof. */
#ifndef VD_ITEM_RESULTS_H
#define VD_ITEM_RESULTS_H

#include "verde/exec/exec.h"
#include "verde/exec/items.h"
#include "verde/exec/store.h"
#include "verde/net/net.h"

enum {
    VD_ITEM_RECORD_MAX = 1 << 30,   /* bytes of a record */
    VD_ITEM_PIECE_BYTES = 16 << 20, /* larger records are sent in pieces of this size */
    VD_ITEM_ANSWER_BYTES = 1 << 20  /* most bytes of several records in an answer */
};

/* Returns true if a leaf is a result, which its item's record includes. */
bool vd_is_result_leaf(const vd_leaf *leaf);
uint64_t vd_item_record_bytes(const vd_program *program); /* UINT64_MAX: overflow */

/* Reads the record at the beginning of `bytes` and checks it against the run root. *used becomes
 * its size, *out its tensors in layout order, in host memory; those that are no results are NULL.
 * The caller frees *out. VD_ERR_PEER: it is not the last state of this run. */
VD_MUST_USE vd_status vd_item_record_read(const vd_program *program, const vd_hash *program_hash,
                                          const vd_hash *run_root, const void *bytes, size_t size,
                                          size_t *used, vd_state *out, vd_err *err);

/* ---- the file of a job's results ---- */

/* Writes the file of the runs in DIR, all of them done, to `path`. `ro` hashes last states. */
VD_MUST_USE vd_status vd_item_results_write(ro_ctx *ro, const char *dir, const vd_items *items,
                                            const char *path, vd_err *err);
/* Answers a GET from the file. `rest` is the path behind the job's: "/items", "/items/7" or
 * "/items/7/3"; anything else gives 404. Thread-safe. */
void vd_item_results_answer(const char *path, const char *rest, vd_response *response);

#endif
