/* What lies between a referee and a provider, and the provider's process: a network that loses,
 * delays and is cut, a machine that computes for a while, is killed and started again. All of it in
 * virtual milliseconds, and from a seed. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "tests/sim/party.h"

enum { SIM_OUTAGES = 3, SIM_CONNECT_MS = 10000 };

/* A time in which something is down: from `from_ms` on, for `length_ms`. */
typedef struct {
    int64_t from_ms, length_ms;
} sim_outage;

typedef struct {
    sim_party *party;
    /* The network. */
    uint32_t loss; /* of 1000 messages */
    int64_t delay_ms, jitter_ms;
    sim_outage cut[SIM_OUTAGES];
    /* The process: killed, and started again when that is over. It forgets what it executed. */
    sim_outage down[SIM_OUTAGES];
    int64_t step_ms;   /* what a step of the job takes it */
    int64_t linger_ms; /* it keeps an answer that is ready for so long, on purpose */
    bool silent;       /* while it computes it says nothing, where others say that they work */
    bool stalls;       /* where it withholds an answer, it says that it works */
    uint64_t random;
    /* When it has executed what is asked of an interval, and of a step; 0: not yet. */
    int64_t ready_ms[2][TOY_STEPS + 1];
    int64_t busy_ms; /* it is busy until then */
    int64_t life_ms; /* it has run since then */
    /* Counted: */
    uint64_t requests, bytes, steps; /* steps that it executed for answers */
} sim_line;

typedef enum { SIM_TROUBLE, SIM_WORKING, SIM_ANSWER } sim_heard_kind;

typedef struct {
    sim_heard_kind kind;
    int64_t took_ms;
} sim_heard;

const char *sim_heard_name(sim_heard_kind kind);

/* One request that is sent at `now_ms`, and waits for at most `wait_ms`. `name` is its hash, `text`
 * the question for people. An answer is appended to *note. */
sim_heard sim_request(sim_line *line, const vd_buf *request, const vd_hash *name, const char *text,
                      int64_t now_ms, int64_t wait_ms, vd_buf *note);
/* Returns for how long in all it cannot be reached. */
int64_t sim_unreachable_ms(const sim_line *line);

#endif
