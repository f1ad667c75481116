/* One question at a provider, from the request to the signed answer. Private to verde/protocol. */
#ifndef VD_INQUIRY_H
#define VD_INQUIRY_H

#include "verde/log/served.h"
#include "verde/protocol/provider.h"

typedef struct {
    const vd_provider *provider;
    vd_source source;          /* the run that the question is about */
    bool entered;              /* `source` is an item's run, which vd_inquiry_free leaves */
    const vd_program *program; /* program of this run; NULL: the question is about a collection */
    vd_program item_program;
    vd_hash program_hash;
    vd_assignment assignment;
    vd_hash assignment_hash, question_hash;
    vd_question question;
    bool refused;  /* the question asks for a second run, which failed */
    bool mismatch; /* the run gave something else than it committed to */
    vd_err *err;
} vd_inquiry;

/* ---- provider.c ---- */

/* Reads a request and chooses the run; executes nothing. *out must be freed after errors, too. */
VD_MUST_USE vd_status vd_inquiry_open(const vd_provider *provider, const void *request, size_t size,
                                      vd_inquiry *out, vd_err *err);
void vd_inquiry_free(vd_inquiry *inquiry);
/* Returns true if the answer needs no execution and does not change the source. */
bool vd_inquiry_is_quick(const vd_inquiry *inquiry);
/* Computes the answer, signs it and appends it to *note. */
VD_MUST_USE vd_status vd_inquiry_answer(vd_inquiry *inquiry, vd_buf *note);

/* Returns the program whose run the question is about, or NULL if it is about a collection. */
const vd_program *vd_inquiry_program(const vd_inquiry *inquiry);

/* ---- answers.c ---- */

/* Returns the body of the answer. NULL: none is given, for the reason in *inquiry->err, or memory
 * ran out. */
json_t *vd_inquiry_body(vd_inquiry *inquiry);

/* ---- trees.c ---- */

/* The leaves of a tree (hashes, records, or bytes of a tensor) and the Merkle tree over them. */
typedef struct {
    const vd_tree *tree;
    vd_tree own;               /* `tree` points here unless the run keeps the tree */
    vd_hash *item;             /* RUN, SUBRUN, STATE; owned */
    vd_hash (*logged)[2];      /* RUN with rounding logs: S and L of each item; owned */
    const vd_records *records; /* TRACE, FOLD */
    vd_records parts;          /* FOLD; owned */
    const uint8_t *bytes;      /* TENSOR: in the byte order of the commitment */
    void *copy;                /* owned; NULL if `bytes` is the tensor's own memory */
    uint64_t size;
    vd_hash root; /* root of the tree */
} vd_leaves;

VD_MUST_USE vd_status vd_leaves_load(vd_inquiry *inquiry, const vd_tree_name *name, vd_leaves *out);
void vd_leaves_free(vd_leaves *leaves);
const uint8_t *vd_leaves_at(const vd_leaves *leaves, uint64_t index, size_t *size);

/* ---- checks.c: compares what a run gives again with what it committed to ---- */

/* Compares two hashes; if they differ, sets inquiry->mismatch and returns VD_ERR_LOCAL. If the
 * provider lies on purpose, nothing is compared. */
VD_MUST_USE vd_status vd_expect(vd_inquiry *inquiry, const vd_hash *given, const vd_hash *committed,
                                const char *what);
/* Computes S_from .. S_to again, as part of whole checkpoint intervals, each of which must lead
 * from one committed state to the next. */
VD_MUST_USE vd_status vd_checked_states(vd_inquiry *inquiry, int64_t from, int64_t to,
                                        vd_hash *state);
/* Returns the commitments of the tensors of S_step, from which S_step must follow. */
VD_MUST_USE vd_status vd_checked_leaves(vd_inquiry *inquiry, int64_t step, vd_hash *tensor);
/* Returns the step's records, checked: from S_step's leaves to those of S_(step+1). Borrowed. */
VD_MUST_USE vd_status vd_checked_trace(vd_inquiry *inquiry, int64_t step, const vd_records **out);
/* Returns the commitment of a value, from the state, the job or the trace. */
VD_MUST_USE vd_status vd_expected_tensor(vd_inquiry *inquiry, int64_t step, uint32_t value,
                                         vd_hash *commitment);
/* Computes the parts of an element from checked inputs; the run's element must follow from the last
 * part. The caller frees *out. */
VD_MUST_USE vd_status vd_checked_fold(vd_inquiry *inquiry, const vd_tree_name *name,
                                      vd_records *out);
/* Checks that leaf `index` (`data`: as it is sent, in base64) and its path lead to the root. */
VD_MUST_USE vd_status vd_check_proof(vd_inquiry *inquiry, const vd_leaves *leaves, uint64_t index,
                                     const vd_proof *proof, const char *data);
/* Checks that the hashes below [lo, hi) and that node's siblings lead to the tree's root. */
VD_MUST_USE vd_status vd_check_frontier(vd_inquiry *inquiry, const vd_leaves *leaves,
                                        const vd_hash *frontier, size_t count);
/* Checks that a section of a log leads to L. */
VD_MUST_USE vd_status vd_check_section(vd_inquiry *inquiry, const vd_section_proof *proof);

#endif
