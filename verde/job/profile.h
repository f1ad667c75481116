/* Device profiles of free kernels: built in, or from a YAML file. */
#ifndef VD_PROFILE_H
#define VD_PROFILE_H

#include "repops/free.h"
#include "verde/base/base.h"

/* Parses a mapping with the keys lanes, split, pairwise, contract, descending and estrin, each at
 * most once, with default 0 (lanes: 1). The profile is named after the file. VD_ERR_USAGE:
 * "FILE:LINE: ...". */
VD_MUST_USE vd_status vd_profile_parse(const void *text, size_t size, const char *path,
                                       ro_profile *out, vd_err *err);

/* Finds a built-in profile by its name, or reads a file, whose path ends in .yaml. */
VD_MUST_USE vd_status vd_profile_find(const char *name, ro_profile *out, vd_err *err);

#endif
