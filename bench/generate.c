/* Generation with random weights beside transformers: tokens of prompts that run together, and the
 * way to a prompt's first state. Every state is committed to.
 *
 * Usage: generate [options]; see usage(). The peer is bench/generate_torch.py, a process of its own
 * that is asked in turn with us. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/generate_model.h"
#include "bench/process.h"
#include "verde/exec/batch.h"
#include "verde/exec/memory.h"

enum { ROUNDS_MAX = 1000, LENGTH = 1024 };

typedef struct {
    int threads, rounds;
    int64_t prompt; /* tokens of a prompt */
    const bench_shape *shape;
    ro_dtype dtype;
    bool types;    /* prefills of both types of weights alone */
    bool products; /* our own alone, with each kind of product */
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

/* Up to the first state, with its commitment. */
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

static void print(const char *what, double *us, double *them, int rounds, double share) {
    const double mine = bench_median(us, rounds), theirs = bench_median(them, rounds);
    printf("%-12s %8.1f ms", what, 1e3 * mine);
    if (share >= 0)
        printf(", commitments %4.2f %%", 100 * share);
    if (theirs > 0)
        printf(", torch %8.1f ms, ratio %.3f (torch / ours); least %.1f, %.1f", 1e3 * theirs,
               theirs / mine, 1e3 * us[0], 1e3 * them[0]);
    printf("\n");
    fflush(stdout);
}

static void bench_prefill(const arguments *a, const ours *m, process *p) {
    double us[ROUNDS_MAX], them[ROUNDS_MAX];
    const int rounds = a->rounds < 5 ? a->rounds : 5;
    our_prefill(m), ask(p, "prefill");
    for (int i = 0; i < rounds; i++)
        us[i] = our_prefill(m), them[i] = ask(p, "prefill");
    print("prefill", us, them, rounds, -1);
}

/* Behind the prompts. */
static vd_batch *open_decoding(const arguments *a, const ours *m, int batch) {
    vd_batch *b = open_batch(m, VD_BATCH_ROWS_MAX, (uint32_t)batch);
    for (int i = 0; i < batch * a->prompt / VD_BATCH_ROWS_MAX + 2; i++)
        pass_seconds(m, b);
    return b;
}

static void bench_decode(const arguments *a, const ours *m, process *p, int batch) {
    double us[ROUNDS_MAX], them[ROUNDS_MAX], commit[2], pass[2];
    char question[32], what[32];
    vd_batch *b = open_decoding(a, m, batch);
    snprintf(question, sizeof question, "decode %d", batch);
    snprintf(what, sizeof what, "decode %d", batch);
    ask(p, question);
    vd_batch_seconds(b, &pass[0], &commit[0]);
    for (int i = 0; i < a->rounds; i++)
        us[i] = pass_seconds(m, b), them[i] = ask(p, question);
    vd_batch_seconds(b, &pass[1], &commit[1]);
    print(what, us, them, a->rounds, (commit[1] - commit[0]) / (pass[1] - pass[0]));
    vd_batch_destroy(b);
}

/* ---- prefills of both types, all in turn ---- */

enum { TYPES = 2 };
static const ro_dtype types[TYPES] = {RO_F32, RO_BF16};

static process open_peer(const arguments *a, const char *dtype);

static void print_types(double us[TYPES][ROUNDS_MAX], double them[TYPES][ROUNDS_MAX], int rounds) {
    double mine[TYPES], theirs[TYPES];
    for (int t = 0; t < TYPES; t++) {
        mine[t] = bench_median(us[t], rounds), theirs[t] = bench_median(them[t], rounds);
        printf("prefill %-5s ours %8.1f ms (least %.1f), torch %8.1f ms (least %.1f), ratio %.3f "
               "(torch / ours)\n",
               ro_dtype_name(types[t]), 1e3 * mine[t], 1e3 * us[t][0], 1e3 * theirs[t],
               1e3 * them[t][0], theirs[t] / mine[t]);
    }
    printf("torch of f32 / ours of bf16, which are the same arithmetic: %.3f; ours of bf16 / ours "
           "of f32: %.3f\n",
           theirs[0] / mine[1], mine[1] / mine[0]);
}

static void bench_types(const arguments *a) {
    static double us[TYPES][ROUNDS_MAX], them[TYPES][ROUNDS_MAX];
    ours *m = calloc(TYPES, sizeof *m);
    process p[TYPES];
    for (int t = 0; m && t < TYPES; t++) {
        open_ours(&m[t], a, types[t], 0);
        p[t] = open_peer(a, ro_dtype_name(types[t]));
    }
    for (int i = -1; m && i < a->rounds; i++)
        for (int t = 0; t < TYPES; t++) { /* the first round warms up */
            const double mine = our_prefill(&m[t]), theirs = ask(&p[t], "prefill");
            us[t][i < 0 ? 0 : i] = mine, them[t][i < 0 ? 0 : i] = theirs;
        }
    if (m)
        print_types(us, them, a->rounds);
    for (int t = TYPES; m && t-- > 0;) /* a later process holds pipes of those before it */
        process_close(&p[t]);
}

/* ---- kinds of products, all in turn ---- */

enum { PRODUCTS = 4 };
static const int products[PRODUCTS] = {0, RO_FIXED_24, RO_FIXED_16, RO_FIXED_8};

static void print_products(const char *what, double us[PRODUCTS][ROUNDS_MAX], int rounds) {
    double ms[PRODUCTS];
    for (int t = 0; t < PRODUCTS; t++)
        ms[t] = 1e3 * bench_median(us[t], rounds);
    printf("%-12s fp32 %8.1f ms", what, ms[0]);
    for (int t = 1; t < PRODUCTS; t++)
        printf(", fixed%d %8.1f ms (%.2f)", products[t], ms[t], ms[t] / ms[0]);
    putchar('\n');
    fflush(stdout);
}

static void decode_products(const arguments *a, const ours *m, int batch) {
    static double us[PRODUCTS][ROUNDS_MAX];
    vd_batch *b[PRODUCTS];
    char what[32];
    snprintf(what, sizeof what, "decode %d", batch);
    for (int t = 0; t < PRODUCTS; t++)
        b[t] = open_decoding(a, &m[t], batch);
    for (int i = 0; i < a->rounds; i++)
        for (int t = 0; t < PRODUCTS; t++)
            us[t][i] = pass_seconds(&m[t], b[t]);
    print_products(what, us, a->rounds);
    for (int t = 0; t < PRODUCTS; t++)
        vd_batch_destroy(b[t]);
}

static void bench_products(const arguments *a) {
    static double us[PRODUCTS][ROUNDS_MAX];
    const int rounds = a->rounds < 5 ? a->rounds : 5;
    ours *m = calloc(PRODUCTS, sizeof *m);
    for (int t = 0; m && t < PRODUCTS; t++)
        open_ours(&m[t], a, a->dtype, products[t]);
    for (int batch = 1; m && batch <= 8; batch *= 8)
        decode_products(a, m, batch);
    for (int i = 0; m && i < rounds; i++)
        for (int t = 0; t < PRODUCTS; t++)
            us[t][i] = our_prefill(&m[t]);
    if (m)
        print_products("prefill", us, rounds);
}

/* ---- main ---- */

static void usage(void) {
    puts(
        "usage: generate [--model NAME] [--dtype f32|bf16] [--threads N] [--prompt N] [--rounds N] "
        "[--isa NAME] [--torch PYTHON] [--torch-dtype f32|bf16] [--only prefill|products]\n"
        "NAME: gpt2-124m, llama-135m, llama-0.5b. Prompts of N tokens (512), 2 threads; --torch: a "
        "Python with "
        "transformers, run in turn; --only prefill: with f32 and bf16 weights, all four in turn; "
        "--only products: ours with FP32 and fixed ones.\n"
        "One thread is measured in CPU time.");
    exit(2);
}

static void read_argument(arguments *a, const char *name, const char *value) {
    if (strcmp(name, "--threads") == 0)
        a->threads = atoi(value);
    else if (strcmp(name, "--rounds") == 0)
        a->rounds = atoi(value);
    else if (strcmp(name, "--prompt") == 0)
        a->prompt = atoi(value);
    else if (strcmp(name, "--isa") == 0)
        a->isa = value;
    else if (strcmp(name, "--torch") == 0)
        a->python = value;
    else if (strcmp(name, "--model") == 0)
        a->shape = bench_shape_named(value);
    else if (strcmp(name, "--dtype") == 0)
        a->dtype = strcmp(value, "bf16") == 0 ? RO_BF16 : RO_F32;
    else if (strcmp(name, "--torch-dtype") == 0)
        a->peer_dtype = value;
    else if (strcmp(name, "--only") == 0 && strcmp(value, "prefill") == 0)
        a->types = true;
    else if (strcmp(name, "--only") == 0 && strcmp(value, "products") == 0)
        a->products = true;
    else
        usage();
}

static arguments read_arguments(int argc, char **argv) {
    arguments a = {.threads = 2, .rounds = 40, .prompt = 512, .dtype = RO_F32};
    a.shape = bench_shape_named("gpt2-124m");
    for (int i = 1; i + 1 < argc; i += 2)
        read_argument(&a, argv[i], argv[i + 1]);
    if (argc % 2 == 0 || a.threads < 1 || a.prompt < 2 || a.prompt > 900 || a.rounds < 1 ||
        a.rounds > 100 || !a.shape)
        usage();
    a.peer_dtype = a.peer_dtype ? a.peer_dtype : ro_dtype_name(a.dtype);
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
