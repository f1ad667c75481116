/* Replacements for threads and mapped files, which WebAssembly lacks. */
#include "repops/repops.h"
#include "verde/base/base.h"

void ro_parallel_for(ro_ctx *ctx, int64_t count, int64_t grain, double cost_us, ro_task run,
                     void *user) {
    (void)ctx, (void)grain, (void)cost_us;
    run(user, 0, count, 0);
}

void vd_map_pass(const void *bytes, size_t size) {
    (void)bytes, (void)size;
}
