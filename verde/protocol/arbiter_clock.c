/* Chess clocks: each provider has one in each game, by the referee's time. PROTOCOL.md section
 * 8.3. */
#include "verde/protocol/arbiter_internal.h"

void vd_clocks_renew(vd_arbiter *a, const vd_sitting *sitting, uint32_t parties) {
    for (uint32_t i = 0; i < parties; i++)
        a->clock[sitting->provider[i]] =
            (vd_game_clock){.left_s = VD_PATIENCE_ANSWERS * a->options.patience_s};
}

bool vd_is_in_no_game(vd_work work) {
    return work == VD_WORK_COMMIT || work == VD_WORK_RUN;
}

static double work_seconds(const vd_arbiter *a, uint32_t provider, vd_work work,
                           const vd_program *program) {
    const vd_program *longest = program ? program : a->options.longest_item;
    const vd_pace_caps caps = vd_pace_caps_of(longest, a->options.step_us_max);
    return VD_WORK_FACTOR * vd_work_seconds(work, program, &a->pace[provider], &caps);
}

double vd_clock_allow(vd_arbiter *a, uint32_t provider, vd_work work, const vd_program *program) {
    vd_game_clock *clock = &a->clock[provider];
    const double seconds = work_seconds(a, provider, work, program);
    const double patience = a->options.patience_s;
    if (vd_is_in_no_game(work))
        return VD_PATIENCE_ANSWERS * patience + seconds;
    if (!clock->paid[work])
        clock->left_s += seconds;
    clock->paid[work] = true;
    return patience + seconds < clock->left_s ? patience + seconds : clock->left_s;
}
