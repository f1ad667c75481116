/* Single questions of a checker to the provider, without a referee: they lead to the place that a
 * crumb then judges. VD_ERR_PEER: the provider's answer is wrong. PROTOCOL.md section 13.8. */
#ifndef VD_AUDIT_LINE_H
#define VD_AUDIT_LINE_H

#include "verde/protocol/crumb.h"

typedef struct {
    const vd_program *program;
    vd_hash program_hash, assignment, run_root;
    vd_public_key provider;
    const vd_key *key;      /* the checker's */
    vd_hash draw[VD_DRAWS]; /* the `draw` of questions that need one; nothing is drawn */
    /* Sends a question and appends the answer, as received, to *note. VD_ERR_TIMEOUT: no answer. */
    vd_status (*ask)(void *user, const vd_outgoing *question, vd_buf *note, vd_err *err);
    void *user;
} vd_audit_line;

/* Asks a question that has a `draw` member, and returns the stated root: of a sub-run, of a trace,
 * or of a fold (by the proof of its last part). */
VD_MUST_USE vd_status vd_line_state(const vd_audit_line *line, const vd_question *question,
                                    vd_hash *root, vd_err *err);
/* Asks for the `count` hashes below a node, question->depth levels down. They must join to `above`,
 * or, if the node is the whole tree, to its root. *root: see vd_line_prove. */
VD_MUST_USE vd_status vd_line_open(const vd_audit_line *line, const vd_question *question,
                                   const vd_hash *above, vd_hash *root, vd_hash *frontier,
                                   size_t count, vd_err *err);
/* Like vd_line_prove, for a list of leaves in ascending order. */
VD_MUST_USE vd_status vd_line_prove_some(const vd_audit_line *line, const vd_tree_name *tree,
                                         uint64_t *leaf, uint32_t count, vd_hash *root,
                                         vd_buf *data, vd_err *err);
/* Asks for `count` leaves from `first` on, verifies them and appends their bytes to data[i]. The
 * stated root must be *root, or is stored there if *root is all zeros. */
VD_MUST_USE vd_status vd_line_prove(const vd_audit_line *line, const vd_tree_name *tree,
                                    uint64_t first, uint32_t count, vd_hash *root, vd_buf *data,
                                    vd_err *err);
/* Finds the first leaf in which the provider's tree differs from `own`. *root: see vd_line_prove.
 * VD_ERR_PEER also if the trees do not differ. */
VD_MUST_USE vd_status vd_line_descend(const vd_audit_line *line, const vd_tree_name *tree,
                                      const vd_tree *own, vd_hash *root, uint64_t *leaf,
                                      vd_err *err);

#endif
