/* Attention and whole training steps beside PyTorch, and what commitments cost. */
#include "bench/cuda.h"
#include "bench/cuda_blas.h"
#include "repops/fused.h"
#include "tests/cuda/job.h"

#include <stdlib.h>

/* The peer answers a question with the seconds of one piece of work. */
typedef struct {
    process *torch;
    const char *question;
} peer_work;

static int run_peer(void *user, int times) {
    const peer_work *p = user;
    char question[100], line[200];
    double seconds;
    snprintf(question, sizeof question, "%s %d", p->question, times);
    if (!process_ask(p->torch, question, line, sizeof line))
        snprintf(line, sizeof line, "no answer");
    if (sscanf(line, "%lf", &seconds) == 1)
        return 1;
    fprintf(stderr, "bench: PyTorch, %s: %s\n", p->question, line);
    return 0;
}

/* ---- attention ---- */

typedef struct {
    const bench *b;
    ro_attention a;
    float *q, *k, *v, *out, *m, *l, *dout, *dq, *dk, *dv;
} heads;

static int run_heads(void *user, int times) {
    const heads *h = user;
    for (int i = 0; i < times; i++)
        if (ro_attention_forward(h->b->ctx, &h->a, h->q, h->k, h->v, h->out, h->m, h->l) != RO_OK ||
            ro_attention_backward(h->b->ctx, &h->a, h->q, h->k, h->v, h->out, h->m, h->l, h->dout,
                                  h->dq, h->dk, h->dv) != RO_OK)
            return 0;
    return ro_wait(h->b->ctx) == RO_OK;
}

void bench_attention(const bench *b) {
    process torch = b->torch;
    heads h = {.b = b, .a = {.size = sizeof h.a, .causal = 1}};
    h.a.batch = b->small ? 1 : 8, h.a.heads = h.a.kv_heads = b->small ? 2 : 12;
    h.a.queries = h.a.keys = b->small ? 16 : 1024;
    h.a.head_size = b->small ? 16 : 64;
    h.a.scale = 0.125f;
    const int64_t rows = h.a.batch * h.a.heads * h.a.queries, size = rows * h.a.head_size;
    float **const large[] = {&h.q, &h.k, &h.v, &h.out, &h.dout, &h.dq, &h.dk, &h.dv};
    float **const one[] = {&h.m, &h.l};
    for (int i = 0; i < 8; i++)
        *large[i] = bench_memory(b, size);
    for (int i = 0; i < 2; i++)
        *one[i] = bench_memory(b, rows);
    /* PyTorch's default algorithm, the efficient one, multiplies on tensor cores, with each number
     * as a sum of several TF32 numbers. Its plain algorithm is FP32 in every operation. */
    static const struct {
        const char *work, *question, *note;
    } ways[] = {{"attention, forward and backward", "attention", "causal, B=8 H=12 T=1024 D=64"},
                {"the same, PyTorch's plain way", "attention_plain", "FP32 in every operation"}};
    for (int i = 0; i < 2; i++) {
        peer_work p = {&torch, ways[i].question};
        double ours, theirs;
        bench_times(b, (turn){run_heads, &h}, (turn){torch.pid > 0 ? run_peer : NULL, &p}, &ours,
                    &theirs);
        bench_row(b, ways[i].work, 1e3 * ours, 1e3 * theirs, theirs > 0 ? theirs / ours : 0, 0.8,
                  ways[i].note);
    }
    for (int i = 0; i < 8; i++)
        ro_free(b->ctx, *large[i]);
    for (int i = 0; i < 2; i++)
        ro_free(b->ctx, *one[i]);
}

/* ---- training ---- */

typedef struct {
    trainer t;
    vd_err err;
} steps;

static int run_steps(void *user, int times) {
    steps *s = user;
    float loss;
    for (int i = 0; i < times; i++)
        if (trainer_step(&s->t, &loss, &s->err) != VD_OK)
            return 0;
    return ro_wait(s->t.exec.ro) == RO_OK;
}

static int run_roots(void *user, int times) {
    steps *s = user;
    vd_hash root;
    for (int i = 0; i < times; i++)
        if (trainer_root(&s->t, &root, &s->err) != VD_OK)
            return 0;
    return 1;
}

static void commitments(const bench *b, steps *s, const char *name, double step_s, double most) {
    double root_s, none;
    char note[80];
    bench_times(b, (turn){run_roots, s}, (turn){NULL, NULL}, &root_s, &none);
    if (root_s < 0) {
        bench_failed(b, name, s->err.text);
        return;
    }
    snprintf(note, sizeof note, "%.2f %% of the step, wanted under %.0f %%", 100 * root_s / step_s,
             100 * most);
    bench_row(b, name, 1e3 * root_s, 1e3 * most * step_s, most * step_s / root_s, 1, note);
}

static void step_row(const bench *b, const char *name, steps *s, const char *question, double floor,
                     double *step_s) {
    process torch = b->torch;
    peer_work p = {&torch, question};
    double theirs;
    bench_times(b, (turn){run_steps, s}, (turn){torch.pid > 0 ? run_peer : NULL, &p}, step_s,
                &theirs);
    if (*step_s < 0)
        bench_failed(b, name, s->err.text);
    else
        bench_row(b, name, 1e3 * *step_s, 1e3 * theirs, theirs > 0 ? theirs / *step_s : 0, floor,
                  "");
}

static vd_status open_steps(const bench *b, const char *name, const job_size *size, job *j,
                            steps *s) {
    vd_status status = job_create(size, j, &s->err);
    if (status == VD_OK)
        status = trainer_create(j, "cuda:0", 0, &s->t, &s->err);
    if (status != VD_OK)
        bench_failed(b, name, s->err.text);
    return status;
}

static void close_steps(job *j, steps *s) {
    trainer_free(&s->t);
    job_free(j);
}

static job_size size_of_step(const bench *b) {
    return b->small ? (job_size){"gpt2-small", 2, 16, 1} : (job_size){"gpt2-124m", 8, 1024, 1};
}

/* Runs two steps, the second under a profiler: the first loads kernels and fills the memory
 * pool. */
static void one_step(steps *s) {
    (void)run_steps(s, 1);
    profile_from_here();
    (void)run_steps(s, 1);
    profile_to_here();
}

/* Times steps with fixed products, each beside the peer's mode of the most similar accuracy. There
 * are no floors: the rows are to show which one is faster. */
static void bench_fixed_steps(const bench *b) {
    static const struct {
        const char *name, *way, *question;
    } ways[] = {{"gpt2 step, fixed24, PyTorch FP32", ",fixed24", "eager"},
                {"gpt2 step, fixed16, PyTorch TF32", ",fixed16", "eager_tf32"},
                {"gpt2 step, fixed8, PyTorch bf16", ",fixed8", "eager_bf16"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        job_size step = size_of_step(b);
        char model[40];
        job j;
        steps s = {0};
        double step_s;
        snprintf(model, sizeof model, "%s%s", step.name, ways[i].way);
        step.name = model;
        if (open_steps(b, ways[i].name, &step, &j, &s) == VD_OK)
            step_row(b, ways[i].name, &s, ways[i].question, 0, &step_s);
        close_steps(&j, &s);
    }
}

void bench_training(const bench *b) {
    const job_size step = size_of_step(b);
    const job_size large =
        b->small ? (job_size){"gpt2-small", 4, 16, 2} : (job_size){"gpt2-124m", 64, 1024, 8};
    job j;
    steps s = {0};
    double step_s = 1, large_s = 1, none;
    const bool opened = open_steps(b, "gpt2 step, PyTorch eager", &step, &j, &s) == VD_OK;
    if (opened && b->once) {
        one_step(&s);
    } else if (opened) {
        step_row(b, "gpt2 step, PyTorch eager", &s, "eager", 0.91, &step_s);
        if (step_s > 0)
            commitments(b, &s, "commitment, B=8 T=1024", step_s, 0.02);
    }
    close_steps(&j, &s);
    if (b->once)
        return;
    bench_fixed_steps(b);
    if (b->quick)
        return;
    s = (steps){0};
    if (open_steps(b, "commitment, 64 Ki tokens", &large, &j, &s) == VD_OK) {
        bench_times(b, (turn){run_steps, &s}, (turn){NULL, NULL}, &large_s, &none);
        if (large_s > 0)
            commitments(b, &s, "commitment, 64 Ki tokens", large_s, 0.01);
        else
            bench_failed(b, "commitment, 64 Ki tokens", s.err.text);
    }
    close_steps(&j, &s);
}

/* Comes last, as the peer's compiler takes a minute or more. */
void bench_compiled(const bench *b) {
    const job_size step = size_of_step(b);
    job j;
    steps s = {0};
    double step_s;
    if (b->once || b->quick)
        return;
    if (open_steps(b, "gpt2 step, PyTorch compiled", &step, &j, &s) == VD_OK)
        step_row(b, "gpt2 step, PyTorch compiled", &s, "compiled", 0.91, &step_s);
    close_steps(&j, &s);
}
