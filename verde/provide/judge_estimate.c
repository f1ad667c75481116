/* Estimates a program's time, memory and disk space, in the child that reads it. */
#include "verde/exec/estimate.h"
#include "verde/protocol/arbiter.h"
#include "verde/protocol/pace.h"
#include "verde/provide/judge.h"

/* Rounds up; beyond 2^53, which exceeds all limits, returns UINT64_MAX. */
static uint64_t whole(double number) {
    enum { MOST_BITS = 53 };
    const double most = (double)(UINT64_C(1) << MOST_BITS);
    return number < most ? (uint64_t)number + ((double)(uint64_t)number < number) : UINT64_MAX;
}

static void see_step(double takes, double limit, vd_judgement *j) {
    const uint64_t ms = whole(1000 * takes), most = whole(1000 * limit);
    if (j->step_ms_max && (double)ms / (double)most <= (double)j->step_ms / (double)j->step_ms_max)
        return;
    j->step_ms = ms;
    j->step_ms_max = most;
}

/* Returns early if no step can be too long: few of a pack's programs need their terms counted. */
static void see_steps(const vd_program *program, const vd_estimated_seconds *takes,
                      vd_judgement *j) {
    const double least = VD_WORK_FACTOR * VD_STEP_US_LEAST / 1e6;
    if (takes->init < least && takes->step < least)
        return;
    const vd_pace_limits limits = vd_pace_limits_of(program);
    see_step(takes->init, limits.init, j);
    see_step(takes->step, limits.step, j);
}

static void add_seconds(const vd_program *program, int cores, vd_judgement *j) {
    const vd_estimated_seconds takes = vd_estimate_seconds(program, cores);
    const uint64_t seconds = whole(takes.run);
    j->seconds = j->seconds > UINT64_MAX - seconds ? UINT64_MAX : j->seconds + seconds;
    see_steps(program, &takes, j);
}

vd_status vd_judge_estimate(const vd_program *program, const vd_judge_machine *machine,
                            vd_judgement *j, vd_err *err) {
    uint64_t memory = 0;
    vd_status status = vd_estimate_memory(program, &memory, err);
    if (__builtin_add_overflow(memory, vd_estimate_kernels(program, machine->threads), &memory))
        memory = UINT64_MAX;
    j->memory = memory > j->memory ? memory : j->memory;
    if (status == VD_OK)
        add_seconds(program, machine->cores, j);
    return status;
}

/* Small checkpoints occupy whole blocks, and a run has other files too. */
uint64_t vd_judge_disk(uint64_t bytes, uint64_t states, uint32_t data_count) {
    enum { FILES = 32, DATA_BYTES = 512 /* 512: names in the folder and in two lists */ };
    uint64_t beside;
    if (__builtin_mul_overflow(states, (uint64_t)VD_DISK_BLOCK * 2, &beside) ||
        __builtin_add_overflow(beside, bytes, &beside) ||
        __builtin_add_overflow(
            beside, (uint64_t)FILES * VD_DISK_BLOCK + (uint64_t)DATA_BYTES * data_count, &beside))
        return UINT64_MAX;
    return beside;
}
