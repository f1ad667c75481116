/* This file runs a program under two profiles, and finds the thresholds that tell them apart. */
#include "verde/log/calibrate.h"

#include <math.h>
#include <stdlib.h>

#include "verde/log/free.h"
#include "verde/log/program.h"

typedef struct {
    const vd_exec *exec;
    const vd_graph *graph;
    const ro_profile *profile[2];
    vd_calibration *out;
    double *value[2]; /* values of a node under each profile; owned */
    size_t room;
    vd_err *err;
    vd_status status;
} calibrator;

/* A threshold is lowered to MARGIN largest distances below half of a place. Two values that are
 * rounded differently have a boundary between them, half of a place away from both rounded values;
 * at 32 bits that happens to one in 10^8 elements. The distance of two values is seen at every
 * element instead, and bounds how near to a boundary they are. The largest distance grows in
 * proportion to the number of elements (it is found near zero, in sums of large terms; one half as
 * large is half as frequent), so a run exceeds that of its shorter calibration. */
enum { MARGIN = 32 };

/* Limits of the thresholds, as in the paper's search: from a quarter of the last place of 24 bits
 * to half of one of `bits`. Outside, all roundings would be logged, or none. */
static double most(int32_t bits) {
    return 0.5 * ldexp(1, 9 - bits);
}
static double least(void) {
    return 0.25 * 0x1p-23;
}
/* The margin of an operator whose two values never differed. It does not depend on `bits`. */
static double least_margin(void) {
    return 0x1p-10 * most(RO_ROUND_BITS_MAX);
}

static double power_of_two(double y) {
    return ldexp(1, fabs(y) < 0x1p-126 ? -126 : ilogb(y));
}

/* Distance from the rounded value over the value's power of two, as ro_free_run computes it. */
static double distance(double y, float r) {
    return fabs(y - (double)r) / power_of_two(y);
}

/* Compares two values rounded to `bits`, which a state's tensors have more of than thresholds. */
static void compare(calibrator *c, int op, int32_t bits, double y1, double y2) {
    const float r1 = ro_round(y1, bits), r2 = ro_round(y2, bits);
    const bool opposite = (y1 < (double)r1) == (y2 > (double)r2);
    double *threshold = &c->out->thresholds.of[op];
    vd_calibration_count *count = &c->out->count[op];
    if (y1 - y1 != 0 || y2 - y2 != 0)
        return;
    count->largest = fmax(count->largest, fabs(y1 - y2) / power_of_two(y1));
    if (r1 == r2 || !opposite)
        return;
    count->apart++;
    /* the threshold must be below this distance, so that the element is logged */
    const double less = most(c->out->thresholds.bits) - most(bits);
    const double d = fmin(distance(y1, r1), distance(y2, r2)) + less;
    if (d <= *threshold)
        *threshold = fmax(least(), nextafter(d, 0));
}

static vd_status make_room(calibrator *c, size_t count) {
    for (int i = 0; i < 2 && count > c->room; i++) {
        free(c->value[i]);
        c->value[i] = malloc(count * sizeof *c->value[i]);
        if (!c->value[i])
            return vd_fail(c->err, VD_ERR_LOCAL, "out of memory for %zu values", count);
    }
    c->room = count > c->room ? count : c->room;
    return VD_OK;
}

static vd_status compare_node(calibrator *c, uint32_t node, const void *const *input,
                              void *output) {
    const vd_node *n = vd_node_stored(c->graph, node);
    const int64_t count = ro_shape_numel(&n->shape);
    ro_shape shapes[RO_MAX_INPUTS];
    ro_call call;
    vd_node_call(c->exec->program, c->graph, node, &call, shapes);
    const int32_t bits = vd_node_is_state(c->exec->program, c->graph, node)
                             ? RO_ROUND_BITS_MAX
                             : c->out->thresholds.bits;
    vd_status status = make_room(c, (size_t)count + 1);
    for (int i = 0; i < 2 && status == VD_OK; i++) {
        const ro_rounding values = {
            .size = sizeof values, .mode = RO_FREE_VALUES, .value = c->value[i]};
        if (ro_free_run(c->exec->ro, c->profile[i], &values, &call, input, output, NULL) != RO_OK)
            status = vd_fail(c->err, VD_ERR_LOCAL, "%s: %s", vd_node_name(c->graph, node).text,
                             ro_ctx_error(c->exec->ro));
    }
    for (int64_t e = 0; e < count && status == VD_OK; e++)
        if (c->value[0][e] != c->value[1][e])
            compare(c, n->op, bits, c->value[0][e], c->value[1][e]);
    c->out->count[n->op].elements += (uint64_t)count;
    return status;
}

static bool see_node(void *user, uint32_t node, const void *const *input, const void *output) {
    calibrator *c = user;
    if (ro_op_is_free(
            vd_node_stored(c->graph, node)->op)) /* RO_FREE_VALUES does not write to the output */
        c->status = compare_node(c, node, input, (void *)(uintptr_t)output);
    return c->status == VD_OK;
}

static vd_status calibrate_run(calibrator *c, const vd_exec *exec, int64_t steps,
                               void (*progress)(void *user, int64_t done), void *user) {
    const vd_observer observer = {see_node, c};
    vd_state state = {0};
    c->graph = &exec->program->init;
    vd_status status = vd_exec_init(exec, &observer, &state, c->err);
    c->graph = &exec->program->step;
    for (int64_t s = 0; s < steps && status == VD_OK && c->status == VD_OK; s++) {
        status = vd_exec_step(exec, &observer, &state, NULL, c->err);
        if (progress)
            progress(user, s + 1);
    }
    vd_state_free(&state);
    return status == VD_OK ? c->status : status;
}

static void keep_margin(vd_calibration *out, int op) {
    const double highest = most(out->thresholds.bits);
    const double margin = fmax(MARGIN * out->count[op].largest, least_margin());
    double *threshold = &out->thresholds.of[op];
    if (ro_op_is_free(op))
        *threshold = fmax(fmin(least(), *threshold), fmin(*threshold, highest - margin));
}

vd_status vd_calibrate(const vd_exec *exec, const ro_profile *a, const ro_profile *b, int32_t bits,
                       int64_t steps, void (*progress)(void *user, int64_t done), void *user,
                       vd_calibration *out, vd_err *err) {
    const vd_free f64 = {.profile = a, .mode = RO_FREE_F64, .bits = bits};
    vd_exec calibrated = *exec;
    vd_free_kernels kernels = {0};
    calibrated.kernels = vd_free_kernels_open(&kernels, &f64);
    calibrator c = {.exec = &calibrated, .profile = {a, b}, .out = out, .err = err};
    *out = (vd_calibration){.thresholds.bits = bits};
    for (int op = 0; op < RO_OP_END; op++)
        out->thresholds.of[op] = ro_op_is_free(op) ? most(bits) : 0;
    vd_status status = calibrate_run(&c, &calibrated, steps, progress, user);
    for (int op = 0; op < RO_OP_END; op++)
        keep_margin(out, op);
    vd_free_kernels_close(&kernels);
    free(c.value[0]);
    free(c.value[1]);
    return status;
}
