/* Names, attributes and shapes of tensors and operators. */
#include <string.h>

#include "repops/free.h"
#include "repops/operators.h"
#include "repops/src/device.h"
#include "repops/src/math.h"

/* `make operators` writes operators.h from the list below; the assertions find a stale one. */
#define RO_OPERATOR(number, NAME, ...)                                                             \
    _Static_assert(RO_OP_##NAME == (number) && (number) < RO_OP_END, "make operators");
#define RO_ATTRIBUTE(NAME, place, ATTRIBUTE, ...)                                                  \
    _Static_assert(RO_##NAME##_##ATTRIBUTE == (place) && (place) < RO_MAX_ATTRS, "make "           \
                                                                                 "operators");
#include "repops/src/operators.def"

enum { FOLLOWS = 0, DECLARED = 1 };

/* Reasons why an operator has no gradient. */
#define NO_SOURCE     "it reads no value that is learned"
#define NO_INTEGER    "its result, or what it reads, is an integer"
#define NO_GENERATION "it is of models that are not trained"
#define NO_COMPOSED   "its gradient is several nodes, which whoever differentiates it emits"
#define NO_BACKWARD   "it is part of a gradient"
#define NO_OPTIMIZER  "it is part of an update"

/* The attribute with the last place overrides attr_count, hence the pragma. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const ro_op_info table[RO_OP_END] = {
#define RO_OPERATOR(number, NAME, op, least, most, shape, ...)                                     \
    [number].name = #op, [number].min_inputs = (least), [number].max_inputs = (most),              \
    [number].declared_shape = (shape),
#define RO_ATTRIBUTE(NAME, place, ATTRIBUTE, attribute, letter)                                    \
    [RO_OP_##NAME].attr[place] = {#attribute, letter}, [RO_OP_##NAME].attr_count = (place) + 1,
#define RO_GRADIENT(NAME, GRAD, reads)                                                             \
    [RO_OP_##NAME].gradient = RO_OP_##GRAD, [RO_OP_##NAME].gradient_reads = RO_READS_##reads,
#define RO_NO_GRADIENT(NAME, why) [RO_OP_##NAME].no_gradient = NO_##why,
#include "repops/src/operators.def"
};
#pragma GCC diagnostic pop

static const uint32_t in_place[RO_OP_END] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, ...) [number] = (onto),
#include "repops/src/operators.def"
};

enum { FIXED = 0, FREE = 1 };

static const unsigned char is_free[RO_OP_END] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, ...) [number] = (order),
#include "repops/src/operators.def"
};

const char *ro_version(void) {
    return RO_VERSION;
}

#define TEXT(x)       #x
#define TEXT_OF(name) TEXT(name)
const char *ro_build(void) {
    return RO_VERSION ", headers " TEXT_OF(RO_INTERFACE);
}

const ro_op_info *ro_op_describe(int op) {
    return op > 0 && op < RO_OP_END && table[op].name ? &table[op] : NULL;
}

uint32_t ro_op_in_place(int op) {
    return op > 0 && op < RO_OP_END ? in_place[op] : 0;
}

int ro_op_is_free(int op) {
    return op > 0 && op < RO_OP_END && is_free[op];
}

int ro_op_by_name(const char *name) {
    for (int op = 1; name && op < RO_OP_END; op++)
        if (table[op].name && strcmp(table[op].name, name) == 0)
            return op;
    return RO_OP_NONE;
}

int64_t ro_attr_f32(float value) {
    return (int64_t)ro_to_bits(value);
}

float ro_attr_to_f32(int64_t attr) {
    return ro_from_bits((uint32_t)attr);
}

size_t ro_dtype_size(int dtype) {
    switch (dtype) {
    case RO_F32:
    case RO_I32: return 4;
    case RO_U16:
    case RO_BF16:
    case RO_F16: return 2;
    case RO_U8:
    case RO_I8: return 1;
    default: return 0;
    }
}

const char *ro_dtype_name(int dtype) {
    switch (dtype) {
    case RO_F32: return "f32";
    case RO_I32: return "i32";
    case RO_U16: return "u16";
    case RO_U8: return "u8";
    case RO_BF16: return "bf16";
    case RO_F16: return "f16";
    case RO_I8: return "i8";
    default: return "?";
    }
}

int64_t ro_shape_numel(const ro_shape *shape) {
    int64_t numel = 1;
    for (int i = 0; i < shape->ndim; i++)
        numel *= shape->dim[i];
    return numel;
}

int ro_shape_equal(const ro_shape *a, const ro_shape *b) {
    if (a->dtype != b->dtype || a->ndim != b->ndim)
        return 0;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i])
            return 0;
    return 1;
}
