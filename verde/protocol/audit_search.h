/* From an interval that was executed again, and came to another state, to the place where a crumb
 * shows it. PROTOCOL.md section 13.8. */
#ifndef VD_AUDIT_SEARCH_H
#define VD_AUDIT_SEARCH_H

#include "verde/protocol/audit_line.h"

/* The states that the run commits to before and at leaf `leaf` of its tree; before leaf 0 there is
 * none. */
VD_MUST_USE vd_status vd_search_ends(const vd_audit_line *line, uint64_t leaf, vd_hash *before,
                                     vd_hash *after, vd_err *err);

/* Takes the bytes of all tensors of S_step, which is `state`, in the order of the layout: as a file
 * of a state has them. They are not compared with it: whoever reads that file does. */
typedef vd_status (*vd_search_put)(void *user, const void *bytes, size_t size, vd_err *err);
VD_MUST_USE vd_status vd_search_state(const vd_audit_line *line, int64_t step, vd_search_put put,
                                      void *user, vd_err *err);

/* `own` executes the steps from..to as they should be, from the same state (-1: initialisation).
 * *place becomes a place of the first difference that the provider states, or of how far it went:
 * a referee asks about it in any case. VD_ERR_PEER and VD_ERR_TIMEOUT are the provider's. */
VD_MUST_USE vd_status vd_search_place(const vd_audit_line *line, const vd_source *own, int64_t from,
                                      int64_t to, vd_crumb *place, vd_err *err);

#endif
