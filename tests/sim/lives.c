/* Kills a referee at each of its writes: before, within and after it. Continued from its journal,
 * it must come to the same verdict with the same evidence, to the byte. Usage: lives [COUNT]: the
 * number of disputes, by default 4, of two to four providers each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/hearing.h"

enum { COUNT = 4, PROVIDERS = 4, WAYS = 3 };

/* Returns the number of writes; 0: something is wrong. */
static uint64_t live_once(sim_table *table, uint64_t seed, uint64_t write, uint32_t how,
                          vd_buf *note) {
    static sim_game g;
    sim_game_open(&g, table, seed, NULL);
    sim_game_calm(&g);
    g.kills_max = write > 0;
    g.kill_at_write = write;
    g.kill_at_call = 0;
    g.kill_how = how;
    sim_game_play(&g);
    sim_game_check(&g);
    if (g.status == VD_OK)
        sim_game_verdict(&g, note);
    const uint64_t writes = g.objection[0] ? 0 : g.writes;
    if (!writes)
        printf("FAILED: seed %llu, killed at write %llu (%u): %s\n", (unsigned long long)seed,
               (unsigned long long)write, how, g.objection);
    sim_game_close(&g);
    return writes;
}

/* Returns how often it was killed; 0: something is wrong. */
static uint64_t live_all(sim_table *table, uint64_t seed) {
    vd_buf whole = {0}, note = {0};
    const uint64_t writes = live_once(table, seed, 0, 0, &whole);
    bool same = writes > 0;
    /* Begins after the first write: without it nothing was asked, and another dispute begins. */
    for (uint64_t i = WAYS - 1; i < writes * WAYS && same; i++) {
        note.size = 0;
        same = live_once(table, seed, 1 + i / WAYS, i % WAYS, &note) > 0;
        if (same && (note.size != whole.size || memcmp(note.data, whole.data, note.size) != 0)) {
            printf("FAILED: seed %llu, killed at write %llu: another verdict\n",
                   (unsigned long long)seed, (unsigned long long)(1 + i / WAYS));
            same = false;
        }
    }
    vd_buf_free(&whole);
    vd_buf_free(&note);
    return same ? writes * WAYS - (WAYS - 1) : 0;
}

static bool is_small(sim_table *table, uint64_t seed) {
    static sim_game g;
    sim_game_open(&g, table, seed, NULL);
    const bool small = g.count <= PROVIDERS;
    sim_game_close(&g);
    return small;
}

int main(int argc, char **argv) {
    static sim_table table;
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : COUNT;
    uint64_t kills = 0, disputes = 0, last = 1;
    if (argc > 2 || count == 0) {
        fprintf(stderr, "usage: lives [COUNT], a number of at least 1\n");
        return 2;
    }
    sim_table_open(&table);
    for (uint64_t seed = 1; disputes < count && last; seed++)
        if (is_small(&table, seed)) {
            last = live_all(&table, seed);
            kills += last;
            disputes++;
        }
    sim_table_close(&table);
    if (last)
        printf("%llu disputes, a referee killed %llu times: the same verdicts, to the byte\n",
               (unsigned long long)disputes, (unsigned long long)kills);
    return last ? 0 : 1;
}
