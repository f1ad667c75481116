/* Operators and their attributes, the part `norm`: `make operators` writes this file from
 * repops/src/operators.def. SPEC.md has their formulas and special values. */
#ifndef REPOPS_OP_NORM_H
#define REPOPS_OP_NORM_H

/* clang-format off */

/* The inputs, as SPEC.md names them, and what is computed. The numbers are part of the canonical
 * encoding of graphs: never reuse one. */
enum {
    RO_OP_LN_RSTD = 56,            /* (ss): 1 / sqrt(ss / n + eps) */
    RO_OP_LAYERNORM = 57,          /* (x, mean, rstd, gamma, beta) */
    RO_OP_LN_DX = 58,              /* (dy, gamma, x, mean, rstd, sg, sgx) */
    RO_OP_RMSNORM = 122,           /* (x, rstd, gamma) */
    RO_OP_RMS_DX = 123,            /* (dy, gamma, x, rstd, sgx) */
    RO_OP_REDUCE_RMS_GX = 124,     /* (dy, gamma, x, rstd): sums for rms_dx */
    RO_OP_RMS_DGAMMA = 125,        /* (dy, x, rstd): of gamma */
};

/* Places in ro_call.attr; those of kind f hold the bits of a float (ro_attr_f32), and the last ones
 * are of attributes that all operators of a family have. */
enum {
    RO_LN_RSTD_N = 0,
    RO_LN_RSTD_EPS = 1, /* f */
    RO_REDUCE_RMS_GX_COLS = 0,
    RO_REDUCE_RMS_GX_BLOCK = 1,
    RO_RMS_DGAMMA_COLS = 0,
};

/* clang-format on */

#endif
