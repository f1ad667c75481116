/* Reductions along any axis, and their expansion back. SPEC.md sections 3.3 and 3.4. */
#include "repops/ref/ref.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"

ro_ref_line ro_ref_line_of(const ro_call *call, int64_t e, int64_t n) {
    ro_ref_line l = {.x = ro_axis_of(&call->input[0], call->attr[RO_ALONG_AXIS])};
    l.at = e / l.x.inner % n;
    l.start = e / l.x.inner / n * l.x.n * l.x.inner + e % l.x.inner;
    return l;
}

static int64_t groups(const ro_call *call) {
    return call->output.dim[call->attr[RO_ALONG_AXIS]];
}

RO_LOADS(group_loads, RO_COLUMN_GROUP)

static uint32_t sum_axis(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    ro_ref_line l = ro_ref_line_of(call, e, groups(call));
    int64_t from = l.at * RO_COLUMN_GROUP;
    int64_t to = from + RO_COLUMN_GROUP < l.x.n ? from + RO_COLUMN_GROUP : l.x.n;
    float sum = 0;
    (void)acc;
    for (int64_t j = from; j < to; j++)
        sum = sum + loadf(in, 0, l.start + j * l.x.inner);
    return result(sum);
}
RO_REFERENCE(sum_axis, .finish = sum_axis, .loads = group_loads)

static uint32_t max_axis(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    ro_ref_line l = ro_ref_line_of(call, e, groups(call));
    int64_t from = l.at * RO_COLUMN_GROUP;
    int64_t to = from + RO_COLUMN_GROUP < l.x.n ? from + RO_COLUMN_GROUP : l.x.n;
    float m = ro_from_bits(RO_MINUS_INFINITY_BITS);
    (void)acc;
    for (int64_t j = from; j < to; j++)
        m = ro_max(m, loadf(in, 0, l.start + j * l.x.inner));
    return result(m);
}
RO_REFERENCE(max_axis, .finish = max_axis, .loads = group_loads)

/* State: the bits of the largest element so far, and its place. */
static int64_t argmax_steps(const ro_call *call) {
    return (ro_axis_of(&call->input[0], call->attr[RO_ARGMAX_AXIS]).n + RO_STEP_LOADS - 1) /
           RO_STEP_LOADS;
}

static void argmax_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                        const ro_access *in) {
    ro_ref_line l = ro_ref_line_of(call, e, 1);
    int64_t from = step * RO_STEP_LOADS;
    int64_t to = from + RO_STEP_LOADS < l.x.n ? from + RO_STEP_LOADS : l.x.n;
    float best = ro_from_bits(acc->word[0]);
    for (int64_t j = from; j < to; j++) {
        float x = loadf(in, 0, l.start + j * l.x.inner);
        if (j > 0 && !(x > best || (x != x && best == best)))
            continue;
        best = x;
        acc->word[1] = (uint32_t)j;
    }
    acc->word[0] = result(best);
}

static uint32_t argmax(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)e, (void)in;
    return acc->word[1];
}
RO_REFERENCE(argmax, .finish = argmax, .steps = argmax_steps, .step = argmax_step, .words = 2)

static uint32_t max_grad(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    ro_ref_line l = ro_ref_line_of(call, e, call->attr[RO_MAX_GRAD_COUNT]);
    (void)acc;
    uint32_t dy = load(in, 1, l.start);
    return (int32_t)load(in, 0, l.start) == l.at ? dy : 0;
}
RO_REFERENCE(max_grad, .finish = max_grad)

static uint32_t expand(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return load(in, 0, ro_ref_line_of(call, e, call->attr[RO_EXPAND_COUNT]).start);
}
RO_REFERENCE(expand, .finish = expand)
