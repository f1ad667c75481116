/* This file converts between the layouts of tensors in files and of state leaves. */
#include "verde/weights/weights.h"

#include <string.h>

/* order[i] is the leaf's axis that is axis i of the file's tensor. */
typedef struct {
    int32_t ndim; /* 0: any number of axes, in the same order */
    int8_t order[RO_MAX_DIMS];
} axes;

static const axes layouts[VD_LAYOUTS] = {
    [VD_LAYOUT_SAME] = {0, {0}},
    [VD_LAYOUT_CONVOLUTION] = {4, {3, 2, 0, 1}},
};

bool vd_layout_shape(vd_layout layout, const ro_shape *leaf, ro_shape *tensor) {
    const axes *a = &layouts[layout];
    *tensor = *leaf;
    for (int32_t i = 0; i < a->ndim && leaf->ndim == a->ndim; i++)
        tensor->dim[i] = leaf->dim[a->order[i]];
    return a->ndim == 0 || leaf->ndim == a->ndim;
}

/* Computes the step in the leaf, in elements, along each axis of the file's tensor. */
static void strides_of(vd_layout layout, const ro_shape *leaf, int64_t stride[RO_MAX_DIMS]) {
    const axes *a = &layouts[layout];
    int64_t of_leaf[RO_MAX_DIMS], step = 1;
    for (int32_t i = a->ndim - 1; i >= 0; i--) {
        of_leaf[i] = step;
        step *= leaf->dim[i];
    }
    for (int32_t i = 0; i < a->ndim; i++)
        stride[i] = of_leaf[a->order[i]];
}

/* Copies between leaf and tensor, in the order of the tensor's elements. */
static void layout_move(vd_layout layout, const ro_shape *leaf, const uint8_t *from, uint8_t *to,
                        bool back) {
    const axes *a = &layouts[layout];
    const size_t element = ro_dtype_size(leaf->dtype);
    const int64_t count = ro_shape_numel(leaf);
    ro_shape tensor;
    int64_t stride[RO_MAX_DIMS] = {0}, at[RO_MAX_DIMS] = {0}, place = 0;
    if (!vd_layout_shape(layout, leaf, &tensor))
        return;
    if (a->ndim == 0) {
        memcpy(to, from, (size_t)count * element);
        return;
    }
    strides_of(layout, leaf, stride);
    for (int64_t i = 0; i < count; i++) {
        const int64_t source = back ? i : place, target = back ? place : i;
        memcpy(to + (size_t)target * element, from + (size_t)source * element, element);
        for (int32_t d = a->ndim - 1; d >= 0; d--) {
            place += stride[d];
            if (++at[d] < tensor.dim[d])
                break;
            place -= stride[d] * tensor.dim[d];
            at[d] = 0;
        }
    }
}

void vd_layout_copy(vd_layout layout, const ro_shape *leaf, const void *from, void *to) {
    layout_move(layout, leaf, from, to, false);
}

void vd_layout_copy_back(vd_layout layout, const ro_shape *leaf, const void *from, void *to) {
    layout_move(layout, leaf, from, to, true);
}
