/* Device profiles of free kernels: built in, or from a YAML file. */
#ifndef VD_PROFILE_H
#define VD_PROFILE_H

#include "repops/free.h"
#include "verde/base/base.h"

/* A file is a mapping with the keys lanes, split, pairwise, contract, descending and estrin, each
 * at most once, each 0 if it is not there (lanes: 1); the profile is named after the file.
 * VD_ERR_USAGE: "FILE:LINE: ...". */
VD_MUST_USE vd_status vd_profile_parse(const void *text, size_t size, const char *path,
                                       ro_profile *out, vd_err *err);

/* A built-in profile's name, or the path of a file (it ends in .yaml). */
VD_MUST_USE vd_status vd_profile_find(const char *name, ro_profile *out, vd_err *err);

#endif
