/* Operators whose speed memory limits: bytes per second beside a copy inside the device. */
#include "bench/cuda.h"
#include "repops/fused.h"
#include "repops/operators.h"

#include <stdlib.h>

enum { INPUTS = 8 };

typedef struct {
    const char *name;
    int op;
    const char *inputs; /* f: like the output, r: one per row, c: one per column, 1: one element */
    int attrs;
    int64_t attr[2];
} operator_work;

static const operator_work works[] = {
    {"add", RO_OP_ADD, "ff", 0, {0}},
    {"gelu", RO_OP_GELU, "f", 0, {0}},
    {"gelu_grad", RO_OP_GELU_GRAD, "ff", 0, {0}},
    {"layernorm", RO_OP_LAYERNORM, "frrcc", 0, {0}},
    {"rmsnorm", RO_OP_RMSNORM, "frc", 0, {0}},
    {"softmax", RO_OP_SOFTMAX, "frr", 0, {0}},
    {"softmax_grad", RO_OP_SOFTMAX_GRAD, "ffr", 0, {0}},
    {"adamw_m", RO_OP_ADAMW_M, "ff1", 1, {0}},
    {"adamw_v", RO_OP_ADAMW_V, "ff1", 1, {0}},
};

typedef struct work {
    const bench *b;
    ro_shape in[INPUTS];
    ro_call call;
    float *data[INPUTS], *out;
    int64_t rows, cols;
    int32_t *ids;
    ro_status (*function)(const struct work *w);
} work;

static int run_operator(void *user, int times) {
    work *w = user;
    const void *in[INPUTS];
    for (int i = 0; i < w->call.input_count; i++)
        in[i] = w->data[i];
    for (int i = 0; i < times; i++)
        if (ro_run(w->b->ctx, &w->call, in, w->out) != RO_OK)
            return 0;
    return ro_wait(w->b->ctx) == RO_OK;
}

static int run_copy(void *user, int times) {
    const work *w = user;
    for (int i = 0; i < times; i++)
        if (ro_copy(w->b->ctx, w->out, w->data[0], (size_t)(w->rows * w->cols) * 4) != RO_OK)
            return 0;
    return ro_wait(w->b->ctx) == RO_OK;
}

static int run_cross_entropy(void *user, int times) {
    const work *w = user;
    for (int i = 0; i < times; i++)
        if (ro_cross_entropy(w->b->ctx, w->rows, w->cols, w->data[0], w->ids, RO_IGNORE_NONE,
                             w->data[1], w->data[2], NULL, NULL, w->out) != RO_OK)
            return 0;
    return ro_wait(w->b->ctx) == RO_OK;
}

/* ---- functions of rows; bytes are those of x, y and dy, each counted once ---- */

static ro_status layer_norm(const work *w) {
    float *const *d = w->data;
    return ro_layer_norm(w->b->ctx, w->rows, w->cols, 1e-5f, d[0], d[2], d[2], w->out, d[3], d[4]);
}

static ro_status layer_norm_backward(const work *w) {
    float *const *d = w->data;
    return ro_layer_norm_backward(w->b->ctx, w->rows, w->cols, d[0], d[2], d[3], d[4], d[1], w->out,
                                  d[5], d[6]);
}

static ro_status softmax(const work *w) {
    return ro_softmax(w->b->ctx, w->rows, w->cols, w->data[0], w->out, w->data[3], w->data[4]);
}

static ro_status softmax_backward(const work *w) {
    return ro_softmax_backward(w->b->ctx, w->rows, w->cols, w->data[0], w->data[1], w->out);
}

static ro_status log_softmax(const work *w) {
    return ro_log_softmax(w->b->ctx, w->rows, w->cols, w->data[0], w->out, w->data[3], w->data[4]);
}

static ro_status log_softmax_backward(const work *w) {
    return ro_log_softmax_backward(w->b->ctx, w->rows, w->cols, w->data[0], w->data[1], w->out);
}

static const struct {
    const char *name;
    ro_status (*run)(const work *w);
    int tensors;
} row_functions[] = {
    {"ro_layer_norm", layer_norm, 2},   {"ro_layer_norm_backward", layer_norm_backward, 3},
    {"ro_softmax", softmax, 2},         {"ro_softmax_backward", softmax_backward, 3},
    {"ro_log_softmax", log_softmax, 2}, {"ro_log_softmax_backward", log_softmax_backward, 3}};

static int run_row_function(void *user, int times) {
    const work *w = user;
    for (int i = 0; i < times; i++)
        if (w->function(w) != RO_OK)
            return 0;
    return ro_wait(w->b->ctx) == RO_OK;
}

static int64_t size_of(const work *w, char kind, ro_shape *shape) {
    *shape = kind == 'f'   ? (ro_shape){RO_F32, 2, {w->rows, w->cols}}
             : kind == 'r' ? (ro_shape){RO_F32, 1, {w->rows}}
             : kind == 'c' ? (ro_shape){RO_F32, 1, {w->cols}}
                           : (ro_shape){RO_F32, 1, {1}};
    return ro_shape_numel(shape);
}

/* Reports our bytes per second as a share of the copy's, which reads and writes each byte. */
static void report(const bench *b, const char *name, turn ours, work *copy, double bytes) {
    double ours_s, copy_s;
    char note[80];
    bench_times(b, ours, (turn){run_copy, copy}, &ours_s, &copy_s);
    if (ours_s > 0 && copy_s <= 0) {
        bench_failed(b, name, "the copy failed");
        return;
    }
    const double rate = bytes / ours_s, most = 8.0 * (double)(copy->rows * copy->cols) / copy_s;
    snprintf(note, sizeof note, "%.0f GB/s, copy %.0f GB/s", 1e-9 * rate, 1e-9 * most);
    bench_row(b, name, 1e3 * ours_s, 1e3 * bytes / most, rate / most, 0.85, note);
}

static void bench_operator(const bench *b, const operator_work *o, work *copy) {
    work w = *copy;
    char why[200];
    double bytes = 0;
    w.call = (ro_call){.op = o->op, .input = w.in};
    for (; o->inputs[w.call.input_count]; w.call.input_count++) {
        const int i = w.call.input_count;
        const int64_t count = size_of(&w, o->inputs[i], &w.in[i]);
        w.data[i] = bench_memory(b, count);
        bytes += 4.0 * (double)count;
    }
    for (int i = 0; i < o->attrs; i++)
        w.call.attr[i] = ro_attr_f32(0.9f);
    if (ro_infer(&w.call, why, sizeof why) == RO_OK)
        report(b, o->name, (turn){run_operator, &w}, copy,
               bytes + 4.0 * (double)ro_shape_numel(&w.call.output));
    else
        bench_failed(b, o->name, why);
    for (int i = 0; i < w.call.input_count; i++)
        ro_free(b->ctx, w.data[i]);
}

static void bench_row_functions(const bench *b, work *copy) {
    work w = *copy;
    for (int i = 1; i < 7; i++)
        w.data[i] = bench_memory(b, i == 1 ? w.rows * w.cols : i == 3 || i == 4 ? w.rows : w.cols);
    for (size_t i = 0; i < sizeof row_functions / sizeof row_functions[0]; i++) {
        w.function = row_functions[i].run;
        report(b, row_functions[i].name, (turn){run_row_function, &w}, copy,
               4.0 * row_functions[i].tensors * (double)(w.rows * w.cols));
    }
    for (int i = 1; i < 7; i++)
        ro_free(b->ctx, w.data[i]);
}

/* Times cross-entropy of GPT-2's logits, which reads them once and writes their gradient. */
static void bench_cross_entropy(const bench *b, work *copy) {
    work w = *copy;
    w.rows = b->small ? 8 : 8192, w.cols = b->small ? 300 : 50257;
    int32_t *ids = calloc((size_t)w.rows, sizeof *ids);
    w.data[0] = bench_memory(b, w.rows * w.cols);
    w.data[1] = bench_memory(b, w.rows);
    w.data[2] = bench_memory(b, w.rows);
    w.out = bench_memory(b, w.rows * w.cols);
    w.ids = ro_alloc(b->ctx, (size_t)w.rows * sizeof *ids);
    if (ids && w.ids && ro_write(b->ctx, w.ids, ids, (size_t)w.rows * sizeof *ids) == RO_OK)
        report(b, "cross_entropy", (turn){run_cross_entropy, &w}, copy,
               8.0 * (double)(w.rows * w.cols));
    else
        bench_failed(b, "cross_entropy", ro_ctx_error(b->ctx));
    for (int i = 0; i < 3; i++)
        ro_free(b->ctx, w.data[i]);
    ro_free(b->ctx, w.out);
    ro_free(b->ctx, w.ids);
    free(ids);
}

void bench_streams(const bench *b) {
    work copy = {.b = b, .rows = b->small ? 16 : 65536, .cols = b->small ? 64 : 1024};
    copy.data[0] = bench_memory(b, copy.rows * copy.cols);
    copy.out = bench_memory(b, copy.rows * copy.cols);
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        bench_operator(b, &works[i], &copy);
    bench_row_functions(b, &copy);
    bench_cross_entropy(b, &copy);
    ro_free(b->ctx, copy.data[0]);
    ro_free(b->ctx, copy.out);
}
