/* Generation at the size of GPT-2 (124M), with random weights, beside transformers: tokens of
 * prompts that run together, and the way to a prompt's first state. Every state is committed to.
 *
 * Usage: generate [options]; see usage(). The peer is bench/generate_torch.py, a process of its own
 * that is asked in turn with us. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/process.h"
#include "models/models.h"
#include "verde/exec/batch.h"
#include "verde/exec/memory.h"

enum { TENSORS_MAX = 256, BATCH_MAX = 64, ROUNDS_MAX = 1000 };

typedef struct {
    int threads, rounds;
    int64_t prompt, tokens; /* of a prompt; as many are made, so that caches have room for both */
    const char *python, *isa;
} arguments;

typedef struct {
    vd_training training;
    vd_file_tensor start[TENSORS_MAX];
    char name[TENSORS_MAX][VD_NAME_SIZE];
    const void *data[TENSORS_MAX + 1]; /* of the program: a prompt, and the weights */
    uint32_t count;
    vd_program program; /* all prompts are the same length, and share it */
    ro_ctx *ro;
} bench_model;

static void stop_at(vd_status status, const vd_err *err) {
    if (status == VD_OK)
        return;
    fprintf(stderr, "generate: %s\n", err->text);
    exit(1);
}

static bool is_parameter(const char *name) {
    const size_t length = strlen(name);
    return length < 2 || strcmp(name + length - 2, ".m") != 0;
}

static void take_weights(bench_model *m, const vd_program *p) {
    for (uint32_t i = 0; i < p->leaf_count; i++) {
        if (!is_parameter(p->leaf[i].name))
            continue;
        float *x = bench_uniform(ro_shape_numel(&p->leaf[i].shape), i);
        for (int64_t e = 0; e < ro_shape_numel(&p->leaf[i].shape); e++)
            x[e] *= 0.05f;
        strcpy(m->name[m->count], p->leaf[i].name);
        m->start[m->count] = (vd_file_tensor){.name = m->name[m->count], .shape = p->leaf[i].shape};
        m->data[1 + m->count++] = x;
    }
}

static void open_model(bench_model *m, const arguments *a) {
    const vd_model gpt2 = {.kind = VD_MODEL_GPT2,
                           .vocab = 50257,
                           .context = 1024,
                           .layers = 12,
                           .heads = 12,
                           .channels = 768};
    const vd_generation how = {.max_tokens = a->tokens,
                               .greedy = 1,
                               .temperature = 1,
                               .top_p = VD_TOP_P_ONE,
                               .repetition_penalty = 1,
                               .best = -1};
    const vd_prompt_form form = {.count = a->prompt};
    int32_t *prompt = calloc((size_t)a->prompt, sizeof *prompt);
    vd_program training;
    vd_err err = {0};
    m->training = (vd_training){.model = gpt2,
                                .optimizer = {.kind = VD_OPTIMIZER_SGD, .lr = 1},
                                .batch = 1,
                                .micro_batches = 1,
                                .sequence = 8,
                                .steps = 1,
                                .checkpoint_interval = 1,
                                .data_dtype = RO_U16,
                                .data_count = 64};
    stop_at(vd_training_program(&m->training, &training, &err), &err);
    take_weights(m, &training);
    vd_program_free(&training);
    m->training = (vd_training){.model = gpt2,
                                .evaluates = 1,
                                .batch = 1,
                                .micro_batches = 1,
                                .start = m->start,
                                .start_count = m->count};
    stop_at(vd_generation_program(&m->training, &how, &form, &m->program, &err), &err);
    for (int64_t i = 0; prompt && i < a->prompt; i++)
        prompt[i] = (int32_t)(bench_word((uint64_t)i) % 50257);
    m->data[0] = prompt;
    const ro_options options = {.threads = a->threads, .backend = a->isa};
    if (ro_ctx_create(&options, &m->ro) != RO_OK)
        stop_at(vd_fail(&err, VD_ERR_LOCAL, "%s", ro_ctx_error(NULL)), &err);
}

/* ---- ours ---- */

static vd_batch *open_batch(const bench_model *m, int64_t chunk, uint32_t programs) {
    const vd_exec exec = {.program = &m->program, .ro = m->ro, .data = m->data};
    const vd_batch_options options = {.own_data = 1, .chunk = chunk};
    vd_batch *b;
    vd_err err = {0};
    stop_at(vd_batch_create(&exec, &options, &b, &err), &err);
    for (uint32_t i = 0; i < programs; i++)
        stop_at(vd_batch_add(b, i, &m->program, m->data, NULL, &err), &err);
    return b;
}

static double pass_seconds(vd_batch *b) {
    vd_err err = {0};
    const double start = clock_s(CLOCK_MONOTONIC);
    stop_at(vd_batch_pass(b, &err), &err);
    return clock_s(CLOCK_MONOTONIC) - start;
}

/* Up to the first state, with its commitment. */
static double our_prefill(const bench_model *m) {
    vd_batch *b = open_batch(m, VD_BATCH_ROWS_MAX, 1);
    const double seconds = pass_seconds(b);
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
    const double ours = bench_median(us, rounds), theirs = bench_median(them, rounds);
    printf("%-12s %8.1f ms", what, 1e3 * ours);
    if (share >= 0)
        printf(", commitments %4.2f %%", 100 * share);
    if (theirs > 0)
        printf(", torch %8.1f ms, ratio %.3f (torch / ours)", 1e3 * theirs, theirs / ours);
    printf("\n");
    fflush(stdout);
}

static void bench_prefill(const arguments *a, const bench_model *m, process *p) {
    double us[ROUNDS_MAX], them[ROUNDS_MAX];
    const int rounds = a->rounds < 5 ? a->rounds : 5;
    our_prefill(m), ask(p, "prefill");
    for (int i = 0; i < rounds; i++)
        us[i] = our_prefill(m), them[i] = ask(p, "prefill");
    print("prefill", us, them, rounds, -1);
}

static void bench_decode(const arguments *a, const bench_model *m, process *p, int batch) {
    double us[ROUNDS_MAX], them[ROUNDS_MAX], commit[2], pass[2];
    char question[32], what[32];
    vd_batch *b = open_batch(m, VD_BATCH_ROWS_MAX, (uint32_t)batch);
    snprintf(question, sizeof question, "decode %d", batch);
    snprintf(what, sizeof what, "decode %d", batch);
    for (int i = 0; i < batch * a->prompt / VD_BATCH_ROWS_MAX + 2; i++)
        pass_seconds(b);
    ask(p, question);
    vd_batch_seconds(b, &pass[0], &commit[0]);
    for (int i = 0; i < a->rounds; i++)
        us[i] = pass_seconds(b), them[i] = ask(p, question);
    vd_batch_seconds(b, &pass[1], &commit[1]);
    print(what, us, them, a->rounds, (commit[1] - commit[0]) / (pass[1] - pass[0]));
    vd_batch_destroy(b);
}

/* ---- main ---- */

static void usage(void) {
    puts("usage: generate [--threads N] [--prompt N] [--rounds N] [--isa NAME] [--torch PYTHON]\n"
         "Prompts of N tokens (512), 2 threads; --torch: a Python with transformers, run in turn.");
    exit(2);
}

static arguments read_arguments(int argc, char **argv) {
    arguments a = {.threads = 2, .rounds = 40, .prompt = 512};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            a.threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--rounds") == 0)
            a.rounds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--prompt") == 0)
            a.prompt = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--isa") == 0)
            a.isa = argv[i + 1];
        else if (strcmp(argv[i], "--torch") == 0)
            a.python = argv[i + 1];
        else
            usage();
    }
    a.tokens = 1025 - a.prompt; /* all of GPT-2's positions */
    if (argc % 2 == 0 || a.threads < 1 || a.prompt < 2 || a.prompt > 900 || a.rounds < 1 ||
        a.rounds > 100)
        usage();
    return a;
}

int main(int argc, char **argv) {
    const arguments a = read_arguments(argc, argv);
    bench_model *m = calloc(1, sizeof *m);
    process p = {0};
    char threads[16], prompt[16], line[200];
    vd_keep_pages();
    if (!m)
        return 1;
    open_model(m, &a);
    snprintf(threads, sizeof threads, "%d", a.threads);
    snprintf(prompt, sizeof prompt, "%d", (int)a.prompt);
    if (a.python)
        p = torch_open(
            (const char *const[]){a.python, "bench/generate_torch.py", threads, prompt, NULL},
            NULL);
    if (a.python && process_ask(&p, "hello", line, sizeof line))
        printf("torch        %s\n", line);
    printf("ours         %s, %d threads, prompts of %d tokens, caches of 1024\n",
           ro_ctx_backend(m->ro), a.threads, (int)a.prompt);
    bench_decode(&a, m, &p, 1);
    bench_decode(&a, m, &p, 8);
    bench_prefill(&a, m, &p);
    process_close(&p);
    return 0;
}
