/* Random shapes of the fused functions (repops/fused.h) on a device and on this machine's CPU:
 * bytes are equal. Also products and convolutions of sizes that select each tile (fused_tiles.h).
 *
 * Usage: fused [--device cuda:0] [--seeds N] [--first SEED] [FUNCTION]...; fused --list
 * Without a function: all except those named card_*, whose sizes fill a whole GPU.
 * Plain C and librepops alone: machines with a GPU may have nothing else. */
#include "tests/cuda/fused_layers.h"
#include "tests/cuda/fused_linear.h"
#include "tests/cuda/fused_rows.h"
#include "tests/cuda/fused_tiles.h"
#include "tests/cuda/options.h"

/* ---- cross-entropy ---- */

static void cross_entropy(work *w) {
    static const int16_t widths[] = {1,    2,    31,   64,    100,   127,  128,  129,
                                     1000, 1023, 1024, 1025,  2047,  2048, 2049, 3000,
                                     4097, 0,    7000, 32001, 24576, 30000};
    const int64_t cols = pick(w, 0, widths, sizeof widths / sizeof *widths);
    const int64_t rows = (int64_t)roll(w, 1, 5) + (roll(w, 2, 16) > 0);
    const int in_place = roll(w, 3, 2) == 0, with_dx = roll(w, 4, 4) > 0;
    const int statistics = roll(w, 5, 2);
    const int64_t ignore = roll(w, 6, 2) ? RO_IGNORE_NONE : (int64_t)roll(w, 7, 4) - 1;
    array *x = input(w, "x", rows * cols, class_of(w)), *ids = add(w, "ids", rows);
    array *dloss = input(w, "dloss", rows, DATA_NORMAL);
    array *loss = add(w, "loss", rows), *m = add(w, "m", rows), *l = add(w, "l", rows);
    array *dx = in_place ? x : add(w, "dx", rows * cols);
    int32_t *id = (int32_t *)ids->want;
    for (int64_t r = 0; r < rows; r++)
        id[r] = ignore != RO_IGNORE_NONE && r % 3 == 1
                    ? (int32_t)ignore
                    : (int32_t)(case_word(w->seed, 99, r) % (uint64_t)(cols + 2)) - 1;
    expect(w, ro_write(w->device, ids->on_device, id, (size_t)rows * sizeof *id), w->device);
    expect(w,
           ro_cross_entropy(w->device, rows, cols, x->on_device, (int32_t *)ids->on_device, ignore,
                            dloss->on_device, loss->on_device, statistics ? m->on_device : NULL,
                            statistics ? l->on_device : NULL, with_dx ? dx->on_device : NULL),
           w->device);
    expect(w,
           ro_cross_entropy(w->cpu, rows, cols, x->want, id, ignore, dloss->want, loss->want,
                            statistics ? m->want : NULL, statistics ? l->want : NULL,
                            with_dx ? dx->want : NULL),
           w->cpu);
    char what[80];
    snprintf(what, sizeof what, "cross_entropy of %lld x %lld%s", (long long)rows, (long long)cols,
             in_place ? ", in place" : "");
    for (int i = 0; statistics && i < 2; i++)
        compare(w, i ? l : m, what);
    compare(w, loss, what);
    if (with_dx)
        compare(w, dx, what);
}

/* ---- attention ---- */

enum { MOST_CHOICES = 24 };

typedef struct {
    int16_t tokens[MOST_CHOICES], sizes[MOST_CHOICES]; /* of sequences; of heads */
    int token_count, size_count;
} attention_choice;

static const attention_choice attention_all = {
    {1,   2,   3,   15,  16,  17,  33,  63,  64,  65,  96, 127,
     128, 129, 160, 191, 192, 193, 255, 256, 257, 300, 0,  385},
    {1, 2, 3, 4, 8, 16, 20, 33, 48, 63, 64, 64, 64, 65, 80, 96, 128, 128, 130, 192, 255, 256},
    24,
    22};

/* No keys, few rows, and head sizes with kernels of their own on devices with little shared
 * memory. */
static const attention_choice attention_few = {{0, 0, 1, 5, 9, 14}, {65, 128, 130, 255}, 6, 4};

static ro_attention shape_of(const work *w, const attention_choice *from,
                             ro_attention_dropout *dropout) {
    const int64_t groups = 1 + (int64_t)roll(w, 0, 2), times = 1 + (int64_t)roll(w, 1, 3);
    ro_attention a = {.size = sizeof a,
                      .batch = 1 + (roll(w, 2, 6) == 0),
                      .heads = groups * times,
                      .kv_heads = groups,
                      .queries = pick(w, 3, from->tokens, from->token_count),
                      .keys = pick(w, 4, from->tokens, from->token_count),
                      .head_size = pick(w, 5, from->sizes, from->size_count),
                      .causal = roll(w, 6, 3) > 0,
                      .scale = roll(w, 7, 4) ? 0.125f : -0.7f};
    const uint64_t kind = roll(w, 8, 4);
    if (kind < 2)
        a.keys = a.queries;
    if (kind == 2) /* decoding */
        a.queries = 1 + (int64_t)roll(w, 9, 3), a.keys += a.queries;
    if (a.causal && a.queries > a.keys)
        a.queries = a.keys;
    if (roll(w, 10, 5) == 0)
        a.kv_rows = a.keys + (int64_t)roll(w, 11, 40);
    *dropout = (ro_attention_dropout){w->seed * 77, 5, 0x60000000, 1.6f, (int32_t)w->seed};
    if (roll(w, 12, 3) == 0 && (!a.causal || a.queries == a.keys))
        a.dropout = dropout;
    return a;
}

/* The stride of rows that have `heads` side by side, and sometimes more; 0: heads are separate. */
static int64_t row_of(const work *w, int what, const ro_attention *a, int64_t heads) {
    static const int16_t more[] = {0, 0, 4, 64, 1, 3};
    if (roll(w, 16, 3) > 0 || roll(w, what, 4) == 0)
        return 0;
    return heads * a->head_size + pick(w, what + 1, more, sizeof more / sizeof *more);
}

static int64_t elements(const ro_attention *a, int64_t heads, int64_t tokens, int64_t row) {
    return a->batch * tokens * (row ? row : heads * a->head_size);
}

/* there: `a` with addresses on the device. */
static void backward(work *w, const ro_attention *a, const ro_attention *there, const array *x,
                     const char *what) {
    const array *q = x, *k = x + 1, *v = x + 2, *out = x + 3, *m = x + 4, *l = x + 5;
    array *dout = input(w, "dout", out->count, class_of(w));
    array *dq = output(w, "dq", q->count), *dk = output(w, "dk", k->count);
    array *dv = output(w, "dv", v->count);
    expect(w,
           ro_attention_backward(w->cpu, a, q->want, k->want, v->want, out->want, m->want, l->want,
                                 dout->want, dq->want, dk->want, dv->want),
           w->cpu);
    expect(w,
           ro_attention_backward(w->device, there, q->on_device, k->on_device, v->on_device,
                                 out->on_device, m->on_device, l->on_device, dout->on_device,
                                 dq->on_device, dk->on_device, dv->on_device),
           w->device);
    compare(w, dv, what);
    compare(w, dk, what);
    compare(w, dq, what);
}

static void run_attention(work *w, const attention_choice *from) {
    ro_attention_dropout dropout;
    ro_attention a = shape_of(w, from, &dropout);
    const int64_t rows = a.batch * a.heads * a.queries, kv_rows = a.kv_rows ? a.kv_rows : a.keys;
    const int no_statistics = roll(w, 13, 6) == 0;
    a.q_row = row_of(w, 17, &a, a.heads), a.out_row = row_of(w, 19, &a, a.heads);
    a.k_row = row_of(w, 21, &a, a.kv_heads), a.v_row = row_of(w, 23, &a, a.kv_heads);
    array *q = input(w, "q", elements(&a, a.heads, a.queries, a.q_row), class_of(w));
    array *k = input(w, "k", elements(&a, a.kv_heads, kv_rows, a.k_row), class_of(w));
    array *v = input(w, "v", elements(&a, a.kv_heads, kv_rows, a.v_row), class_of(w));
    array *out = output(w, "out", elements(&a, a.heads, a.queries, a.out_row));
    array *m = add(w, "m", rows), *l = add(w, "l", rows);
    array *bias = roll(w, 14, 3) ? NULL
                                 : input(w, "bias", a.batch * a.keys,
                                         roll(w, 15, 2) ? DATA_MASKED : class_of(w));
    ro_attention there = a;
    if (bias)
        a.key_bias = bias->want, there.key_bias = bias->on_device;
    char what[200];
    snprintf(what, sizeof what,
             "attention H %lld/%lld, T %lld, S %lld, D %lld, rows %lld %lld %lld %lld%s%s%s",
             (long long)a.heads, (long long)a.kv_heads, (long long)a.queries, (long long)a.keys,
             (long long)a.head_size, (long long)a.q_row, (long long)a.k_row, (long long)a.v_row,
             (long long)a.out_row, a.causal ? ", causal" : "", a.dropout ? ", dropout" : "",
             bias ? ", bias" : "");
    expect(w,
           ro_attention_forward(w->cpu, &a, q->want, k->want, v->want, out->want,
                                no_statistics ? NULL : m->want, no_statistics ? NULL : l->want),
           w->cpu);
    expect(w,
           ro_attention_forward(w->device, &there, q->on_device, k->on_device, v->on_device,
                                out->on_device, no_statistics ? NULL : m->on_device,
                                no_statistics ? NULL : l->on_device),
           w->device);
    compare(w, out, what);
    if (no_statistics)
        return;
    compare(w, m, what);
    compare(w, l, what);
    if (!w->failed && (a.kv_rows == 0 || a.kv_rows == a.keys) && (!a.causal || a.queries == a.keys))
        backward(w, &a, &there, w->all, what);
}

static void attention(work *w) {
    run_attention(w, &attention_all);
}

static void few_attention(work *w) {
    run_attention(w, &attention_few);
}

/* ---- AdamW of many parameters at once ---- */

enum { MOST_PARAMETERS = 600, W = 0, M, V, GRADIENT, SCALARS, OUT };

/* The size of parameter i, which may be 0. Its elements are `at` to `at` + size of each array. */
static int64_t parameter_size(const work *w, int i) {
    static const int16_t sizes[] = {0, 1, 3, 4, 5, 31, 64, 100, 128, 257, 1000};
    if (roll(w, 1000 + i, 40) == 0)
        return 4000 + (int64_t)roll(w, 2000 + i, 9000);
    return pick(w, 1000 + i, sizes, sizeof sizes / sizeof *sizes);
}

/* Fills the arguments of ro_adamw_all, with addresses on the device or on the host. */
static void list_parameters(const work *w, int count, int in_place, int on_device, ro_adamw_step *s,
                            ro_adamw_parameter *p) {
    float *base[OUT + 3];
    int64_t at = 0;
    for (int i = 0; i < OUT + 3; i++) {
        const array *a = &w->all[in_place && i >= OUT ? i - OUT : i];
        base[i] = on_device ? a->on_device : a->want;
    }
    for (int i = 0; i < count; i++) {
        const float *one = base[SCALARS] + roll(w, 3000 + i, 4);
        const int64_t size = parameter_size(w, i);
        s[i] = (ro_adamw_step){.size = sizeof *s,
                               .count = size,
                               .beta1 = 0.9f,
                               .beta2 = i % 3 ? 0.95f : 0.999f,
                               .eps = 1e-8f,
                               .decay = i % 2 ? 0.1f : 0.0f,
                               .clip = one,
                               .c1 = one + 1,
                               .c2 = one + 2,
                               .rate = one + 3};
        p[i] = (ro_adamw_parameter){.size = sizeof *p,
                                    .step = &s[i],
                                    .w = base[W] + at,
                                    .m = base[M] + at,
                                    .v = base[V] + at,
                                    .gradient = base[GRADIENT] + at,
                                    .w_out = base[OUT + W] + at,
                                    .m_out = base[OUT + M] + at,
                                    .v_out = base[OUT + V] + at};
        at += size;
        at += roll(w, 4000 + i, 4) ? (4 - at % 4) % 4 : 0; /* mostly aligned */
    }
}

static void adamw(work *w) {
    static ro_adamw_step s[MOST_PARAMETERS];
    static ro_adamw_parameter p[MOST_PARAMETERS];
    static const char *const names[] = {"w", "m", "v", "gradient"};
    static const int16_t counts[] = {0, 1, 2, 30, 255, 256, 257, MOST_PARAMETERS};
    const int count = (int)pick(w, 0, counts, sizeof counts / sizeof *counts);
    const int in_place = roll(w, 1, 2) == 0;
    int64_t all = 0;
    for (int i = 0; i < count; i++)
        all += parameter_size(w, i) + 3;
    for (int i = 0; i < 4; i++)
        (void)input(w, names[i], all, class_of(w));
    (void)input(w, "scalars", 7, DATA_NORMAL);
    for (int i = 0; i < 3 && !in_place; i++)
        (void)input(w, names[i], all, DATA_NORMAL);
    list_parameters(w, count, in_place, 1, s, p);
    expect(w, ro_adamw_all(w->device, count, p), w->device);
    list_parameters(w, count, in_place, 0, s, p);
    expect(w, ro_adamw_all(w->cpu, count, p), w->cpu);
    for (int i = 0; i < w->count; i++)
        compare(w, &w->all[i], "adamw");
}

/* ---- more than a grid can hold ---- */

/* Such sizes must be refused before memory is read: a grid's size without its high bits would run a
 * few blocks. Only the first address is valid; they are far apart so that the ranges do not
 * overlap. */
static int too_large(ro_ctx *device) {
    void *x = ro_alloc(device, 64), *far[6];
    for (int i = 0; i < 6; i++)
        far[i] = (void *)((uintptr_t)x + ((uintptr_t)i << 36));
    const ro_status status =
        x ? ro_cross_entropy(device, (INT64_C(1) << 32) + 1, 0, far[0], far[1], RO_IGNORE_NONE,
                             far[2], far[3], far[4], far[5], NULL)
          : RO_ERR_MEMORY;
    if (status != RO_ERR_DEVICE)
        printf("  2^32 + 1 rows of cross_entropy: %d, not an error of the device\n", (int)status);
    ro_free(device, x);
    return status != RO_ERR_DEVICE || ro_wait(device) != RO_OK;
}

/* ---- the list of functions ---- */

typedef struct {
    const char *name;
    void (*run)(work *w);
    int named; /* runs only if asked for by name */
} function;

static const function functions[] = {{"linear", linear},
                                     {"cross_entropy", cross_entropy},
                                     {"attention", attention},
                                     {"adamw", adamw},
                                     {"sgd", sgd},
                                     {"layer_norm", layer_norm},
                                     {"rms_norm", rms_norm},
                                     {"rotary", rotary},
                                     {"adamw_bf16", adamw_bf16},
                                     {"embedding_backward", embedding_backward},
                                     {"softmax", softmax},
                                     {"log_softmax", log_softmax},
                                     {"few_attention", few_attention},
                                     {"matmul_tiles", matmul_tiles},
                                     {"matmul_half_tiles", matmul_half_tiles},
                                     {"linear_tiles", linear_tiles},
                                     {"conv_tiles", conv_tiles},
                                     {"conv_units", conv_units},
                                     {"conv_slabs", conv_slabs},
                                     {"conv_wide", conv_wide},
                                     {"card_matmul", card_matmul, 1},
                                     {"card_linear", card_linear, 1},
                                     {"card_conv", card_conv, 1},
                                     {"card_fixed", card_fixed, 1},
                                     {"fixed_rings", fixed_rings, 1}};

static int run_case(const function *f, uint64_t seed, ro_ctx *cpu, ro_ctx *device) {
    work w = {.seed = seed, .cpu = cpu, .device = device};
    f->run(&w);
    for (int i = 0; i < w.count; i++) {
        ro_free(device, w.all[i].block);
        free(w.all[i].host);
        free(w.all[i].want);
    }
    return w.failed;
}

/* The last line sums up: tests/cuda/run.sh shows only that one in its table. */
static int run_all(const options *o, ro_ctx *cpu, ro_ctx *device) {
    const long large = too_large(device);
    long same = 0, differ = 0;
    char names[200] = "";
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        const char *name = functions[f].name;
        long failed = 0;
        if (!is_wanted(o, name) || (functions[f].named && o->wanted_count == 0))
            continue;
        for (uint64_t i = 0; i < o->seeds; i++)
            failed += run_case(&functions[f], o->first + i, cpu, device);
        printf("%-16s %4lld same %4ld differ\n", name, (long long)o->seeds - failed, failed);
        fflush(stdout);
        same += (long)o->seeds - failed, differ += failed;
        if (failed)
            snprintf(names + strlen(names), sizeof names - strlen(names), " %s", name);
    }
    printf("%s: %ld calls have the CPU's bits, %ld differ%s%s%s\n", ro_ctx_device(device), same,
           differ, differ ? ":" : "", names, large ? "; a grid too large is no error" : "");
    return differ || large ? 1 : 0;
}

static int list(void) {
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
        if (!functions[f].named)
            puts(functions[f].name);
    return 0;
}

int main(int argc, char **argv) {
    options o = {.device = "cuda:0", .seeds = 20, .first = 1};
    ro_ctx *cpu = NULL, *device = NULL;
    int code = 2;
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (!parse_options(argc, argv, &o))
        fprintf(stderr, "usage: fused [--device NAME] [--seeds N] [--first SEED] "
                        "[FUNCTION]...\n");
    else if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = "cpu"}, &cpu) !=
                 RO_OK ||
             ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = o.device},
                           &device) != RO_OK)
        fprintf(stderr, "fused: %s\n", ro_ctx_error(NULL));
    else
        code = run_all(&o, cpu, device);
    ro_ctx_destroy(device);
    ro_ctx_destroy(cpu);
    return code;
}
