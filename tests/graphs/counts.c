#include "tests/graphs/counts.h"

#include <stdio.h>

static void add_graph(const vd_program *p, const vd_graph *g, uint64_t *groups) {
    vd_plan plan;
    if (vd_plan_create(p, g, VD_FUSE_LAYERS, &plan, NULL) != VD_OK)
        return;
    for (uint32_t i = 0; i < plan.group_count; i++)
        groups[plan.group[i].kind]++;
    vd_plan_free(&plan);
}

void counts_add(counts *c, const vd_program *p) {
    uint64_t groups[COUNTS_KINDS] = {0};
    bool any = false;
    add_graph(p, &p->init, groups);
    add_graph(p, &p->step, groups);
    for (int i = 0; i < COUNTS_KINDS; i++) {
        c->with[i] += groups[i] > 0;
        c->groups[i] += groups[i];
        any |= groups[i] > 0;
    }
    c->fused += any;
}

static void print_mutations(const counts *c, const mutation *list, uint32_t count, uint32_t first) {
    for (uint32_t i = 0; i < count; i++)
        printf("  %-28s %10llu tried %10llu accepted\n", list[i].name,
               (unsigned long long)c->tried[first + i], (unsigned long long)c->taken[first + i]);
}

void counts_print(const counts *c) {
    print_mutations(c, wire_mutations, wire_mutation_count, 0);
    print_mutations(c, value_mutations, value_mutation_count, wire_mutation_count);
    printf("  %-28s %10s %17s\n", "fused function", "programs", "groups");
    for (int i = 0; i < COUNTS_KINDS; i++)
        printf("  %-28s %10llu %17llu\n", vd_fused_name((vd_fused_kind)i),
               (unsigned long long)c->with[i], (unsigned long long)c->groups[i]);
    printf("  the decoder refused %llu changes; %llu programs take too long, %llu took no change\n",
           (unsigned long long)c->refused, (unsigned long long)c->large,
           (unsigned long long)c->barren);
    printf("  %llu programs run beside each other, %llu of them beside a similar one\n",
           (unsigned long long)c->together, (unsigned long long)c->similar);
    printf("%llu mutated programs, %llu of them with a fused function: the same bits\n",
           (unsigned long long)c->run, (unsigned long long)c->fused);
}
