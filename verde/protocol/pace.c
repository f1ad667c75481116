/* This file computes how long answers may take, from the times that a provider states. */
#include "verde/protocol/pace.h"

#include "verde/exec/estimate.h"
#include "verde/protocol/arbiter.h"
#include "verde/protocol/dispute.h"

vd_work vd_work_of(const vd_question *q) {
    if (q->kind == VD_ASK_COMMIT)
        return VD_WORK_COMMIT;
    if (q->kind == VD_ASK_CHALLENGE)
        return VD_WORK_RUN;
    if (q->kind == VD_ASK_REVEAL || q->kind == VD_ASK_NOTE || q->kind == VD_ASK_SECTION)
        return VD_WORK_NONE;
    switch (q->tree.kind) {
    case VD_TREE_SUBRUN: return VD_WORK_STATES;
    case VD_TREE_TRACE:
    case VD_TREE_STATE:
    case VD_TREE_TENSOR:
    case VD_TREE_FOLD: return VD_WORK_STEP;
    default: return VD_WORK_NONE;
    }
}

static int64_t longest(const vd_program *program, const vd_graph *graph) {
    const uint64_t us = vd_estimate_terms(program, graph) / VD_TERMS_PER_US;
    return us < VD_STEP_US_LEAST   ? VD_STEP_US_LEAST
           : us > VD_PACE_US_LIMIT ? VD_PACE_US_LIMIT
                                   : (int64_t)us;
}

vd_pace_caps vd_pace_caps_of(const vd_program *program, int64_t step_us) {
    const int64_t by_job = program ? longest(program, &program->step) : VD_STEP_US_LEAST;
    const int64_t step = step_us ? step_us : by_job;
    const int64_t init = program ? longest(program, &program->init) : 0;
    return (vd_pace_caps){step, init > step ? init : step};
}

/* Returns the longest real time of one of `count` executions that share an answer's allowance.
 * `counted_us`: the most that counts of the stated time of one. */
static double longest_wait(double count, int64_t counted_us) {
    const double each = VD_WORK_FACTOR * (double)counted_us / 1e6 + VD_PATIENCE_S / count;
    return each < VD_REACH_S ? each : VD_REACH_S;
}

/* The longest answers are about a step in detail (from a stored state to the interval, the interval
 * with hashes, and the step twice), or about initialisation, twice. */
vd_pace_limits vd_pace_limits_of(const vd_program *program) {
    const vd_pace_caps caps = vd_pace_caps_of(program, 0);
    return (vd_pace_limits){longest_wait(2.0 * program->checkpoint_interval + 2, caps.step),
                            longest_wait(2, caps.trace)};
}

long vd_pace_wants(const vd_pace *pace, const vd_pace_caps *caps) {
    const int64_t step = pace->plain_us > pace->committed_us ? pace->plain_us : pace->committed_us;
    const int64_t over_step = step > caps->step ? step : 0;
    const int64_t over_trace = pace->traced_us > caps->trace ? pace->traced_us : 0;
    const int64_t us = over_step > over_trace ? over_step : over_trace;
    return (long)((us + 999999) / 1000000);
}

/* ---- seconds ---- */

static double capped(int64_t us, int64_t us_max) {
    return (double)(us < us_max ? us : us_max) / 1e6;
}

/* Returns the seconds from a stored state to the one in question. */
static double reach_seconds(const vd_program *program, const vd_pace *pace, double plain) {
    const double interval = plain * program->checkpoint_interval;
    const int64_t steps = pace->distance < program->steps ? pace->distance : program->steps;
    const double most = interval > VD_REACH_S ? interval : VD_REACH_S;
    return plain * (double)steps < most ? plain * (double)steps : most;
}

double vd_work_seconds(vd_work work, const vd_program *program, const vd_pace *pace,
                       const vd_pace_caps *caps) {
    const double plain = capped(pace->plain_us, caps->step);
    const double committed = capped(pace->committed_us, caps->step);
    const double traced = capped(pace->traced_us, caps->trace);
    if (work == VD_WORK_COMMIT)
        return (double)(2 * caps->step + caps->trace) / 1e6;
    if (work == VD_WORK_NONE || !program)
        return 0;
    if (work == VD_WORK_RUN)
        return committed * (double)program->steps + traced;
    const double states =
        reach_seconds(program, pace, plain) + committed * program->checkpoint_interval;
    return work == VD_WORK_STATES ? states : states + 2 * traced;
}

/* ---- what is stated ---- */

json_t *vd_pace_json(const vd_pace *pace) {
    return json_pack("{sI sI sI sI}", "committed_us", (json_int_t)pace->committed_us, "distance",
                     (json_int_t)pace->distance, "plain_us", (json_int_t)pace->plain_us,
                     "traced_us", (json_int_t)pace->traced_us);
}

/* Reads the member `pace`. An invalid one is read as zeros. */
static void read_pace(const json_t *body, vd_pace *out) {
    const json_t *pace = json_object_get(body, "pace");
    if (!vd_json_get_integer(pace, "plain_us", VD_PACE_US_LIMIT, &out->plain_us) ||
        !vd_json_get_integer(pace, "committed_us", VD_PACE_US_LIMIT, &out->committed_us) ||
        !vd_json_get_integer(pace, "traced_us", VD_PACE_US_LIMIT, &out->traced_us) ||
        !vd_json_get_integer(pace, "distance", INT32_MAX, &out->distance))
        *out = (vd_pace){0};
}

void vd_referee_pace(const vd_referee *r, uint32_t p, vd_pace *out) {
    read_pace(r->party[p].body, out);
}
