/* One dispute of 2 to 16 providers, all of which follows from a seed: who is honest, who lies where
 * and how, what the network and the machines do. */
#ifndef SIM_GAME_H
#define SIM_GAME_H

#include "tests/sim/questions.h"
#include "tests/sim/world.h"
#include "verde/protocol/arbiter.h"

enum { SIM_PROVIDERS = 16, SIM_WRONG_RUNS = 40, SIM_RUNS = SIM_WRONG_RUNS + 1 };

/* All games share this table. */
typedef struct {
    toy_job job;
    toy_run run[SIM_RUNS]; /* the first is right, the others are wrong in different ways */
    vd_key *referee;
} sim_table;

void sim_table_open(sim_table *table);
void sim_table_close(sim_table *table);

/* A request on its way to a provider, or its reply on the way back. */
typedef struct {
    bool away;
    int64_t at_ms; /* when the reply arrives */
    sim_heard heard;
    vd_buf note;
    vd_hash name; /* hash of the last request */
    char text[96];
} sim_post;

typedef struct {
    const sim_table *table;
    uint64_t seed, random;
    uint32_t count; /* of providers */
    bool challenge; /* who is convicted is asked for a second run */
    bool verdict;   /* a verdict is written and verified */
    sim_party party[SIM_PROVIDERS];
    sim_line line[SIM_PROVIDERS];
    uint32_t run[SIM_PROVIDERS]; /* by number in the table */
    vd_buf last;                 /* what anybody said last */
    vd_buf *log;                 /* for people; NULL: none */
    /* The referee, and where it is killed: at a write, or at another call of its world. */
    vd_arbiter *arbiter;
    vd_minutes minutes;
    vd_buf assignment, note;
    uint32_t assigned; /* how many assignments it has made */
    uint32_t kills, kills_max, kill_how;
    uint64_t writes, calls, kill_at_write, kill_at_call;
    bool killed;
    int64_t step_us_max; /* the referee's cap on the time of a step; 0: its default */
    /* The world of the referee: its clock, and how long it was dead. */
    int64_t now_ms, downtime_ms;
    bool backwards; /* of replies at the same moment the last provider's is first */
    sim_post post[SIM_PROVIDERS];
    vd_buf disk, read; /* its journal, and as it was when it was read */
    /* What the referee has asked: */
    vd_buf first_note;       /* the assignment that came with the first question */
    sim_names answered;      /* questions whose answers are in the journal */
    vd_hash heard;           /* the request that was answered last, if that is not in the journal */
    uint32_t heard_provider; /* the provider that answered it */
    vd_status status;
    vd_err err;
    vd_outcome outcome; /* owned */
    /* the first thing found wrong; empty: none */
    char objection[256];
} sim_game;

void sim_game_open(sim_game *game, sim_table *table, uint64_t seed, vd_buf *log);
/* The same providers where nothing is lost, slow, cut or killed. What one copies of another depends
 * on who spoke last, and so on when it is asked again: it uses another key in place of that. */
void sim_game_calm(sim_game *game);
void sim_game_close(sim_game *game);
void sim_log(const sim_game *game, const char *format, ...) VD_PRINTF(2, 3);

/* check.c: sets `objection`. */
void sim_game_check(sim_game *game);
/* The verdict, of which the evidence is all that was said; objects if it does not verify. */
void sim_game_verdict(sim_game *game, vd_buf *note);
/* Objects to something; only the first objection is kept. */
void sim_object(sim_game *game, const char *format, ...) VD_PRINTF(2, 3);

/* Did it run the job rightly, and does it say what its run says? */
bool sim_is_honest(const sim_game *game, uint32_t provider);
/* Can it be reached for long enough to answer in time, whenever it is asked? */
bool sim_is_reachable(const sim_game *game, uint32_t provider);

#endif
