/* Free kernels of one element: arithmetic, functions, their gradients, updates of parameters. */
#include "free_cases.h"
#include "repops/op_elementwise.h"
#include "repops/op_image.h"
#include "repops/op_optimizer.h"
#include "repops/op_function.h"

Test(free_functions, arithmetic) {
    check_free_operator(RO_OP_ADD, 0);
    check_free_operator(RO_OP_SUB, 0);
    check_free_operator(RO_OP_MUL, 0);
    check_free_operator(RO_OP_DIV, 0);
    check_free_operator(RO_OP_SCALE, 0);
    check_free_operator(RO_OP_DIV_CONST, 0);
    check_free_operator(RO_OP_SQRT, 0);
    check_free_operator(RO_OP_RSQRT, 0);
}

Test(free_functions, exp_and_log) {
    check_free_operator(RO_OP_EXP, 1);
    check_free_operator(RO_OP_LOG, 1);
}

Test(free_functions, tanh_and_erf) {
    check_free_operator(RO_OP_TANH, 1);
    check_free_operator(RO_OP_ERF, 1);
    check_free_operator(RO_OP_SIGMOID, 1);
}

Test(free_functions, activations) {
    check_free_operator(RO_OP_SILU, 1);
    check_free_operator(RO_OP_GELU, 1);
    check_free_operator(RO_OP_GELU_ERF, 1);
}

Test(free_functions, gradients) {
    check_free_operator(RO_OP_TANH_GRAD, 1);
    check_free_operator(RO_OP_SIGMOID_GRAD, 0);
    check_free_operator(RO_OP_ERF_GRAD, 1);
    check_free_operator(RO_OP_SILU_GRAD, 1);
    check_free_operator(RO_OP_GELU_ERF_GRAD, 1);
    check_free_operator(RO_OP_GELU_GRAD, 1);
}

Test(free_functions, updates) {
    check_free_operator(RO_OP_ADAMW_M, 1);
    check_free_operator(RO_OP_ADAMW_V, 1);
    check_free_operator(RO_OP_ADAMW_W, 1);
    check_free_operator(RO_OP_SGD_M, 1);
    check_free_operator(RO_OP_SGD_W, 1);
    check_free_operator(RO_OP_SGD_NESTEROV, 1);
    check_free_operator(RO_OP_BN_RUNNING, 1);
}

/* ---- errors in ulp of binary64, against long double; the kernels' bounds rely on these limits
 * ---- */

typedef struct {
    int op;
    ld (*exact)(ld x);
    float low, high; /* range of arguments */
    double most;
} accuracy;

static ld ulps(double y, ld exact) {
    int exponent;
    frexpl(exact, &exponent);
    return fabsl((ld)y - exact) / ldexpl(1, exponent - 53);
}

static double worst_of(const accuracy *a, int context, int profile) {
    enum { COUNT = 1 << 16 };
    static float x[COUNT];
    static double y[COUNT];
    const ro_shape shape = shape1(COUNT);
    const ro_call call = {a->op, 1, {0}, &shape, shape};
    const ro_rounding r = {.size = sizeof r, .mode = RO_FREE_VALUES, .value = y};
    const void *in[] = {x};
    double worst = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        const double unit = (double)(case_word(77, profile, i) >> 11) * 0x1p-53;
        /* one half is uniform in the range, the other one spread over all exponents */
        x[i] = i % 2 || a->low == a->high
                   ? (float)ldexp(1 + unit, (int)(case_word(78, 0, i) % 50) - 40)
                   : (float)((double)a->low + unit * ((double)a->high - (double)a->low));
        x[i] = i % 4 == 1 && a->low < 0 ? -x[i] : x[i];
        if (!(x[i] >= a->low && x[i] <= a->high))
            x[i] = a->high;
    }
    cr_assert(ro_free_run(free_context(context), ro_profile_at(profile), &r, &call, in, NULL,
                          NULL) == RO_OK);
    for (int64_t i = 0; i < COUNT; i++)
        worst = fmax(worst, (double)ulps(y[i], a->exact((ld)x[i])));
    return worst;
}

Test(free_functions, at_most_4_ulp) {
    static const accuracy list[] = {{RO_OP_EXP, expl, -500, 500, 1.25},
                                    {RO_OP_EXP, expl, -1, 1, 1.25},
                                    {RO_OP_LOG, logl, 0, 4, 2.5},
                                    {RO_OP_LOG, logl, 0, 0x1.fffffep127f, 2.5},
                                    {RO_OP_TANH, tanhl, -25, 25, 4},
                                    {RO_OP_TANH, tanhl, -1, 1, 4},
                                    {RO_OP_ERF, erfl, -7, 7, 4},
                                    {RO_OP_ERF, erfl, -1.5f, 1.5f, 4},
                                    {RO_OP_SIGMOID, exact_logistic, -500, 500, 3.5},
                                    {RO_OP_SIGMOID, exact_logistic, -20, 20, 3.5}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        double worst = 0;
        for (int context = 0; context < FREE_CONTEXTS; context++)
            for (int p = 0; p < FREE_PROFILES; p++)
                worst = fmax(worst, worst_of(&list[i], context, p));
        if (getenv("FREE_COUNTS"))
            fprintf(stderr, "%s in [%g, %g]: %.3f ulp\n", ro_op_describe(list[i].op)->name,
                    (double)list[i].low, (double)list[i].high, worst);
        cr_assert(worst <= list[i].most, "%s in [%g, %g]: %g ulp", ro_op_describe(list[i].op)->name,
                  (double)list[i].low, (double)list[i].high, worst);
    }
}
