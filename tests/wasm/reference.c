/* Computes the golden table with the reference alone, one element after the other, and elementary
 * functions for their samples. tests/wasm/golden.py runs it in a browser. */
#include <stdio.h>

#include "repops/ref.h"
#include "repops/tools/functions.h"
#include "repops/tools/golden.h"
#include "repops/tools/sha256.h"

#define EXPORT(name) __attribute__((export_name(name)))

enum { SAME = 0, DIFFERS = 1, LEFT_OUT = 2, UNREADABLE = 3 };

EXPORT("line") char *line(void);
EXPORT("said") const char *said(void);
EXPORT("golden") int golden(double most_loads);
EXPORT("function") int function(int index);
EXPORT("subnormals") int subnormals(void);

static char input[1024], text[400];

char *line(void) {
    return input;
}

const char *said(void) {
    return text;
}

/* The largest number of loads that all elements take together. */
static double loads_of(const ro_call *call) {
    const double steps = (double)ro_ref_steps(call);
    return (double)ro_shape_numel(&call->output) *
           (1 + (double)ro_ref_finish_loads(call) + steps * (double)ro_ref_step_loads(call));
}

static void compute(const op_case *c) {
    ro_ref_memory memory = {&c->call, (const void *const *)c->data};
    const ro_access in = {ro_ref_load_memory, &memory};
    const size_t size = ro_dtype_size(c->call.output.dtype);
    for (int64_t e = 0; e < ro_shape_numel(&c->call.output); e++) {
        const uint32_t bits = ro_ref_element(&c->call, e, &in);
        memcpy((char *)c->out + (size_t)e * size, &bits, size); /* little-endian, as wasm is */
    }
}

static int compare(const golden_case *g, const void *bytes, size_t size) {
    char hash[65];
    sha256_text(bytes, size, hash);
    snprintf(text, sizeof text, "%s %s: %.64s", g->op, g->name, hash);
    return strcmp(hash, g->hash) == 0 ? SAME : DIFFERS;
}

/* Computes the case of the line in `input`. */
int golden(double most_loads) {
    golden_case g;
    op_case c;
    char why[256] = "no case";
    if (!golden_parse(input, &g) || !golden_build(&g, &c, why, sizeof why)) {
        snprintf(text, sizeof text, "%.100s: %s", input, why);
        return UNREADABLE;
    }
    int result = LEFT_OUT;
    if (loads_of(&c.call) <= most_loads) {
        compute(&c);
        result = compare(&g, c.out, case_out_bytes(&c));
    } else {
        snprintf(text, sizeof text, "%s %s: %.0f loads", g.op, g.name, loads_of(&c.call));
    }
    case_free(&c);
    return result;
}

/* Computes elementary function `index`, and writes its hash to `text`. */
int function(int index) {
    char hash[65];
    float *x = malloc(SAMPLE_COUNT * sizeof *x);
    if (!x || !ro_elementary_scalar[index].name) {
        free(x);
        return UNREADABLE;
    }
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        const uint32_t bits = SAMPLE_FIRST + SAMPLE_STRIDE * i;
        memcpy(&x[i], &bits, sizeof bits);
    }
    ro_elementary_scalar[index].apply(x, SAMPLE_COUNT);
    sha256_text(x, SAMPLE_COUNT * sizeof *x, hash);
    snprintf(text, sizeof text, "%s %s", ro_elementary_scalar[index].name, hash);
    free(x);
    return SAME;
}

/* Checks that the machine keeps subnormal numbers: it halves the smallest normal number, and
 * doubles the half. */
int subnormals(void) {
    volatile float least = 0x1p-126f, half = least * 0.5f, tiny = 0x1p-149f;
    return half > 0 && half * 2 == least && tiny > 0 && tiny + tiny == 0x1p-148f ? SAME : DIFFERS;
}
