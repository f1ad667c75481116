/* This file decides which states a run keeps, and refuses to keep too few for a dispute. */
#include "verde/exec/run_keep.h"

enum {
    JUDGED_STEPS = 3,
    REPLAYS = 2, /* per dispute: to the states of a sub-run, and to the trace of a step */
};

/* ---- states at the run's end ---- */

static uint32_t kept_by(const vd_program *p, int64_t every) {
    return vd_kept_count((uint32_t)(vd_run_leaves(p) - 1), (uint32_t)every);
}

/* The distance between kept checkpoints at the run's end, if it is `every` now. */
static int64_t every_at_end(const vd_program *p, int32_t keep, int64_t every) {
    while (kept_by(p, every) > (uint32_t)keep)
        every *= 2;
    return every;
}

static int64_t steps_between(const vd_program *p, int64_t every) {
    const int64_t steps = every * p->checkpoint_interval;
    return steps < p->steps ? steps : p->steps;
}

vd_status vd_keep_take(const vd_run_options *o, vd_run_log *log, vd_err *err) {
    const bool finished = log->count == vd_run_leaves(o->exec->program);
    if (o->keep == 0)
        return VD_OK;
    if (log->keep && o->keep > log->keep && finished)
        return vd_fail(err, VD_ERR_USAGE, "%s: holds a run with --keep %d, got %d", o->dir,
                       (int)log->keep, (int)o->keep);
    log->kept_every = log->keep ? log->kept_every : 1;
    log->keep = o->keep;
    return VD_OK;
}

/* ---- how long a dispute takes ---- */

static double dispute_seconds(const vd_program *p, int64_t every, double step_s) {
    return REPLAYS * step_s * (double)steps_between(p, every);
}

static vd_status refuse(const vd_run_options *o, const vd_run_log *log, int64_t every,
                        double step_s, vd_err *err) {
    const vd_program *p = o->exec->program;
    int64_t fits = every;
    while (fits > log->kept_every && dispute_seconds(p, fits, step_s) > o->dispute_s)
        fits /= 2;
    return vd_fail(err, VD_ERR_USAGE,
                   "--keep %d leaves %lld steps between two states; a dispute runs them again "
                   "twice, %.0f s at %.2g s a step, and a referee waits for %.0f s: give --keep %u "
                   "or more",
                   (int)log->keep, (long long)steps_between(p, every),
                   dispute_seconds(p, every, step_s), step_s, o->dispute_s, kept_by(p, fits));
}

vd_status vd_keep_judge(const vd_run_options *o, const vd_run_log *log, vd_step_times *times,
                        double seconds, bool state_comes, vd_err *err) {
    const vd_program *p = o->exec->program;
    if (!log->keep || o->dispute_s == 0 || times->count == JUDGED_STEPS)
        return VD_OK;
    if (times->count == 0 || seconds < times->fastest_s)
        times->fastest_s = seconds;
    times->count = state_comes ? JUDGED_STEPS : times->count + 1;
    const int64_t every = every_at_end(p, log->keep, log->kept_every);
    if (times->count < JUDGED_STEPS || every == log->kept_every ||
        dispute_seconds(p, every, times->fastest_s) <= o->dispute_s)
        return VD_OK;
    return refuse(o, log, every, times->fastest_s, err);
}
