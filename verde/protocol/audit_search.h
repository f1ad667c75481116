/* Starting from an interval that was executed again and led to another state, finds the place at
 * which a crumb shows the difference. PROTOCOL.md section 13.8. */
#ifndef VD_AUDIT_SEARCH_H
#define VD_AUDIT_SEARCH_H

#include "verde/protocol/audit_line.h"

/* Returns the states that the run's tree has at leaf `leaf` and, unless that is 0, at the one
 * before. */
VD_MUST_USE vd_status vd_search_ends(const vd_audit_line *line, uint64_t leaf, vd_hash *before,
                                     vd_hash *after, vd_err *err);

/* Fetches the bytes of all tensors of S_step, in layout order as in a state's file. They are not
 * compared with the committed state; whoever reads the file does that. */
typedef vd_status (*vd_search_put)(void *user, const void *bytes, size_t size, vd_err *err);
VD_MUST_USE vd_status vd_search_state(const vd_audit_line *line, int64_t step, vd_search_put put,
                                      void *user, vd_err *err);

/* Compares the provider's steps from..to (-1: initialisation) with `own`, which executes them
 * correctly from the same state. *place becomes the first difference stated, or as far as the
 * search got, for a crumb to judge. VD_ERR_PEER, VD_ERR_TIMEOUT: the provider failed. */
VD_MUST_USE vd_status vd_search_place(const vd_audit_line *line, const vd_source *own, int64_t from,
                                      int64_t to, vd_crumb *place, vd_err *err);

#endif
