/* One question at a provider, from the request to the signed answer. Private to verde/protocol. */
#ifndef VD_INQUIRY_H
#define VD_INQUIRY_H

#include "verde/log/served.h"
#include "verde/protocol/provider.h"

typedef struct {
    const vd_provider *provider;
    vd_source source;          /* of the run that the question is about */
    bool entered;              /* that of an item, which is left in the end */
    const vd_program *program; /* of that run; NULL: the question is about a collection */
    vd_program item_program;
    vd_hash program_hash;
    vd_assignment assignment;
    vd_hash assignment_hash, question_hash;
    vd_question question;
    bool refused;  /* asked for a second run, which failed */
    bool mismatch; /* something is not what the run committed to */
    vd_err *err;
} vd_inquiry;

/* ---- provider.c ---- */

/* Everything that is known without executing anything. *out may be freed after a failure too. */
VD_MUST_USE vd_status vd_inquiry_open(const vd_provider *provider, const void *request, size_t size,
                                      vd_inquiry *out, vd_err *err);
void vd_inquiry_free(vd_inquiry *inquiry);
/* Nothing is executed for the answer, and nothing of the source changes. */
bool vd_inquiry_is_quick(const vd_inquiry *inquiry);
/* The signed answer, appended to *note. */
VD_MUST_USE vd_status vd_inquiry_answer(vd_inquiry *inquiry, vd_buf *note);

/* The program whose run the question is about; NULL: it is about a collection. */
const vd_program *vd_inquiry_program(const vd_inquiry *inquiry);

/* ---- answers.c ---- */

/* The answer's body. NULL: nothing is said, for the reason in *inquiry->err, or for want of
 * memory. */
json_t *vd_inquiry_body(vd_inquiry *inquiry);

/* ---- trees.c ---- */

/* The leaves of a tree: hashes, records or bytes of a tensor; and its Merkle tree. */
typedef struct {
    const vd_tree *tree;
    vd_tree own;               /* that, unless the run keeps it */
    vd_hash *item;             /* RUN, SUBRUN, STATE; owned */
    vd_hash (*logged)[2];      /* RUN with rounding logs: S and L of each item; owned */
    const vd_records *records; /* TRACE, FOLD */
    vd_records parts;          /* FOLD; owned */
    const uint8_t *bytes;      /* TENSOR, as committed to */
    void *copy;                /* owned; NULL if those are the tensor's memory */
    uint64_t size;
    vd_hash root; /* of the tree */
} vd_leaves;

VD_MUST_USE vd_status vd_leaves_load(vd_inquiry *inquiry, const vd_tree_name *name, vd_leaves *out);
void vd_leaves_free(vd_leaves *leaves);
const uint8_t *vd_leaves_at(const vd_leaves *leaves, uint64_t index, size_t *size);

/* ---- checks.c: what a run gives again, compared with what it committed to ---- */

/* VD_ERR_LOCAL, and inquiry->mismatch, if the two differ. Nothing is compared of a provider that is
 * dishonest on purpose. */
VD_MUST_USE vd_status vd_expect(vd_inquiry *inquiry, const vd_hash *given, const vd_hash *committed,
                                const char *what);
/* S_from .. S_to: the states of whole checkpoint intervals lead from one committed state to the
 * next. */
VD_MUST_USE vd_status vd_checked_states(vd_inquiry *inquiry, int64_t from, int64_t to,
                                        vd_hash *state);
/* Commitments of the tensors of S_step, which lead to it. */
VD_MUST_USE vd_status vd_checked_leaves(vd_inquiry *inquiry, int64_t step, vd_hash *tensor);
/* Records of the job's nodes, from the leaves of S_step to those of S_(step+1). Borrowed. */
VD_MUST_USE vd_status vd_checked_trace(vd_inquiry *inquiry, int64_t step, const vd_records **out);
/* The commitment of a value in the state, the job or the trace. */
VD_MUST_USE vd_status vd_expected_tensor(vd_inquiry *inquiry, int64_t step, uint32_t value,
                                         vd_hash *commitment);
/* The parts of an element, of checked inputs; the element that the run has follows from the last.
 * Owned by the caller. */
VD_MUST_USE vd_status vd_checked_fold(vd_inquiry *inquiry, const vd_tree_name *name,
                                      vd_records *out);
/* Leaf `index`, in base64 as it is sent, and its path lead to the root. */
VD_MUST_USE vd_status vd_check_proof(vd_inquiry *inquiry, const vd_leaves *leaves, uint64_t index,
                                     const vd_proof *proof, const char *data);
/* The hashes below [lo, hi) lead to the tree's root, with the nodes beside the way. */
VD_MUST_USE vd_status vd_check_frontier(vd_inquiry *inquiry, const vd_leaves *leaves,
                                        const vd_hash *frontier, size_t count);
/* A section of a log leads to L. */
VD_MUST_USE vd_status vd_check_section(vd_inquiry *inquiry, const vd_section_proof *proof);

#endif
