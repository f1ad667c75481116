/* Finds the leaves of a provider's tree that differ from our own. */
#ifndef VD_REMOTE_TREE_H
#define VD_REMOTE_TREE_H

#include "verde/protocol/audit_line.h"

/* Receives the bytes of leaf `index`. */
typedef vd_status (*vd_remote_take)(void *user, uint64_t index, const vd_buf *data, vd_err *err);

/* Opens the tree where it differs and passes each leaf that differs to `take`, in ascending order,
 * asking for `at_once` leaves per question. If all hashes below a node differ, all of its leaves
 * are passed. `root`: the root that the provider stated, or zeros. */
VD_MUST_USE vd_status vd_remote_differing(const vd_audit_line *line, const vd_tree_name *tree,
                                          const vd_tree *own, const vd_hash *root, uint32_t at_once,
                                          vd_remote_take take, void *user, vd_err *err);

#endif
