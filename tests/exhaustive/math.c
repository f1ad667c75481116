/* Measures the elementary functions over all their inputs against double precision: `make
 * exhaustive`. The figures stand in SPEC.md section 2. */
#include <math.h>
#include <stdio.h>

#include "repops/src/math.h"

/* Error in units of the last place of the correctly rounded result, subnormals included. */
static double ulp_error(float got, double want) {
    float nearest = (float)want;
    if (isnan(want) || isinf(nearest))
        return got == nearest || (isnan(want) && isnan(got)) ? 0 : isinf(nearest) ? 1 : INFINITY;
    int exponent;
    frexp(want, &exponent);
    double ulp = ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
    return fabs((double)got - want) / ulp;
}

static void measure(const char *name, float (*f)(float), double (*reference)(double)) {
    double worst = 0;
    uint32_t at = 0, bits = 0;
    do {
        float x = ro_from_bits(bits);
        double error = ulp_error(f(x), reference((double)x));
        if (error > worst) {
            worst = error;
            at = bits;
        }
    } while (++bits != 0);
    printf("%-10s max %.4f ulp at %a\n", name, worst, (double)ro_from_bits(at));
}

static void measure_turn(const char *name, float (*f)(uint32_t), double (*reference)(double)) {
    double worst = 0;
    for (uint32_t k = 0; k < 1u << 24; k++) {
        double error = fabs((double)f(k) - reference(ldexp(k, -23) * 3.14159265358979323846));
        worst = error > worst ? error : worst;
    }
    printf("%-10s max error %.4f * 2^-24 (absolute)\n", name, ldexp(worst, 24));
}

static float e(float x) {
    return ro_exp(x);
}
static float l(float x) {
    return ro_log(x);
}
static float t(float x) {
    return ro_tanh(x);
}
static float sn(uint32_t k) {
    return ro_sin_turn(k);
}
static float cs(uint32_t k) {
    return ro_cos_turn(k);
}

int main(void) {
    measure("exp", e, exp);
    measure("log", l, log);
    measure("tanh", t, tanh);
    measure_turn("sin_turn", sn, sin);
    measure_turn("cos_turn", cs, cos);
    return 0;
}
