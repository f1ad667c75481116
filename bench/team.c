/* Runs steps of GPT-2 in one process, or in one of a team that MPI started, when bench/team.py says
 * so.
 *
 * Usage: team LAYERS HEADS CHANNELS BATCH MICRO SEQUENCE THREADS. The first process reads lines:
 * for "step" it runs one and prints its seconds; for "most" it prints the peak MB of each process
 * and the bytes that each sent; it ends at the end of input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/workload.h"
#include "verde/team/member.h"
#include "verde/team/mpi.h"

enum { ARGUMENTS = 7, ORDER = VD_TEAM_MESSAGES_MAX + 15, ANSWER = ORDER - 1, SETTLE_MS = 30 };

typedef struct {
    workload work;
    const void *data[1];
    vd_mpi *mpi;
    vd_transport transport; /* ranks is 1 without MPI */
    vd_team_plan plan;
    vd_member member;
    vd_exec exec;
    vd_state state;
} worker;

typedef struct {
    uint64_t peak_kb, sent;
} most;

static void die(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void check(vd_status status, const vd_err *err) {
    if (status != VD_OK)
        die(err->text);
}

static void open_work(worker *w, char **argument) {
    long number[ARGUMENTS];
    vd_err err = {0};
    const vd_optimizer adamw = {.lr = 6e-4f,
                                .min_lr = 6e-5f,
                                .beta1 = 0.9f,
                                .beta2 = 0.95f,
                                .eps = 1e-8f,
                                .weight_decay = 0.1f,
                                .clip_norm = 1,
                                .schedule = RO_LR_COSINE,
                                .warmup = 10};
    for (int i = 0; i < ARGUMENTS; i++)
        number[i] = strtol(argument[i], NULL, 10);
    const vd_model model = workload_gpt2(number[0], number[1], number[2]);
    if (!workload_open(&w->work, &model, &adamw, number[3] / number[4], number[5], number[4],
                       vd_products_alike(0), &err))
        die(err.text);
    w->data[0] = w->work.data;
    w->exec = (vd_exec){.program = &w->work.program, .data = w->data};
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = (int)number[6]},
                      &w->exec.ro) != RO_OK)
        die("no context");
}

static void join_team(worker *w) {
    vd_err err = {0};
    w->transport.ranks = 1;
    if (vd_mpi_processes() > 1) {
        check(vd_mpi_join(die, &w->mpi, &err), &err);
        w->transport = vd_mpi_transport(w->mpi);
        check(vd_team_plan_create(&w->work.program, w->transport.ranks, &w->plan, &err), &err);
        vd_member_open(&w->member, &w->plan, &w->transport);
        w->exec.part = &w->member.part;
    }
    check(vd_exec_init(&w->exec, NULL, &w->state, &err), &err);
    if (w->mpi)
        vd_member_thin(&w->member, &w->state);
}

static most my_most(const worker *w) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    most m = {.sent = w->mpi ? w->member.sent_bytes : 0};
    unsigned long long kb;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %llu", &kb) == 1)
            m.peak_kb = kb;
    if (file)
        fclose(file);
    return m;
}

/* Tells the other ranks to return to the team: they sleep while another team is timed, and are
 * called a moment before a step. */
static void give_order(const worker *w, char order) {
    const vd_transport *t = &w->transport;
    vd_err err = {0};
    for (uint32_t r = 1; r < t->ranks; r++)
        check(t->send(t->user, r, ORDER, &order, 1, &err), &err);
}

static void run_step(worker *w) {
    vd_err err = {0};
    check(vd_exec_step(&w->exec, NULL, &w->state, NULL, &err), &err);
}

static void lead_step(worker *w) {
    give_order(w, 's');
    bench_pause(SETTLE_MS);
    give_order(w, 'g');
    const double start = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    run_step(w);
    printf("%.4f %.4f\n", clock_s(CLOCK_MONOTONIC) - start,
           clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu);
}

static void lead_most(const worker *w) {
    const vd_transport *t = &w->transport;
    most m = my_most(w);
    vd_err err = {0};
    give_order(w, 'm');
    for (uint32_t r = 0; r < t->ranks; r++) {
        if (r > 0)
            check(t->receive(t->user, r, ANSWER, &m, sizeof m, &err), &err);
        printf("%s%.1f %llu", r ? " " : "", (double)m.peak_kb / 1024, (unsigned long long)m.sent);
    }
    printf("\n");
}

static void lead(worker *w) {
    char line[16];
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 's')
            lead_step(w);
        else
            lead_most(w);
        fflush(stdout);
    }
    give_order(w, 'e');
}

static void follow(worker *w) {
    const vd_transport *t = &w->transport;
    vd_err err = {0};
    for (char order = 0; order != 'e';) {
        if (order != 's')
            check(t->await(t->user, 0, ORDER, &err), &err);
        check(t->receive(t->user, 0, ORDER, &order, 1, &err), &err);
        const most m = my_most(w);
        if (order == 'g')
            run_step(w);
        else if (order == 'm')
            check(t->send(t->user, 0, ANSWER, &m, sizeof m, &err), &err);
    }
}

int main(int argc, char **argv) {
    static worker w;
    vd_keep_pages();
    if (argc != ARGUMENTS + 1)
        die("usage: team LAYERS HEADS CHANNELS BATCH MICRO SEQUENCE THREADS");
    open_work(&w, argv + 1);
    join_team(&w);
    if (w.transport.rank == 0)
        lead(&w);
    else
        follow(&w);
    vd_mpi_leave(w.mpi, true);
    ro_ctx_destroy(w.exec.ro);
    vd_state_free(&w.state);
    vd_team_plan_free(&w.plan);
    workload_close(&w.work);
    return 0;
}
