/* Ranges of integer data: PROTOCOL.md section 1.6. All elements are checked once, when data is
 * loaded, while the same bytes are hashed. */
#include "verde/graph/validate.h"

enum {
    BLOCK = 1024,         /* elements at a time; a constant, so that loops are vectorised */
    PASS_BYTES = 1 << 20, /* of a mapped file between two releases of its pages */
};

/* Sets the limits of an integer type; false: the type is not one. */
static bool limits_of(int dtype, int64_t *least, int64_t *greatest) {
    *least = *greatest = 0;
    switch (dtype) {
    case RO_I32: *least = INT32_MIN, *greatest = INT32_MAX; return true;
    case RO_U8: *greatest = UINT8_MAX; return true;
    case RO_U16: *greatest = UINT16_MAX; return true;
    case RO_I8: *least = INT8_MIN, *greatest = INT8_MAX; return true;
    default: return false;
    }
}

void vd_state_range(vd_data *data, int64_t least, int64_t greatest) {
    int64_t low, high;
    data->range.stated = limits_of(data->tensor.shape.dtype, &low, &high);
    data->range.least = least > low ? least : low;
    data->range.greatest = greatest < high ? greatest : high;
    if (least <= low && greatest >= high)
        data->range.stated = false;
    if (!data->range.stated)
        data->range = (vd_range){.stated = false};
}

bool vd_range_equal(const vd_range *a, const vd_range *b) {
    return a->stated == b->stated && a->least == b->least && a->greatest == b->greatest;
}

bool vd_valid_range(const vd_data *data) {
    const vd_range *r = &data->range;
    int64_t low, high;
    if (!r->stated)
        return true;
    return limits_of(data->tensor.shape.dtype, &low, &high) && r->least <= r->greatest &&
           r->least >= low && r->greatest <= high && (r->least > low || r->greatest < high);
}

/* Defines a search for an element outside the range. x - least wraps as an unsigned number, so that
 * one comparison checks both ends. */
#define HAS_OUTSIDE(name, type)                                                                    \
    static bool name(const type *x, type least, type span) {                                       \
        type outside = 0;                                                                          \
        for (int i = 0; i < BLOCK; i++)                                                            \
            outside |= (type)(x[i] - least) > span;                                                \
        return outside;                                                                            \
    }
HAS_OUTSIDE(u8_outside, uint8_t)
HAS_OUTSIDE(u16_outside, uint16_t)
HAS_OUTSIDE(i32_outside, uint32_t)

static bool block_outside(const vd_data *d, const void *x) {
    const uint64_t least = (uint64_t)d->range.least, span = (uint64_t)d->range.greatest - least;
    switch (d->tensor.shape.dtype) {
    case RO_U8:
    case RO_I8: return u8_outside(x, (uint8_t)least, (uint8_t)span);
    case RO_U16: return u16_outside(x, (uint16_t)least, (uint16_t)span);
    default: return i32_outside(x, (uint32_t)least, (uint32_t)span);
    }
}

static int64_t element_at(int dtype, const void *elements, int64_t i) {
    switch (dtype) {
    case RO_U8: return ((const uint8_t *)elements)[i];
    case RO_I8: return ((const int8_t *)elements)[i];
    case RO_U16: return ((const uint16_t *)elements)[i];
    default: return ((const int32_t *)elements)[i];
    }
}

/* Returns the first element in first..end - 1 that is out of range, or `end` if there is none. */
static int64_t first_outside(const vd_data *d, const void *elements, int64_t first, int64_t end) {
    const size_t size = ro_dtype_size(d->tensor.shape.dtype);
    int64_t i = first;
    while (end - i >= BLOCK && !block_outside(d, (const uint8_t *)elements + (size_t)i * size))
        i += BLOCK;
    for (; i < end; i++) {
        const int64_t value = element_at(d->tensor.shape.dtype, elements, i);
        if (value < d->range.least || value > d->range.greatest)
            return i;
    }
    return end;
}

vd_status vd_check_range(const vd_data *data, const void *elements, vd_err *err) {
    const int64_t count = ro_shape_numel(&data->tensor.shape);
    const size_t size = ro_dtype_size(data->tensor.shape.dtype);
    int64_t end;
    if (!data->range.stated)
        return VD_OK;
    for (int64_t first = 0; first < count; first = end) {
        end = count - first < PASS_BYTES ? count : first + PASS_BYTES;
        const int64_t at = first_outside(data, elements, first, end);
        if (at < end)
            return vd_fail(err, VD_ERR_PEER,
                           "data tensor %s: element %lld is %lld, expected %lld to %lld as the "
                           "program says",
                           data->tensor.name, (long long)at,
                           (long long)element_at(data->tensor.shape.dtype, elements, at),
                           (long long)data->range.least, (long long)data->range.greatest);
        vd_map_pass((const uint8_t *)elements + (size_t)first * size, (size_t)(end - first) * size);
    }
    return VD_OK;
}
