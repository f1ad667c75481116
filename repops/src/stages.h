/* Arithmetic of elements that one value passes in registers, one stage after another. */
#ifndef REPOPS_STAGES_H
#define REPOPS_STAGES_H

#include <stdint.h>

/* What becomes of v, where o is the stage's operand. SPEC.md section 6; a NaN may be any. */
typedef enum {
    RO_STAGE_ADD,       /* v + o */
    RO_STAGE_SUB,       /* v - o */
    RO_STAGE_SUB_FROM,  /* o - v */
    RO_STAGE_MUL,       /* v * o */
    RO_STAGE_DIV,       /* v / o */
    RO_STAGE_DIV_INTO,  /* o / v */
    RO_STAGE_CUT_BELOW, /* v < o ? o : v, with its bits */
    RO_STAGE_CUT_ABOVE, /* v > o ? o : v, likewise */
    RO_STAGE_RELU,      /* without an operand; NaN becomes the canonical one */
    RO_STAGE_KEEP,      /* v, which is kept for a later stage */
} ro_stage_kind;

typedef enum { RO_STAGE_NUMBER, RO_STAGE_MEMORY, RO_STAGE_KEPT } ro_stage_source;

typedef struct {
    ro_stage_kind kind;
    ro_stage_source source; /* of the operand */
    int canon;              /* a NaN becomes the canonical one behind this stage */
    float number;
    const float *at;
} ro_stage;

#endif
