#ifndef VD_PRODUCTS_H
#define VD_PRODUCTS_H

#include <stdint.h>

/* Bits of the products of linear layers and convolutions, SPEC 3.5: of their outputs, and of the
 * gradients of their inputs and weights. RO_FIXED_8, 16 or 24; 0: products of f32. */
typedef struct {
    int32_t forward, gradient_x, gradient_w;
} vd_products;

/* All of so many bits. */
vd_products vd_products_alike(int32_t bits);

#endif
