/* This file pairs the nodes, leaves and data of two programs, by name first and then by place. */
#include "verde/graph/align.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t name; /* hash of the name */
    uint32_t index;
} named;

static void pairs_free(vd_pairs *pairs) {
    free(pairs->of[0]);
    free(pairs->of[1]);
    *pairs = (vd_pairs){0};
}

void vd_alignment_free(vd_alignment *alignment) {
    pairs_free(&alignment->init);
    pairs_free(&alignment->step);
    pairs_free(&alignment->leaf);
    pairs_free(&alignment->data);
}

static bool pairs_open(vd_pairs *pairs, uint32_t a, uint32_t b) {
    *pairs = (vd_pairs){.count = {a, b}};
    for (int side = 0; side < 2; side++) {
        const size_t size = ((size_t)pairs->count[side] + 1) * sizeof *pairs->of[side];
        pairs->of[side] = malloc(size);
        if (!pairs->of[side])
            return false;
        memset(pairs->of[side], 0xff, size);
    }
    return true;
}

/* FNV-1a. A collision would only make the printed comparison misleading; no verdict uses it. */
static uint64_t hash_of(const char *name) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(1099511628211);
    return hash;
}

static int compare_named(const void *a, const void *b) {
    const named *x = a, *y = b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Both lists are sorted by hash, then index, so repeated names are paired in order of index. */
static void merge(const named *a, const named *b, vd_pairs *pairs) {
    for (uint32_t i = 0, k = 0; i < pairs->count[0] && k < pairs->count[1];) {
        if (a[i].name == b[k].name) {
            pairs->of[0][a[i].index] = b[k].index;
            pairs->of[1][b[k++].index] = a[i++].index;
        } else if (a[i].name < b[k].name) {
            i++;
        } else {
            k++;
        }
    }
}

static bool pairs_same(vd_pairs *pairs, uint32_t count) {
    if (!pairs_open(pairs, count, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        pairs->of[0][i] = pairs->of[1][i] = i;
    return true;
}

/* ---- a program's list of named things ---- */

typedef struct {
    const vd_program *program;
    const vd_graph *graph; /* lists its nodes; NULL: state leaves, or data tensors */
    bool data;
} listed;

static uint32_t count_of(const listed *l) {
    return l->graph  ? l->graph->node_count
           : l->data ? l->program->data_count
                     : l->program->leaf_count;
}

static uint64_t name_of(const listed *l, uint32_t i) {
    if (l->graph) {
        const vd_name name = vd_node_name(l->graph, i);
        return hash_of(name.text);
    }
    return hash_of(l->data ? l->program->data[i].tensor.name : l->program->leaf[i].name);
}

static named *list(const listed *l) {
    const uint32_t count = count_of(l);
    named *out = calloc((size_t)count + 1, sizeof *out);
    for (uint32_t i = 0; out && i < count; i++)
        out[i] = (named){name_of(l, i), i};
    if (out)
        qsort(out, count, sizeof *out, compare_named);
    return out;
}

static vd_status pair(const listed *a, const listed *b, vd_pairs *out, vd_err *err) {
    named *left = list(a), *right = list(b);
    const bool made = left && right && pairs_open(out, count_of(a), count_of(b));
    if (made)
        merge(left, right, out);
    free(left);
    free(right);
    return made ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

/* ---- nodes whose names differ ---- */

static bool are_alike(const vd_graph *a, uint32_t i, const vd_graph *b, uint32_t k) {
    const vd_node *x = vd_node_stored(a, i), *y = vd_node_stored(b, k);
    return x->op == y->op && ro_shape_equal(&x->shape, &y->shape);
}

static void pair_followers(const vd_graph *a, const vd_graph *b, vd_pairs *pairs) {
    for (uint32_t i = 0; i < a->node_count; i++) {
        const uint32_t k = i == 0                               ? 0
                           : pairs->of[0][i - 1] == VD_UNPAIRED ? VD_UNPAIRED
                                                                : pairs->of[0][i - 1] + 1;
        if (pairs->of[0][i] != VD_UNPAIRED || k >= b->node_count ||
            pairs->of[1][k] != VD_UNPAIRED || !are_alike(a, i, b, k))
            continue;
        pairs->of[0][i] = k;
        pairs->of[1][k] = i;
    }
}

static vd_status pair_nodes(const vd_program *a, const vd_graph *ga, const vd_program *b,
                            const vd_graph *gb, vd_pairs *out, vd_err *err) {
    const listed left = {a, ga, false}, right = {b, gb, false};
    const uint32_t most = ga->node_count > gb->node_count ? ga->node_count : gb->node_count;
    if (most > VD_ALIGNED_NODES_MAX)
        return vd_fail(err, VD_ERR_USAGE, "a graph of %u nodes: at most %d are compared one by one",
                       most, VD_ALIGNED_NODES_MAX);
    const vd_status status = pair(&left, &right, out, err);
    if (status == VD_OK)
        pair_followers(ga, gb, out);
    return status;
}

static vd_status align_names(const vd_program *a, const vd_program *b, vd_alignment *out,
                             vd_err *err) {
    vd_status status = pair_nodes(a, &a->init, b, &b->init, &out->init, err);
    if (status == VD_OK)
        status = pair_nodes(a, &a->step, b, &b->step, &out->step, err);
    if (status == VD_OK)
        status = pair(&(listed){a, NULL, false}, &(listed){b, NULL, false}, &out->leaf, err);
    if (status == VD_OK)
        status = pair(&(listed){a, NULL, true}, &(listed){b, NULL, true}, &out->data, err);
    return status;
}

static vd_status align_numbers(const vd_program *p, vd_alignment *out, vd_err *err) {
    return pairs_same(&out->init, p->init.node_count) &&
                   pairs_same(&out->step, p->step.node_count) &&
                   pairs_same(&out->leaf, p->leaf_count) && pairs_same(&out->data, p->data_count)
               ? VD_OK
               : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

vd_status vd_align(const vd_program *a, const vd_program *b, bool same, vd_alignment *out,
                   vd_err *err) {
    *out = (vd_alignment){0};
    const vd_status status = same ? align_numbers(a, out, err) : align_names(a, b, out, err);
    if (status != VD_OK)
        vd_alignment_free(out);
    return status;
}
