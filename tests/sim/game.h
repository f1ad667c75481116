/* One dispute of 2 to 16 providers, all of which follows from a seed: who is honest, who lies where
 * and how, what the network and the machines do. */
#ifndef SIM_GAME_H
#define SIM_GAME_H

#include "tests/sim/world.h"
#include "verde/protocol/tournament.h"

enum { SIM_PROVIDERS = 16, SIM_WRONG_RUNS = 40, SIM_RUNS = SIM_WRONG_RUNS + 1 };

/* What all games share. */
typedef struct {
    toy_job job;
    toy_run run[SIM_RUNS]; /* the first is right, the others are wrong in different ways */
    vd_key *referee;
} sim_table;

void sim_table_open(sim_table *table);
void sim_table_close(sim_table *table);

typedef struct {
    const sim_table *table;
    uint64_t seed, random;
    uint32_t count; /* of providers */
    bool challenge; /* who is convicted is asked for a second run */
    bool verdict;   /* one is written and verified */
    sim_party party[SIM_PROVIDERS];
    sim_line line[SIM_PROVIDERS];
    uint32_t run[SIM_PROVIDERS]; /* by number in the table */
    vd_buf last;                 /* what anybody said last */
    vd_buf *log;                 /* for people; NULL: none */
    /* the dispute */
    vd_buf assignment, note;
    vd_tournament *tournament; /* of more than two */
    vd_referee *pair;          /* of two */
    vd_status status;
    vd_err err;
    vd_outcome outcome; /* owned */
    int64_t end_ms;
    /* what was found wrong; empty: nothing */
    char objection[256];
} sim_game;

void sim_game_open(sim_game *game, sim_table *table, uint64_t seed, vd_buf *log);
void sim_game_close(sim_game *game);
void sim_log(const sim_game *game, const char *format, ...) VD_PRINTF(2, 3);

/* hearing.c: plays until the outcome stands. */
void sim_game_play(sim_game *game);
/* check.c: sets `objection`. */
void sim_game_check(sim_game *game);

/* It ran the job as it is, and says what its run says. */
bool sim_is_honest(const sim_game *game, uint32_t provider);
/* It can be reached for long enough to answer in time, whenever it is asked. */
bool sim_is_reachable(const sim_game *game, uint32_t provider);

#endif
