#include "tests/sim/game.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/hearing.h"
#include "tests/sim/keys.h"
#include "tests/sim/memo.h"

enum { REFEREE = 100, MINUTE_MS = 60000, STEP_US_MAX = 100000000 };

/* ---- runs ---- */

/* Returns the fault of wrong run `number`, from 1 on. There are several of each kind, most of them
 * with different places. */
static vd_fault fault_of(uint32_t number) {
    static const vd_fault others[] = {
        {VD_FAULT_SKIP, 0, 0, 0, 0},    {VD_FAULT_SKIP, 5, 0, 0, 0},
        {VD_FAULT_HISTORY, 3, 0, 0, 0}, {VD_FAULT_HISTORY, 5, 0, 0, 0},
        {VD_FAULT_SEED, 2, 0, 0, 0},    {VD_FAULT_SEED, -1, 0, 0, 0},
        {VD_FAULT_ATTR, 4, 5, 0, 0},    {VD_FAULT_ATTR, -1, 1, 0, 0},
        {VD_FAULT_WEIGHTS, -1, 0, 0, 0}};
    enum { OTHERS = sizeof others / sizeof others[0] };
    uint64_t random = number;
    if (number <= OTHERS)
        return others[number - 1];
    const int64_t step = (int64_t)sim_below(&random, TOY_STEPS + 1) - 1;
    return (vd_fault){VD_FAULT_ELEMENT, step,
                      sim_below(&random, step < 0 ? TOY_INIT_NODES : TOY_NODES),
                      sim_below(&random, TOY_ELEMENTS), 21};
}

void sim_table_open(sim_table *table) {
    toy_job_open(&table->job);
    toy_run_open(&table->run[0], &table->job, NULL);
    for (uint32_t i = 1; i < SIM_RUNS; i++) {
        const vd_fault fault = fault_of(i);
        toy_run_open(&table->run[i], &table->job, &fault);
    }
    table->referee = sim_key(REFEREE);
}

void sim_table_close(sim_table *table) {
    for (uint32_t i = 0; i < SIM_RUNS; i++)
        toy_run_close(&table->run[i]);
    vd_key_destroy(table->referee);
    toy_job_close(&table->job);
    sim_memo_clear();
}

/* ---- providers ---- */

static uint32_t below(sim_game *g, uint32_t bound) {
    return sim_below(&g->random, bound);
}

static bool one_in(sim_game *g, uint32_t chances) {
    return below(g, chances) == 0;
}

static uint32_t choose_count(sim_game *g) {
    const uint32_t kind = below(g, 20);
    return kind < 11 ? 2 + below(g, 3) : kind < 18 ? 5 + below(g, 4) : 9 + below(g, 8);
}

/* Chooses a run; several providers may have the same wrong one, and agree. */
static uint32_t choose_run(sim_game *g, uint32_t kinds) {
    return one_in(g, 4) ? 0 : 1 + (uint32_t)((g->seed + below(g, kinds)) % SIM_WRONG_RUNS);
}

/* Chooses the questions at which a liar lies: one, all from one on, or all of a kind. */
static void choose_questions(sim_game *g, sim_party *p) {
    static const char *const topics[] = {"commit",       "reveal",      "subrun",
                                         "trace",        "open",        "prove trace",
                                         "prove tensor", "prove state", "open state"};
    p->from = 0, p->to = UINT32_MAX;
    if (one_in(g, 2)) {
        p->topic = topics[below(g, sizeof topics / sizeof topics[0])];
    } else {
        p->from = one_in(g, 3) ? 0 : below(g, 40);
        p->to = one_in(g, 2) ? p->from + 1 : UINT32_MAX;
    }
}

static void choose_way(sim_game *g, sim_party *p) {
    p->way = one_in(g, 2) ? SIM_TELLS : (sim_way)below(g, SIM_WAYS);
    choose_questions(g, p);
    if (p->way == SIM_WRONG_PROOF && one_in(g, 2))
        p->topic = "prove tensor";
    p->random = sim_random(&g->random);
    p->rivals = &g->last;
}

static void choose_second_run(sim_game *g, sim_table *table, sim_party *p) {
    const uint32_t kind = below(g, 4);
    if (kind > 0)
        sim_party_runs_again(
            p, (sim_again){.run = kind < 3 ? &table->run[0] : &table->run[below(g, SIM_RUNS)],
                           .fails = one_in(g, 8)});
}

static void open_provider(sim_game *g, sim_table *table, uint32_t p, bool honest, uint32_t kinds) {
    g->run[p] = honest ? 0 : choose_run(g, kinds);
    const uint32_t other = one_in(g, 2) ? 0 : below(g, SIM_RUNS);
    sim_party_open(&g->party[p], &table->job, &table->run[g->run[p]], &table->run[other], p);
    g->party[p].random = g->seed + p;
    if (!honest)
        choose_way(g, &g->party[p]);
    choose_second_run(g, table, &g->party[p]);
}

/* ---- networks and machines ---- */

static void choose_outages(sim_game *g, sim_outage *outage, bool broken) {
    for (int i = 0; i < SIM_OUTAGES; i++)
        if (one_in(g, 3))
            outage[i] = (sim_outage){below(g, 10 * MINUTE_MS),
                                     broken ? below(g, 200 * MINUTE_MS) : below(g, 20000)};
}

/* States a provider's pace; a liar may claim that its machine is slower. */
static void state_pace(sim_game *g, uint32_t p) {
    const bool honest = sim_is_honest(g, p);
    const int64_t us = honest || one_in(g, 2) ? g->line[p].step_ms * 1000 : VD_PACE_US_LIMIT;
    for (int i = 0; i < 2; i++)
        g->party[p].side[i].pace = (vd_pace){.plain_us = us,
                                             .committed_us = us,
                                             .traced_us = us,
                                             .distance = honest ? TOY_EVERY : TOY_STEPS};
}

static void open_line(sim_game *g, uint32_t p) {
    const bool broken = one_in(g, 8), honest = sim_is_honest(g, p);
    sim_line *line = &g->line[p];
    *line = (sim_line){.party = &g->party[p],
                       .loss = one_in(g, 3) ? below(g, broken ? 900 : 100) : 0,
                       .delay_ms = 1 + below(g, one_in(g, 4) ? 2000 : 50),
                       .jitter_ms = below(g, one_in(g, 4) ? 5000 : 20),
                       .step_ms = one_in(g, 3) ? below(g, honest ? 60000 : 600000) : 10,
                       .linger_ms = !honest && one_in(g, 5) ? below(g, 130000) : 0,
                       .silent = !honest && one_in(g, 4),
                       .stalls = one_in(g, 2),
                       .random = sim_random(&g->random)};
    state_pace(g, p);
    if (one_in(g, 3))
        choose_outages(g, line->cut, broken);
    if (one_in(g, 3))
        choose_outages(g, line->down, broken);
}

void sim_game_calm(sim_game *g) {
    for (uint32_t p = 0; p < g->count; p++)
        g->line[p] = (sim_line){.party = &g->party[p], .delay_ms = 1, .step_ms = 10};
    for (uint32_t p = 0; p < g->count; p++)
        state_pace(g, p);
    for (uint32_t p = 0; p < g->count; p++)
        if (g->party[p].way == SIM_COPIES)
            g->party[p].way = SIM_OTHER_KEY;
    g->kills_max = 0;
}

/* Chooses when the referee is killed: up to five times, in half of the games. */
static void choose_kills(sim_game *g) {
    g->backwards = one_in(g, 2);
    g->kills_max = one_in(g, 2) ? 1 + below(g, 5) : 0;
    g->kill_at_write = 1 + below(g, 60);
    g->kill_at_call = 1 + below(g, 400);
    g->kill_how = below(g, 3);
}

/* ---- opening and closing ---- */

static void log_provider(const sim_game *g, uint32_t p) {
    const sim_party *party = &g->party[p];
    const sim_line *line = &g->line[p];
    const vd_fault *fault = &g->table->run[g->run[p]].exec.fault;
    char what[128] = "right";
    if (fault->kind)
        vd_fault_print(fault, &g->table->job.program, what, sizeof what);
    sim_log(g,
            "provider %u: run %s; %s at questions %u to %u%s%s; %s; a step takes %lld ms, %s; loss "
            "%u/1000; away for %lld ms; it lingers for %lld ms",
            p + 1, what, sim_way_name(party->way), party->from, party->to,
            party->topic ? ", those to " : "", party->topic ? party->topic : "",
            sim_is_honest(g, p) ? "honest" : "not honest", (long long)line->step_ms,
            line->silent ? "silently" : "and it says so", line->loss,
            (long long)sim_unreachable_ms(line), (long long)line->linger_ms);
}

void sim_game_open(sim_game *g, sim_table *table, uint64_t seed, vd_buf *log) {
    memset(g, 0, sizeof *g);
    g->table = table;
    g->seed = g->random = seed;
    g->log = log;
    g->step_us_max = STEP_US_MAX;
    g->count = choose_count(g);
    g->challenge = one_in(g, 2);
    g->verdict = one_in(g, 8);
    const uint32_t honest = one_in(g, 8) ? g->count : below(g, g->count);
    const uint32_t kinds = 1 + below(g, g->count);
    for (uint32_t p = 0; p < g->count; p++)
        open_provider(g, table, p, p == honest || (honest < g->count && one_in(g, 5)), kinds);
    for (uint32_t p = 0; p < g->count; p++)
        open_line(g, p);
    sim_log(g, "seed %llu: %u providers%s", (unsigned long long)seed, g->count,
            g->challenge ? ", with challenges" : "");
    for (uint32_t p = 0; p < g->count; p++)
        log_provider(g, p);
    choose_kills(g);
}

void sim_game_close(sim_game *g) {
    sim_game_forget(g);
    vd_outcome_free(&g->outcome);
    for (uint32_t p = 0; p < g->count; p++)
        sim_party_close(&g->party[p]);
    vd_buf_free(&g->last);
    vd_buf_free(&g->assignment);
    vd_buf_free(&g->note);
}

void sim_log(const sim_game *g, const char *format, ...) {
    char line[512];
    va_list args;
    if (!g->log)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    vd_printf(g->log, "%s\n", line);
}
