/* A run that keeps too few states is refused, since a dispute about it would take too long. */
#include "verde/exec/run_keep.h"

#include <criterion/criterion.h>
#include <string.h>

/* Has 1,001 checkpoints. If two are kept, they are 1,000,000 steps apart; if three, up to
 * 512,000. */
static const vd_program program = {.steps = 1000000, .checkpoint_interval = 1000};
static const vd_exec executes = {.program = &program};

/* A dispute replays all steps twice, which takes 3,600 s at 1.8 ms a step. */
static const double fits = 1.79e-3, too_slow = 1.81e-3, first = 1;

static vd_run_options options_of(int32_t keep) {
    return (vd_run_options){.exec = &executes, .dir = "run", .keep = keep, .dispute_s = 3600};
}

/* Makes the log of a new run with this --keep. */
static vd_run_log new_log(const vd_run_options *o) {
    vd_run_log log = {0};
    cr_assert_eq(vd_keep_take(o, &log, NULL), VD_OK);
    return log;
}

static vd_status judge_three(const vd_run_options *o, const vd_run_log *log, double step_s,
                             vd_err *err) {
    vd_step_times times = {0};
    cr_expect_eq(vd_keep_judge(o, log, &times, first, false, err), VD_OK);
    cr_expect_eq(vd_keep_judge(o, log, &times, step_s, false, err), VD_OK);
    const vd_status status = vd_keep_judge(o, log, &times, first, false, err);
    cr_expect_eq(vd_keep_judge(o, log, &times, 1000 * first, true, err), VD_OK, "judged twice");
    return status;
}

Test(keep, is_judged_by_the_fastest_of_three_steps) {
    const vd_run_options o = options_of(2);
    const vd_run_log log = new_log(&o);
    vd_err err = {0};
    cr_expect_eq(judge_three(&o, &log, fits, &err), VD_OK, "%s", err.text);
    cr_expect_eq(judge_three(&o, &log, too_slow, &err), VD_ERR_USAGE);
    cr_expect(strstr(err.text, "--keep 2 leaves 1000000 steps between two states") &&
                  strstr(err.text, "give --keep 3 or more"),
              "%s", err.text);
}

Test(keep, is_enough_where_the_error_says_so) {
    const vd_run_options o = options_of(3);
    const vd_run_log log = new_log(&o);
    vd_err err = {0};
    cr_expect_eq(judge_three(&o, &log, too_slow, &err), VD_OK, "%s", err.text);
}

Test(keep, is_judged_before_a_state_is_kept) {
    const vd_run_options o = options_of(2);
    const vd_run_log log = new_log(&o);
    vd_step_times times = {0};
    cr_expect_eq(vd_keep_judge(&o, &log, &times, too_slow, true, NULL), VD_ERR_USAGE);
}

Test(keep, is_not_judged_where_all_states_stay_or_nobody_waits) {
    const vd_run_options all = options_of(0), many = options_of(1001);
    vd_run_options patient = options_of(2);
    patient.dispute_s = 0;
    const vd_run_log log = new_log(&all), many_log = new_log(&many), few = new_log(&patient);
    cr_expect_eq(judge_three(&all, &log, first, NULL), VD_OK);
    cr_expect_eq(judge_three(&many, &many_log, first, NULL), VD_OK);
    cr_expect_eq(judge_three(&patient, &few, first, NULL), VD_OK);
}

/* A state that was already dropped cannot be brought back, so this is no reason to end the run. */
Test(keep, is_not_judged_once_the_states_are_gone) {
    const vd_run_options o = options_of(2);
    vd_run_log log = new_log(&o);
    log.kept_every = 1024;
    cr_expect_eq(judge_three(&o, &log, too_slow, NULL), VD_OK);
}

Test(keep, may_grow_until_a_run_is_finished) {
    const vd_run_options two = options_of(2), three = options_of(3);
    vd_run_log log = new_log(&two);
    vd_err err = {0};
    log.kept_every = 16;
    cr_expect_eq(vd_keep_take(&three, &log, &err), VD_OK, "%s", err.text);
    cr_expect(log.keep == 3 && log.kept_every == 16);
    log.count = (uint32_t)vd_run_leaves(&program);
    cr_expect_eq(vd_keep_take(&two, &log, &err), VD_OK, "%s", err.text);
    cr_expect_eq(vd_keep_take(&three, &log, &err), VD_ERR_USAGE);
    cr_expect(strstr(err.text, "run: holds a run with --keep 2, got 3"), "%s", err.text);
}
