/* Compares elements of free operators with bounds (SPEC.md section 14.5) with the free kernels: no
 * profile's value is more than two bounds away, every rounding is admitted, and elements for which
 * several grid members are admitted are in every profile's reports. */
#ifndef TESTS_BOUNDED_CASES_H
#define TESTS_BOUNDED_CASES_H

#include "free_cases.h"
#include "op_cases_image.h"
#include "free_products_exact.h"
#include "repops/ref.h"
#include "repops/src/rounding.h"
#include "repops/op_attention.h"
#include "repops/op_product.h"

enum { BOUNDED_CASES = 24, BOUNDED_SAMPLE = 60, BOUNDED_CALLS = 60, BOUNDED_LOADS = 1 << 15 };

/* The inputs that one element reads. */
typedef struct {
    ro_ref_memory memory;
    int64_t count;
    struct {
        int input;
        int64_t index;
    } load[BOUNDED_LOADS];
} bounded_reads;

static inline uint32_t bounded_load(void *user, int input, int64_t index) {
    bounded_reads *r = user;
    cr_assert(input >= 0 && input < r->memory.call->input_count && index >= 0 &&
              index < ro_shape_numel(&r->memory.call->input[input]));
    if (r->count < BOUNDED_LOADS) {
        r->load[r->count].input = input;
        r->load[r->count].index = index;
    }
    r->count++;
    return ro_ref_load_memory(&r->memory, input, index);
}

typedef struct {
    op_case c;
    const char *name;
    uint64_t seed;
    int bits;
    int64_t n, several, elements;
    double *value[FREE_PROFILES], *bound[FREE_PROFILES];
    float *out[FREE_PROFILES];
    ro_close_call *call[FREE_PROFILES];
    int64_t calls[FREE_PROFILES];
} bounded_check;

/* Keeps few bits, so that sums are often halfway between two floats. */
static inline void bounded_coarsen(op_case *c) {
    for (int t = 0; t < c->call.input_count; t++)
        for (int64_t i = 0; c->in[t].dtype == RO_F32 && i < ro_shape_numel(&c->in[t]); i++)
            ((uint32_t *)c->data[t])[i] &= UINT32_C(0xfffc0000);
}

static inline void bounded_open(bounded_check *x, int op, uint64_t seed, int bits) {
    const char *why = case_roll(&x->c, op, seed);
    cr_assert(!why, "%s: %s", ro_op_describe(op)->name, why);
    case_free(&x->c);
    cr_assert(case_fill(&x->c, seed, (data_class)(seed % DATA_END)));
    if (seed % 3 == 0)
        bounded_coarsen(&x->c);
    x->name = ro_op_describe(op)->name, x->seed = seed, x->bits = bits;
    x->n = ro_shape_numel(&x->c.call.output);
    x->several = x->elements = 0;
    for (int p = 0; p < FREE_PROFILES; p++) {
        const int at = (int)(seed + (uint64_t)p) % FREE_CONTEXTS;
        ro_free_report made = {.size = sizeof made};
        x->value[p] = calloc((size_t)x->n + 1, sizeof(double));
        x->bound[p] = calloc((size_t)x->n + 1, sizeof(double));
        x->out[p] = calloc((size_t)x->n + 1, sizeof(float));
        const ro_rounding values = {.size = sizeof values,
                                    .mode = RO_FREE_VALUES,
                                    .value = x->value[p],
                                    .bound = x->bound[p]};
        free_run_case(at, p, &values, &x->c, NULL, NULL);
        const ro_rounding report = {.size = sizeof report, .mode = RO_FREE_REPORT, .bits = bits};
        free_run_case(at, p, &report, &x->c, x->out[p], &made);
        x->calls[p] = made.call_count;
        x->call[p] = malloc((size_t)made.call_count * sizeof *made.call + 1);
        if (made.call_count > 0)
            memcpy(x->call[p], made.call, (size_t)made.call_count * sizeof *made.call);
    }
}

static inline void bounded_close(bounded_check *x) {
    for (int p = 0; p < FREE_PROFILES; p++) {
        free(x->value[p]);
        free(x->bound[p]);
        free(x->out[p]);
        free(x->call[p]);
    }
    case_free(&x->c);
}

static inline const ro_close_call *bounded_call(const bounded_check *x, int p, int64_t e) {
    int64_t low = 0, high = x->calls[p];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (x->call[p][middle].element < e)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x->calls[p] && x->call[p][low].element == e ? &x->call[p][low] : NULL;
}

#define BOUNDED_AT       "%s seed %llu element %lld, b = %d: "
#define BOUNDED_OF(x, e) (x)->name, (unsigned long long)(x)->seed, (long long)(e), (x)->bits

static inline void bounded_profile(const bounded_check *x, ro_bounded r, int64_t e, int p) {
    const double y = x->value[p][e], most = x->bound[p][e];
    const ro_places v = ro_bounded_places(r, x->bits);
    const ro_close_call *call = bounded_call(x, p, e);
    const float out = x->out[p][e];
    if (r.value - r.value != 0)
        cr_assert(same_number(y, r.value), BOUNDED_AT "%a, profile %d %a", BOUNDED_OF(x, e),
                  r.value, p, y);
    else
        cr_assert(!(fabsl((ld)y - (ld)r.value) > 2 * (ld)r.bound),
                  BOUNDED_AT "%a, bound %a, profile %d %a", BOUNDED_OF(x, e), r.value, r.bound, p,
                  y);
    cr_assert(r.value - r.value != 0 || !(most < 2 * r.bound), BOUNDED_AT "bound %a, profile %d %a",
              BOUNDED_OF(x, e), r.bound, p, most);
    cr_assert(ro_bounded_admits(r, x->bits, ro_to_bits(out)),
              BOUNDED_AT "%a with bound %a does not admit %a of profile %d", BOUNDED_OF(x, e),
              r.value, r.bound, (double)out, p);
    cr_assert(v.low == v.high || call, BOUNDED_AT "%a with bound %a, profile %d has no report",
              BOUNDED_OF(x, e), r.value, r.bound, p);
    if (call)
        cr_assert(ro_to_bits(ro_round_called(r.value, x->bits, call)) == ro_to_bits(out),
                  BOUNDED_AT "%a does not follow profile %d to %a", BOUNDED_OF(x, e), r.value, p,
                  (double)out);
}

static inline int bounded_is_product(int op) {
    return op == RO_OP_MATMUL || op == RO_OP_ATTN_AV || op == RO_OP_ATTN_AV_AT ||
           is_convolution(op);
}

static inline void bounded_exact(const bounded_check *x, ro_bounded r, int64_t e, float fixed) {
    const int op = x->c.call.op;
    if (r.value - r.value != 0)
        return;
    const ld exact = bounded_is_product(op) ? exact_product(&x->c, e) : exact_value(&x->c, e);
    const double most = free_is_single(op) ? fabs(r.value) * 0x1.01p-53 : r.bound;
    /* long double has rounding errors, too */
    cr_assert(!(fabsl((ld)r.value - exact) > (ld)most * 1.01L),
              BOUNDED_AT "%a with bound %a, exactly %La", BOUNDED_OF(x, e), r.value, r.bound,
              exact);
    const double reach = 0x1p35 * r.bound + 0x1p-20 * fabs(r.value) + 0x1p-14;
    if (x->seed % DATA_END == DATA_NORMAL && fixed - fixed == 0)
        cr_assert(!(fabs(r.value - (double)fixed) > reach), BOUNDED_AT "%a, order-fixed %a",
                  BOUNDED_OF(x, e), r.value, (double)fixed);
}

static inline int bounded_has_read(const bounded_reads *r, int input, int64_t index) {
    for (int64_t i = 0; i < r->count; i++)
        if (r->load[i].input == input && r->load[i].index == index)
            return 1;
    return 0;
}

static inline void bounded_element(bounded_check *x, int64_t e, int inputs) {
    static bounded_reads fixed, mine;
    fixed.memory = mine.memory = (ro_ref_memory){&x->c.call, (const void *const *)x->c.data};
    fixed.count = mine.count = 0;
    const ro_access in = {bounded_load, &mine}, in_fixed = {bounded_load, &fixed};
    const ro_bounded r = ro_ref_bounded(&x->c.call, e, &in);
    const float bits = ro_from_bits(ro_ref_element(&x->c.call, e, &in_fixed));
    cr_assert(mine.count <= fixed.count, BOUNDED_AT "%lld loads, the operator has %lld",
              BOUNDED_OF(x, e), (long long)mine.count, (long long)fixed.count);
    for (int64_t i = 0; inputs && i < mine.count && fixed.count <= BOUNDED_LOADS / 16; i++)
        cr_assert(bounded_has_read(&fixed, mine.load[i].input, mine.load[i].index),
                  BOUNDED_AT "reads what the operator does not", BOUNDED_OF(x, e));
    bounded_exact(x, r, e, bits);
    for (int p = 0; p < FREE_PROFILES; p++)
        bounded_profile(x, r, e, p);
    const ro_places v = ro_bounded_places(r, x->bits);
    x->several += v.low < v.high;
    x->elements++;
}

static inline void bounded_case(int op, uint64_t seed, int bits, int64_t *several) {
    static bounded_check x;
    bounded_open(&x, op, seed, bits);
    for (int64_t i = 0; i < BOUNDED_SAMPLE; i++)
        bounded_element(&x, (int64_t)(case_word(seed, 9, i) % (uint64_t)x.n), i < 2);
    /* Checks what any profile reported, evenly spaced. */
    for (int p = 0; p < FREE_PROFILES; p++) {
        const int64_t step = x.calls[p] * FREE_PROFILES / BOUNDED_CALLS + 1;
        for (int64_t i = 0; i < x.calls[p]; i += step)
            bounded_element(&x, x.call[p][i].element, 0);
    }
    *several += x.several;
    bounded_close(&x);
}

static inline void check_bounded_operator(int op) {
    static const int bits[] = {32, 24, 16};
    int64_t several = 0;
    for (uint64_t seed = 1; seed <= BOUNDED_CASES; seed++)
        bounded_case(op, seed, bits[seed / 3 % 3], &several);
    if (getenv("FREE_COUNTS"))
        fprintf(stderr, "%-22s %6lld elements with several members\n", ro_op_describe(op)->name,
                (long long)several);
}

#endif
