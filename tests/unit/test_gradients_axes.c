/* Gradients of layers that move or rotate elements, against differences of the same layers in
 * double precision. The loss is a weighted sum of the output, with a weight for each element. */
#include "repops/op_movement.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 3, IDS = 5, VALUES = 64, ELEMENTS = 400 };

static const int32_t ids[IDS] = {2, 0, 2, 3, 2};

typedef vd_value layer(vd_builder *b, const vd_value *x);

static vd_value transpose(vd_builder *b, const vd_value *x) {
    return vd_transpose(b, "layer", x[0], (int[]){2, 0, 1});
}
static vd_value slice(vd_builder *b, const vd_value *x) {
    return vd_slice(b, "layer", x[0], (vd_stretch){1, 1, 3, 2});
}
static vd_value slice_rows(vd_builder *b, const vd_value *x) {
    return vd_slice(b, "layer", x[0], (vd_stretch){0, 1, 2, 1});
}
static vd_value pad(vd_builder *b, const vd_value *x) {
    return vd_pad(b, "layer", x[0], 1, 2, 1);
}
static vd_value gather(vd_builder *b, const vd_value *x) {
    return vd_gather(b, "layer", x[0], vd_data_value(b, 0), 0);
}
static vd_value gather_columns(vd_builder *b, const vd_value *x) {
    return vd_gather(b, "layer", x[0], vd_data_value(b, 0), 1);
}
static vd_value concat(vd_builder *b, const vd_value *x) {
    return vd_concat(b, "layer", 1, 3, x);
}
static vd_value concat_with_itself(vd_builder *b, const vd_value *x) {
    return vd_concat(b, "layer", 0, 3, (vd_value[]){x[0], x[1], x[0]});
}
static vd_value reshape(vd_builder *b, const vd_value *x) {
    return vd_reshape(b, "layer", x[0], VD_SHAPE(RO_F32, 6, 4));
}
/* Rotations at three positions from `first` on, for three pairs of elements. */
static vd_rotation rotation(vd_builder *b, float base, int64_t first, bool neighbours) {
    const vd_frequencies frequencies = {.base = base};
    const vd_value all = vd_iota(b, "positions", first + 3);
    const vd_op slice = {RO_OP_SLICE, {0, first, 3, 1}, NULL};
    return (vd_rotation){VD_EMIT(b, "positions", slice, all),
                         vd_rope_turns(b, "turns", 6, &frequencies), neighbours};
}
static vd_value rope(vd_builder *b, const vd_value *x) {
    return vd_rope(b, "layer", x[0], rotation(b, 10000, 5, false));
}
static vd_value rope_neighbours(vd_builder *b, const vd_value *x) {
    return vd_rope(b, "layer", x[0], rotation(b, 500000, 70000, true));
}

/* clang-format off */
#define F(n, ...) {RO_F32, n, {__VA_ARGS__}}
/* clang-format on */

static const struct {
    const char *name;
    layer *build;
    int inputs;
    ro_shape shape[INPUTS];
} cases[] = {
    {"transpose", transpose, 1, {F(3, 2, 3, 4)}},
    {"slice", slice, 1, {F(3, 2, 7, 3)}},
    {"slice_rows", slice_rows, 1, {F(2, 4, 3)}},
    {"pad", pad, 1, {F(3, 2, 3, 2)}},
    {"gather", gather, 1, {F(2, 4, 3)}},
    {"gather_columns", gather_columns, 1, {F(3, 3, 4, 2)}},
    {"concat", concat, 3, {F(2, 3, 2), F(2, 3, 4), F(2, 3, 1)}},
    {"concat_with_itself", concat_with_itself, 2, {F(2, 2, 3), F(2, 1, 3)}},
    {"reshape", reshape, 1, {F(3, 2, 3, 4)}},
    {"rope", rope, 1, {F(3, 2, 3, 6)}},
    {"rope_neighbours", rope_neighbours, 1, {F(3, 2, 3, 6)}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static double number(int i) {
    return (double)((uint32_t)(i + 7) * UINT32_C(2654435761) >> 20) / 4096 - 0.5;
}

typedef struct {
    vd_program program;
    vd_value input[INPUTS], out, gradient[INPUTS];
    void *value[VALUES];
    uint32_t sources, weight;
    double weights[ELEMENTS];
} example;

static void build(example *x, int at) {
    vd_program *p = &x->program;
    vd_builder b = vd_builder_of(p, &p->step);
    cr_assert(vd_program_take_data(p, 1, NULL) == VD_OK);
    p->data[0].tensor.shape = VD_SHAPE(RO_I32, IDS);
    for (int i = 0; i < cases[at].inputs; i++)
        x->input[i] = vd_add_leaf(&b, "x", &cases[at].shape[i]);
    x->weight = vd_add_leaf(&b, "weight", &(ro_shape){RO_F32, 1, {1}});
    /* The weight's shape is known only once the layer is built. Adding it first keeps the numbers
     * of values valid. */
    vd_value out = cases[at].build(&b, x->input);
    p->leaf[x->weight].shape = *vd_shape_of(&b, out);
    x->out = out;
    vd_backward(&b, vd_mul(&b, "weigh", out, x->weight), 1);
    cr_assert(b.status == VD_OK, "%s: %s", cases[at].name, b.err.text);
    for (int i = 0; i < cases[at].inputs; i++)
        x->gradient[i] = vd_grad(&b, x->input[i]);
    vd_builder_free(&b);
    x->sources = vd_source_count(p, &p->step);
    cr_assert(x->sources + p->step.node_count <= VALUES);
}

static float *leaf_data(const example *x, uint32_t leaf) {
    const int64_t count = ro_shape_numel(&x->program.leaf[leaf].shape);
    float *data = calloc((size_t)count, sizeof *data);
    for (int64_t e = 0; e < count; e++)
        data[e] = (float)number((int)(leaf * 1000) + (int)e);
    return data;
}

static void run(example *x) {
    const vd_graph *g = &x->program.step;
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) ==
              RO_OK);
    for (uint32_t i = 0; i < x->program.leaf_count; i++)
        x->value[i] = leaf_data(x, i);
    x->value[x->program.leaf_count] = (void *)(uintptr_t)ids;
    for (uint32_t i = 0; i < g->node_count; i++) {
        ro_shape shapes[8];
        const void *input[8];
        ro_call call;
        vd_node_call(&x->program, g, i, &call, shapes);
        for (int k = 0; k < call.input_count; k++)
            input[k] = x->value[vd_node_input(g, i, k)];
        x->value[x->sources + i] = malloc((size_t)ro_shape_numel(&call.output) * 4);
        cr_assert(ro_run(ctx, &call, input, x->value[x->sources + i]) == RO_OK);
    }
    ro_ctx_destroy(ctx);
}

/* ---- the layers in double precision ---- */

static void exact_rope(const double *x, int at, double *out) {
    const int64_t *dim = cases[at].shape[0].dim, width = dim[2], half = width / 2;
    const bool neighbours = cases[at].build == rope_neighbours;
    for (int64_t r = 0; r < dim[0] * dim[1]; r++)
        for (int64_t i = 0; i < half; i++) {
            const double position = (double)(r % dim[1] + (neighbours ? 70000 : 5));
            const double base = neighbours ? 500000 : 10000;
            const double angle = position * pow(base, -(double)i / (double)half);
            const int64_t a = r * width + (neighbours ? 2 * i : i);
            const int64_t b = r * width + (neighbours ? 2 * i + 1 : i + half);
            out[a] = x[a] * cos(angle) - x[b] * sin(angle);
            out[b] = x[a] * sin(angle) + x[b] * cos(angle);
        }
}

/* Moves elements by their coordinates, independently of the library. x holds the inputs one after
 * the other. */
static void exact_movement(const double *x, int at, double *out) {
    const char *name = cases[at].name;
    const int64_t *d = cases[at].shape[0].dim;
    int64_t e = 0;
#define IS(n) (strcmp(name, n) == 0)
    if (IS("transpose"))
        for (int64_t k = 0; k < 4; k++)
            for (int64_t i = 0; i < 6; i++)
                out[e++] = x[i * 4 + k];
    for (int64_t o = 0; IS("slice") && o < d[0]; o++)
        for (int64_t j = 1; j <= 5; j += 2)
            for (int64_t i = 0; i < d[2]; i++)
                out[e++] = x[(o * d[1] + j) * d[2] + i];
    if (IS("slice_rows"))
        memcpy(out, x + 3, 6 * sizeof *out);
    for (int64_t o = 0; IS("pad") && o < d[0]; o++)
        for (int64_t j = -2; j < 4; j++)
            for (int64_t i = 0; i < d[2]; i++)
                out[e++] = j >= 0 && j < 3 ? x[(o * d[1] + j) * d[2] + i] : 0;
    for (int64_t p = 0; IS("gather") && p < IDS; p++)
        for (int64_t i = 0; i < d[1]; i++)
            out[e++] = x[ids[p] * d[1] + i];
    for (int64_t o = 0; IS("gather_columns") && o < d[0]; o++)
        for (int64_t p = 0; p < IDS; p++)
            for (int64_t i = 0; i < d[2]; i++)
                out[e++] = x[(o * d[1] + ids[p]) * d[2] + i];
    for (int64_t r = 0; IS("concat") && r < 3; r++)
        for (int64_t i = 0; i < 7; i++)
            out[e++] = i < 2 ? x[2 * r + i] : i < 6 ? x[6 + 4 * r + i - 2] : x[18 + r];
    if (IS("concat_with_itself")) {
        memcpy(out, x, 9 * sizeof *out);
        memcpy(out + 9, x, 6 * sizeof *out);
    }
    if (IS("reshape"))
        memcpy(out, x, 24 * sizeof *out);
#undef IS
}

static double loss(const example *x, int at, const double *in, int64_t count) {
    double out[ELEMENTS], sum = 0;
    if (cases[at].build == rope || cases[at].build == rope_neighbours)
        exact_rope(in, at, out);
    else
        exact_movement(in, at, out);
    for (int64_t e = 0; e < count; e++)
        sum += out[e] * x->weights[e];
    return sum;
}

/* ---- comparison ---- */

static void expect_gradients(const example *x, int at) {
    const int64_t count = ro_shape_numel(&x->program.leaf[x->weight].shape);
    double in[ELEMENTS];
    int64_t total = 0;
    for (int i = 0; i < cases[at].inputs; i++)
        for (int64_t e = 0; e < ro_shape_numel(&cases[at].shape[i]); e++)
            in[total++] = (double)((float *)x->value[i])[e];
    total = 0;
    for (int i = 0; i < cases[at].inputs; i++) {
        cr_assert(x->gradient[i] != VD_NONE);
        const float *got = x->value[x->gradient[i]];
        for (int64_t e = 0; e < ro_shape_numel(&cases[at].shape[i]); e++, total++) {
            const double was = in[total], h = 1e-3;
            in[total] = was + h;
            const double above = loss(x, at, in, count);
            in[total] = was - h;
            const double want = (above - loss(x, at, in, count)) / (2 * h);
            in[total] = was;
            cr_expect(fabs((double)got[e] - want) < 1e-5, "%s, input %d, element %lld: %g, not %g",
                      cases[at].name, i, (long long)e, (double)got[e], want);
        }
    }
}

Test(gradients, of_layers_that_move_or_turn_agree_with_differences) {
    for (int at = 0; at < CASES; at++) {
        static example x;
        memset(&x, 0, sizeof x);
        build(&x, at);
        run(&x);
        for (int64_t e = 0; e < ro_shape_numel(&x.program.leaf[x.weight].shape); e++)
            x.weights[e] = (double)((float *)x.value[x.weight])[e];
        expect_gradients(&x, at);
        for (uint32_t i = 0; i < x.sources + x.program.step.node_count; i++)
            if (i != x.program.leaf_count)
                free(x.value[i]);
        vd_program_free(&x.program);
    }
}
