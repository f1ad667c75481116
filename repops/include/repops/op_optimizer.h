/* Operators of section `optimizer` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_OPTIMIZER_H
#define REPOPS_OP_OPTIMIZER_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_LR_SCHEDULE = 88,        /* (step i32): learning rate, after a warmup */
    RO_OP_BIAS_CORRECTION = 89,    /* (c): the next 1 - beta^t, from that of the step before */
    RO_OP_CLIP_SCALE = 90,         /* (sumsq): the factor that limits a global norm */
    RO_OP_ADAMW_M = 91,            /* (m, g, clip): next first moment */
    RO_OP_ADAMW_V = 92,            /* (v, g, clip): next second moment */
    RO_OP_ADAMW_W = 93,            /* (w, m, v, c1, c2, lr): updated weights */
    RO_OP_SGD_M = 94,              /* (m, g, w, clip): next momentum */
    RO_OP_SGD_W = 95,              /* (w, m, lr): updated weights */
    RO_OP_SGD_NESTEROV = 96,       /* (w, m, g, clip, lr): updated weights */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_LR_SCHEDULE_KIND = 0,
    RO_LR_SCHEDULE_BASE = 1, /* float */
    RO_LR_SCHEDULE_MIN = 2, /* float */
    RO_LR_SCHEDULE_WARMUP = 3,
    RO_LR_SCHEDULE_TOTAL = 4,
    RO_BIAS_CORRECTION_BETA = 0, /* float */
    RO_CLIP_SCALE_MAX_NORM = 0, /* float */
    RO_ADAMW_M_BETA = 0, /* float */
    RO_ADAMW_V_BETA = 0, /* float */
    RO_ADAMW_W_EPS = 0, /* float */
    RO_ADAMW_W_DECAY = 1, /* float */
    RO_SGD_M_MOMENTUM = 0, /* float */
    RO_SGD_M_DECAY = 1, /* float */
    RO_SGD_NESTEROV_MOMENTUM = 0, /* float */
    RO_SGD_NESTEROV_DECAY = 1, /* float */
    RO_MOMENT_BETA = RO_ADAMW_M_BETA,
    RO_SGD_MOMENTUM = RO_SGD_M_MOMENTUM,
    RO_SGD_DECAY = RO_SGD_M_DECAY,
};

/* clang-format on */

#endif
