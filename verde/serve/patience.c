/* This file measures how long answers take, and waits for quick ones. */
#include "verde/serve/patience.h"

#include <malloc.h>
#include <unistd.h>

#include "verde/load/load.h"
#include "verde/protocol/pace.h"

/* Longest wait for an answer, doubled from 1 ms: a quick one need not be asked for again. */
enum { GRACE_MS = 128 };

vd_status vd_ask_desk(vd_desk *desk, const void *request, size_t size, vd_buf *out,
                      vd_working *working, vd_err *err) {
    vd_status status = VD_ERR_IO;
    for (useconds_t ms = 1; status == VD_ERR_IO && ms <= GRACE_MS; ms *= 2) {
        if (ms > 1)
            usleep(ms * 1000);
        status = vd_desk_answer(desk, request, size, out, working, err);
        if (working->waits || (ms == 1 && !working->fresh))
            break;
    }
    return status;
}

/* Tells the operator if this machine is slower than a referee, who cannot know it, allows for. */
static void tell_of_caps(const vd_program *program, const vd_pace *pace) {
    const vd_pace_caps caps = vd_pace_caps_of(program, 0);
    const long wants = vd_pace_wants(pace, &caps);
    if (wants)
        vd_say("verde: a step, or its records, takes this machine more than the %.1f s that a "
               "referee counts; ask it for --step-time-max %ld, lest answers be late",
               (double)caps.step / 1e6, wants);
}

void vd_measure(vd_replay *replay, const vd_program *program, vd_pace *out, double *game_s) {
    static const vd_pace_caps none = {VD_PACE_US_LIMIT, VD_PACE_US_LIMIT};
    vd_err err = {0};
    *out = (vd_pace){0};
    if (replay && vd_replay_measure(replay, out, &err) != VD_OK)
        vd_say("verde: the pace of this machine was not measured: %s", err.text);
    else if (replay)
        tell_of_caps(program, out);
    if (replay && game_s)
        *game_s += vd_work_seconds(VD_WORK_STATES, program, out, &none) +
                   vd_work_seconds(VD_WORK_STEP, program, out, &none);
    malloc_trim(0); /* returns the pages of a step, which may be the only one */
}
