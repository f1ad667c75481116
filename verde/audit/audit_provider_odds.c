/* Computes the probability that an audit finds a cheat. PROTOCOL.md section 13.7. */
#include "verde/audit/audit_provider.h"

/* Returns x to the power of n. */
static double power(double x, uint64_t n) {
    double out = 1;
    for (; n; n >>= 1, x *= x)
        if (n & 1)
            out *= x;
    return out;
}

/* Returns the probability that `drawn` different ones of `all` include none of `bad`. */
static double missed(double all, double bad, uint32_t drawn) {
    double out = 1;
    for (uint32_t i = 0; i < drawn; i++) {
        const double left = all - bad - i;
        out *= left > 0 ? left / (all - i) : 0;
    }
    return out;
}

/* Returns the elements of the largest node, where a single one is least likely to be drawn. */
static double largest(const vd_graph *graph) {
    int64_t most = 1;
    for (uint32_t node = 0; node < graph->node_count; node++) {
        const int64_t numel = ro_shape_numel(&vd_node_stored(graph, node)->shape);
        most = numel > most ? numel : most;
    }
    return (double)most;
}

/* Returns the probability of finding other data in a share of the steps: certain in a drawn step if
 * all nodes that read data are checked whole, else as for any node. */
static double find_data(const vd_program *program, const vd_audit_result *r, double share,
                        double node) {
    const double steps = (double)program->steps + 1;
    return vd_reads_are_whole(program, &program->step)
               ? 1 - missed(steps, share * steps, r->step_count)
               : 1 - power(1 - share * node, r->step_count);
}

void vd_audit_odds(const vd_program *program, const vd_audit_result *r, vd_odds odds[VD_ODDS]) {
    const double steps = (double)program->steps + 1, drawn = r->step_count;
    const uint64_t each = r->step_count ? r->crumbs / r->step_count : 0;
    const double node = 1 - power(1 - 1.0 / program->step.node_count, each);
    const vd_odds list[VD_ODDS] = {
        {"elements", "hardware that errs in 1 of 100 elements", 0.01, 1 - power(0.99, r->crumbs)},
        {"elements", "in 1 of 1,000", 0.001, 1 - power(0.999, r->crumbs)},
        {"elements", "in 1 of 10,000", 0.0001, 1 - power(0.9999, r->crumbs)},
        {"batches", "other data in 1 of 100 steps", 0.01, find_data(program, r, 0.01, node)},
        {"batches", "in 1 of 10 steps", 0.1, find_data(program, r, 0.1, node)},
        {"batches", "in every second step", 0.5, find_data(program, r, 0.5, node)},
        {"scalar", "one scalar of one step, such as its learning rate", 0, drawn / steps},
        {"interval", "states of one interval that no training led to", 0, drawn / steps * node},
        {"target", "one element of one step, where there are most", 0,
         drawn / steps * (double)each / program->step.node_count / largest(&program->step)},
    };
    for (int i = 0; i < VD_ODDS; i++)
        odds[i] = list[i];
}
