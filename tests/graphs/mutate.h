/* Changes of a program's graphs, as somebody makes them who hopes that a fusion computes other bits
 * than its nodes. */
#ifndef TESTS_GRAPHS_MUTATE_H
#define TESTS_GRAPHS_MUTATE_H

#include "tests/graphs/dice.h"
#include "verde/graph/graph.h"

/* Where changes of one program are made: near one node, mostly. */
typedef struct {
    vd_program *program;
    vd_graph *graph;
    dice *d;
    uint32_t centre; /* stored node */
} site;

typedef struct {
    const char *name;
    bool (*apply)(site *s); /* false: nothing there to change */
    uint32_t weight;
} mutation;

extern const mutation wire_mutations[], value_mutations[];
extern const uint32_t wire_mutation_count, value_mutation_count;

/* A stored node; NULL-free graphs have at least one. */
uint32_t site_node(site *s);
/* Any value before `limit` that has this shape, but not `but`; UINT32_MAX: none. */
uint32_t site_value(site *s, const ro_shape *shape, uint32_t limit, uint32_t but);

#endif
