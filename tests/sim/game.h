/* A dispute between 2 to 16 providers, entirely determined by a seed: who is honest, who lies where
 * and how, and what networks and machines do. */
#ifndef SIM_GAME_H
#define SIM_GAME_H

#include "tests/sim/questions.h"
#include "tests/sim/world.h"
#include "verde/protocol/arbiter.h"

enum { SIM_PROVIDERS = 16, SIM_WRONG_RUNS = 40, SIM_RUNS = SIM_WRONG_RUNS + 1 };

/* Shared by all games. */
typedef struct {
    toy_job job;
    toy_run run[SIM_RUNS]; /* the first is correct, the others have different faults */
    vd_key *referee;
} sim_table;

void sim_table_open(sim_table *table);
void sim_table_close(sim_table *table);

/* A request on its way to a provider, or the reply on its way back. */
typedef struct {
    bool away;
    int64_t at_ms; /* arrival of the reply */
    sim_heard heard;
    vd_buf note;
    vd_hash name; /* hash of the last request */
    char text[96];
} sim_post;

typedef struct {
    const sim_table *table;
    uint64_t seed, random;
    uint32_t count; /* number of providers */
    bool challenge; /* convicted providers are asked for a second run */
    bool verdict;   /* a verdict is written and verified */
    sim_party party[SIM_PROVIDERS];
    sim_line line[SIM_PROVIDERS];
    uint32_t run[SIM_PROVIDERS]; /* index into the table's runs */
    vd_buf last;                 /* the last answer of any provider */
    vd_buf *log;                 /* a log for people, or NULL */
    /* The referee, and where it is killed: at a write, or at another call of its world. */
    vd_arbiter *arbiter;
    vd_minutes minutes;
    vd_buf assignment, note;
    uint32_t assigned; /* number of assignments made so far */
    uint32_t kills, kills_max, kill_how;
    uint64_t writes, calls, kill_at_write, kill_at_call;
    bool killed;
    int64_t step_us_max; /* the referee's limit for the time of a step; 0: its default */
    /* The referee's world: its clock, and how long it has been dead. */
    int64_t now_ms, downtime_ms;
    bool backwards; /* among replies at the same time the last provider's comes first */
    sim_post post[SIM_PROVIDERS];
    vd_buf disk, read; /* the journal, and a copy from when it was read */
    /* The referee's questions: */
    vd_buf first_note;       /* the assignment sent with the first question */
    sim_names answered;      /* questions whose answers are in the journal */
    vd_hash heard;           /* the last request answered, if it is not yet in the journal */
    uint32_t heard_provider; /* the provider that answered it */
    vd_status status;
    vd_err err;
    vd_outcome outcome; /* owned by the game */
    /* The first thing found wrong; empty: nothing. */
    char objection[256];
} sim_game;

void sim_game_open(sim_game *game, sim_table *table, uint64_t seed, vd_buf *log);
/* Opens the same game without loss, delays, outages and kills. What one provider copies from
 * another depends on who spoke last, and so on repeated questions: such a provider uses another key
 * instead. */
void sim_game_calm(sim_game *game);
void sim_game_close(sim_game *game);
void sim_log(const sim_game *game, const char *format, ...) VD_PRINTF(2, 3);

/* Runs all checks (check.c), which set `objection`. */
void sim_game_check(sim_game *game);
/* Writes the verdict, with all that was said as evidence; objects if it does not verify. */
void sim_game_verdict(sim_game *game, vd_buf *note);
/* Notes an objection; only the first one is kept. */
void sim_object(sim_game *game, const char *format, ...) VD_PRINTF(2, 3);

/* Did the provider run the job correctly, and does it answer truthfully? */
bool sim_is_honest(const sim_game *game, uint32_t provider);
/* Is it reachable long enough to answer in time, whenever it is asked? */
bool sim_is_reachable(const sim_game *game, uint32_t provider);

#endif
