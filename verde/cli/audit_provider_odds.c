/* How likely it is that an audit finds a cheat. PROTOCOL.md section 13.7. */
#include "verde/cli/audit_provider.h"

/* x to the power of n. */
static double power(double x, uint64_t n) {
    double out = 1;
    for (; n; n >>= 1, x *= x)
        if (n & 1)
            out *= x;
    return out;
}

/* That none of `drawn` different ones, of `all`, is among `bad`. */
static double missed(double all, double bad, uint32_t drawn) {
    double out = 1;
    for (uint32_t i = 0; i < drawn; i++) {
        const double left = all - bad - i;
        out *= left > 0 ? left / (all - i) : 0;
    }
    return out;
}

void vd_audit_odds(const vd_program *program, const vd_audit_result *r, vd_odds odds[VD_ODDS]) {
    const double steps = (double)program->steps + 1, drawn = r->step_count;
    const uint64_t each = r->step_count ? r->crumbs / r->step_count : 0;
    const double node = 1 - power(1 - 1.0 / program->step.node_count, each);
    const double lazy[3] = {0.01, 0.1, 0.5};
    const vd_odds list[VD_ODDS] = {
        {"elements", "hardware that errs in 1 of 100 elements", 0.01, 1 - power(0.99, r->crumbs)},
        {"elements", "in 1 of 1,000", 0.001, 1 - power(0.999, r->crumbs)},
        {"elements", "in 1 of 10,000", 0.0001, 1 - power(0.9999, r->crumbs)},
        {"batches", "other data in 1 of 100 steps", lazy[0],
         1 - missed(steps, lazy[0] * steps, r->step_count)},
        {"batches", "in 1 of 10 steps", lazy[1], 1 - missed(steps, lazy[1] * steps, r->step_count)},
        {"batches", "in every second step", lazy[2],
         1 - missed(steps, lazy[2] * steps, r->step_count)},
        {"scalar", "one scalar of one step, such as its learning rate", 0, drawn / steps},
        {"interval", "states of one interval that no training led to", 0, drawn / steps * node},
        {"target", "one element of one step", 0,
         drawn / steps * (double)each / program->step.node_count / 1024},
    };
    for (int i = 0; i < VD_ODDS; i++)
        odds[i] = list[i];
}
