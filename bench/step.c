/* Time of a whole training step of GPT-2, beside PyTorch's in the same run, step by step in turn.
 *
 * Usage: step [options]; see usage(). The peer is bench/step_torch.py, a process of its own that is
 * told when to run a step, so that one works while the other one waits. */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models/models.h"
#include "verde/commit/commit.h"
#include "verde/exec/exec.h"

enum { VOCAB = 50257, TOKENS = 1 << 20, STEPS_MAX = 1000 };

typedef struct {
    long layers, heads, channels, batch, sequence, micro_batches, steps, threads;
    const char *backend, *python;
    bool profile, unfused;
} arguments;

/* ---- ours ---- */

typedef struct {
    uint16_t *tokens;
    vd_program program;
    vd_exec exec;
    vd_state state;
} trainer;

static void die(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void check(vd_status status, const vd_err *err) {
    if (status != VD_OK)
        die(err->text);
}

static void open_program(trainer *t, const arguments *a) {
    ro_shape shape = {RO_U16, 1, {TOKENS}};
    vd_hash byte_root, root;
    vd_err err = {0};
    uint64_t state = 1;
    t->tokens = malloc(TOKENS * sizeof *t->tokens);
    if (!t->tokens)
        die("out of memory");
    for (int i = 0; i < TOKENS; i++) { /* a linear congruential generator: any tokens will do */
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        t->tokens[i] = (uint16_t)((state >> 33) % VOCAB);
    }
    check(vd_tensor_hash(&shape, t->tokens, &byte_root, &root, NULL, &err), &err);
    vd_training training = {
        .model = {.kind = VD_MODEL_GPT2,
                  .vocab = VOCAB,
                  .context = 1024,
                  .layers = a->layers,
                  .heads = a->heads,
                  .channels = a->channels},
        .optimizer = {6e-4f, 6e-5f, 0.9f, 0.95f, 1e-8f, 0.1f, 1, RO_LR_COSINE, 10},
        .seed = 1,
        .batch = a->batch * a->micro_batches,
        .micro_batches = a->micro_batches,
        .sequence = a->sequence,
        .steps = STEPS_MAX,
        .checkpoint_interval = STEPS_MAX,
        .data_dtype = RO_U16,
        .data_count = TOKENS,
    };
    memcpy(training.data_root, root.b, sizeof training.data_root);
    check(vd_training_program(&training, &t->program, &err), &err);
}

static void open_trainer(trainer *t, const arguments *a) {
    ro_options options = {.threads = (int)a->threads, .backend = a->backend};
    ro_ctx *ro;
    vd_err err = {0};
    open_program(t, a);
    if (ro_ctx_create(&options, &ro) != RO_OK)
        die(ro_ctx_error(NULL));
    t->exec =
        (vd_exec){.program = &t->program, .ro = ro, .data = {t->tokens}, .unfused = a->unfused};
    check(vd_exec_init(&t->exec, NULL, &t->state, &err), &err);
    printf("ours    %s, %d threads\n", ro_ctx_backend(ro), ro_ctx_threads(ro));
}

static void close_trainer(trainer *t) {
    ro_ctx_destroy(t->exec.ro);
    vd_state_free(&t->state);
    vd_program_free(&t->program);
    free(t->tokens);
}

static double our_step(trainer *t, const vd_observer *observer, float *loss) {
    vd_err err = {0};
    double start = vd_seconds();
    check(vd_exec_step(&t->exec, observer, &t->state, loss, &err), &err);
    return vd_seconds() - start;
}

/* ---- where the time goes ---- */

typedef struct {
    const vd_graph *graph;
    double last, seconds[RO_OP_END];
    int count[RO_OP_END];
} profile;

static bool see_node(void *user, uint32_t node, const void *const *input, const void *output) {
    profile *p = user;
    int op = p->graph->node[node].op;
    double now = vd_seconds();
    (void)input, (void)output;
    p->seconds[op] += now - p->last;
    p->count[op]++;
    p->last = vd_seconds();
    return true;
}

static void print_profile(const profile *p) {
    double total = 0;
    for (int op = 1; op < RO_OP_END; op++)
        total += p->seconds[op];
    printf("\n%-18s %6s %10s %6s\n", "operator", "nodes", "ms", "share");
    for (;;) {
        int most = 0;
        static bool printed[RO_OP_END];
        for (int op = 1; op < RO_OP_END; op++)
            if (!printed[op] && p->count[op] && (!most || p->seconds[op] > p->seconds[most]))
                most = op;
        if (!most)
            break;
        printed[most] = true;
        printf("%-18s %6d %10.2f %5.1f%%\n", ro_op_describe(most)->name, p->count[most],
               1e3 * p->seconds[most], 100 * p->seconds[most] / total);
    }
    printf("%-18s %6s %10.2f\n", "all", "", 1e3 * total);
}

static void profile_step(trainer *t) {
    static profile p;
    p.graph = &t->program.step;
    p.last = vd_seconds();
    our_step(t, &(vd_observer){see_node, &p}, NULL);
    print_profile(&p);
}

/* ---- theirs ---- */

typedef struct {
    FILE *to, *from;
    pid_t pid;
} peer;

static peer open_peer(const arguments *a) {
    int down[2], up[2];
    char number[6][24];
    const long value[] = {a->layers, a->heads, a->channels, a->batch, a->sequence, a->threads};
    peer p = {0};
    for (int i = 0; i < 6; i++)
        snprintf(number[i], sizeof number[i], "%ld", value[i]);
    if (pipe(down) != 0 || pipe(up) != 0 || (p.pid = fork()) < 0)
        die("could not start the peer");
    if (p.pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execlp(a->python, a->python, "bench/step_torch.py", number[0], number[1], number[2],
               number[3], number[4], number[5], (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    p.to = fdopen(down[1], "w");
    p.from = fdopen(up[0], "r");
    return p;
}

/* A line of the peer; false: it is gone. */
static bool hear(peer *p, char *line, int size) {
    if (!p->from || !fgets(line, size, p->from))
        return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

static bool their_step(peer *p, double *seconds, float *loss, double *peak_mb) {
    char line[200];
    fputs("step\n", p->to);
    fflush(p->to);
    return hear(p, line, sizeof line) && sscanf(line, "%lf %f %lf", seconds, loss, peak_mb) == 3;
}

static void close_peer(peer *p) {
    if (p->pid <= 0)
        return;
    fclose(p->to);
    fclose(p->from);
    waitpid(p->pid, NULL, 0);
}

/* ---- both ---- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, long n) {
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

static double peak_mb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void run_steps(const arguments *a, trainer *t, peer *p) {
    static double ours[STEPS_MAX], theirs[STEPS_MAX];
    float loss = 0, their_loss = 0;
    double their_mb = 0;
    bool both = p->pid > 0;
    for (long i = -1; i < a->steps; i++) { /* the first step of each warms up */
        double seconds = our_step(t, NULL, &loss), their_seconds = 0;
        if (both)
            both = their_step(p, &their_seconds, &their_loss, &their_mb);
        if (i >= 0)
            ours[i] = seconds, theirs[i] = their_seconds;
        fprintf(stderr, "step %ld  ours %.0f ms, loss %.4f", i + 2, 1e3 * seconds, (double)loss);
        if (both)
            fprintf(stderr, "  torch %.0f ms, loss %.4f", 1e3 * their_seconds, (double)their_loss);
        fputc('\n', stderr);
    }
    double us = median(ours, a->steps);
    printf("ours    %8.1f ms a step, peak %.0f MB\n", 1e3 * us, peak_mb());
    if (both) {
        double them = median(theirs, a->steps);
        printf("torch   %8.1f ms a step, peak %.0f MB\n", 1e3 * them, their_mb);
        printf("ratio   %8.3f (torch / ours)\n", them / us);
    } else if (p->pid > 0) {
        printf("torch   the peer failed: see above\n");
    }
}

static void usage(void) {
    puts("Usage: step [--layers N] [--heads N] [--channels N] [--batch N] [--sequence N]\n"
         "            [--micro-batches N] [--steps N] [--threads N] [--backend NAME]\n"
         "            [--torch PYTHON] [--profile] [--unfused]\n"
         "GPT-2 with 50,257 tokens; default: 12 layers, 12 heads, 768 channels (124M), B=4, T=64,\n"
         "5 steps after one to warm up. --torch: a Python that has PyTorch, run in turn.\n"
         "--profile: time by operator, of one step more, node by node. --unfused: all node by "
         "node.");
    exit(2);
}

static arguments parse(int argc, char **argv) {
    static const char *const name[] = {"layers",   "heads",         "channels", "batch",
                                       "sequence", "micro-batches", "steps",    "threads"};
    arguments a = {12, 12, 768, 4, 64, 1, 5, 0, NULL, NULL, false, false};
    long *const number[] = {&a.layers,   &a.heads,         &a.channels, &a.batch,
                            &a.sequence, &a.micro_batches, &a.steps,    &a.threads};
    for (int i = 1; i < argc; i++) {
        const char *key = argv[i];
        bool known = false;
        if (strcmp(key, "--unfused") == 0) {
            a.unfused = true;
            continue;
        }
        if (strcmp(key, "--profile") == 0) {
            a.profile = true;
            continue;
        }
        if (strncmp(key, "--", 2) != 0 || i + 1 == argc)
            usage();
        const char *value = argv[++i];
        for (int k = 0; k < 8 && !known; k++)
            if ((known = strcmp(key + 2, name[k]) == 0))
                *number[k] = atol(value);
        if (strcmp(key, "--backend") == 0)
            a.backend = value;
        else if (strcmp(key, "--torch") == 0)
            a.python = value;
        else if (!known)
            usage();
    }
    if (a.steps < 1 || a.steps > STEPS_MAX - 2)
        usage();
    return a;
}

int main(int argc, char **argv) {
    arguments a = parse(argc, argv);
    trainer t = {0};
    peer p = {0};
    mallopt(M_MMAP_MAX, 0); /* as verde's main does */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_ARENA_MAX, 1);
    open_trainer(&t, &a);
    if (a.threads == 0)
        a.threads = ro_ctx_threads(t.exec.ro);
    if (a.python) {
        char line[200];
        p = open_peer(&a);
        if (hear(&p, line, sizeof line))
            printf("torch   %s\n", line);
    }
    run_steps(&a, &t, &p);
    if (a.profile)
        profile_step(&t);
    close_peer(&p);
    close_trainer(&t);
    return 0;
}
