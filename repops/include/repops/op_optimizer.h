/* Operators and their attributes, the part `optimizer`: `make operators` writes this file from
 * repops/src/operators.def. SPEC.md has their formulas and special values. */
#ifndef REPOPS_OP_OPTIMIZER_H
#define REPOPS_OP_OPTIMIZER_H

/* clang-format off */

/* The inputs, as SPEC.md names them, and what is computed. The numbers are part of the canonical
 * encoding of graphs: never reuse one. */
enum {
    RO_OP_LR_SCHEDULE = 88,        /* (step i32): learning rate, after a warmup */
    RO_OP_BIAS_CORRECTION = 89,    /* (c): 1 - beta^t, a step at a time */
    RO_OP_CLIP_SCALE = 90,         /* (sumsq): the factor that limits a global norm */
    RO_OP_ADAMW_M = 91,            /* (m, g, clip): first moment */
    RO_OP_ADAMW_V = 92,            /* (v, g, clip): second moment */
    RO_OP_ADAMW_W = 93,            /* (w, m, v, c1, c2, lr): weights */
    RO_OP_SGD_M = 94,              /* (m, g, w, clip): momentum */
    RO_OP_SGD_W = 95,              /* (w, m, lr): weights */
    RO_OP_SGD_NESTEROV = 96,       /* (w, m, g, clip, lr): weights */
};

/* Places in ro_call.attr; those of kind f hold the bits of a float (ro_attr_f32), and the last ones
 * are of attributes that all operators of a family have. */
enum {
    RO_LR_SCHEDULE_KIND = 0,
    RO_LR_SCHEDULE_BASE = 1, /* f */
    RO_LR_SCHEDULE_MIN = 2, /* f */
    RO_LR_SCHEDULE_WARMUP = 3,
    RO_LR_SCHEDULE_TOTAL = 4,
    RO_BIAS_CORRECTION_BETA = 0, /* f */
    RO_CLIP_SCALE_MAX_NORM = 0, /* f */
    RO_ADAMW_M_BETA = 0, /* f */
    RO_ADAMW_V_BETA = 0, /* f */
    RO_ADAMW_W_EPS = 0, /* f */
    RO_ADAMW_W_DECAY = 1, /* f */
    RO_SGD_M_MOMENTUM = 0, /* f */
    RO_SGD_M_DECAY = 1, /* f */
    RO_SGD_NESTEROV_MOMENTUM = 0, /* f */
    RO_SGD_NESTEROV_DECAY = 1, /* f */
    RO_MOMENT_BETA = RO_ADAMW_M_BETA,
    RO_SGD_MOMENTUM = RO_SGD_M_MOMENTUM,
    RO_SGD_DECAY = RO_SGD_M_DECAY,
};

/* clang-format on */

#endif
