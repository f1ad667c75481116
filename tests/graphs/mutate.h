/* Changes of a program's graphs, as an attacker makes them in the hope that fused nodes compute
 * other bits than single ones. */
#ifndef TESTS_GRAPHS_MUTATE_H
#define TESTS_GRAPHS_MUTATE_H

#include "tests/graphs/dice.h"
#include "verde/graph/graph.h"

/* Where changes of one program are made: mostly near one node. */
typedef struct {
    vd_program *program;
    vd_graph *graph;
    dice *d;
    uint32_t centre; /* number of a stored node */
} site;

typedef struct {
    const char *name;
    bool (*apply)(site *s); /* returns false if nothing can be changed */
    uint32_t weight;
} mutation;

extern const mutation wire_mutations[], value_mutations[];
extern const uint32_t wire_mutation_count, value_mutation_count;

/* Picks a stored node; the graph must have one. */
uint32_t site_node(site *s);
/* Picks a value before `limit` that has this shape and is not `but`; UINT32_MAX: there is none. */
uint32_t site_value(site *s, const ro_shape *shape, uint32_t limit, uint32_t but);

#endif
