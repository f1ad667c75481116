/* Measures disputes in which one provider of many is honest: rounds, bytes, time, and how many
 * steps the honest one must execute again. Everything runs in memory and in one thread. */
#include "repops/op_optimizer.h"
#include "bench/bench.h"
#include "tests/support/tournament.h"

enum { STEPS = 64, EVERY = 8 };

typedef struct {
    test_job job;
    test_provider provider[VD_PARTIES_MAX];
    const vd_provider *side[VD_PARTIES_MAX];
} many;

/* Returns a provider's fault: a flipped bit in an element of AdamW's first moment, at a place of
 * its own or, if `alike`, at the same place for all. */
static vd_fault fault_of(const test_job *job, uint32_t p, bool alike) {
    const uint32_t place = alike ? 0 : p - 1;
    const int64_t step = (int64_t)(place * 37 % STEPS);
    return (vd_fault){VD_FAULT_ELEMENT, step, test_node(job, step, RO_OP_ADAMW_M), place % 16, 20};
}

static void many_open(many *m, uint32_t count, bool alike) {
    test_job_open(&m->job, VD_MODEL_MLP, STEPS, EVERY);
    for (uint32_t p = 0; p < count; p++) {
        vd_fault fault = {0};
        if (p)
            fault = fault_of(&m->job, p, alike);
        test_provider_open(&m->provider[p], &m->job, (uint8_t)(p + 1), p ? &fault : NULL);
        m->side[p] = &m->provider[p].side;
    }
}

static void many_close(many *m, uint32_t count) {
    for (uint32_t p = 0; p < count; p++)
        test_provider_close(&m->provider[p]);
    test_job_close(&m->job);
}

typedef struct {
    bool accepted;
    uint32_t games, levels, rounds, asked;
    uint64_t bytes;
} cost;

static cost settle_two(many *m) {
    test_dispute d = {.job = &m->job, .side = {m->side[0], m->side[1]}};
    test_settle(&d);
    const cost c = {d.outcome.accepted, 1, 1, d.rounds, d.outcome.rounds, d.verdict.size};
    test_dispute_close(&d);
    return c;
}

static cost settle_many(many *m, uint32_t count) {
    test_tournament t = {.job = &m->job, .count = count};
    memcpy(t.side, m->side, sizeof t.side);
    test_hold(&t);
    const vd_outcome *o = &t.outcome;
    const cost c = {o->accepted && o->party[0].standing == VD_STANDS,
                    o->game_count,
                    o->game[o->game_count - 1].level,
                    o->rounds,
                    t.asked[0],
                    t.verdict.size};
    test_tournament_close(&t);
    return c;
}

/* Runs a dispute and prints a row, with the work of the first provider, the only honest one. */
static bool measure(uint32_t count, bool alike) {
    static many m;
    const double began = vd_seconds();
    fprintf(stderr, "%u providers, wrong %s: their runs ...", count,
            alike ? "in one way" : "in all ways");
    many_open(&m, count, alike);
    fprintf(stderr, " %.1f s; the dispute ...", vd_seconds() - began);
    const uint64_t before = vd_replay_executed(m.provider[0].replay);
    const double start = bench_now(1);
    const cost c = count == 2 ? settle_two(&m) : settle_many(&m, count);
    const double seconds = bench_now(1) - start;
    fprintf(stderr, " %.1f s of CPU time\n", seconds);
    printf("%9u  %-10s  %5u  %6u  %6u  %9.1f  %7.2f  %15u  %14llu\n", count,
           alike ? "in one way" : "all ways", c.games, c.levels, c.rounds, (double)c.bytes / 1e3,
           seconds, c.asked,
           (unsigned long long)(vd_replay_executed(m.provider[0].replay) - before));
    many_close(&m, count);
    return c.accepted;
}

int main(int argc, char **argv) {
    static const uint32_t counts[] = {2, 4, 8, 16, 64};
    const long only = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    bool accepted = true;
    setvbuf(stdout, NULL, _IOLBF, 0); /* shows each row at once, also in a file */
    printf("one honest provider; %d steps, a checkpoint after every %d\n\n"
           "providers  wrong in     games  levels  rounds  verdict kB  CPU s  honest: asked  "
           "steps executed\n",
           STEPS, EVERY);
    for (int alike = 0; alike < 2; alike++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            if (!only || only == counts[i])
                accepted &= measure(counts[i], alike);
    if (!accepted)
        fprintf(stderr, "an honest claim was not accepted\n");
    return accepted ? 0 : 1;
}
