/* How two programs differ, for people. */
#ifndef VD_COMPARE_H
#define VD_COMPARE_H

#include "verde/graph/align.h"

/* Longer texts are cut. */
enum { VD_DIFFERENCE_TEXT = 256 };

typedef struct {
    const char *where;   /* "program", "state", "data", "init", "step" */
    const char *name;    /* of the leaf, data tensor or node; of the program "" */
    const char *what;    /* "operator", "shape", "attribute lr", "input 1", ... */
    const char *text[2]; /* of each program; NULL: that one does not have it */
    uint32_t node[2];    /* of "init" and "step", or VD_UNPAIRED */
} vd_program_difference;

/* Calls `tell` for each difference: of the program's head, of its leaves and data, of the nodes of
 * initialisation, of those of a step. What it is given stands until it returns. */
typedef void (*vd_tell_difference)(void *user, const vd_program_difference *difference);
VD_MUST_USE vd_status vd_program_compare(const vd_program *a, const vd_program *b,
                                         const vd_alignment *pairs, vd_tell_difference tell,
                                         void *user, vd_err *err);

#endif
