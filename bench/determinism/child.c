/* The process of one way to train: each byte that arrives makes it run up to a checkpoint. */
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/determinism/determinism.h"

typedef struct {
    const benchmark *b;
    const variant *v;
    ro_ctx *ro;
    vd_exec exec;
    const void *data[1];   /* what exec.data points to */
    vd_free_kernels plain; /* free kernels without a log */
    vd_rounded *rounded;
    vd_state state;
    bool started;
    vd_rounded_count counted;
    vd_hash program;
    char dir[128]; /* of the log */
} trainer;

static vd_log_run log_run(const benchmark *b, const variant *v, int trainer_index,
                          const vd_hash *program) {
    vd_log_run run = {.program = *program,
                      .encoding = v->encoding,
                      .bits = b->bits,
                      .interval = b->interval,
                      .steps = b->steps};
    run.run.b[0] = (uint8_t)(trainer_index + 1);
    vd_err err = {0};
    if (v->encoding == VD_LOG_SYMBOLS &&
        vd_thresholds_hash(&b->thresholds, &run.thresholds, &err) != VD_OK)
        run.bits = 0; /* 0 makes the caller refuse the run */
    return run;
}

static vd_status open_rounded(trainer *t, int index, vd_err *err) {
    const variant *v = t->v;
    const int of = v->kind == LOG_TRAINER ? index : v->trainer;
    snprintf(t->dir, sizeof t->dir, "%s/%d", t->b->dir, of);
    vd_status status = vd_make_dir(t->dir, err);
    const vd_rounded_options options = {.role = v->kind == LOG_TRAINER ? VD_TRAINER : VD_AUDITOR,
                                        .program = &t->b->work.program,
                                        .profile = v->profile,
                                        .thresholds = &t->b->thresholds,
                                        .log = log_run(t->b, v, of, &t->program),
                                        .dir = t->dir,
                                        .memory_bytes = 64 << 20};
    if (status == VD_OK)
        status = vd_rounded_create(&options, &t->rounded, err);
    if (status == VD_OK)
        t->exec.kernels = vd_rounded_kernels(t->rounded);
    return status;
}

static vd_status open_trainer(trainer *t, const benchmark *b, int index, vd_err *err) {
    const variant *v = &b->variant[index];
    const ro_options options = {.size = sizeof options, .threads = v->threads, .backend = v->isa};
    *t = (trainer){.b = b, .v = v, .data = {b->work.data}};
    if (ro_ctx_create(&options, &t->ro) != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(NULL));
    t->exec = (vd_exec){.program = &b->work.program, .ro = t->ro, .data = t->data};
    vd_status status = vd_program_hash(&b->work.program, &t->program, err);
    if (status == VD_OK && v->kind == ORDER_FIXED)
        return vd_exec_place(&t->exec, err);
    if (status != VD_OK)
        return status;
    if (ro_free_open(t->ro, v->profile) != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "profile %s: %s", v->profile->name, ro_ctx_error(t->ro));
    const vd_free plain = {.profile = v->profile,
                           .mode = v->kind == FREE_F32 ? RO_FREE_F32 : RO_FREE_F64,
                           .bits = b->bits};
    t->exec.kernels = vd_free_kernels_open(&t->plain, &plain);
    return is_free(v) ? VD_OK : open_rounded(t, index, err);
}

static vd_status log_done(trainer *t, step_result *r, vd_err *err) {
    vd_log_done done = {0};
    vd_status status = vd_rounded_done(t->rounded, r->step, &done, err);
    r->log_bytes = done.bytes;
    return status;
}

static void count_step(trainer *t, step_result *r) {
    if (!t->rounded)
        return;
    const vd_rounded_count now = vd_rounded_counted(t->rounded, 0), last = t->counted;
    r->count = (vd_rounded_count){now.elements - last.elements, now.decided - last.decided,
                                  now.escapes - last.escapes, now.corrected - last.corrected};
    t->counted = now;
}

static vd_status run_step(trainer *t, step_result *r, vd_err *err) {
    vd_status status = VD_OK;
    const int64_t step = t->started ? t->state.step : -1;
    if (t->rounded)
        status = vd_rounded_begin(t->rounded, step, NULL, err);
    if (status == VD_OK)
        status = t->started ? vd_exec_step(&t->exec, NULL, &t->state, &r->loss, err)
                            : vd_exec_init(&t->exec, NULL, &t->state, err);
    if (status == VD_OK && t->rounded)
        status = vd_rounded_end(t->rounded, err);
    r->step = step;
    if (status == VD_OK && t->v->kind == LOG_AUDITOR)
        status = log_done(t, r, err);
    t->started = status == VD_OK;
    count_step(t, r);
    return status;
}

static vd_status run_turn(trainer *t, step_result *r, long steps, vd_err *err) {
    vd_status status = VD_OK;
    for (long i = 0; i < steps && status == VD_OK; i++)
        status = run_step(t, &r[i], err);
    return status;
}

/* Ends a turn: waits until a trainer's logs of it are on disk. */
static vd_status end_turn(trainer *t, step_result *r, long steps, vd_err *err) {
    vd_status status = VD_OK;
    for (long i = 0; i < steps && status == VD_OK && t->v->kind == LOG_TRAINER; i++)
        status = log_done(t, &r[i], err);
    return status;
}

static void report_operators(const trainer *t) {
    for (int op = 1; op < RO_OP_END && t->rounded; op++)
        t->v->of[op] = vd_rounded_counted(t->rounded, op);
}

/* take reads, and give writes, all `size` bytes. */
static bool take(int from, void *to, size_t size) {
    for (ssize_t got; size > 0; size -= (size_t)got, to = (char *)to + got)
        if ((got = read(from, to, size)) <= 0)
            return false;
    return true;
}

static bool give(int to, const void *from, size_t size) {
    for (ssize_t put; size > 0; size -= (size_t)put, from = (const char *)from + put)
        if ((put = write(to, from, size)) <= 0)
            return false;
    return true;
}

/* Writes the weights to the shared file. Parameters come first in the layout. Through a file they
 * take no memory of this process. */
static bool leave_weights(const trainer *t) {
    int64_t left = t->b->weights;
    if (lseek(t->b->weights_file, 0, SEEK_SET) != 0)
        return false;
    for (uint32_t i = 0; i < t->state.count && left > 0; i++) {
        const int64_t count = ro_shape_numel(&t->b->work.program.leaf[i].shape);
        const int64_t taken = count < left ? count : left;
        if (!give(t->b->weights_file, t->state.tensor[i], (size_t)taken * sizeof(float)))
            return false;
        left -= taken;
    }
    return true;
}

static uint64_t resting_bytes(void) {
    unsigned long long pages, resident = 0;
    FILE *from = fopen("/proc/self/statm", "r");
    if (from && fscanf(from, "%llu %llu", &pages, &resident) != 2)
        resident = 0;
    if (from)
        fclose(from);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double now(const benchmark *b) {
    return b->cpu ? clock_s(CLOCK_PROCESS_CPUTIME_ID) : vd_seconds();
}

static void answer(trainer *t, step_result *r, long steps) {
    vd_err err = {0};
    step_result *end = &r[steps - 1]; /* the step that reaches the checkpoint */
    double start = now(t->b);
    vd_status status = run_turn(t, r, steps, &err);
    double seconds = now(t->b) - start;
    /* Like `verde run`, it hashes the state before it waits for the logs of earlier steps. */
    if (status == VD_OK)
        status = vd_state_hash(t->exec.ro, &t->b->work.program, &t->program, &t->state, NULL,
                               &end->state, &err);
    start = now(t->b);
    if (status == VD_OK)
        status = end_turn(t, r, steps, &err);
    seconds += now(t->b) - start;
    for (long i = 0; i < steps; i++)
        r[i].seconds = seconds / (double)steps, r[i].peak_bytes = vd_peak_bytes();
    report_operators(t);
    if (t->b->trims)
        malloc_trim(0);
    end->resting_bytes = resting_bytes();
    if (status == VD_OK && is_free(t->v) && !leave_weights(t))
        status = vd_fail(&err, VD_ERR_LOCAL, "cannot share weights");
    if (status != VD_OK)
        snprintf(end->error, sizeof end->error, "%s", err.text);
}

static int serve(const benchmark *b, int index, int from, int to) {
    trainer t;
    vd_err err = {0};
    char command;
    static step_result r[STEPS_MAX];
    const vd_status opened = open_trainer(&t, b, index, &err);
    long step = 0;
    while (take(from, &command, 1) && command == 's') {
        const long steps = turn_of(b, step);
        memset(r, 0, (size_t)steps * sizeof *r);
        if (opened == VD_OK)
            answer(&t, r, steps);
        else
            snprintf(r[steps - 1].error, sizeof r->error, "%s", err.text);
        step += steps;
        if (!give(to, r, (size_t)steps * sizeof *r))
            break;
    }
    vd_state_free(&t.state);
    vd_status closed = vd_rounded_close(t.rounded, &err);
    vd_exec_drop(&t.exec);
    ro_ctx_destroy(t.ro);
    return closed == VD_OK ? 0 : 1;
}

void *shared(size_t size) {
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        die("out of memory");
    return block;
}

bool child_open(child *c, const benchmark *b, int index) {
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0)
        return false;
    fflush(NULL);
    c->pid = fork();
    if (c->pid < 0)
        return false;
    if (c->pid == 0) {
        close(down[1]);
        close(up[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(serve(b, index, down[0], up[1]));
    }
    close(down[0]);
    close(up[1]);
    c->to = down[1];
    c->from = up[0];
    return true;
}

bool child_turn(child *c, step_result *out, long steps) {
    return give(c->to, "s", 1) && take(c->from, out, (size_t)steps * sizeof *out);
}

/* Initialisation, step 0, is a turn by itself. */
long turn_of(const benchmark *b, long step) {
    const long left = b->steps + 1 - step;
    return step == 0 ? 1 : left < b->interval ? left : b->interval;
}

void child_close(child *c) {
    if (c->pid <= 0)
        return;
    if (give(c->to, "q", 1)) /* closing is not enough: later children hold this end too */
        waitpid(c->pid, NULL, 0);
    close(c->to);
    close(c->from);
    *c = (child){0};
}
