/* This file finds products with bias and activation, SPEC.md section 3.1, from the bias's addition,
 * or an activation without bias; and products and convolutions of weights that may stay packed. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_elementwise.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "verde/exec/fuse_match.h"
#include "repops/op_function.h"

static const struct {
    int op;
    ro_activation activation;
} activations[] = {{RO_OP_RELU, RO_ACTIVATION_RELU},
                   {RO_OP_GELU, RO_ACTIVATION_GELU},
                   {RO_OP_GELU_ERF, RO_ACTIVATION_GELU_ERF},
                   {RO_OP_SILU, RO_ACTIVATION_SILU}};
enum { ACTIVATIONS = sizeof activations / sizeof activations[0] };

/* Returns whether the product is of two matrices, in a form that ro_linear has. */
static bool is_plain(const vd_node *n) {
    return n->attr[RO_MATMUL_BATCH_DIMS] == 0 && !(n->attr[RO_MATMUL_TRANS] & 1) &&
           n->attr[RO_MATMUL_ALPHA] == ro_attr_f32(1.0f) &&
           n->attr[RO_MATMUL_CHUNK] == RO_DOT_CHUNK && n->attr[RO_MATMUL_MASK] == RO_MASK_NONE;
}

static bool is_plain_fixed(const vd_node *n) {
    return n->attr[RO_MATMUL_FIXED_BATCH_DIMS] == 0 && !(n->attr[RO_MATMUL_FIXED_TRANS] & 1) &&
           n->attr[RO_MATMUL_FIXED_ALPHA] == ro_attr_f32(1.0f);
}

/* The product that computes `value`; NULL: there is none of a suitable form. */
static const vd_node *product_of(const vd_matcher *m, uint32_t value, vd_fused *g) {
    const vd_node *n = vd_join(m, value, RO_OP_MATMUL, g);
    if (n) {
        g->linear.transposed = n->attr[RO_MATMUL_TRANS] >> 1 & 1;
        return is_plain(n) ? n : NULL;
    }
    n = vd_join(m, value, RO_OP_MATMUL_FIXED, g);
    if (!n)
        return NULL;
    g->linear.transposed = n->attr[RO_MATMUL_FIXED_TRANS] >> 1 & 1;
    g->linear.fixed_bits = (int)n->attr[RO_MATMUL_FIXED_BITS];
    return is_plain_fixed(n) ? n : NULL;
}

static bool is_data(const vd_matcher *m, uint32_t value) {
    uint32_t index;
    return value < m->sources &&
           vd_source_of(m->program, m->graph, value, &index) == VD_SOURCE_DATA;
}

/* The weights of a product. If a fixed product reads data through a cast to f32 that nothing else
 * reads, these are the data themselves. */
static uint32_t weights_of(const vd_matcher *m, const vd_node *product, vd_fused *g) {
    const uint32_t w = vd_input_of(m, product, 1);
    const vd_node *cast = vd_node_of(m, w, RO_OP_CAST);
    const uint32_t source = cast ? vd_input_of(m, cast, 0) : w;
    g->frozen = !g->linear.fixed_bits && is_data(m, w);
    if (!g->linear.fixed_bits || !is_data(m, source))
        return w;
    if (cast && (m->uses[w] > 1 || vd_input_of(m, product, 0) > w || !vd_join(m, w, RO_OP_CAST, g)))
        return w;
    g->frozen = true;
    g->weight_dtype = vd_shape_in(m, source)->dtype;
    return source;
}

/* Returns whether weights that are stored transposed are better kept the other way round. Rows a
 * multiple of a page apart evict each other from a cache when several are read in place. */
static bool may_turn(const vd_matcher *m, uint32_t weights, int64_t rows, int64_t out) {
    enum { PAGE = 1024 /* floats */ };
    return is_data(m, weights) && ro_shape_numel(vd_shape_in(m, weights)) <= VD_TURNED_WEIGHTS &&
           (rows == 1 || out % PAGE != 0);
}

static bool join_product(const vd_matcher *m, uint32_t value, vd_fused *g) {
    const vd_node *n = product_of(m, value, g);
    if (!n)
        return false;
    const ro_shape *x = vd_shape_in(m, vd_input_of(m, n, 0));
    g->weight_dtype = RO_F32;
    if (vd_shape_in(m, vd_input_of(m, n, 1))->dtype != RO_F32)
        return false;
    g->linear.size = sizeof g->linear;
    g->linear.in = x->dim[x->ndim - 1];
    g->linear.out = n->shape.dim[n->shape.ndim - 1];
    if (g->linear.in == 0 || g->linear.out == 0)
        return false;
    g->linear.rows = ro_shape_numel(x) / g->linear.in;
    vd_put_inputs(g, 2, (uint32_t[]){vd_input_of(m, n, 0), weights_of(m, n, g)});
    g->turned = g->linear.transposed && !g->linear.fixed_bits &&
                may_turn(m, g->input[1], g->linear.rows, g->linear.out);
    /* Weights may have more dimensions than two; the result must still be rows of `out`
     * elements. */
    return ro_shape_numel(&n->shape) == g->linear.rows * g->linear.out;
}

/* Joins the activation that reads z, and returns its value; z if there is none. */
static uint32_t join_activation(const vd_matcher *m, uint32_t z, vd_fused *g) {
    for (int i = 0; i < ACTIVATIONS; i++) {
        const vd_reader r = {activations[i].op, z, VD_NO_GROUP, -1, 0};
        const uint32_t y = vd_find_reader(m, z - m->sources + 1, &r);
        if (y == VD_NO_GROUP || !vd_join(m, y, r.op, g))
            continue;
        g->linear.activation = activations[i].activation;
        return y;
    }
    return z;
}

/* Sets the outputs. z is one if others than the activation read it. */
static void put_results(const vd_matcher *m, vd_fused *g, uint32_t z, uint32_t y) {
    vd_put_outputs(g, y != z && m->uses[z] > 1 ? 2 : 1, (uint32_t[]){y, z});
}

bool vd_match_linear(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const vd_node *n = &m->graph->stored[node];
    const uint32_t value = m->sources + node, product = vd_input_of(m, n, 0);
    g->kind = VD_FUSED_LINEAR;
    if (product < m->sources || !vd_join(m, value, n->op, g) || !join_product(m, product, g))
        return false;
    if (n->op == RO_OP_ADD) {
        const uint32_t bias = vd_input_of(m, n, 1);
        if (ro_shape_numel(vd_shape_in(m, bias)) != g->linear.out)
            return false;
        g->input[g->input_count++] = bias;
        put_results(m, g, value, join_activation(m, value, g));
        return true;
    }
    for (int i = 0; i < ACTIVATIONS; i++)
        if (activations[i].op == n->op)
            g->linear.activation = activations[i].activation;
    put_results(m, g, product, value);
    return true;
}

/* Turns a product of two matrices into a 1 x 1 convolution of images with one pixel. */
static bool as_conv(const vd_node *n, vd_fused *g) {
    vd_conv *c = g->conv;
    const ro_shape *a = &c->own_shape[0], *b = &c->own_shape[1], *y = &n->shape;
    c->call = c->own;
    memcpy(c->shape, c->own_shape, sizeof c->shape);
    if (n->op == RO_OP_CONV2D)
        return true;
    const int64_t k = a->dim[a->ndim - 1], out = y->dim[y->ndim - 1];
    const int64_t rows = k ? ro_shape_numel(a) / k : 0;
    if (!is_plain(n) || b->dtype != RO_F32 || b->ndim != 2 || ro_shape_numel(y) == 0 ||
        ro_shape_numel(y) != rows * out)
        return false;
    c->turned = n->attr[RO_MATMUL_TRANS] != 0;
    c->call = (ro_call){.op = RO_OP_CONV2D, .input_count = 2};
    c->call.output = (ro_shape){RO_F32, 4, {1, rows, 1, out}};
    c->shape[0] = (ro_shape){RO_F32, 4, {1, rows, 1, k}};
    c->shape[1] = (ro_shape){RO_F32, 4, {1, 1, k, out}};
    for (int d = 0; d < 2; d++)
        c->call.attr[RO_CONV2D_STRIDE_H + d] = c->call.attr[RO_CONV2D_DILATION_H + d] = 1;
    c->call.attr[RO_CONV2D_GROUPS] = 1;
    g->linear = (ro_linear_layer){
        .size = sizeof g->linear, .rows = rows, .in = k, .out = out, .transposed = c->turned};
    g->weight_dtype = RO_F32;
    return true;
}

bool vd_match_conv(const vd_matcher *m, uint32_t node, vd_fused *g, bool *failed) {
    const vd_node *n = &m->graph->stored[node];
    const uint32_t in[] = {vd_input_of(m, n, 0), vd_input_of(m, n, 1)}, value = m->sources + node;
    if (!is_data(m, in[1]))
        return false;
    *g = (vd_fused){.kind = VD_FUSED_CONV, .conv = calloc(1, sizeof *g->conv)};
    *failed = !g->conv;
    if (*failed)
        return false;
    vd_join(m, value, n->op, g);
    vd_put_inputs(g, 2, in);
    vd_put_outputs(g, 1, &value);
    g->conv->own = (ro_call){.op = n->op, .input_count = 2, .output = n->shape};
    memcpy(g->conv->own.attr, n->attr, sizeof n->attr);
    for (int i = 0; i < 2; i++)
        g->conv->own_shape[i] = *vd_shape_in(m, in[i]);
    if (as_conv(n, g) && (!g->conv->turned || may_turn(m, in[1], g->conv->shape[0].dim[1],
                                                       n->shape.dim[n->shape.ndim - 1])))
        return true;
    free(g->conv);
    return false;
}

bool vd_match_product(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t value = m->sources + node;
    g->kind = VD_FUSED_LINEAR;
    vd_put_outputs(g, 1, &value);
    return join_product(m, value, g) && g->frozen;
}
