/* Single questions of a checker to the provider, where nothing is judged: for finding the place at
 * which a crumb then is. What the provider says wrong is VD_ERR_PEER. PROTOCOL.md section 13.8. */
#ifndef VD_AUDIT_LINE_H
#define VD_AUDIT_LINE_H

#include "verde/protocol/crumb.h"

typedef struct {
    const vd_program *program;
    vd_hash program_hash, assignment, run_root;
    vd_public_key provider;
    const vd_key *key;      /* the checker's */
    vd_hash draw[VD_DRAWS]; /* of questions that have one: nothing is drawn from their answers */
    /* The answer, as it came, is appended to *note. VD_ERR_TIMEOUT: there is none. */
    vd_status (*ask)(void *user, const vd_outgoing *question, vd_buf *note, vd_err *err);
    void *user;
} vd_audit_line;

/* Asks for a statement with a draw, and takes its root: a sub-run, a trace, or the last part of a
 * fold. */
VD_MUST_USE vd_status vd_line_state(const vd_audit_line *line, const vd_question *question,
                                    vd_hash *root, vd_err *err);
/* The hashes below a node of a tree, at question->depth: `count` of them, which join to `above`, or
 * of the whole tree to its root. *root as below. */
VD_MUST_USE vd_status vd_line_open(const vd_audit_line *line, const vd_question *question,
                                   const vd_hash *above, vd_hash *root, vd_hash *frontier,
                                   size_t count, vd_err *err);
/* As vd_line_prove, of these leaves, ascending. */
VD_MUST_USE vd_status vd_line_prove_some(const vd_audit_line *line, const vd_tree_name *tree,
                                         uint64_t *leaf, uint32_t count, vd_hash *root,
                                         vd_buf *data, vd_err *err);
/* Asks for `count` leaves from `first` on, and proves each under the root, which the answer states,
 * and which must be *root unless that is zeros; then *root is set. data[i] is appended to. */
VD_MUST_USE vd_status vd_line_prove(const vd_audit_line *line, const vd_tree_name *tree,
                                    uint64_t first, uint32_t count, vd_hash *root, vd_buf *data,
                                    vd_err *err);
/* The first leaf in which the provider's tree differs from one's own; *root as above. VD_ERR_PEER:
 * it does not differ, too. */
VD_MUST_USE vd_status vd_line_descend(const vd_audit_line *line, const vd_tree_name *tree,
                                      const vd_tree *own, vd_hash *root, uint64_t *leaf,
                                      vd_err *err);

#endif
