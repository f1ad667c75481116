#ifndef VD_PRODUCTS_H
#define VD_PRODUCTS_H

#include <stdint.h>

/* Precision of the products of linear layers and convolutions, SPEC 3.5: RO_FIXED_8, 16 or 24 bits,
 * or 0 for f32; for outputs, gradients of inputs, and gradients of weights. */
typedef struct {
    int32_t forward, gradient_x, gradient_w;
} vd_products;

/* The same precision for all three. */
vd_products vd_products_alike(int32_t bits);

#endif
