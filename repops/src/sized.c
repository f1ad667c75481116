#include "repops/src/sized.h"

#include <stdbool.h>
#include <stdio.h>

#include "repops/free.h"
#include "repops/guard.h"
#include "repops/layers.h"
#include "repops/packed.h"
#include "repops/src/backend.h"

/* `last` is the last member in version 1. Later members follow it. */
#define SIZED(structure, last, ...)                                                                \
    const ro_sized ro_sized_##structure = {                                                        \
        "ro_" #structure, sizeof(ro_##structure),                                                  \
        offsetof(ro_##structure, last) + sizeof((ro_##structure *)0)->last, __VA_ARGS__};          \
    _Static_assert(offsetof(ro_##structure, size) == 0, "the first member")
#define RESERVED(structure) offsetof(ro_##structure, reserved)

SIZED(options, parallel, 0);
SIZED(linear_layer, fixed_bits, 0);
SIZED(linear_operands, packed_w, 0);
SIZED(attention, out_row, RESERVED(attention));
SIZED(adamw_step, rate, RESERVED(adamw_step));
SIZED(adamw_parameter, v_out, RESERVED(adamw_parameter));
SIZED(adamw_rounding, step, 0);
SIZED(adamw_bf16_parameter, v_out, RESERVED(adamw_bf16_parameter));
SIZED(sgd_step, rate, 0);
SIZED(rotary_layer, each, RESERVED(rotary_layer));
SIZED(profile, device, 0);
SIZED(rounding, bound, RESERVED(rounding));
SIZED(free_report, corrected, RESERVED(free_report));
SIZED(guard, user, RESERVED(guard));

/* Returns whether the size is wrong, with a sentence in `why`. */
static bool size_is_wrong(const ro_sized *s, uint32_t size, char *why, size_t why_size) {
    if (size == 0)
        snprintf(why, why_size, "%s.size is 0: set it to sizeof(%s)", s->name, s->name);
    else if (size < s->oldest || size > RO_SIZED_MAX)
        snprintf(why, why_size, "%s.size must be %u..%d, got %u: set it to sizeof(%s)", s->name,
                 (unsigned)s->oldest, RO_SIZED_MAX, (unsigned)size, s->name);
    return size < s->oldest || size > RO_SIZED_MAX;
}

ro_status ro_sized_copy(const ro_sized *s, const void *given, void *own, char *why,
                        size_t why_size) {
    const uint8_t *byte = given;
    const uint32_t size = ro_size_of(given), own_size = s->size;
    uint32_t reserved = 0;
    if (size_is_wrong(s, size, why, why_size))
        return RO_ERR_ARG;
    for (uint32_t i = own_size; i < size; i++)
        if (byte[i] != 0) {
            snprintf(why, why_size,
                     "%s has members that this library (%s) does not know: byte %u of %u must be 0",
                     s->name, RO_VERSION, (unsigned)i, (unsigned)size);
            return RO_ERR_ARG;
        }
    memset(own, 0, own_size);
    memcpy(own, given, size < own_size ? size : own_size);
    memcpy(own, &own_size, sizeof own_size);
    if (s->reserved)
        memcpy(&reserved, byte + s->reserved, sizeof reserved);
    if (reserved != 0)
        snprintf(why, why_size, "%s.reserved must be 0, got %u", s->name, (unsigned)reserved);
    return reserved == 0 ? RO_OK : RO_ERR_ARG;
}

ro_status ro_take(ro_ctx *ctx, const ro_sized *s, const void *given, void *own) {
    char why[200];
    return ro_sized_copy(s, given, own, why, sizeof why) == RO_OK
               ? RO_OK
               : ro_fail(ctx, RO_ERR_ARG, "%s", why);
}

ro_status ro_take_size(ro_ctx *ctx, const ro_sized *s, const void *given) {
    char why[200];
    return size_is_wrong(s, ro_size_of(given), why, sizeof why)
               ? ro_fail(ctx, RO_ERR_ARG, "%s", why)
               : RO_OK;
}

void ro_give(const ro_sized *s, const void *own, void *given) {
    const uint32_t size = ro_size_of(given);
    memset(given, 0, size);
    memcpy(given, own, size < s->size ? size : s->size);
    memcpy(given, &size, sizeof size);
}
