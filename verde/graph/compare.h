/* Lists the differences of two programs, for people. */
#ifndef VD_COMPARE_H
#define VD_COMPARE_H

#include "verde/graph/align.h"

/* Size of a text with its NUL; longer texts are cut. */
enum { VD_DIFFERENCE_TEXT = 256 };

typedef struct {
    const char *where;   /* "program", "state", "data", "init", "step" */
    const char *name;    /* of the leaf, data tensor or node; "" for the program itself */
    const char *what;    /* "operator", "shape", "attribute lr", "input 1", ... */
    const char *text[2]; /* what each program has there; NULL: it has nothing there */
    uint32_t node[2];    /* numbers of the nodes, in "init" and "step"; or VD_UNPAIRED */
} vd_program_difference;

/* Calls `tell` for each difference: first of the program's head, then of leaves, data, nodes of
 * initialisation and nodes of a step. The difference is valid only during the call. */
typedef void (*vd_tell_difference)(void *user, const vd_program_difference *difference);
VD_MUST_USE vd_status vd_program_compare(const vd_program *a, const vd_program *b,
                                         const vd_alignment *pairs, vd_tell_difference tell,
                                         void *user, vd_err *err);

#endif
