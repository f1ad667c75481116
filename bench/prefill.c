/* Compares the time to check an answer with the time to generate it: one pass over prompt and
 * answer (vd_batch_answers) after a generation token by token, in turn. Weights are random. A
 * generation is like that of `verde run`: every state is committed to; files are not written. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/generate_model.h"
#include "verde/exec/batch.h"
#include "verde/exec/memory.h"

enum { CONTEXT = 1024, TOKENS_MAX = 1024, BATCH_MAX = 64, OWN_MAX = 2 };

typedef struct {
    int threads, rounds, batch;
    int64_t prompt, tokens;
    bool sampled;
    const bench_shape *shape;
    ro_dtype dtype;
    const char *isa;
} arguments;

typedef struct {
    const arguments *a;
    bench_model model;
    vd_program program;
    const void *data[BENCH_TENSORS_MAX + OWN_MAX];
    int32_t key[2], text[TOKENS_MAX];
    uint32_t own;
    int64_t made, stopped; /* by the last generation */
    double commit_s;
    ro_ctx *ro;
} bench;

static void stop_at(vd_status status, const vd_err *err) {
    if (status == VD_OK)
        return;
    fprintf(stderr, "prefill: %s\n", err->text);
    exit(1);
}

/* ---- the program ---- */

static vd_generation how_of(const arguments *a) {
    vd_generation how = {.max_tokens = a->tokens,
                         .greedy = !a->sampled,
                         .temperature = 1,
                         .top_p = VD_TOP_P_ONE,
                         .repetition_penalty = 1,
                         .best = -1};
    if (!a->sampled)
        return how;
    how.temperature = 0.8f;
    how.top_k = 50;
    how.top_p = VD_TOP_P_ONE / 100 * 95;
    how.repetition_penalty = 1.1f;
    how.best = 5;
    how.seed = 7;
    return how;
}

static void open_bench(bench *b, const arguments *a) {
    const ro_options options = {.size = sizeof options, .threads = a->threads, .backend = a->isa};
    const vd_generation how = how_of(a);
    const vd_prompt_form form = {.count = a->prompt};
    vd_err err = {0};
    *b = (bench){.a = a, .own = a->sampled ? 2 : 1};
    bench_model_open(&b->model, a->shape, a->dtype, 0, a->prompt, a->tokens);
    stop_at(vd_generation_program(&b->model.training, &how, &form, &b->program, &err), &err);
    b->data[0] = b->model.data[0], b->data[1] = b->key;
    for (uint32_t i = b->own; i < b->program.data_count; i++)
        b->data[i] = b->model.data[i - b->own + 1];
    if (ro_ctx_create(&options, &b->ro) != RO_OK)
        stop_at(vd_fail(&err, VD_ERR_LOCAL, "%s", ro_ctx_error(NULL)), &err);
}

/* ---- both ---- */

static vd_status reached(void *user, const vd_batch_state *s, vd_err *err) {
    bench *b = user;
    (void)err;
    for (uint32_t i = 0; s->last && i < s->program->leaf_count; i++)
        if (strcmp(s->program->leaf[i].name, "text") == 0)
            memcpy(b->text, s->state->tensor[i], (size_t)b->a->tokens * sizeof *b->text);
    b->made += s->state->step > 0;
    return VD_OK;
}

static vd_batch *open_batch(bench *b, int64_t chunk) {
    const vd_exec exec = {.program = &b->program, .ro = b->ro, .data = b->data};
    const vd_batch_options options = {
        .own_data = b->own, .chunk = chunk, .reached = reached, .user = b};
    vd_batch *batch;
    vd_err err = {0};
    stop_at(vd_batch_create(&exec, &options, &batch, &err), &err);
    return batch;
}

static double generate(bench *b) {
    vd_err err = {0};
    vd_batch *batch = open_batch(b, 128); /* as in `verde run` */
    const double start = bench_now(b->a->threads);
    double passes;
    for (int i = 0; i < b->a->batch; i++)
        stop_at(vd_batch_add(batch, (uint64_t)i, &b->program, b->data, NULL, &err), &err);
    while (vd_batch_count(batch) > 0)
        stop_at(vd_batch_pass(batch, &err), &err);
    const double seconds = bench_now(b->a->threads) - start;
    vd_batch_seconds(batch, &passes, &b->commit_s);
    b->commit_s /= passes;
    vd_batch_destroy(batch);
    return seconds;
}

static vd_status answered(void *user, uint32_t answer, const vd_state *state, int64_t stop,
                          vd_err *err) {
    const bench *b = user;
    (void)stop;
    for (uint32_t i = 0; i < b->program.leaf_count; i++)
        if (strcmp(b->program.leaf[i].name, "text") == 0 &&
            memcmp(b->text, state->tensor[i], (size_t)b->a->tokens * sizeof *b->text) != 0)
            return vd_fail(err, VD_ERR_LOCAL, "answer %u is not what was generated", answer);
    return VD_OK;
}

static double check(bench *b) {
    vd_batch_answer answer[BATCH_MAX];
    vd_err err = {0};
    for (int i = 0; i < b->a->batch; i++)
        answer[i] = (vd_batch_answer){&b->program, b->data, b->text, b->a->tokens};
    vd_batch *batch = open_batch(b, VD_BATCH_ROWS_MAX);
    const double start = bench_now(b->a->threads);
    stop_at(vd_batch_answers(batch, answer, (uint32_t)b->a->batch, answered, b, &err), &err);
    const double seconds = bench_now(b->a->threads) - start;
    vd_batch_destroy(batch);
    return seconds;
}

/* ---- main ---- */

static const char usage[] =
    "Usage: prefill [--model NAME] [--dtype f32|bf16] [--how greedy|sampled] [--threads N]\n"
    "               [--prompt N] [--tokens N] [--batch N] [--rounds N] [--isa NAME]\n"
    "NAME: gpt2-124m, llama-135m, llama-0.5b. Prompts and answers of N tokens (256), batch 1,\n"
    "3 rounds, 2 threads. sampled: temperature 0.8, top-k 50, top-p 0.95, repetition penalty\n"
    "1.1, log-probabilities of the best 5. One thread is measured in CPU time.";

static arguments read_arguments(int argc, char **argv) {
    arguments a = {.threads = 2, .rounds = 3, .batch = 1};
    const char *model = "gpt2-124m", *dtype = "f32", *how = "greedy";
    int prompt = 256, tokens = 256;
    const bench_option known[] = {{"--threads", NULL, &a.threads, 1, 1024},
                                  {"--rounds", NULL, &a.rounds, 1, BENCH_ROUNDS},
                                  {"--batch", NULL, &a.batch, 1, BATCH_MAX},
                                  {"--prompt", NULL, &prompt, 2, CONTEXT - 1},
                                  {"--tokens", NULL, &tokens, 1, CONTEXT - 2},
                                  {"--isa", &a.isa, NULL, 0, 0},
                                  {"--model", &model, NULL, 0, 0},
                                  {"--dtype", &dtype, NULL, 0, 0},
                                  {"--how", &how, NULL, 0, 0}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
    a.prompt = prompt, a.tokens = tokens;
    a.shape = bench_shape_named(model);
    a.dtype = bench_dtype_named(dtype);
    a.sampled = strcmp(how, "sampled") == 0;
    if (prompt + tokens > CONTEXT) {
        fprintf(stderr, "prefill: prompt and answer must be at most %d tokens together, got %d\n",
                CONTEXT, prompt + tokens);
        exit(2);
    }
    return a;
}

enum { MADE, CHECKED, SIDES };

static double sample(void *user, int way, int64_t calls) {
    (void)calls;
    return way == MADE ? generate(user) : check(user);
}

int main(int argc, char **argv) {
    const arguments a = read_arguments(argc, argv);
    bench *b = calloc(1, sizeof *b);
    bench_turns t;
    vd_keep_pages();
    if (!b)
        return 1;
    open_bench(b, &a);
    bench_in_turn(&t, SIDES, a.rounds, 0, sample, b);
    const double g = bench_seconds(&t, MADE), c = bench_seconds(&t, CHECKED);
    printf("%s %s %s, batch %d, prompts of %d and answers of %d tokens, %s, %d threads: generated "
           "%.2f s (commitments %.1f %%), checked %.2f s, ratio %.4f (1/%.1f); least %.2f, %.2f\n",
           a.shape->name, ro_dtype_name(a.dtype), a.sampled ? "sampled" : "greedy", a.batch,
           (int)a.prompt, (int)a.tokens, ro_ctx_backend(b->ro), a.threads, g, 100 * b->commit_s, c,
           c / g, g / c, bench_least(&t, MADE), bench_least(&t, CHECKED));
    return 0;
}
