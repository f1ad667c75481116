/* The reference as a referee uses it: one element at a time, in steps, with a bounded number of
 * single reads. SPEC.md sections 1, 3 and 11. test_ref_operators.c tests what each operator
 * computes. */
#include "each_operator.h"
#include "nan_rules.h"
#include "op_cases.h"
#include "repops/ref.h"
#include "repops/operators.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <fenv.h>
#include <math.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { CASES = 40, ELEMENTS = 30 };

/* ---- an accessor that counts ---- */

typedef struct {
    ro_ref_memory memory;
    int64_t count;
} counter;

static uint32_t load_counting(void *user, int input, int64_t index) {
    counter *c = user;
    const ro_call *call = c->memory.call;
    c->count++;
    cr_assert(input >= 0 && input < call->input_count, "input %d", input);
    cr_assert(index >= 0 && index < ro_shape_numel(&call->input[input]), "input %d, element %lld",
              input, (long long)index);
    return c->memory.data ? ro_ref_load_memory(&c->memory, input, index) : 0;
}

/* The largest numbers of loads in a step and in a finish so far. */
typedef struct {
    int64_t step, finish;
} seen;

static int64_t take(counter *c, int64_t most) {
    const int64_t count = c->count;
    c->count = 0;
    return count > most ? count : most;
}

/* Overwrites the accumulator behind the stated size of the state, since only the state survives a
 * step. */
static void forget_the_rest(const ro_call *call, ro_acc *acc) {
    const size_t size = ro_ref_state_size(call);
    memset((char *)acc + size, 0xa5, sizeof *acc - size);
}

static uint32_t by_hand(const ro_call *call, int64_t e, counter *c, seen *most) {
    const ro_access in = {load_counting, c};
    ro_acc acc;
    c->count = 0;
    memset(&acc, 0xa5, sizeof acc);
    ro_ref_begin(call, e, &acc);
    for (int64_t j = 0; j < ro_ref_steps(call); j++) {
        forget_the_rest(call, &acc);
        ro_ref_step(call, e, j, &acc, &in);
        most->step = take(c, most->step);
    }
    forget_the_rest(call, &acc);
    const uint32_t bits = ro_ref_finish(call, e, &acc, &in);
    most->finish = take(c, most->finish);
    return bits;
}

static uint32_t at_once(const op_case *c, int64_t e) {
    ro_ref_memory memory = {&c->call, (const void *const *)c->data};
    const ro_access in = {ro_ref_load_memory, &memory};
    return ro_ref_element(&c->call, e, &in);
}

static void expect_bounds(const ro_call *call, const seen *most) {
    const char *name = ro_op_describe(call->op)->name;
    cr_assert(most->step <= ro_ref_step_loads(call), "%s: %lld loads in a step, stated %lld", name,
              (long long)most->step, (long long)ro_ref_step_loads(call));
    cr_assert(most->finish <= ro_ref_finish_loads(call), "%s: %lld loads in finish, stated %lld",
              name, (long long)most->finish, (long long)ro_ref_finish_loads(call));
}

/* ---- every operator ---- */

ParameterizedTestParameters(ref, loads_stay_within_inputs_and_bounds_and_steps_give_the_element) {
    static int op[RO_OP_END];
    return cr_make_param_array(int, op, list_operators(op));
}

static void check_case(int op, uint64_t seed) {
    op_case c;
    const char *why = case_roll(&c, op, seed);
    cr_assert(why == NULL, "%s", why);
    counter with = {{&c.call, (const void *const *)c.data}, 0}, without = {{&c.call, NULL}, 0};
    const int64_t numel = ro_shape_numel(&c.call.output);
    seen most = {0};
    for (int i = 0; i < ELEMENTS; i++) {
        const int64_t e = i == 0 ? numel - 1 : (int64_t)(case_word(seed, 20, i) % (uint64_t)numel);
        const uint32_t want = at_once(&c, e), got = by_hand(&c.call, e, &with, &most);
        cr_assert(got == want, "%s %llu: %08x in steps, %08x at once", ro_op_describe(op)->name,
                  (unsigned long long)seed, got, want);
        by_hand(&c.call, e, &without, &most); /* every load is a miss */
    }
    expect_bounds(&c.call, &most);
    case_free(&c);
}

ParameterizedTest(int *op, ref, loads_stay_within_inputs_and_bounds_and_steps_give_the_element) {
    for (int i = 0; i < CASES; i++)
        check_case(*op, (uint64_t)*op * 100 + (uint64_t)i);
}

/* ---- bounds are reached ---- */

/* Every element that is read is 0, ids too. */
static void expect_loads(ro_call *call, int64_t step, int64_t finish) {
    char why[200] = "";
    counter c = {{call, NULL}, 0};
    seen most = {0};
    cr_assert(ro_infer(call, why, sizeof why) == RO_OK, "%s", why);
    by_hand(call, 0, &c, &most);
    expect_bounds(call, &most);
    cr_expect(most.step == step, "%s: %lld", ro_op_describe(call->op)->name, (long long)most.step);
    cr_expect(most.finish == finish, "%s: %lld", ro_op_describe(call->op)->name,
              (long long)most.finish);
}

Test(ref, folds_read_512_elements_a_step) {
    const int64_t one = ro_attr_f32(1);
    const ro_shape a = shape2(1, 300), b = shape2(300, 1), ids = shape_of(RO_I32, 1, 300, 0, 0, 0);
    ro_call product = {RO_OP_MATMUL, 2, {0, 0, one, RO_DOT_CHUNK}, (ro_shape[]){a, b}, {0}};
    ro_call grad = {RO_OP_EMBEDDING_GRAD, 2, {0}, (ro_shape[]){b, ids}, shape2(2, 1)};
    expect_loads(&product, 512, 0);
    expect_loads(&grad, 512, 0);
}

Test(ref, the_widest_elements_read_what_is_stated) {
    const ro_shape x = shape1(1024), one = shape1(1), s = shape2(1, 256), v = shape2(256, 1);
    ro_call dot = {RO_OP_REDUCE_DOT, 2, {1024, 1024}, (ro_shape[]){x, x}, one};
    ro_call gx = {RO_OP_REDUCE_LN_GX, 5, {1024, 1024}, (ro_shape[]){x, x, x, one, one}, one};
    ro_call rows = {RO_OP_LN_DGAMMA, 4, {1}, (ro_shape[]){v, v, v, v}, shape1(4)};
    ro_call av = {RO_OP_ATTN_AV, 2, {0}, (ro_shape[]){s, v}, {0}};
    expect_loads(&dot, 0, 2048);
    expect_loads(&gx, 0, 3 * 1024 + 2);
    expect_loads(&rows, 0, 4 * 64);
    expect_loads(&av, 0, 2 * 128);
}

Test(ref, attention_over_the_most_blocks_reads_4095_elements) {
    const ro_shape mc = shape2(1, 2047), ac = shape_of(RO_F32, 3, 1, 2047, 1, 0);
    ro_call l = {RO_OP_ATTN_L, 2, {0}, (ro_shape[]){mc, mc}, {0}};
    ro_call out = {RO_OP_ATTN_OUT, 3, {0}, (ro_shape[]){mc, ac, shape1(1)}, {0}};
    expect_loads(&l, 0, 4094);
    expect_loads(&out, 0, 4095);
}

/* No memory holds tensors this large, so only index arithmetic can be tested. */
Test(ref, the_last_element_of_huge_inputs_is_reached) {
    const int64_t side = INT64_C(1) << 20, one = ro_attr_f32(1);
    const ro_shape square = shape2(side, side), columns = shape2(side, 300);
    for (int64_t trans = 0; trans < 4; trans++) {
        const ro_shape in[] = {trans & 1 ? shape2(300, side) : columns,
                               trans & 2 ? columns : shape2(300, side)};
        ro_call call = {RO_OP_MATMUL, 2, {0, trans, one, RO_DOT_CHUNK}, in, {0}};
        counter c = {{&call, NULL}, 0};
        seen most = {0};
        cr_assert(ro_infer(&call, NULL, 0) == RO_OK);
        cr_assert(ro_shape_equal(&call.output, &square));
        by_hand(&call, RO_MAX_NUMEL - 1, &c, &most);
        cr_expect(most.step == 512);
    }
}

/* ---- NaN ---- */

static int is_nan(uint32_t bits) {
    return (bits & 0x7fffffff) > 0x7f800000;
}

/* Inputs are what machines may treat differently: NaNs with sign and payload, infinities and
 * zeros. */
typedef struct {
    const ro_call *call;
    uint64_t seed;
} special;

static uint32_t load_special(void *user, int input, int64_t index) {
    const special *s = user;
    const uint64_t h = case_word(s->seed, input, index);
    if (s->call->input[input].dtype != RO_F32)
        return (uint32_t)h % 2;
    return case_special(h >> 8);
}

typedef struct {
    int canonical, others;
    bool reads_f32;
} nans_seen;

static void see_nans(int op, uint64_t seed, nans_seen *nans) {
    op_case c;
    cr_assert(case_roll(&c, op, seed) == NULL);
    special data = {&c.call, seed};
    const ro_access in = {load_special, &data};
    const int64_t numel = c.call.output.dtype == RO_F32 ? ro_shape_numel(&c.call.output) : 0;
    for (int i = 0; i < c.call.input_count && numel > 0; i++)
        nans->reads_f32 |= c.in[i].dtype == RO_F32;
    for (int64_t e = 0; e < numel && e < 200; e++) {
        const uint32_t bits = ro_ref_element(&c.call, e, &in);
        nans->canonical += bits == RO_QNAN_BITS;
        nans->others += is_nan(bits) && bits != RO_QNAN_BITS;
    }
    case_free(&c);
}

/* Only clip_scale gives a number for every input. */
Test(ref, arithmetic_gives_the_canonical_nan_only) {
    for (int op = next_operator(0); op; op = next_operator(op)) {
        nans_seen nans = {0};
        for (uint64_t seed = 0; seed < 10; seed++)
            see_nans(op, seed, &nans);
        const char *name = ro_op_describe(op)->name;
        cr_expect(nans.others == 0 || keeps_nans(op), "%s: other NaNs than the canonical one",
                  name);
        if (nans.reads_f32 && op != RO_OP_CLIP_SCALE)
            cr_expect(keeps_nans(op) ? nans.others > 0 : nans.canonical > 0, "%s: not a test",
                      name);
    }
}

/* A provider signs the states of a fold. They must have no NaN that another machine could encode
 * otherwise. */
Test(ref, states_hold_the_canonical_nan_only) {
    const ro_shape rows = shape2(20000, 1), ids = shape_of(RO_I32, 1, 20000, 0, 0, 0);
    ro_call product = {
        RO_OP_MATMUL, 2, {0, 1, 0, RO_DOT_CHUNK}, (ro_shape[]){rows, rows}, shape2(1, 1)};
    ro_call grad = {RO_OP_EMBEDDING_GRAD, 2, {0}, (ro_shape[]){rows, ids}, shape2(2, 1)};
    ro_call *const calls[] = {&product, &grad};
    for (int i = 0; i < 2; i++) {
        special data = {calls[i], 7};
        const ro_access in = {load_special, &data};
        ro_acc acc;
        ro_ref_begin(calls[i], 0, &acc);
        for (int64_t step = 0; step < 78; step++) {
            ro_ref_step(calls[i], 0, step, &acc, &in);
            for (size_t w = 0; w < ro_ref_state_size(calls[i]) / 4; w++)
                cr_expect(!is_nan(acc.word[w]) || acc.word[w] == RO_QNAN_BITS);
        }
    }
}

/* ---- accuracy ---- */

/* A chunk of n terms errs by at most n half ulps of the sum of magnitudes, and so does the sum of
 * chunks. */
Test(ref, dot_products_agree_with_double_precision) {
    enum { K = 5000 };
    static float a[K], b[K];
    const ro_shape in[] = {shape2(1, K), shape2(K, 1)};
    ro_call call = {RO_OP_MATMUL, 2, {0, 0, ro_attr_f32(0.5f), RO_DOT_CHUNK}, in, shape2(1, 1)};
    const void *const data[] = {a, b};
    ro_ref_memory memory = {&call, data};
    const ro_access access = {ro_ref_load_memory, &memory};
    for (uint64_t seed = 0; seed < 20; seed++) {
        double sum = 0, size = 0;
        for (int k = 0; k < K; k++) {
            a[k] = (float)((double)case_word(seed, 0, k) * 0x1p-63 - 1);
            b[k] = (float)((double)case_word(seed, 1, k) * 0x1p-63 - 1);
            sum += (double)a[k] * (double)b[k];
            size += fabs((double)a[k] * (double)b[k]);
        }
        const uint32_t bits = ro_ref_element(&call, 0, &access);
        float got;
        memcpy(&got, &bits, sizeof got);
        cr_expect(fabs((double)got - sum / 2) < (RO_DOT_CHUNK + K / RO_DOT_CHUNK) * size * 0x1p-24);
        cr_expect(fabs((double)got - sum / 2) < size * 0x1p-21,
                  "far less accurate than chunks are");
    }
}

/* ---- the state after each step is specified word by word ---- */

/* 300 ones have the same id. The first step adds 256 of them, which make four whole groups and no
 * unfinished one. */
Test(ref, a_group_of_rows_moves_up_with_its_last_row) {
    static float ones[300];
    static const int32_t ids[300];
    for (int i = 0; i < 300; i++)
        ones[i] = 1;
    const ro_shape rows = shape2(300, 1), of_ids = shape_of(RO_I32, 1, 300, 0, 0, 0);
    ro_call grad = {RO_OP_EMBEDDING_GRAD, 2, {0}, (ro_shape[]){rows, of_ids}, shape2(1, 1)};
    const void *const data[] = {ones, ids};
    ro_ref_memory memory = {&grad, data};
    const ro_access in = {ro_ref_load_memory, &memory};
    static const float levels[2][3] = {{0, 256, 0}, {44, 256, 0}};
    static const uint32_t rows_seen[2] = {256, 300};
    ro_acc acc;
    ro_ref_begin(&grad, 0, &acc);
    for (int64_t j = 0; j < ro_ref_steps(&grad); j++) {
        ro_ref_step(&grad, 0, j, &acc, &in);
        cr_expect(acc.word[0] == rows_seen[j]);
        cr_expect(memcmp(&acc.word[1], levels[j], sizeof levels[j]) == 0, "step %d", (int)j);
    }
}

/* ---- self-test ---- */

Test(self_test, passes_as_the_process_starts) {
    char why[100] = "";
    cr_expect(ro_ref_self_test(why, sizeof why) == RO_OK, "%s", why);
}

Test(self_test, notices_another_rounding_mode) {
    const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 3; i++) {
        char why[100] = "";
        fesetround(modes[i]);
        const ro_status status = ro_ref_self_test(why, sizeof why);
        fesetround(FE_TONEAREST);
        cr_expect(status == RO_ERR_DEVICE, "mode %d", i);
        cr_expect(strstr(why, "rounding"), "%s", why);
    }
}

#if defined(__x86_64__)
Test(self_test, notices_flushed_subnormals) {
    const unsigned int usual = _mm_getcsr(), modes[] = {0x8000, 0x0040}; /* FTZ, DAZ */
    for (int i = 0; i < 2; i++) {
        char why[100] = "";
        _mm_setcsr(usual | modes[i]);
        const ro_status status = ro_ref_self_test(why, sizeof why);
        _mm_setcsr(usual);
        cr_expect(status == RO_ERR_DEVICE, "mode %d", i);
        cr_expect(strstr(why, "subnormal"), "%s", why);
    }
}
#endif
