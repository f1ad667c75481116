#include "tests/sim/world.h"

#include <stdio.h>
#include <string.h>

const char *sim_heard_name(sim_heard_kind kind) {
    static const char *const names[] = {"connection trouble", "it works on it", "answered"};
    return names[kind];
}

static bool within(const sim_outage *outage, int64_t at_ms) {
    for (int i = 0; i < SIM_OUTAGES; i++)
        if (at_ms >= outage[i].from_ms && at_ms < outage[i].from_ms + outage[i].length_ms)
            return true;
    return false;
}

/* Returns when the process that is running at this time was started. */
static int64_t started_ms(const sim_line *line, int64_t at_ms) {
    int64_t last = 0;
    for (int i = 0; i < SIM_OUTAGES; i++) {
        const int64_t end = line->down[i].from_ms + line->down[i].length_ms;
        if (end <= at_ms && end > last)
            last = end;
    }
    return last;
}

int64_t sim_unreachable_ms(const sim_line *line) {
    int64_t sum = 0;
    for (int i = 0; i < SIM_OUTAGES; i++)
        sum += line->cut[i].length_ms + line->down[i].length_ms;
    return sum;
}

static bool lost(sim_line *line) {
    return sim_below(&line->random, 1000) < line->loss;
}

static int64_t delay_ms(sim_line *line) {
    return line->delay_ms + sim_below(&line->random, (uint32_t)line->jitter_ms + 1);
}

/* ---- a provider's work ---- */

/* Finds the work that a question needs: an interval (*kind 0; from the last step: a second run) or
 * a step (1). Returns false if none. */
static bool work_of(const char *text, int *kind, int64_t *at, int64_t *steps) {
    const char *states = strstr(text, " states "), *step = strstr(text, "of step ");
    long long from = 0, to = 0;
    if (strcmp(text, "challenge") == 0) {
        *kind = 0, *at = *steps = TOY_STEPS;
        return true;
    }
    if (states && sscanf(states, " states %lld..%lld", &from, &to) == 2) {
        *kind = 0, *at = from, *steps = to - from;
        return true;
    }
    if (!step || sscanf(step, "of step %lld", &from) != 1)
        return false;
    *kind = 1, *at = from + 1, *steps = from < 0 ? 1 : from % TOY_EVERY + 1;
    return *at <= TOY_STEPS;
}

/* Returns when the answer to a question that arrives now will be ready. */
static int64_t ready_ms(sim_line *line, const char *text, int64_t now_ms) {
    const int64_t life_ms = started_ms(line, now_ms);
    int64_t at, steps;
    int kind;
    if (life_ms != line->life_ms) {
        memset(line->ready_ms, 0, sizeof line->ready_ms);
        line->life_ms = life_ms;
        line->busy_ms = 0;
    }
    if (!work_of(text, &kind, &at, &steps))
        return now_ms;
    int64_t *ready = &line->ready_ms[kind][at];
    if (*ready)
        return *ready > now_ms ? *ready : now_ms;
    line->steps += (uint64_t)steps;
    *ready = (line->busy_ms > now_ms ? line->busy_ms : now_ms) + steps * line->step_ms;
    line->busy_ms = *ready;
    return *ready > now_ms ? *ready : now_ms;
}

/* ---- a request ---- */

static sim_heard heard(sim_heard_kind kind, int64_t took_ms, int64_t wait_ms) {
    if (took_ms > wait_ms)
        return (sim_heard){SIM_TROUBLE, wait_ms};
    return (sim_heard){kind, took_ms};
}

/* Returns the result of a connection that cannot be made, or breaks. */
static sim_heard trouble(int64_t wait_ms) {
    return heard(SIM_TROUBLE, SIM_CONNECT_MS, wait_ms);
}

/* Is the provider reachable now, and the same process still there when it answers? */
static bool holds(const sim_line *line, int64_t from_ms, int64_t to_ms) {
    return !within(line->cut, from_ms) && !within(line->cut, to_ms) && !within(line->down, to_ms) &&
           started_ms(line, from_ms) == started_ms(line, to_ms);
}

static sim_heard take_answer(sim_line *line, const vd_buf *request, const vd_hash *name,
                             const char *text, int64_t now_ms, int64_t ready, int64_t wait_ms,
                             vd_buf *note) {
    vd_buf answer = sim_party_answer(line->party, request, name, text);
    const int64_t back_ms = ready + delay_ms(line);
    const bool arrives = holds(line, now_ms, back_ms) && !lost(line);
    const bool is_none = answer.size == 0;
    if (arrives && back_ms - now_ms <= wait_ms) {
        vd_put(note, answer.data, answer.size);
        line->bytes += answer.size;
    }
    vd_buf_free(&answer);
    if (!arrives)
        return trouble(wait_ms);
    if (is_none)
        return line->stalls ? heard(SIM_WORKING, back_ms - now_ms, wait_ms)
                            : (sim_heard){SIM_TROUBLE, wait_ms};
    return heard(SIM_ANSWER, back_ms - now_ms, wait_ms);
}

sim_heard sim_request(sim_line *line, const vd_buf *request, const vd_hash *name, const char *text,
                      int64_t now_ms, int64_t wait_ms, vd_buf *note) {
    const int64_t at_ms = now_ms + delay_ms(line);
    line->requests++;
    if (within(line->down, at_ms)) /* refused: no process listens */
        return heard(SIM_TROUBLE, at_ms - now_ms, wait_ms);
    if (within(line->cut, at_ms) || lost(line))
        return trouble(wait_ms);
    const int64_t ready = ready_ms(line, text, at_ms) + line->linger_ms;
    if (ready > at_ms + line->linger_ms && !line->silent)
        return holds(line, now_ms, at_ms) ? heard(SIM_WORKING, at_ms - now_ms, wait_ms)
                                          : trouble(wait_ms);
    if (ready - now_ms > wait_ms)
        return (sim_heard){SIM_TROUBLE, wait_ms};
    return take_answer(line, request, name, text, now_ms, ready, wait_ms, note);
}
