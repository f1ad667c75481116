/* Decides how long a provider that is not done is waited for while others are. */
#include <math.h>

#include "verde/delegate/delegation.h"
#include "verde/exec/estimate.h"
#include "verde/protocol/pace.h"

/* A provider is late after this many times the time of the second one that finished. */
#define LATE_TIMES 4

/* Added to each step's computing time: hashing, writing, and other work of the machine. */
#define BESIDE_S 0.05

double vd_delegation_slow_s(const vd_program *p) {
    const double terms_per_s = 1e6 * VD_TERMS_PER_US;
    const double init = (double)vd_estimate_terms(p, &p->init) / terms_per_s;
    const double step = (double)vd_estimate_terms(p, &p->step) / terms_per_s;
    return init + (double)p->steps * (step + BESIDE_S);
}

/* Returns the seconds until two providers had finished; infinite if fewer have. */
static double second_done(const vd_delegation *d) {
    double first = HUGE_VAL, second = HUGE_VAL;
    for (uint32_t i = 0; i < d->o->urls; i++) {
        const double took = d->order[i].took;
        if (d->order[i].state != VD_ORDER_DONE)
            continue;
        second = took < first ? first : took < second ? took : second;
        first = took < first ? took : first;
    }
    return second;
}

/* Returns the seconds for which all are waited for. Two liars may finish at once: an honest
 * provider has at least as long as a slow machine needs. */
static double wait_bound(const vd_delegation *d) {
    const double second = second_done(d);
    const double least = d->slow_s + (double)d->o->patience_s;
    if (d->o->deadline_s)
        return (double)d->o->deadline_s;
    return LATE_TIMES * second > least ? LATE_TIMES * second : least;
}

static void give_up(const vd_delegation *d, vd_order *order, double second) {
    char took[32], waited[32];
    vd_print_seconds(vd_seconds() - d->start, waited);
    vd_print_seconds(second, took);
    order->state = VD_ORDER_LATE;
    if (d->o->deadline_s)
        snprintf(order->why, sizeof order->why, "not waited for: not done after %s (--deadline)",
                 waited);
    else
        snprintf(order->why, sizeof order->why,
                 "not waited for: not done after %s, and two others were after %s", waited, took);
}

void vd_delegation_end_wait(vd_delegation *d) {
    const double second = second_done(d);
    if (!d->o->deadline_s && isinf(second))
        return;
    if (vd_seconds() - d->start < wait_bound(d))
        return;
    for (uint32_t i = 0; i < d->o->urls; i++)
        if (d->order[i].state < VD_ORDER_DONE)
            give_up(d, &d->order[i], second);
}
