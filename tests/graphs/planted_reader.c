/* A deliberate bug, for tests/system/graphs.sh: the search for a pattern's node ignores the second
 * value that a node reads. */
#include "verde/exec/fuse_match.h"

uint32_t __real_vd_find_reader(const vd_matcher *m, uint32_t from, const vd_reader *r);
uint32_t __wrap_vd_find_reader(const vd_matcher *m, uint32_t from, const vd_reader *r);

uint32_t __wrap_vd_find_reader(const vd_matcher *m, uint32_t from, const vd_reader *r) {
    vd_reader any = *r;
    if (r->value != VD_NO_GROUP)
        any.second = VD_NO_GROUP;
    return __real_vd_find_reader(m, from, &any);
}
