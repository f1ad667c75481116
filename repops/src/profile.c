/* Device profiles of free kernels, SPEC.md section 14.1. */
#include <stdio.h>
#include <string.h>

#include "repops/free.h"
#include "repops/src/sized.h"

enum { SIZE_1 = 64 }; /* sizeof(ro_profile) in version 1 */
_Static_assert(offsetof(ro_profile, device) + sizeof(int32_t) == SIZE_1, "version 1");

/* Simulated profiles differ in widths, splits and trees, as GPUs do; no GPU adds exactly like
 * any. */
static const ro_profile profiles[] = {
    {SIZE_1, "sim-wide", .lanes = 64, .split = 512, .pairwise = 1, .contract = 1},
    {SIZE_1, "sim-narrow", .lanes = 8, .split = 128, .pairwise = 0, .contract = 1, .estrin = 1},
    {SIZE_1, "sim-deep", .lanes = 16, .split = 0, .pairwise = 1, .contract = 0, .descending = 1},
    {SIZE_1, "sim-plain", .lanes = 1, .split = 0, .pairwise = 0, .contract = 0},
};

/* Not simulated: repops/cuda/free defines in which order a CUDA device adds. */
static const ro_profile cuda = {SIZE_1, "cuda", .lanes = 1, .device = 1};

enum { PROFILES = sizeof profiles / sizeof profiles[0] };

const ro_profile *ro_profile_at(int i) {
    return i >= 0 && i < PROFILES ? &profiles[i] : NULL;
}

const ro_profile *ro_profile_by_name(const char *name) {
    if (!name)
        return NULL;
    for (int i = 0; i < PROFILES; i++)
        if (strcmp(profiles[i].name, name) == 0)
            return &profiles[i];
    return strcmp(name, cuda.name) == 0 ? &cuda : NULL;
}

static int is_flag(int32_t value) {
    return value == 0 || value == 1;
}

ro_status ro_profile_check(const ro_profile *profile, char *why, size_t why_size) {
    ro_profile own;
    const ro_profile *p = &own;
    char size[200];
    const char *wrong = NULL;
    if (!profile)
        wrong = "it must not be NULL";
    else if (ro_sized_copy(&ro_sized_profile, profile, &own, size, sizeof size) != RO_OK)
        wrong = size;
    else if (p->lanes < 1 || p->lanes > RO_PROFILE_LANES_MAX || (p->lanes & (p->lanes - 1)) != 0)
        wrong = "`lanes` must be a power of two, 1 to 64";
    else if (p->split < 0 || p->split % 64 != 0)
        wrong = "`split` must be 0 or a multiple of 64";
    else if (!is_flag(p->pairwise) || !is_flag(p->contract) || !is_flag(p->descending) ||
             !is_flag(p->estrin))
        wrong = "`pairwise`, `contract`, `descending` and `estrin` must be 0 or 1";
    else if (!is_flag(p->device))
        wrong = "`device` must be 0 or 1";
    if (!wrong)
        return RO_OK;
    if (why && why_size)
        snprintf(why, why_size, "%s", wrong);
    return RO_ERR_ARG;
}
