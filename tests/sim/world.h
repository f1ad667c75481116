/* The world between a referee and a provider: a network that loses, delays and is cut, and the
 * provider's process, which takes time to compute and is killed and restarted. All times are
 * virtual milliseconds, and all depends on a seed. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "tests/sim/party.h"

enum { SIM_OUTAGES = 3, SIM_CONNECT_MS = 10000 };

/* An outage of length_ms from from_ms on. */
typedef struct {
    int64_t from_ms, length_ms;
} sim_outage;

typedef struct {
    sim_party *party;
    /* The network: */
    uint32_t loss; /* of 1000 messages */
    int64_t delay_ms, jitter_ms;
    sim_outage cut[SIM_OUTAGES];
    /* The process is killed, and restarted after the outage; it forgets what it executed. */
    sim_outage down[SIM_OUTAGES];
    int64_t step_ms;   /* time for a step of the job */
    int64_t linger_ms; /* deliberate delay of an answer that is ready */
    bool silent;       /* says nothing while computing, instead of "working" */
    bool stalls;       /* says "working" when it withholds an answer */
    uint64_t random;
    /* When the work for an interval, and for a step, is done; 0: not begun. */
    int64_t ready_ms[2][TOY_STEPS + 1];
    int64_t busy_ms; /* busy until then */
    int64_t life_ms; /* running since then */
    /* Counters: */
    uint64_t requests, bytes, steps; /* steps: executed for answers */
} sim_line;

typedef enum { SIM_TROUBLE, SIM_WORKING, SIM_ANSWER } sim_heard_kind;

typedef struct {
    sim_heard_kind kind;
    int64_t took_ms;
} sim_heard;

const char *sim_heard_name(sim_heard_kind kind);

/* Sends a request at `now_ms` and waits for at most `wait_ms`. `name` is its hash, `text` the
 * question for people. An answer is appended to *note. */
sim_heard sim_request(sim_line *line, const vd_buf *request, const vd_hash *name, const char *text,
                      int64_t now_ms, int64_t wait_ms, vd_buf *note);
/* Returns the total time for which it cannot be reached. */
int64_t sim_unreachable_ms(const sim_line *line);

#endif
