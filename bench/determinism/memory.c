/* Estimates the memory of the processes, and decides which of them run at the same time. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "repops/op_image.h"
#include "repops/op_product.h"
#include "bench/determinism/determinism.h"

/* A process's bytes besides tensors: code, threads, packed blocks of products, and log sections
 * that wait to be written. */
enum { MEGABYTE = 1000000, PROCESS = 100 * MEGABYTE };
/* Holes in a heap that keeps its pages, as one part in so many of its content. */
enum { HOLES = 10 };

uint64_t memory_free(void) {
    FILE *from = fopen("/proc/meminfo", "r");
    unsigned long long kilobytes = 0;
    char line[128];
    while (from && fgets(line, sizeof line, from) && !kilobytes)
        if (sscanf(line, "MemAvailable: %llu", &kilobytes) != 1)
            kilobytes = 0;
    if (from)
        fclose(from);
    return kilobytes ? (uint64_t)kilobytes * 1024 : UINT64_MAX; /* unknown: no limit */
}

/* Returns the bytes of the weights that this process compares: those of both bases, and of the
 * process that ran last. */
uint64_t weights_bytes(void) {
    return 3 * (uint64_t)bench.weights * sizeof(float);
}

/* ---- one step ---- */

static uint32_t value_count(const vd_program *p) {
    return vd_source_count(p, &p->step) + p->step.node_count;
}

/* Returns for each value the last node that reads it. Values of the next state stay to the end. */
static uint32_t *last_reads(const vd_program *p) {
    const vd_graph *g = &p->step;
    uint32_t *last = calloc(value_count(p), sizeof *last);
    if (!last)
        die("out of memory");
    for (uint32_t i = 0; i < g->node_count; i++)
        for (int32_t k = 0; k < vd_node_stored(g, i)->input_count; k++)
            last[vd_node_input(g, i, k)] = i;
    for (uint32_t i = 0; i < p->leaf_count; i++)
        last[g->output[i]] = g->node_count;
    return last;
}

static uint64_t state_bytes(const vd_program *p) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->leaf_count; i++)
        bytes += vd_shape_bytes(&p->leaf[i].shape);
    return bytes;
}

/* Returns the most bytes of tensors at a time if each is freed after its last use and none takes
 * another's memory: slightly more than a step needs. */
static uint64_t step_bytes(const vd_program *p) {
    const vd_graph *g = &p->step;
    const uint32_t sources = vd_source_count(p, g);
    uint32_t *last = last_reads(p);
    uint64_t now = state_bytes(p), most = now;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const vd_node *n = vd_node_stored(g, i);
        now += vd_shape_bytes(&n->shape);
        most = now > most ? now : most;
        for (int32_t k = 0; k < n->input_count; k++) {
            const uint32_t value = vd_node_input(g, i, k);
            if (last[value] != i || (value >= p->leaf_count && value < sources))
                continue;
            now -= vd_shape_bytes(vd_value_shape(p, g, value));
            last[value] = g->node_count; /* a node may name an input twice */
        }
    }
    free(last);
    return most;
}

/* Returns roughly the terms of the longest sum of a product or a convolution. */
static double longest_sum(const vd_program *p) {
    const vd_graph *g = &p->step;
    double longest = 0;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const vd_node *n = vd_node_stored(g, i);
        if (n->op != RO_OP_MATMUL && n->op != RO_OP_CONV2D && n->op != RO_OP_CONV2D_DX &&
            n->op != RO_OP_CONV2D_DW)
            continue;
        const double a = (double)ro_shape_numel(vd_value_shape(p, g, vd_node_input(g, i, 0)));
        const double b = (double)ro_shape_numel(vd_value_shape(p, g, vd_node_input(g, i, 1)));
        longest = fmax(longest, sqrt(a * b / (double)ro_shape_numel(&n->shape)));
    }
    return longest;
}

/* Returns the bytes of packed operands: profiles that do not split sums pack them whole, some 700
 * lines for each thread. */
static uint64_t packed_bytes(const vd_program *p) {
    const double threads =
        bench.threads ? (double)bench.threads : (double)sysconf(_SC_NPROCESSORS_ONLN);
    return (uint64_t)(700 * sizeof(double) * threads * longest_sum(p));
}

/* ---- groups ---- */

static bool has_kind(variant_kind kind, int group) {
    for (int i = 0; i < bench.variants; i++)
        if (bench.variant[i].kind == kind && bench.variant[i].group == group)
            return true;
    return false;
}

/* Returns whether a way runs in this group. Comparing wall-clock times needs both baselines in
 * every group; with CPU times only distances of weights need a baseline. */
bool in_group(int way, int group) {
    const variant *v = &bench.variant[way];
    if (v->group == group || v->group < 0)
        return v->group == group;
    if (bench.cpu)
        return (way == bench.base[0] && has_kind(FREE_F32, group)) ||
               (way == bench.base[1] && has_kind(FREE_F64, group));
    return way == bench.base[0] || way == bench.base[1];
}

/* Returns the bytes that a group takes. Processes that keep their pages all count as during a step.
 * Others count as between steps, except that the largest one counts as during a step. */
static uint64_t together(int group) {
    uint64_t all = weights_bytes(), step = 0;
    for (int i = 0; i < bench.variants; i++) {
        const variant *v = &bench.variant[i];
        if (!in_group(i, group))
            continue;
        all += bench.trims ? v->resting : v->most + v->most / HOLES;
        step = v->most - v->resting > step ? v->most - v->resting : step;
    }
    return bench.trims ? all + step : all;
}

/* Returns whether a trainer, its auditor and the baselines fit in memory at the same time. */
static bool fits_kept(uint64_t limit) {
    uint64_t bytes = weights_bytes(), most = 0;
    for (int i = 0; i < bench.variants; i++)
        most = bench.variant[i].most > most ? bench.variant[i].most : most;
    return bytes + 4 * (most + most / HOLES) <= limit;
}

static void refuse(uint64_t needed, uint64_t limit) {
    char why[256];
    snprintf(why, sizeof why,
             "a way and its baselines at the same time need about %.1f GB; there are %.1f GB "
             "(--memory, and what the machine has free but for 1 GB); try --size small or a "
             "smaller --batch",
             (double)needed / 1e9, (double)limit / 1e9);
    die(why);
}

static void expect(variant *v, uint64_t state, uint64_t step, uint64_t packed) {
    const bool logs = v->kind == LOG_TRAINER || v->kind == LOG_AUDITOR;
    const uint64_t own = PROCESS + (v->profile && v->profile->split == 0 ? packed : 0);
    v->resting = state + own;
    v->most = step + own + (logs ? (uint64_t)64 * MEGABYTE : 0);
    v->group = -1;
}

static uint64_t memory_limit(void) {
    const uint64_t spare = memory_free(), kept = UINT64_C(1000) * MEGABYTE;
    const uint64_t left = spare > kept ? spare - kept : 0;
    return (uint64_t)bench.memory < left ? (uint64_t)bench.memory : left;
}

/* Puts a way into the last group, or into a new one. Returns the bytes that the group takes. */
static uint64_t place(int way, uint64_t limit) {
    bench.variant[way].group = bench.groups - 1;
    uint64_t bytes = together(bench.groups - 1);
    if (bytes > limit && way != bench.base[0] && way != bench.base[1]) {
        bench.variant[way].group = bench.groups++;
        bytes = together(bench.groups - 1);
    }
    if (bytes > limit)
        refuse(bytes, limit);
    return bytes;
}

void plan_groups(void) {
    const uint64_t limit = memory_limit();
    const uint64_t state = state_bytes(&bench.work.program), step = step_bytes(&bench.work.program);
    const uint64_t packed = packed_bytes(&bench.work.program);
    uint64_t most = 0;
    bench.groups = 1;
    for (int i = 0; i < bench.variants; i++)
        expect(&bench.variant[i], state, step, packed);
    bench.trims = !fits_kept(limit);
    place(bench.base[0], limit);
    place(bench.base[1], limit);
    static const variant_kind order[] = {LOG_TRAINER, ORDER_FIXED, FREE_F32, FREE_F64};
    for (int k = 0; k < (int)(sizeof order / sizeof *order); k++)
        for (int i = 0; i < bench.variants; i++) {
            const variant *v = &bench.variant[i];
            const variant_kind kind = v->kind == LOG_AUDITOR ? LOG_TRAINER : v->kind;
            const uint64_t bytes = kind == order[k] && v->group < 0 ? place(i, limit) : 0;
            most = bytes > most ? bytes : most;
        }
    fprintf(stderr,
            "%d ways in %d group%s; a process takes about %.2f GB, %.2f GB in a step; at most %.1f "
            "GB together, of %.1f GB%s\n",
            bench.variants, bench.groups, bench.groups == 1 ? "" : "s",
            (double)(state + PROCESS) / 1e9, (double)(step + PROCESS) / 1e9, (double)most / 1e9,
            (double)limit / 1e9, bench.trims ? "; pages are given back after each turn" : "");
}
