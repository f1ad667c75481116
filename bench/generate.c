/* Generation with random weights beside transformers: tokens of prompts that run together, and the
 * time to a prompt's first state. Every state is committed to.
 *
 * The peer is bench/generate_torch.py, a separate process, which takes turns with us. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/generate_model.h"
#include "bench/process.h"
#include "verde/exec/batch.h"
#include "verde/exec/memory.h"

enum { LENGTH = 1024 };

typedef struct {
    int threads, rounds;
    int64_t prompt; /* tokens of a prompt */
    const bench_shape *shape;
    ro_dtype dtype;
    bool types;    /* time only prefills, with both types of weights */
    bool products; /* time only our own, with each kind of product */
    const char *python, *isa, *peer_dtype;
} arguments;

typedef struct {
    bench_model model;
    int threads;
    ro_ctx *ro;
} ours;

static void stop_at(vd_status status, const vd_err *err) {
    if (status == VD_OK)
        return;
    fprintf(stderr, "generate: %s\n", err->text);
    exit(1);
}

static void open_ours(ours *m, const arguments *a, ro_dtype dtype, int fixed_bits) {
    const ro_options options = {.size = sizeof options, .threads = a->threads, .backend = a->isa};
    vd_err err = {0};
    bench_model_open(&m->model, a->shape, dtype, fixed_bits, a->prompt, LENGTH + 1 - a->prompt);
    m->threads = a->threads;
    if (ro_ctx_create(&options, &m->ro) != RO_OK)
        stop_at(vd_fail(&err, VD_ERR_LOCAL, "%s", ro_ctx_error(NULL)), &err);
}

/* ---- ours ---- */

static vd_batch *open_batch(const ours *m, int64_t chunk, uint32_t programs) {
    const vd_exec exec = {.program = &m->model.program, .ro = m->ro, .data = m->model.data};
    const vd_batch_options options = {.own_data = 1, .chunk = chunk};
    vd_batch *b;
    vd_err err = {0};
    stop_at(vd_batch_create(&exec, &options, &b, &err), &err);
    for (uint32_t i = 0; i < programs; i++)
        stop_at(vd_batch_add(b, i, &m->model.program, m->model.data, NULL, &err), &err);
    return b;
}

static double pass_seconds(const ours *m, vd_batch *b) {
    vd_err err = {0};
    const double start = bench_now(m->threads);
    stop_at(vd_batch_pass(b, &err), &err);
    return bench_now(m->threads) - start;
}

/* Returns the seconds up to the first state, its commitment included. */
static double our_prefill(const ours *m) {
    vd_batch *b = open_batch(m, VD_BATCH_ROWS_MAX, 1);
    const double seconds = pass_seconds(m, b);
    vd_batch_destroy(b);
    return seconds;
}

/* ---- in turn ---- */

static double ask(process *p, const char *what) {
    char line[200];
    double seconds = 0;
    if (p->pid && (!process_ask(p, what, line, sizeof line) || sscanf(line, "%lf", &seconds) != 1))
        fprintf(stderr, "generate: the peer failed\n"), exit(1);
    return seconds;
}

/* One side that is timed: a prefill, a pass of a batch, or a question to the peer. */
typedef struct {
    const ours *m;
    vd_batch *batch; /* NULL: a prefill */
    process *peer;
    const char *question;
} side;

static double sample(void *user, int way, int64_t calls) {
    const side *s = (const side *)user + way;
    (void)calls;
    return s->peer    ? ask(s->peer, s->question)
           : s->batch ? pass_seconds(s->m, s->batch)
                      : our_prefill(s->m);
}

enum { OURS, PEER, SIDES };

/* share: the share of time for commitments; below 0: not printed. */
static void print(const char *what, const bench_turns *t, double share) {
    const double mine = bench_seconds(t, OURS), theirs = bench_seconds(t, PEER);
    printf("%-12s %8.1f ms", what, 1e3 * mine);
    if (share >= 0)
        printf(", commitments %4.2f %%", 100 * share);
    if (theirs > 0)
        printf(", torch %8.1f ms, ratio %.3f (torch / ours); least %.1f, %.1f", 1e3 * theirs,
               theirs / mine, 1e3 * bench_least(t, OURS), 1e3 * bench_least(t, PEER));
    printf("\n");
    fflush(stdout);
}

static int few(int rounds) {
    return rounds < 5 ? rounds : 5;
}

static void bench_prefill(const arguments *a, const ours *m, process *p) {
    side s[SIDES] = {{.m = m}, {.peer = p, .question = "prefill"}};
    bench_turns t;
    bench_in_turn(&t, SIDES, few(a->rounds), 0, sample, s);
    print("prefill", &t, -1);
}

/* Returns a batch that has processed its prompts, so that each pass makes a token. */
static vd_batch *open_decoding(const arguments *a, const ours *m, int batch) {
    vd_batch *b = open_batch(m, VD_BATCH_ROWS_MAX, (uint32_t)batch);
    for (int i = 0; i < batch * a->prompt / VD_BATCH_ROWS_MAX + 2; i++)
        pass_seconds(m, b);
    return b;
}

static void bench_decode(const arguments *a, const ours *m, process *p, int batch) {
    double commit[2], pass[2];
    char what[32];
    snprintf(what, sizeof what, "decode %d", batch);
    side s[SIDES] = {{.m = m, .batch = open_decoding(a, m, batch)}, {.peer = p, .question = what}};
    bench_turns t;
    vd_batch_seconds(s[OURS].batch, &pass[0], &commit[0]);
    bench_in_turn(&t, SIDES, a->rounds, 0, sample, s);
    vd_batch_seconds(s[OURS].batch, &pass[1], &commit[1]);
    print(what, &t, (commit[1] - commit[0]) / (pass[1] - pass[0]));
    vd_batch_destroy(s[OURS].batch);
}

/* ---- prefills with both types of weights, in turn ---- */

enum { TYPES = 2 };
static const ro_dtype types[TYPES] = {RO_F32, RO_BF16};

static process open_peer(const arguments *a, const char *dtype);

/* Prints the table; ways are ours for each type, then the peer's. */
static void print_types(const bench_turns *turns) {
    double mine[TYPES], theirs[TYPES];
    for (int t = 0; t < TYPES; t++) {
        mine[t] = bench_seconds(turns, t), theirs[t] = bench_seconds(turns, TYPES + t);
        printf("prefill %-5s ours %8.1f ms (least %.1f), torch %8.1f ms (least %.1f), ratio %.3f "
               "(torch / ours)\n",
               ro_dtype_name(types[t]), 1e3 * mine[t], 1e3 * bench_least(turns, t), 1e3 * theirs[t],
               1e3 * bench_least(turns, TYPES + t), theirs[t] / mine[t]);
    }
    printf("torch of f32 / ours of bf16, which are the same arithmetic: %.3f; ours of bf16 / ours "
           "of f32: %.3f\n",
           theirs[0] / mine[1], mine[1] / mine[0]);
}

static void bench_types(const arguments *a) {
    ours *m = calloc(TYPES, sizeof *m);
    side s[2 * TYPES] = {{0}};
    process p[TYPES];
    bench_turns turns;
    for (int t = 0; m && t < TYPES; t++) {
        open_ours(&m[t], a, types[t], 0);
        p[t] = open_peer(a, ro_dtype_name(types[t]));
        s[t].m = &m[t];
        s[TYPES + t] = (side){.peer = &p[t], .question = "prefill"};
    }
    if (!m)
        return;
    bench_in_turn(&turns, 2 * TYPES, a->rounds, 0, sample, s);
    print_types(&turns);
    for (int t = TYPES; t-- > 0;) /* a later process holds the pipes of earlier ones */
        process_close(&p[t]);
}

/* ---- kinds of products, in turn ---- */

enum { PRODUCTS = 4 };
static const int products[PRODUCTS] = {0, RO_FIXED_24, RO_FIXED_16, RO_FIXED_8};

static void time_products(const char *what, int rounds, side *s) {
    bench_turns turns;
    bench_in_turn(&turns, PRODUCTS, rounds, 0, sample, s);
    const double fp32 = bench_seconds(&turns, 0);
    printf("%-12s fp32 %8.1f ms", what, 1e3 * fp32);
    for (int t = 1; t < PRODUCTS; t++)
        printf(", fixed%d %8.1f ms (%.2f)", products[t], 1e3 * bench_seconds(&turns, t),
               bench_seconds(&turns, t) / fp32);
    putchar('\n');
    fflush(stdout);
}

static void decode_products(const arguments *a, side *s, int batch) {
    char what[32];
    snprintf(what, sizeof what, "decode %d", batch);
    for (int t = 0; t < PRODUCTS; t++)
        s[t].batch = open_decoding(a, s[t].m, batch);
    time_products(what, a->rounds, s);
    for (int t = 0; t < PRODUCTS; t++) {
        vd_batch_destroy(s[t].batch);
        s[t].batch = NULL;
    }
}

static void bench_products(const arguments *a) {
    ours *m = calloc(PRODUCTS, sizeof *m);
    side s[PRODUCTS] = {{0}};
    for (int t = 0; m && t < PRODUCTS; t++) {
        open_ours(&m[t], a, a->dtype, products[t]);
        s[t].m = &m[t];
    }
    if (!m)
        return;
    decode_products(a, s, 1);
    decode_products(a, s, 8);
    time_products("prefill", few(a->rounds), s);
}

/* ---- main ---- */

static const char usage[] =
    "Usage: generate [--model NAME] [--dtype f32|bf16] [--threads N] [--prompt N] [--rounds N]\n"
    "                [--isa NAME] [--torch PYTHON] [--torch-dtype f32|bf16]\n"
    "                [--only prefill|products]\n"
    "NAME: gpt2-124m, llama-135m, llama-0.5b. Prompts of N tokens (512), 2 threads; --torch: a\n"
    "Python with transformers, run in turn; --only prefill: with f32 and bf16 weights, all four\n"
    "in turn; --only products: ours with FP32 and fixed ones.\n"
    "One thread is measured in CPU time.";

static arguments read_arguments(int argc, char **argv) {
    arguments a = {.threads = 2, .rounds = 40};
    const char *model = "gpt2-124m", *dtype = "f32", *only = "";
    int prompt = 512;
    const bench_option known[] = {{"--threads", NULL, &a.threads, 1, 1024},
                                  {"--rounds", NULL, &a.rounds, 1, 100},
                                  {"--prompt", NULL, &prompt, 2, 900},
                                  {"--isa", &a.isa, NULL, 0, 0},
                                  {"--torch", &a.python, NULL, 0, 0},
                                  {"--model", &model, NULL, 0, 0},
                                  {"--dtype", &dtype, NULL, 0, 0},
                                  {"--torch-dtype", &a.peer_dtype, NULL, 0, 0},
                                  {"--only", &only, NULL, 0, 0}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
    a.prompt = prompt;
    a.shape = bench_shape_named(model);
    a.dtype = bench_dtype_named(dtype);
    a.types = strcmp(only, "prefill") == 0;
    a.products = strcmp(only, "products") == 0;
    a.peer_dtype = a.peer_dtype ? a.peer_dtype : dtype;
    return a;
}

static process open_peer(const arguments *a, const char *dtype) {
    process p = {0};
    char threads[16], prompt[16], line[200];
    snprintf(threads, sizeof threads, "%d", a->threads);
    snprintf(prompt, sizeof prompt, "%d", (int)a->prompt);
    if (a->python)
        p = torch_open((const char *const[]){a->python, "bench/generate_torch.py", threads, prompt,
                                             a->shape->name, dtype, NULL},
                       a->isa);
    if (a->python && process_ask(&p, "hello", line, sizeof line))
        printf("torch        %s\n", line);
    return p;
}

int main(int argc, char **argv) {
    const arguments a = read_arguments(argc, argv);
    ours *m = calloc(1, sizeof *m);
    vd_keep_pages();
    if (!m)
        return 1;
    if (a.types || a.products) {
        a.types ? bench_types(&a) : bench_products(&a);
        return 0;
    }
    open_ours(m, &a, a.dtype, 0);
    process p = open_peer(&a, a.peer_dtype);
    printf("ours         %s, %s of %s, %.0f MB, %d threads, prompts of %d tokens, caches of %d\n",
           ro_ctx_backend(m->ro), a.shape->name, ro_dtype_name(a.dtype),
           1e-6 * (double)m->model.weight_bytes, a.threads, (int)a.prompt, LENGTH);
    bench_decode(&a, m, &p, 1);
    bench_decode(&a, m, &p, 8);
    bench_prefill(&a, m, &p);
    process_close(&p);
    return 0;
}
