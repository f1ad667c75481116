/* Speed of elementwise and row operators, reductions, data movement and optimizers: beside memcpy
 * in the same run, and beside PyTorch's operators if --torch names a Python that has it. Each
 * operator runs on tensors that fit the L2 cache, the L3 cache, and neither; interleaved, medians.
 *
 * Usage: elementwise [--isa NAME] [--threads N] [--torch PYTHON] [--only NAME] [--size 0..2]
 *
 * Bytes are those of the inputs and the output, each counted once. A reduction includes all of its
 * levels. A name with a space stands for several operators, for which PyTorch has one. */
#include <pthread.h>
#include <sys/mman.h>

#include "bench/elementwise.h"
#include "bench/process.h"
#include "repops/layers.h"

enum { ROUNDS = 5, SIZES = 3 };

static const double sample_s = 0.008; /* seconds of one side in a round; at least one call */

static const size sizes[SIZES] = {{"", 64, 768}, {"", 512, 3072}, {"", 8192, 3072}};

/* ---- time ---- */

/* Updates in place, as a trainer does. */
static ro_status run_adamw(ro_ctx *ctx, const job *j, const memory *m) {
    static const float one = 1, c1 = 0.5f, c2 = 0.25f, rate = 1e-3f;
    const ro_adamw_step all = {.size = sizeof all,
                               .count = j->rows * j->cols,
                               .beta1 = 0.9f,
                               .beta2 = 0.95f,
                               .eps = 1e-8f,
                               .decay = 0.1f,
                               .clip = &one,
                               .c1 = &c1,
                               .c2 = &c2,
                               .rate = &rate};
    return ro_adamw(ctx, &all, m->f[0], m->f[1], m->f[2], m->f[3], m->f[0], m->f[1], m->f[2]);
}

static ro_status run_sgd(ro_ctx *ctx, const job *j, const memory *m) {
    static const float one = 1, rate = 1e-3f;
    const ro_sgd_step all = {.size = sizeof all,
                             .count = j->rows * j->cols,
                             .momentum = 0.9f,
                             .decay = 0.1f,
                             .clip = &one,
                             .rate = &rate};
    return ro_sgd(ctx, &all, m->f[0], m->f[1], m->f[2], m->f[0], m->f[1]);
}

/* Rotates heads of 64 columns, at 64 positions. */
static ro_status run_rotary(ro_ctx *ctx, int back, const job *j, const memory *m) {
    const ro_rotary_layer l = {.size = sizeof l,
                               .batch = j->rows / 64,
                               .tokens = 64,
                               .heads = j->cols / 64,
                               .head_size = 64};
    return back ? ro_rotary_backward(ctx, &l, m->f[0], m->ids, m->ids, (ro_gradient){m->out, 0})
                : ro_rotary(ctx, &l, m->f[0], m->ids, m->ids, m->out);
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
    case RMS_NORM:
        return ro_rms_norm(ctx, j->rows, j->cols, 1e-5f, m->f[0], m->f[1], m->out, m->f[2]);
    case RMS_NORM_BACK:
        return ro_rms_norm_backward(ctx, j->rows, j->cols, m->f[0], m->f[1], m->f[2], m->f[3],
                                    (ro_gradient){m->out, 0}, (ro_gradient){m->f[4], 0});
    case ROTARY:
    case ROTARY_BACK: return run_rotary(ctx, function == ROTARY_BACK, j, m);
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

typedef struct {
    ro_ctx *ctx;
    process *peer;
    const work *w;
    const job *j;
    const memory *m;
} measured;

static double time_ours(const measured *x, int64_t passes) {
    const double from = clock_s(CLOCK_MONOTONIC);
    for (int64_t i = 0; i < passes; i++)
        run_ours(x->ctx, x->w, x->j, x->m);
    return (clock_s(CLOCK_MONOTONIC) - from) / (double)passes;
}

static size_t size_of(const job *j) {
    return 4 * (size_t)(j->rows * j->cols);
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

/* Copies as many bytes as a tensor has, in equal shares for each thread. */
static double time_copy(const measured *x, int64_t passes) {
    pthread_t thread[64];
    copying part[64];
    const int threads = ro_ctx_threads(x->ctx);
    const size_t share = size_of(x->j) / (size_t)threads / 64 * 64;
    const double from = clock_s(CLOCK_MONOTONIC);
    for (int i = 0; i < threads; i++) {
        part[i] = (copying){(char *)x->m->out + (size_t)i * share,
                            (const char *)x->m->f[0] + (size_t)i * share, share, passes};
        if (i && pthread_create(&thread[i], NULL, copy, &part[i]) != 0)
            exit(1);
    }
    copy(&part[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    return (clock_s(CLOCK_MONOTONIC) - from) / (double)passes;
}

/* Returns 0 if the peer has no such operator. */
static double time_peer(const measured *x, int64_t passes) {
    char question[160], line[80];
    snprintf(question, sizeof question, "%s %lld %lld %lld", x->w->name, (long long)x->j->rows,
             (long long)x->j->cols, (long long)passes);
    return x->peer->pid && process_ask(x->peer, question, line, sizeof line) ? atof(line) : 0;
}

enum { OURS, PEER, COPY, SIDES };

static double sample(void *user, int way, int64_t passes) {
    return way == OURS   ? time_ours(user, passes)
           : way == PEER ? time_peer(user, passes)
                         : time_copy(user, passes);
}

typedef struct {
    double ours, peer, copy; /* seconds of one pass; peer 0: none */
} times;

static times measure(ro_ctx *ctx, process *peer, const work *w, const job *j, const memory *m) {
    measured x = {ctx, peer, w, j, m};
    bench_turns t;
    bench_in_turn(&t, SIDES, ROUNDS, sample_s, sample, &x);
    return (times){bench_seconds(&t, OURS), bench_seconds(&t, PEER),
                   bench_seconds(&t, COPY) / 2 / (double)size_of(j)}; /* seconds per byte */
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

/* Allocates huge pages, as the peer does, so that TLB misses do not depend on chance. */
static float *make_tensor(int64_t count, uint64_t seed) {
    const size_t page = 1 << 21, bytes = ((size_t)count * 4 + page - 1) / page * page;
    float *x = aligned_alloc(page, bytes);
    if (!x)
        exit(1);
    madvise(x, bytes, MADV_HUGEPAGE);
    for (int64_t i = 0; i < count; i++) /* positive, so that every function has a result */
        x[i] = (float)(bench_word(seed + (uint64_t)i) >> 40) * 0x1p-22f + 0x1p-20f;
    return x;
}

static memory make_memory(void) {
    const int64_t most = sizes[SIZES - 1].rows * sizes[SIZES - 1].cols;
    memory m;
    for (int i = 0; i < INPUTS; i++) /* tensors begin at different offsets in a page */
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
    /* keeps freed memory, so that new results do not pay for page faults each time */
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
    const ro_options options = {.size = sizeof options, .backend = a.isa, .threads = a.threads};
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
    for (int i = 0; works[i].name; i++) {
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
