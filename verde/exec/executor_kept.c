/* Operands of fixed products that stay packed within a step, because several products read the same
 * chunks: weights in each micro-batch, or the x of separate products for q, k and v. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_product.h"
#include "verde/exec/executor.h"
#include "verde/exec/kept_weights.h"

/* How a stored product reads one operand. */
typedef struct {
    uint32_t value; /* in iteration 0 */
    uint32_t stored;
    uint32_t reads; /* reads of this value: the number of iterations if all read it */
    int side;       /* 0: x; 1: w */
    bool turned;
    int bits;
} use;

static bool is_plain(const vd_node *n) {
    return n->op == RO_OP_MATMUL_FIXED && n->attr[RO_MATMUL_FIXED_BATCH_DIMS] == 0 &&
           n->attr[RO_MATMUL_FIXED_ALPHA] == ro_attr_f32(1.0f);
}

/* Returns whether a value is data, which stays packed longer than a step (kept_weights.h). */
static bool is_data(const vd_execution *x, uint32_t value) {
    uint32_t index;
    return value < x->sources &&
           vd_source_of(x->program, x->graph, value, &index) == VD_SOURCE_DATA;
}

static use use_of(const vd_execution *x, uint32_t stored, int side) {
    const vd_graph *g = x->graph;
    const vd_node *n = &g->stored[stored];
    const vd_repeat *r = vd_repeat_of(g, stored);
    const uint32_t value = vd_node_input(g, vd_node_number(g, stored, 0), side);
    const bool same =
        r && r->count > 1 && vd_node_input(g, vd_node_number(g, stored, 1), side) == value;
    return (use){.value = value,
                 .stored = stored,
                 .reads = same ? r->count : 1,
                 .side = side,
                 .turned = n->attr[RO_MATMUL_FIXED_TRANS] >> side & 1,
                 .bits = (int)n->attr[RO_MATMUL_FIXED_BITS]};
}

static int order(const void *a, const void *b) {
    const use *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    if (x->side != y->side)
        return x->side - y->side;
    if (x->turned != y->turned)
        return x->turned - y->turned;
    return x->bits - y->bits;
}

/* Shares the packed chunks of operands that are read alike by several products. */
static void share(vd_execution *x, use *list, uint32_t count) {
    qsort(list, count, sizeof *list, order);
    for (uint32_t i = 0, end; i < count; i = end) {
        uint32_t reads = 0;
        for (end = i; end < count && order(&list[i], &list[end]) == 0; end++)
            reads += list[end].reads;
        if (reads == 1)
            continue;
        for (uint32_t k = i; k < end; k++)
            x->operand_of[2 * list[k].stored + (uint32_t)list[k].side] = x->operand_count;
        x->operand[x->operand_count++] = (vd_kept_operand){.value = VD_NO_GROUP, .reads = reads};
    }
}

vd_status vd_kept_operands_plan(vd_execution *x, vd_err *err) {
    const vd_graph *g = x->graph;
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->stored_count; i++)
        count += is_plain(&g->stored[i]) ? 2 : 0;
    if (count == 0 || !x->exec->kept)
        return VD_OK;
    use *list = calloc(count, sizeof *list);
    x->operand = calloc(count, sizeof *x->operand);
    x->operand_of = malloc(2 * (size_t)g->stored_count * sizeof *x->operand_of);
    if (!list || !x->operand || !x->operand_of) {
        free(list);
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    memset(x->operand_of, 0xff, 2 * (size_t)g->stored_count * sizeof *x->operand_of);
    count = 0;
    for (uint32_t i = 0; i < g->stored_count; i++)
        for (int side = 0; side < 2 && is_plain(&g->stored[i]); side++) {
            list[count] = use_of(x, i, side);
            count += !is_data(x, list[count].value);
        }
    share(x, list, count);
    free(list);
    return VD_OK;
}

void vd_kept_operands_free(vd_execution *x) {
    for (uint32_t i = 0; i < x->operand_count; i++)
        vd_kept_operand_drop(&x->operand[i], x->exec->kept);
    free(x->operand);
    free(x->operand_of);
}

bool vd_kept_operands_bind(const vd_execution *x, uint32_t node, vd_kept_operand *of[2]) {
    of[0] = of[1] = NULL;
    if (!x->operand_of)
        return false;
    const uint32_t stored = vd_node_spot(x->graph, node).stored;
    for (uint32_t side = 0; side < 2; side++) {
        const uint32_t at = x->operand_of[2 * stored + side];
        if (at == VD_NO_GROUP)
            continue;
        vd_kept_operand *p = of[side] = &x->operand[at];
        const uint32_t value = vd_node_input(x->graph, node, (int32_t)side);
        if (p->value == value)
            continue;
        vd_kept_operand_drop(p, x->exec->kept);
        p->value = value, p->left = p->reads;
    }
    return of[0] || of[1];
}

vd_status vd_run_kept(vd_execution *x, const ro_call *call, vd_kept_operand *const operand[2],
                      void *output, vd_err *err) {
    const ro_shape *a = &call->input[0], *y = &call->output;
    const int64_t trans = call->attr[RO_MATMUL_FIXED_TRANS];
    vd_fused g = {.kind = VD_FUSED_LINEAR, .input_count = 2, .output_count = 1};
    vd_fused_memory at = {
        .in = {x->input[0], x->input[1]}, .out = {output}, .operand = {operand[0], operand[1]}};
    g.weight_dtype = RO_F32;
    g.linear = (ro_linear_layer){.size = sizeof g.linear,
                                 .out = y->dim[y->ndim - 1],
                                 .transposed = trans >> 1 & 1,
                                 .fixed_bits = (int)call->attr[RO_MATMUL_FIXED_BITS]};
    const int64_t cols = a->dim[a->ndim - 1], rows = cols ? ro_shape_numel(a) / cols : 0;
    g.transposed_x = trans & 1;
    g.linear.rows = g.transposed_x ? cols : rows;
    g.linear.in = g.transposed_x ? rows : cols;
    return vd_linear_run(&g, &at, x->exec->ro, x->exec->kept, err);
}
