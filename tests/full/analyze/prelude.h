/* Tells clang's analyzer, which sees one file at a time, that a failure's status is never VD_OK.
 * Included before every file but the one that defines these functions. */
#ifndef ANALYZE_PRELUDE_H
#define ANALYZE_PRELUDE_H

#include "verde/base/base.h"
#include "verde/base/internal.h"

static inline vd_status analyze_failure(vd_status status) {
    if (status == VD_OK)
        __builtin_unreachable();
    return status;
}
#define vd_fail(err, status, ...)      ((void)vd_fail(err, status, __VA_ARGS__), analyze_failure(status))
#define vd_fail_errno(err, verb, path) analyze_failure((vd_fail_errno)(err, verb, path))

#endif
