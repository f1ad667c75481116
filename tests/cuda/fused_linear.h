/* Random cases of linear layers. Part of fused.c. */
#ifndef TESTS_CUDA_FUSED_LINEAR_H
#define TESTS_CUDA_FUSED_LINEAR_H

#include "tests/cuda/fused_work.h"

static void run_linear(work *w, const ro_linear_layer *layer) {
    const ro_linear_layer l = *layer;
    const int with_bias = roll(w, 5, 4) > 0, with_z = l.activation && roll(w, 6, 3) > 0;
    const array *x = input(w, "x", l.rows * l.in, class_of(w));
    const array *weight = input(w, "w", l.in * l.out, class_of(w));
    const array *bias = input(w, "bias", l.out, class_of(w));
    const array *z = add(w, "z", l.rows * l.out), *y = add(w, "y", l.rows * l.out);
    char what[100];
    snprintf(what, sizeof what, "linear of %lld x %lld x %lld%s, activation %d, fixed_bits %d",
             (long long)l.rows, (long long)l.in, (long long)l.out,
             l.transposed ? ", transposed" : "", (int)l.activation, l.fixed_bits);
    expect(w,
           ro_linear(w->cpu, &l, x->want, weight->want, with_bias ? bias->want : NULL,
                     with_z ? z->want : NULL, y->want),
           w->cpu);
    expect(w,
           ro_linear(w->device, &l, x->on_device, weight->on_device,
                     with_bias ? bias->on_device : NULL, with_z ? z->on_device : NULL,
                     y->on_device),
           w->device);
    if (with_z)
        compare(w, z, what);
    compare(w, y, what);
}

/* Sizes near those of tiles; k near chunks, so that several are summed separately. */
static void linear(work *w) {
    static const int16_t rows[] = {0, 1, 3, 8, 9, 16, 17, 40, 64, 65, 130};
    static const int16_t depths[] = {0, 1, 15, 64, 255, 257, 300, 700, 1030};
    static const int16_t widths[] = {1, 2, 16, 30, 64, 65, 100, 128, 129, 200};
    static const int fixed[] = {0, 0, 0, 0, 0, RO_FIXED_8, RO_FIXED_16, RO_FIXED_24};
    const ro_linear_layer l = {.size = sizeof l,
                               .rows = pick(w, 0, rows, sizeof rows / sizeof *rows),
                               .in = pick(w, 1, depths, sizeof depths / sizeof *depths),
                               .out = pick(w, 2, widths, sizeof widths / sizeof *widths),
                               .transposed = (int)roll(w, 3, 2),
                               .activation = (ro_activation)roll(w, 4, 5),
                               .fixed_bits = fixed[roll(w, 7, 8)]};
    run_linear(w, &l);
}

#endif
