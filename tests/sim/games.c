/* Plays hundreds of thousands of disputes, each from a seed.
 * Usage: games [COUNT [SEED]]: that many, from this seed on.
 *        games replay SEED: one, with its log.
 *        games until COUNT: those from seed 1 on, to the first that fails: for builds with a bug.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/hearing.h"

enum { COUNT = 100000, SHOWN = 3 };

typedef struct {
    uint64_t games, failures, results[VD_RESULT_DISMISSED + 1], right, other, questions, played;
    uint64_t standings[2][VD_DISMISSED + 1]; /* final standings of the honest, and of all others */
    uint64_t ends[VD_CHALLENGE_INCONCLUSIVE + 1];
    int64_t longest_ms;
} tally;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void add(tally *all, const sim_game *g) {
    const vd_outcome *o = &g->outcome;
    all->games++;
    all->results[o->result]++;
    all->ends[o->challenge.end]++;
    if (o->accepted && vd_hash_equal(&o->run_root, &g->table->run[0].root))
        all->right++;
    else if (o->accepted)
        all->other++;
    all->played += g->count == 2 ? 1 : o->game_count;
    if (g->now_ms - g->downtime_ms > all->longest_ms)
        all->longest_ms = g->now_ms - g->downtime_ms;
    for (uint32_t p = 0; p < g->count; p++) {
        all->standings[!sim_is_honest(g, p)][o->party[p].standing]++;
        all->questions += g->line[p].requests;
    }
}

/* Plays the game of a seed; returns true if nothing is wrong. */
static bool play(sim_table *table, uint64_t seed, vd_buf *log, tally *all) {
    static sim_game g;
    sim_game_open(&g, table, seed, log);
    sim_game_play(&g);
    sim_game_check(&g);
    const bool ok = g.objection[0] == 0;
    if (all)
        add(all, &g);
    if (log && !ok)
        vd_printf(log, "FAILED: %s\n", g.objection);
    sim_game_close(&g);
    return ok;
}

static void show(sim_table *table, uint64_t seed) {
    vd_buf log = {0};
    (void)play(table, seed, &log, NULL);
    printf("%.*s", (int)log.size, (const char *)log.data);
    vd_buf_free(&log);
}

static void report(const tally *all) {
    printf("%llu disputes, %llu games in them, %llu requests; the longest took %lld virtual s\n",
           (unsigned long long)all->games, (unsigned long long)all->played,
           (unsigned long long)all->questions, (long long)all->longest_ms / 1000);
    for (int i = VD_RESULT_AGREED; i <= VD_RESULT_INCONCLUSIVE; i++)
        printf("  %-14s %8llu\n", vd_result_name((vd_result)i),
               (unsigned long long)all->results[i]);
    printf("accepted: the right result %llu times, another one (no honest provider could be "
           "reached) %llu times\n",
           (unsigned long long)all->right, (unsigned long long)all->other);
    printf("  %-14s %8s %8s\n", "", "honest", "others");
    for (int i = 0; i <= VD_FORFEITED; i++)
        printf("  %-14s %8llu %8llu\n", vd_standing_name((vd_standing)i),
               (unsigned long long)all->standings[0][i], (unsigned long long)all->standings[1][i]);
    printf("challenges:");
    for (int i = VD_CHALLENGE_DECLINED; i <= VD_CHALLENGE_INCONCLUSIVE; i++)
        printf(" %s %llu", vd_challenge_name((vd_challenge_end)i),
               (unsigned long long)all->ends[i]);
    printf("\n");
}

static void tell_rate(const tally *all, uint64_t count, double start, double *told) {
    const double now = seconds(), rate = (double)all->games / (now - start);
    if (now - *told < 10)
        return;
    *told = now;
    fprintf(stderr, "%llu of %llu disputes, %.0f a second, %.0f s left\n",
            (unsigned long long)all->games, (unsigned long long)count, rate,
            (double)(count - all->games) / rate);
}

static int play_until(sim_table *table, uint64_t count) {
    for (uint64_t seed = 1; seed <= count; seed++)
        if (!play(table, seed, NULL, NULL)) {
            show(table, seed);
            printf("the first of %llu disputes that fails is number %llu\n",
                   (unsigned long long)count, (unsigned long long)seed);
            return 1;
        }
    printf("%llu disputes, none fails\n", (unsigned long long)count);
    return 0;
}

static int play_all(sim_table *table, uint64_t count, uint64_t seed) {
    static tally all;
    const double start = seconds();
    double told = start;
    for (uint64_t i = 0; i < count; i++) {
        if (!play(table, seed + i, NULL, &all) && ++all.failures <= SHOWN)
            show(table, seed + i);
        tell_rate(&all, count, start, &told);
    }
    report(&all);
    if (all.failures)
        printf("FAILED: %llu disputes; `games replay SEED` shows one\n",
               (unsigned long long)all.failures);
    else
        printf("no honest provider lost, and no wrong result was accepted beside one, in %llu "
               "disputes from seed %llu on\n",
               (unsigned long long)count, (unsigned long long)seed);
    return all.failures ? 1 : 0;
}

static int usage(void) {
    fprintf(stderr, "usage: games [COUNT [SEED]] | games until COUNT | games replay SEED\n");
    return 2;
}

static uint64_t number(const char *text) {
    char *end;
    const uint64_t value = strtoull(text, &end, 10);
    return *end ? 0 : value;
}

int main(int argc, char **argv) {
    static sim_table table;
    const char *first = argc > 1 ? argv[1] : "";
    const bool until = strcmp(first, "until") == 0, replay = strcmp(first, "replay") == 0;
    const uint64_t count = until || replay ? COUNT : argc > 1 ? number(first) : COUNT;
    const uint64_t second = argc > 2 ? number(argv[2]) : 1;
    int code = 0;
    if (argc > 3 || count == 0 || second == 0 || ((until || replay) && argc != 3))
        return usage();
    sim_table_open(&table);
    if (replay)
        show(&table, second);
    else
        code = until ? play_until(&table, second) : play_all(&table, count, second);
    sim_table_close(&table);
    return code;
}
