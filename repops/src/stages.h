/* Chained arithmetic: a value stays in a register while it passes through several stages. */
#ifndef REPOPS_STAGES_H
#define REPOPS_STAGES_H

#include <stdint.h>

/* What a stage computes from v and its operand o: SPEC.md section 6, but a NaN may be any NaN. */
typedef enum {
    RO_STAGE_ADD,       /* v + o */
    RO_STAGE_SUB,       /* v - o */
    RO_STAGE_SUB_FROM,  /* o - v */
    RO_STAGE_MUL,       /* v * o */
    RO_STAGE_DIV,       /* v / o */
    RO_STAGE_DIV_INTO,  /* o / v */
    RO_STAGE_CUT_BELOW, /* v < o ? o : v, bit for bit */
    RO_STAGE_CUT_ABOVE, /* v > o ? o : v, bit for bit */
    RO_STAGE_RELU,      /* takes no operand; a NaN becomes the canonical one */
    RO_STAGE_KEEP,      /* v, which a later stage uses again as RO_STAGE_KEPT */
} ro_stage_kind;

typedef enum { RO_STAGE_NUMBER, RO_STAGE_MEMORY, RO_STAGE_KEPT } ro_stage_source;

typedef struct {
    ro_stage_kind kind;
    ro_stage_source source; /* where the operand comes from */
    int canon;              /* nonzero: a NaN becomes the canonical one after this stage */
    float number;
    const float *at;
} ro_stage;

#endif
