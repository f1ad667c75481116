/* Chooses the backend on which a run is executed again. */
#include <string.h>

#include "verde/audit/recheck.h"

/* Fastest first. */
static const char *const backends[] = {"avx512", "avx2", "neon", "scalar"};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

const vd_machine *vd_recheck_machine(const vd_rechecking *a, uint32_t checkpoint) {
    const vd_run_log *log = &a->run.log;
    const int32_t machine = log->stated[checkpoint].machine;
    return machine < 0 ? NULL : &log->machine[machine];
}

static bool is_here(const char *backend) {
    const ro_options options = {.size = sizeof options, .threads = 1, .backend = backend};
    ro_ctx *ro = NULL;
    const bool made = ro_ctx_create(&options, &ro) == RO_OK;
    ro_ctx_destroy(ro);
    return made;
}

/* Returns true if some of the run was computed on this backend. A run that states nothing is taken
 * to have used the best, the default. */
static bool ran_on(const vd_run_log *log, const char *backend, const char *best) {
    for (uint32_t i = 0; i < log->machine_count; i++)
        if (strcmp(log->machine[i].backend, backend) == 0)
            return true;
    return log->machine_count == 0 && strcmp(backend, best) == 0;
}

vd_status vd_recheck_backend(vd_rechecking *a) {
    vd_common common = a->o->common;
    const char *best = NULL, *other = NULL;
    for (int i = 0; i < BACKENDS && !common.backend && !other; i++) {
        if (!is_here(backends[i]))
            continue;
        best = best ? best : backends[i];
        if (!ran_on(&a->run.log, backends[i], best))
            other = backends[i];
    }
    if (!common.backend)
        common.backend = other;
    return vd_load_backend(&a->run.loaded, &common, a->err);
}
