/* Results of a job of many programs, for whoever downloads them (PROTOCOL.md section 8.6): the run
 * root of each item, and a record of what its last state says, with the proof that leads to it. */
#ifndef VD_ITEM_RESULTS_H
#define VD_ITEM_RESULTS_H

#include "verde/exec/exec.h"
#include "verde/exec/items.h"
#include "verde/exec/store.h"
#include "verde/net/net.h"

enum {
    VD_ITEM_RECORD_MAX = 1 << 30,   /* bytes of a record */
    VD_ITEM_PIECE_BYTES = 16 << 20, /* a larger record is sent in pieces of so many */
    VD_ITEM_ANSWER_BYTES = 1 << 20  /* an answer has no more records than these bytes, or one */
};

/* Is a leaf a result, and so in the record? */
bool vd_is_result_leaf(const vd_leaf *leaf);
uint64_t vd_item_record_bytes(const vd_program *program); /* UINT64_MAX: more than that */

/* Reads the record at the beginning of `bytes`, and checks it against the run root: *used receives
 * its size, *out its tensors in the order of the layout, in host memory, owned by the caller; those
 * that are no results are NULL. VD_ERR_PEER: it is not what that run ends with. */
VD_MUST_USE vd_status vd_item_record_read(const vd_program *program, const vd_hash *program_hash,
                                          const vd_hash *run_root, const void *bytes, size_t size,
                                          size_t *used, vd_state *out, vd_err *err);

/* ---- the file of a job's results ---- */

/* Makes it of the runs in DIR, all of which are done, at `path`. `ro` hashes their last states. */
VD_MUST_USE vd_status vd_item_results_write(ro_ctx *ro, const char *dir, const vd_items *items,
                                            const char *path, vd_err *err);
/* Answers a GET from it. `rest` is the path behind that of the job: "/items", "/items/7" or
 * "/items/7/3"; anything else is 404. Any number of threads may call it. */
void vd_item_results_answer(const char *path, const char *rest, vd_response *response);

#endif
