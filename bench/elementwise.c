/* Speed of elementwise and row operators, of reductions, movement and the optimizer: beside memcpy
 * in the same run, and beside PyTorch's operators where a Python that has it is named. Each
 * operator in tensors that fit the second-level cache, the third, and neither; interleaved,
 * medians.
 *
 * Usage: elementwise [--isa NAME] [--threads N] [--torch PYTHON] [--only NAME] [--size 0..2]
 *
 * Bytes are those of the inputs and the output, each once. A reduction counts with all of its
 * levels. Names with a space are several operators, what PyTorch has one for. */
#include <pthread.h>
#include <sys/mman.h>

#include "bench/bench.h"
#include "bench/process.h"
#include "repops/fused.h"

enum { ROUNDS = 5, INPUTS = 7, STEPS = 6, LEVELS = 4, SIZES = 3, ROUND_US = 8000 };

typedef struct {
    const char *name;
    int64_t rows, cols;
} size;

static const size sizes[SIZES] = {{"", 64, 768}, {"", 512, 3072}, {"", 8192, 3072}};

/* ---- what is measured ----
 *
 * Shapes by a letter: f [rows, cols], r [rows], c [cols], s [1], i and u like r and f, but i32 and
 * u8; x [rows / 64, 64, cols], h and t split into heads of 64: [rows / 64, cols / 64, 64, 64] and
 * [rows / 64, 64, cols / 64, 64]; R and C: [rows, 1] and [1, cols]. */

typedef struct {
    int op;
    const char *inputs;
    char output; /* 0: inferred */
    int64_t attr[RO_MAX_ATTRS];
} step;

typedef struct {
    const char *name;
    step step[STEPS];
    bool wide;     /* rows of logits */
    double passes; /* tensors of the first shape that pass through memory; 0: count them */
} work;

/* Functions of the library in place of operators. */
enum {
    CROSS_ENTROPY = RO_OP_END,
    CROSS_ENTROPY_BACK,
    ADAMW,
    SGD,
    LAYER_NORM,
    LAYER_NORM_BACK,
    SOFTMAX,
    LOG_SOFTMAX,
    SOFTMAX_BACK,
    LOG_SOFTMAX_BACK,
};

#define ATTR_HALF 0x3f000000

#define ONE(name, op, ...)                                                                         \
    { name, {{op, __VA_ARGS__}}, false, 0 }

static const work works[] = {
    ONE("exp", RO_OP_EXP, "f"),
    ONE("log", RO_OP_LOG, "f"),
    ONE("tanh", RO_OP_TANH, "f"),
    ONE("erf", RO_OP_ERF, "f"),
    ONE("sigmoid", RO_OP_SIGMOID, "f"),
    ONE("sqrt", RO_OP_SQRT, "f"),
    ONE("rsqrt", RO_OP_RSQRT, "f"),
    ONE("relu", RO_OP_RELU, "f"),
    ONE("silu", RO_OP_SILU, "f"),
    ONE("gelu", RO_OP_GELU, "f"),
    ONE("gelu_erf", RO_OP_GELU_ERF, "f"),
    ONE("relu_grad", RO_OP_RELU_GRAD, "ff"),
    ONE("tanh_grad", RO_OP_TANH_GRAD, "ff"),
    ONE("erf_grad", RO_OP_ERF_GRAD, "ff"),
    ONE("sigmoid_grad", RO_OP_SIGMOID_GRAD, "ff"),
    ONE("silu_grad", RO_OP_SILU_GRAD, "ff"),
    ONE("gelu_grad", RO_OP_GELU_GRAD, "ff"),
    ONE("gelu_erf_grad", RO_OP_GELU_ERF_GRAD, "ff"),
    ONE("add", RO_OP_ADD, "ff"),
    ONE("add bias", RO_OP_ADD, "fc"),
    ONE("sub", RO_OP_SUB, "ff"),
    ONE("mul", RO_OP_MUL, "ff"),
    ONE("div", RO_OP_DIV, "ff"),
    ONE("scale", RO_OP_SCALE, "f", 0, {ATTR_HALF}),
    ONE("div_const", RO_OP_DIV_CONST, "f", 0, {0x40400000}),
    ONE("reduce_sum", RO_OP_REDUCE_SUM, "f", 'r'),
    ONE("reduce_max", RO_OP_REDUCE_MAX, "f", 'r'),
    ONE("reduce_dot", RO_OP_REDUCE_DOT, "ff", 'r'),
    ONE("reduce_dot gamma", RO_OP_REDUCE_DOT, "fc", 'r'),
    ONE("reduce_sqdev", RO_OP_REDUCE_SQDEV, "fr", 'r'),
    ONE("reduce_expsum", RO_OP_REDUCE_EXPSUM, "fr", 'r'),
    ONE("reduce_ln_gx", RO_OP_REDUCE_LN_GX, "fcfrr", 'r'),
    ONE("reduce_rms_gx", RO_OP_REDUCE_RMS_GX, "fcfr", 'r'),
    ONE("sum_rows", RO_OP_SUM_ROWS, "f", 'C'),
    ONE("ln_dgamma", RO_OP_LN_DGAMMA, "ffrr", 'C'),
    ONE("rms_dgamma", RO_OP_RMS_DGAMMA, "ffr", 'C'),
    ONE("sum_axis 0", RO_OP_SUM_AXIS, "f"),
    ONE("max_axis 0", RO_OP_MAX_AXIS, "f"),
    ONE("argmax", RO_OP_ARGMAX, "f", 0, {1}),
    ONE("argmax 0", RO_OP_ARGMAX, "f", 0, {0}),
    ONE("layernorm", RO_OP_LAYERNORM, "frrcc"),
    ONE("ln_dx", RO_OP_LN_DX, "fcfrrrr"),
    ONE("rmsnorm", RO_OP_RMSNORM, "frc"),
    ONE("rms_dx", RO_OP_RMS_DX, "fcfrr"),
    {"layer norm", {{LAYER_NORM, "f"}}, false, 2},
    {"layer norm back", {{LAYER_NORM_BACK, "f"}}, false, 3},
    ONE("softmax_only", RO_OP_SOFTMAX, "frr"),
    ONE("softmax_grad", RO_OP_SOFTMAX_GRAD, "ffr"),
    ONE("log_softmax", RO_OP_LOG_SOFTMAX, "frr"),
    ONE("log_softmax_grad", RO_OP_LOG_SOFTMAX_GRAD, "ffr"),
    {"softmax", {{SOFTMAX, "f"}}, false, 2},
    {"softmax back", {{SOFTMAX_BACK, "f"}}, false, 3},
    {"log softmax", {{LOG_SOFTMAX, "f"}}, false, 2},
    {"log softmax back", {{LOG_SOFTMAX_BACK, "f"}}, false, 3},
    {"xent", {{RO_OP_XENT, "frri"}}, true, 0.001},
    {"xent_grad", {{RO_OP_XENT_GRAD, "frrir"}}, true, 0},
    {"cross entropy", {{CROSS_ENTROPY, "f"}}, true, 1},
    {"cross entropy back", {{CROSS_ENTROPY_BACK, "f"}}, true, 2},
    ONE("adamw_m", RO_OP_ADAMW_M, "ffs", 0, {0x3f666666}),
    ONE("adamw_v", RO_OP_ADAMW_V, "ffs", 0, {0x3f733333}),
    ONE("adamw_w", RO_OP_ADAMW_W, "fffsss", 0, {0x322bcc77, 0x3dcccccd}),
    {"adamw", {{ADAMW, "f"}}, false, 7},
    ONE("sgd_m", RO_OP_SGD_M, "fffs", 0, {0x3f666666, 0x3dcccccd}),
    ONE("sgd_w", RO_OP_SGD_W, "ffs"),
    {"sgd", {{SGD, "f"}}, false, 5},
    ONE("embedding", RO_OP_EMBEDDING, "fi"),
    ONE("embedding_grad", RO_OP_EMBEDDING_GRAD, "fi", 'f'),
    ONE("gather", RO_OP_GATHER, "fi"),
    ONE("dropout", RO_OP_DROPOUT, "fz", 0, {1, 2, 0x1999999a, 0x3f8e38e4}),
    ONE("transpose", RO_OP_TRANSPOSE, "f", 0, {1, 0}),
    ONE("transpose heads", RO_OP_TRANSPOSE, "t", 0, {0, 2, 1, 3}),
    ONE("split_heads", RO_OP_SPLIT_HEADS, "x", 0, {1, 0, 12}),
    ONE("join_heads", RO_OP_JOIN_HEADS, "h"),
    ONE("concat_axis", RO_OP_CONCAT_AXIS, "ff", 0, {1}),
    ONE("slice", RO_OP_SLICE, "f", 0, {1, 0, 384, 1}),
    ONE("pad", RO_OP_PAD, "f", 0, {1, 1, 1, 1}),
    ONE("cast u8", RO_OP_CAST, "u", 0, {RO_F32}),
    ONE("cast i32", RO_OP_CAST, "f", 0, {RO_I32}),
    ONE("reshape", RO_OP_RESHAPE, "f", 'f'),
    ONE("fill", RO_OP_FILL, "", 'f', {ATTR_HALF}),
    ONE("expand", RO_OP_EXPAND, "R", 0, {1, 768}),
    ONE("expand 0", RO_OP_EXPAND, "C", 0, {0, 64}),
    ONE("normal", RO_OP_NORMAL, "", 'f', {1, 2, 0, 0x3f800000}),
    ONE("uniform", RO_OP_UNIFORM, "", 'f', {1, 2, 0, 0x3f800000}),
    ONE("rope", RO_OP_ROPE, "h", 0, {0x461c4000}),
};
enum { WORKS = sizeof works / sizeof works[0] };

/* ---- calls ---- */

typedef struct {
    ro_call call;
    ro_shape in[INPUTS];
    const void *data[INPUTS];
} call;

typedef struct {
    int calls;
    call call[STEPS * LEVELS];
    int64_t rows, cols, passes;
    double bytes;
} job;

typedef struct {
    float *f[INPUTS], *out;
    int32_t *ids, *zero;
    uint8_t *u8;
} memory;

static ro_shape shape_of(char letter, int64_t rows, int64_t cols) {
    switch (letter) {
    case 'r': return (ro_shape){RO_F32, 1, {rows}};
    case 'c': return (ro_shape){RO_F32, 1, {cols}};
    case 'R': return (ro_shape){RO_F32, 2, {rows, 1}};
    case 'C': return (ro_shape){RO_F32, 2, {1, cols}};
    case 's': return (ro_shape){RO_F32, 1, {1}};
    case 'z': return (ro_shape){RO_I32, 1, {1}};
    case 'i': return (ro_shape){RO_I32, 1, {rows}};
    case 'u': return (ro_shape){RO_U8, 2, {rows, cols}};
    case 'x': return (ro_shape){RO_F32, 3, {rows / 64, 64, cols}};
    case 'h': return (ro_shape){RO_F32, 4, {rows / 64, cols / 64, 64, 64}};
    case 't': return (ro_shape){RO_F32, 4, {rows / 64, 64, cols / 64, 64}};
    default: return (ro_shape){RO_F32, 2, {rows, cols}};
    }
}

static const void *data_of(char letter, int index, const memory *m) {
    return letter == 'i'   ? m->ids
           : letter == 'z' ? m->zero
           : letter == 'u' ? m->u8
                           : (void *)m->f[index];
}

static double bytes_of(const ro_shape *s) {
    return (double)ro_shape_numel(s) * (double)ro_dtype_size(s->dtype);
}

static void finish_call(job *j, call *c) {
    char why[160];
    c->call.input = c->in;
    if (ro_infer(&c->call, why, sizeof why) != RO_OK) {
        fprintf(stderr, "bench: %s: %s\n", ro_op_describe(c->call.op)->name, why);
        exit(1);
    }
    for (int i = 0; i < c->call.input_count; i++)
        j->bytes += bytes_of(&c->in[i]);
    j->bytes += bytes_of(&c->call.output);
    j->calls++;
}

/* Sets the attributes that depend on the shape. */
static void set_attributes(const step *s, job *j, call *c) {
    memcpy(c->call.attr, s->attr, sizeof s->attr);
    if (s->output == 'r' || s->output == 'C')
        c->call.attr[0] = j->cols;
    switch (s->op) {
    case RO_OP_SPLIT_HEADS: c->call.attr[2] = j->cols / 64; break;
    case RO_OP_SLICE: c->call.attr[2] = j->cols / 2; break;
    case RO_OP_EXPAND: c->call.attr[1] = s->inputs[0] == 'R' ? j->cols : j->rows; break;
    default: break;
    }
}

/* A level that leaves `left` numbers of each row, or rows, is followed by others until one is. */
static void add_levels(const step *s, job *j, call *c, const memory *m) {
    const int64_t unit = s->output == 'r' ? RO_REDUCE_BLOCK : RO_COLUMN_GROUP;
    const bool rows = s->output == 'r';
    int64_t left = rows ? j->cols : j->rows;
    if (rows)
        c->call.attr[1] = unit;
    for (;;) {
        left = (left + unit - 1) / unit;
        c->call.output =
            rows ? (ro_shape){RO_F32, 2, {j->rows, left}} : (ro_shape){RO_F32, 2, {left, j->cols}};
        finish_call(j, c);
        if (left == 1)
            return;
        c = &j->call[j->calls];
        *c = (call){{.op = rows                      ? RO_OP_REDUCE_SUM
                           : s->op == RO_OP_MAX_AXIS ? RO_OP_MAX_AXIS
                           : s->op == RO_OP_SUM_AXIS ? RO_OP_SUM_AXIS
                                                     : RO_OP_SUM_ROWS,
                     .input_count = 1}};
        c->in[0] = j->call[j->calls - 1].call.output;
        c->data[0] = m->out;
        c->call.attr[0] = rows ? left : c->call.op == RO_OP_SUM_ROWS ? j->cols : 0;
        c->call.attr[1] = rows ? unit : 0;
    }
}

static void add_step(const step *s, job *j, const memory *m) {
    call *c = &j->call[j->calls];
    *c = (call){{.op = s->op}};
    for (const char *l = s->inputs; *l; l++) {
        const int i = c->call.input_count++;
        c->in[i] = shape_of(*l, j->rows, j->cols);
        c->data[i] = data_of(*l, i, m);
    }
    set_attributes(s, j, c);
    if (s->output == 'r' || s->output == 'C' || s->op == RO_OP_SUM_AXIS ||
        s->op == RO_OP_MAX_AXIS) {
        add_levels(s, j, c, m);
        return;
    }
    if (s->output)
        c->call.output = shape_of(s->output, j->rows, j->cols);
    finish_call(j, c);
}

static void describe(const work *w, const size *s, const memory *m, job *j) {
    *j = (job){.rows = s->rows, .cols = s->cols};
    if (w->wide) { /* GPT-2's logits, as much as fits */
        j->cols = 50257;
        j->rows = s->rows * s->cols / j->cols > 0 ? s->rows * s->cols / j->cols : 1;
    }
    for (int i = 0; i < STEPS && w->step[i].inputs && w->step[0].op < RO_OP_END; i++)
        add_step(&w->step[i], j, m);
    if (w->passes > 0)
        j->bytes = 4 * w->passes * (double)(j->rows * j->cols);
}

/* ---- time ---- */

/* In place, as a trainer has it. */
static ro_status run_adamw(ro_ctx *ctx, const job *j, const memory *m) {
    static const float one = 1, c1 = 0.5f, c2 = 0.25f, rate = 1e-3f;
    const ro_adamw_step all = {j->rows * j->cols, 0.9f, 0.95f, 1e-8f, 0.1f, &one, &c1, &c2, &rate};
    return ro_adamw(ctx, &all, m->f[0], m->f[1], m->f[2], m->f[3], m->f[0], m->f[1], m->f[2]);
}

static ro_status run_sgd(ro_ctx *ctx, const job *j, const memory *m) {
    static const float one = 1, rate = 1e-3f;
    const ro_sgd_step all = {j->rows * j->cols, 0.9f, 0.1f, 0, &one, &rate};
    return ro_sgd(ctx, &all, m->f[0], m->f[1], m->f[2], m->f[0], m->f[1]);
}

static ro_status run_function(ro_ctx *ctx, int function, const job *j, const memory *m) {
    switch (function) {
    case ADAMW: return run_adamw(ctx, j, m);
    case LAYER_NORM:
        return ro_layer_norm(ctx, j->rows, j->cols, 1e-5f, m->f[0], m->f[1], m->f[2], m->out,
                             m->f[3], m->f[4]);
    case LAYER_NORM_BACK:
        return ro_layer_norm_backward(ctx, j->rows, j->cols, m->f[0], m->f[1], m->f[2], m->f[3],
                                      m->f[4], m->out, m->f[5], m->f[6]);
    case SOFTMAX_BACK: return ro_softmax_backward(ctx, j->rows, j->cols, m->f[0], m->f[1], m->out);
    case LOG_SOFTMAX_BACK:
        return ro_log_softmax_backward(ctx, j->rows, j->cols, m->f[0], m->f[1], m->out);
    case SGD: return run_sgd(ctx, j, m);
    case SOFTMAX: return ro_softmax(ctx, j->rows, j->cols, m->f[0], m->out, m->f[1], m->f[2]);
    case LOG_SOFTMAX:
        return ro_log_softmax(ctx, j->rows, j->cols, m->f[0], m->out, m->f[1], m->f[2]);
    default:
        return ro_cross_entropy(ctx, j->rows, j->cols, m->f[0], m->ids, RO_IGNORE_NONE, m->f[1],
                                m->f[2], NULL, NULL, function == CROSS_ENTROPY ? NULL : m->out);
    }
}

static void run_ours(ro_ctx *ctx, const work *w, const job *j, const memory *m) {
    ro_status status = RO_OK;
    if (w->step[0].op >= RO_OP_END)
        status = run_function(ctx, w->step[0].op, j, m);
    for (int i = 0; i < j->calls && status == RO_OK; i++)
        status = ro_run(ctx, &j->call[i].call, j->call[i].data, m->out);
    if (status != RO_OK) {
        fprintf(stderr, "bench: %s\n", ro_ctx_error(ctx));
        exit(1);
    }
}

static double time_ours(ro_ctx *ctx, const work *w, const job *j, const memory *m, int64_t passes) {
    const double from = clock_s(CLOCK_MONOTONIC);
    for (int64_t i = 0; i < passes; i++)
        run_ours(ctx, w, j, m);
    return (clock_s(CLOCK_MONOTONIC) - from) / (double)passes;
}

typedef struct {
    char *to;
    const char *from;
    size_t size;
    int64_t passes;
} copying;

static void *copy(void *user) {
    const copying *c = user;
    for (int64_t i = 0; i < c->passes; i++) {
        memcpy(c->to, c->from, c->size);
        __asm__ volatile("" : : "r"(c->to) : "memory");
    }
    return NULL;
}

/* Each thread copies its share of `bytes`. */
static double time_copy(const memory *m, size_t bytes, int threads, int64_t passes) {
    pthread_t thread[64];
    copying part[64];
    const size_t share = bytes / (size_t)threads / 64 * 64;
    const double from = clock_s(CLOCK_MONOTONIC);
    for (int i = 0; i < threads; i++) {
        part[i] = (copying){(char *)m->out + (size_t)i * share,
                            (const char *)m->f[0] + (size_t)i * share, share, passes};
        if (i && pthread_create(&thread[i], NULL, copy, &part[i]) != 0)
            exit(1);
    }
    copy(&part[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    return (clock_s(CLOCK_MONOTONIC) - from) / (double)passes;
}

/* Seconds of a pass; 0: it has no such operator. */
static double time_peer(process *peer, const work *w, const job *j, int64_t passes) {
    char question[160], line[80];
    snprintf(question, sizeof question, "%s %lld %lld %lld", w->name, (long long)j->rows,
             (long long)j->cols, (long long)passes);
    return peer->pid && process_ask(peer, question, line, sizeof line) ? atof(line) : 0;
}

static int64_t passes_for(double seconds) {
    const double passes = 1e-6 * ROUND_US / seconds;
    return passes < 1 ? 1 : passes > 100000 ? 100000 : (int64_t)passes;
}

typedef struct {
    double ours, peer, copy; /* seconds of one pass; peer 0: none */
} times;

static times measure(ro_ctx *ctx, process *peer, const work *w, const job *j, const memory *m) {
    const int threads = ro_ctx_threads(ctx);
    const size_t bytes = 4 * (size_t)(j->rows * j->cols);
    double ours[ROUNDS], peers[ROUNDS], copies[ROUNDS];
    run_ours(ctx, w, j, m);
    const int64_t passes = passes_for(time_ours(ctx, w, j, m, 1));
    const double first = time_peer(peer, w, j, 1);
    const int64_t peer_passes = first > 0 ? passes_for(first) : 0;
    const int64_t copy_passes = passes_for(time_copy(m, bytes, threads, 3));
    for (int r = 0; r < ROUNDS; r++) {
        ours[r] = time_ours(ctx, w, j, m, passes);
        peers[r] = peer_passes ? time_peer(peer, w, j, peer_passes) : 0;
        copies[r] = time_copy(m, bytes, threads, copy_passes);
    }
    return (times){bench_median(ours, ROUNDS), bench_median(peers, ROUNDS),
                   bench_median(copies, ROUNDS) / 2 / (double)bytes}; /* of a byte */
}

/* ---- the table ---- */

typedef struct {
    bench_mean copy[SIZES], peer[SIZES];
    int below, all;
} summary;

static bench_csv csv;

static void report(const work *w, const job *j, times t, int index, summary *sum) {
    const double copied = t.copy * j->bytes / t.ours, than_peer = t.peer / t.ours;
    const bool below = copied < 0.8 && than_peer < 1;
    char ratio[24] = "", row[80];
    if (t.peer > 0)
        snprintf(ratio, sizeof ratio, "%.2f", than_peer);
    snprintf(row, sizeof row, "%s %lldx%lld", w->name, (long long)sizes[index].rows,
             (long long)sizes[index].cols);
    bench_csv_row(&csv, row, t.ours, t.peer);
    printf(" %8.1f | %5.2f%s | %5s |", 1e6 * t.ours, copied, below ? "*" : " ", ratio);
    fflush(stdout);
    bench_add(&sum->copy[index], copied);
    bench_add(&sum->peer[index], than_peer);
    sum->below += below;
    sum->all++;
}

static void print_head(void) {
    printf("| %-18s |", "");
    for (int i = 0; i < SIZES; i++)
        printf(" %lldx%lld: us | copy | PyTorch |", (long long)sizes[i].rows,
               (long long)sizes[i].cols);
    printf("\n| --- |");
    for (int i = 0; i < SIZES; i++)
        printf(" ---: | ---: | ---: |");
    printf("\n");
}

static void print_summary(const summary *sum) {
    printf("| %-18s |", "geometric mean");
    for (int i = 0; i < SIZES; i++)
        printf(" %8s | %5.2f  | %5.2f |", "", bench_value(&sum->copy[i]),
               bench_value(&sum->peer[i]));
    printf("\n\n%d of %d below 0.8 of memcpy's speed and slower than PyTorch (*).\n", sum->below,
           sum->all);
}

/* In large pages, as the peer's is: fewer misses of the TLB to measure by chance. */
static float *make_tensor(int64_t count, uint64_t seed) {
    const size_t page = 1 << 21, bytes = ((size_t)count * 4 + page - 1) / page * page;
    float *x = aligned_alloc(page, bytes);
    if (!x)
        exit(1);
    madvise(x, bytes, MADV_HUGEPAGE);
    for (int64_t i = 0; i < count; i++) /* above 0: every function has a result */
        x[i] = (float)(bench_word(seed + (uint64_t)i) >> 40) * 0x1p-22f + 0x1p-20f;
    return x;
}

static memory make_memory(void) {
    const int64_t most = sizes[SIZES - 1].rows * sizes[SIZES - 1].cols;
    memory m;
    for (int i = 0; i < INPUTS; i++) /* none at the same place in a page as another */
        m.f[i] = make_tensor(most + 4096, (uint64_t)i << 40) + 272 * i;
    m.out = make_tensor(2 * most + 4096, 99) + 272 * INPUTS;
    m.ids = malloc(8192 * sizeof *m.ids);
    m.zero = calloc(1, sizeof *m.zero);
    m.u8 = calloc((size_t)most, 1);
    for (int64_t i = 0; i < 8192; i++)
        m.ids[i] = (int32_t)(bench_word((uint64_t)i) % 64);
    return m;
}

typedef struct {
    const char *isa, *python, *only, *csv;
    int threads, size;
} arguments;

static const char usage[] =
    "Usage: elementwise [--isa NAME] [--threads N] [--torch PYTHON] [--only NAME] [--size 0..2]\n"
    "                   [--csv FILE]\n"
    "All operators but products, beside a copy of the same bytes; --torch: and beside PyTorch,\n"
    "of a Python that has it. --only: operators with NAME in their names. --size: one of three.\n"
    "--csv: lines added to FILE.\n"
    "Example: elementwise --isa avx2 --only softmax --torch python3";

static arguments parse(int argc, char **argv) {
    arguments a = {NULL, NULL, NULL, NULL, 1, -1};
    const bench_option known[] = {{"--isa", &a.isa, NULL, 0, 0},
                                  {"--torch", &a.python, NULL, 0, 0},
                                  {"--only", &a.only, NULL, 0, 0},
                                  {"--csv", &a.csv, NULL, 0, 0},
                                  {"--threads", NULL, &a.threads, 1, 1024},
                                  {"--size", NULL, &a.size, 0, SIZES - 1}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
    return a;
}

static process open_peer(const arguments *a) {
    char threads[24], line[200];
    snprintf(threads, sizeof threads, "%d", a->threads);
    /* Results that are new memory each time do not pay for its pages each time. */
    setenv("GLIBC_TUNABLES",
           "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=17179869184:"
           "glibc.malloc.top_pad=1073741824:glibc.malloc.hugetlb=1",
           1);
    process p = torch_open((const char *[]){a->python, "bench/elementwise_torch.py", threads, NULL},
                           a->isa);
    if (process_ask(&p, "hello", line, sizeof line))
        printf("peer: %s\n\n", line);
    else
        process_close(&p);
    return p;
}

int main(int argc, char **argv) {
    const arguments a = parse(argc, argv);
    const ro_options options = {.backend = a.isa, .threads = a.threads};
    process peer = {0};
    summary sum = {0};
    ro_ctx *ctx;
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        return fprintf(stderr, "%s\n", ro_ctx_error(NULL)), 1;
    printf("%s, %d threads\n", ro_ctx_backend(ctx), a.threads);
    csv = bench_csv_open(a.csv, "elementwise", ro_ctx_backend(ctx), a.threads);
    if (a.python)
        peer = open_peer(&a);
    const memory m = make_memory();
    print_head();
    for (int i = 0; i < WORKS; i++) {
        if (a.only && !strstr(works[i].name, a.only))
            continue;
        printf("| %-18s |", works[i].name);
        for (int s = 0; s < SIZES; s++) {
            job j;
            if (a.size >= 0 && a.size != s)
                continue;
            describe(&works[i], &sizes[s], &m, &j);
            report(&works[i], &j, measure(ctx, &peer, &works[i], &j, &m), s, &sum);
        }
        printf("\n");
    }
    print_summary(&sum);
    process_close(&peer);
    ro_ctx_destroy(ctx);
    return bench_csv_close(&csv);
}
