/* Searches for the worst that one liar can do to a referee and to the honest provider: the time
 * that the referee waits, and the steps that the provider executes. The liar acts at random. Usage:
 * worst [COUNT]: the number of disputes between two, by default 20,000. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/hearing.h"

enum { COUNT = 20000, HONEST_STEP_MS = 1000, LINGER_MS = 125000, SLOW_MS = 1200000 };

/* In virtual time, with steps of one second. */
typedef struct {
    int64_t ms;
    uint64_t steps; /* executed by the honest provider */
} effort;

/* Makes a liar deliberately slow: ready answers come late, or are computed for ever. */
static void be_slow(sim_game *g, sim_line *line) {
    const uint32_t kind = sim_below(&g->random, 4);
    line->linger_ms = kind & 1 ? sim_below(&g->random, LINGER_MS) : 0;
    line->step_ms = kind & 2 ? sim_below(&g->random, SLOW_MS) : HONEST_STEP_MS;
    line->silent = sim_below(&g->random, 2);
    line->stalls = true;
}

static void choose_paces(sim_game *g, uint32_t liar) {
    const int64_t honest_us = HONEST_STEP_MS * 1000;
    for (uint32_t p = 0; p < 2; p++)
        for (int i = 0; i < 2; i++) {
            const int64_t us = p == liar ? VD_PACE_US_LIMIT : honest_us;
            g->party[p].side[i].pace = (vd_pace){us, us, us, p == liar ? TOY_STEPS : TOY_EVERY};
        }
}

/* Plays a game. Returns false if it is not between an honest provider and a liar. */
static bool play(sim_table *table, uint64_t seed, bool slow, effort *out) {
    static sim_game g;
    sim_game_open(&g, table, seed, NULL);
    const uint32_t liar = sim_is_honest(&g, 0);
    const bool fits = g.count == 2 && sim_is_honest(&g, 0) != sim_is_honest(&g, 1);
    if (fits) {
        sim_game_calm(&g);
        g.line[1 - liar].step_ms = g.line[liar].step_ms = HONEST_STEP_MS;
        g.step_us_max = 0;
        choose_paces(&g, liar);
        if (slow)
            be_slow(&g, &g.line[liar]);
        else
            g.party[liar].way = SIM_TELLS;
        sim_game_play(&g);
        sim_need(g.status == VD_OK, g.err.text);
        *out = (effort){g.now_ms, g.line[1 - liar].steps};
    }
    sim_game_close(&g);
    return fits;
}

static void take_most(effort *most, const effort *one) {
    most->ms = one->ms > most->ms ? one->ms : most->ms;
    most->steps = one->steps > most->steps ? one->steps : most->steps;
}

int main(int argc, char **argv) {
    static sim_table table;
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : COUNT;
    effort plain = {0}, worst = {0}, one;
    if (argc > 2 || count == 0) {
        fprintf(stderr, "usage: worst [COUNT], a number of at least 1\n");
        return 2;
    }
    sim_table_open(&table);
    for (uint64_t seed = 1, played = 0; played < count; seed++)
        if (play(&table, seed, false, &one)) {
            take_most(&plain, &one);
            (void)play(&table, seed, true, &one);
            take_most(&worst, &one);
            played++;
        }
    sim_table_close(&table);
    printf("a liar that hurries: the referee waits for up to %lld s, the honest one executes up to "
           "%llu steps\none that does not, the worst of %llu: %lld s, %llu steps\n",
           (long long)plain.ms / 1000, (unsigned long long)plain.steps, (unsigned long long)count,
           (long long)worst.ms / 1000, (unsigned long long)worst.steps);
    return 0;
}
