/* Questions about rounding logs that a provider answers, beside those about states. PROTOCOL.md
 * section 12. As in vd_source (exec/source.h), each function may take as long as a re-execution. */
#ifndef VD_LOG_SERVED_H
#define VD_LOG_SERVED_H

#include "verde/log/program.h"

typedef struct vd_emitted_source {
    void *user;
    vd_role role;
    /* Gets the name of the log's run, and L of each leaf of the run. */
    vd_status (*logs)(void *user, vd_hash *run, vd_hash *logs, vd_err *err);
    /* Gets section `index` of a step's log. */
    vd_status (*section)(void *user, int64_t step, uint64_t index, vd_section_proof *out,
                         vd_err *err);
    /* Gets the trainer's signed note at this leaf of the run. VD_ERR_PEER: `trainer` signed
     * none. */
    vd_status (*note)(void *user, uint64_t leaf, const vd_public_key *trainer, vd_buf *out,
                      vd_err *err);
} vd_emitted_source;

#endif
