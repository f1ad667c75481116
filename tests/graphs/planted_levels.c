/* A deliberate bug, for tests/system/graphs.sh: sums over rows match a pattern whatever their
 * second input is. */
#include "verde/exec/fuse_match.h"

bool __real_vd_join_levels(const vd_matcher *m, vd_fused *g, uint32_t value, int level, int lowest,
                           uint32_t x, uint32_t second);
bool __wrap_vd_join_levels(const vd_matcher *m, vd_fused *g, uint32_t value, int level, int lowest,
                           uint32_t x, uint32_t second);

bool __wrap_vd_join_levels(const vd_matcher *m, vd_fused *g, uint32_t value, int level, int lowest,
                           uint32_t x, uint32_t second) {
    (void)second;
    return __real_vd_join_levels(m, g, value, level, lowest, x, VD_NO_GROUP);
}
