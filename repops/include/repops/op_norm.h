/* Operators of section `norm` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_NORM_H
#define REPOPS_OP_NORM_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_LN_RSTD = 56,            /* (ss): 1 / sqrt(ss / n + eps) */
    RO_OP_LAYERNORM = 57,          /* (x, mean, rstd, gamma, beta) */
    RO_OP_LN_DX = 58,              /* (dy, gamma, x, mean, rstd, sg, sgx) */
    RO_OP_RMSNORM = 122,           /* (x, rstd, gamma) */
    RO_OP_RMS_DX = 123,            /* (dy, gamma, x, rstd, sgx) */
    RO_OP_REDUCE_RMS_GX = 124,     /* (dy, gamma, x, rstd): sums for rms_dx */
    RO_OP_RMS_DGAMMA = 125,        /* (dy, x, rstd): gradient of gamma */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_LN_RSTD_N = 0,
    RO_LN_RSTD_EPS = 1, /* float */
    RO_REDUCE_RMS_GX_COLS = 0,
    RO_REDUCE_RMS_GX_BLOCK = 1,
    RO_RMS_DGAMMA_COLS = 0,
};

/* clang-format on */

#endif
