/* Structures that callers fill and whose first member is `size`: the caller may have been compiled
 * with another version of the library (repops/repops.h). Every function takes such structures by
 * the functions here. */
#ifndef RO_SIZED_H
#define RO_SIZED_H

#include <string.h>

#include "repops/repops.h"

enum { RO_SIZED_MAX = 4096 }; /* largest size of a caller's structure */

typedef struct {
    const char *name;
    uint32_t size, oldest; /* its sizeof in this version, and in version 1 */
    uint32_t reserved;     /* offset of `reserved`, which must be 0; 0: it has none */
} ro_sized;

extern const ro_sized ro_sized_options, ro_sized_linear_layer, ro_sized_linear_operands,
    ro_sized_attention, ro_sized_adamw_step, ro_sized_adamw_parameter, ro_sized_adamw_rounding,
    ro_sized_adamw_bf16_parameter, ro_sized_sgd_step, ro_sized_rotary_layer, ro_sized_profile,
    ro_sized_rounding, ro_sized_free_report, ro_sized_guard;

static inline uint32_t ro_size_of(const void *given) {
    uint32_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

/* Copies a caller's structure to `own`, this library's version; members that the caller lacks
 * become 0. Returns RO_ERR_ARG, with a sentence in `why`, if its size is invalid or if it sets
 * members that this library does not know. */
ro_status ro_sized_copy(const ro_sized *s, const void *given, void *own, char *why,
                        size_t why_size);

/* Like ro_sized_copy, with the sentence in ro_ctx_error. */
ro_status ro_take(ro_ctx *ctx, const ro_sized *s, const void *given, void *own);

/* Returns RO_ERR_ARG if the size of a structure that the library is to fill is invalid. */
ro_status ro_take_size(ro_ctx *ctx, const ro_sized *s, const void *given);

/* Fills the caller's structure, whose size was checked; members the library lacks become 0. */
void ro_give(const ro_sized *s, const void *own, void *given);

#endif
