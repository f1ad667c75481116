/* Every free operator has a reference with a bound, which accepts all profiles. */
#include "bounded_cases.h"
#include "hostile_modes.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"
#include "repops/op_product.h"

#include <criterion/parameterized.h>

static uint32_t zero(void *user, int input, int64_t index) {
    (void)user, (void)input, (void)index;
    return 0;
}

ParameterizedTestParameters(bounded, operator_judges_all_profiles_right_or_is_not_free) {
    static int op[RO_OP_END];
    return cr_make_param_array(int, op, list_operators(op));
}

ParameterizedTest(int *op, bounded, operator_judges_all_profiles_right_or_is_not_free) {
    const ro_access in = {zero, NULL};
    const ro_call call = {.op = *op};
    if (ro_op_is_free(*op))
        check_bounded_operator(*op);
    else
        cr_assert(isnan(ro_ref_bounded(&call, 0, &in).bound), "%s", ro_op_describe(*op)->name);
}

/* ---- long sums, step by step ---- */

enum { TERMS = 1000, MANY = 2500 };

/* The call of an element with this many terms; all calls use the same numbers. */
typedef struct {
    ro_call call;
    ro_shape in[2];
    const void *data[2];
} long_sum;

static float numbers[2][2 * MANY];
static int32_t ids[MANY];

static void fill_numbers(void) {
    uint64_t state = 9;
    for (int i = 0; i < 2 * MANY; i++)
        for (int k = 0; k < 2; k++)
            numbers[k][i] = (float)(int32_t)case_word(state, k, i) * 0x1.8p-24f;
    for (int i = 0; i < MANY; i++)
        ids[i] = (int32_t)(case_word(state, 3, i) % 2);
}

static void open_sums(long_sum sum[3]) {
    const ro_shape column = {RO_F32, 2, {TERMS, 1}}, one = {RO_F32, 2, {1, 1}};
    const ro_shape image = {RO_F32, 4, {2, 25, 50, 1}}, filter = {RO_F32, 4, {1, 1, 1, 1}};
    const ro_shape rows = {RO_F32, 2, {MANY, 1}}, of_ids = {RO_I32, 1, {MANY}};
    fill_numbers();
    sum[0] = (long_sum){{RO_OP_MATMUL, 2, {0, 1, ro_attr_f32(3), RO_DOT_CHUNK, 0}, NULL, one},
                        {column, column},
                        {numbers[0], numbers[1]}};
    sum[1] = (long_sum){{RO_OP_CONV2D_DW, 2, {1, 1, 0, 0, 1, 1, 1}, NULL, filter},
                        {image, image},
                        {numbers[0], numbers[1]}};
    sum[2] = (long_sum){{RO_OP_EMBEDDING_GRAD, 2, {0}, NULL, {RO_F32, 2, {2, 1}}},
                        {rows, of_ids},
                        {numbers[0], ids}};
    for (int i = 0; i < 3; i++)
        sum[i].call.input = sum[i].in;
}

static void forget_the_rest(const ro_call *call, ro_acc *acc) {
    const size_t size = ro_ref_bounded_state_size(call);
    cr_assert(size > 0 && size <= sizeof *acc);
    memset((char *)acc + size, 0xa5, sizeof *acc - size);
}

static bool same_words(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

Test(bounded, long_sums_resume_from_their_states_alone_and_read_what_ro_ref_step_reads) {
    static bounded_reads reads;
    long_sum sum[3];
    open_sums(sum);
    for (int i = 0; i < 3; i++) {
        const ro_call *call = &sum[i].call;
        const ro_access in = {bounded_load, &reads};
        ro_acc acc;
        reads.memory = (ro_ref_memory){call, sum[i].data};
        const ro_bounded whole = ro_ref_bounded(call, 0, &in);
        ro_ref_begin(call, 0, &acc);
        for (int64_t j = 0; j < ro_ref_steps(call); j++) {
            forget_the_rest(call, &acc);
            reads.count = 0;
            ro_ref_bounded_step(call, 0, j, &acc, &in);
            cr_expect(reads.count <= ro_ref_step_loads(call));
        }
        forget_the_rest(call, &acc);
        const ro_bounded end = ro_ref_bounded_finish(call, &acc);
        cr_expect(same_words(end.value, whole.value) && same_words(end.bound, whole.bound));
    }
}

/* This sum does not have the chunks of SPEC 3.1. */
Test(bounded, a_product_is_its_terms_one_after_the_other) {
    long_sum sum[3];
    double expected = 0;
    open_sums(sum);
    ro_ref_memory memory = {&sum[0].call, sum[0].data};
    const ro_access in = {ro_ref_load_memory, &memory};
    for (int k = 0; k < TERMS; k++)
        expected += (double)numbers[0][k] * (double)numbers[1][k];
    const ro_bounded got = ro_ref_bounded(&sum[0].call, 0, &in);
    cr_expect(same_words(got.value, 3 * expected) && got.bound > 0 && got.bound < 1e-3);
}

/* A stated state may have any bits. */
Test(bounded, long_sums_go_on_from_any_bits_and_leave_the_canonical_nan_only) {
    static const uint64_t nan = UINT64_C(0x7ff8000000000000);
    static const uint32_t odd[] = {0, 1, 0x7ff00000, 0x7fffffff, 0xfff80001, 0xffffffff};
    enum { ODD = sizeof odd / sizeof odd[0], TRIES = ODD * ODD * ODD * ODD };
    long_sum sum[3];
    int nans = 0;
    open_sums(sum);
    for (int i = 0; i < 3 * TRIES; i++) {
        const ro_call *call = &sum[i % 3].call;
        ro_ref_memory memory = {call, sum[i % 3].data};
        const ro_access in = {ro_ref_load_memory, &memory};
        ro_acc acc;
        uint64_t state[3];
        ro_ref_begin(call, 0, &acc);
        for (int w = 0, k = i / 3; w < 4; w++, k /= ODD)
            acc.word[w] = odd[k % ODD];
        acc.word[4] = acc.word[5] = odd[i % ODD];
        (void)ro_ref_bounded_finish(call, &acc);
        ro_ref_bounded_step(call, 0, 1, &acc, &in);
        for (int k = 0; k < 2; k++) {
            state[k] = (uint64_t)acc.word[2 * k + 1] << 32 | acc.word[2 * k];
            const bool is_nan = (state[k] & ~(UINT64_C(1) << 63)) > UINT64_C(0x7ff0000000000000);
            cr_assert(!is_nan || state[k] == nan);
            nans += is_nan;
        }
        const ro_bounded end = ro_ref_bounded_finish(call, &acc);
        cr_assert(end.value == end.value || ro_bits64(end.value) == nan);
    }
    cr_expect(nans > 100);
}

#ifdef HOSTILE
/* Element 0 of each sum, part by part: state, bits or value and bound, and indices. */
static void compute_all(const long_sum *sum, bool bounded, ro_acc *acc, ro_bounded *y,
                        ro_places *places, uint32_t *bits) {
    ro_ref_memory memory = {&sum->call, sum->data};
    const ro_access in = {ro_ref_load_memory, &memory};
    ro_ref_begin(&sum->call, 0, acc);
    for (int64_t j = 0; j < ro_ref_steps(&sum->call); j++)
        (bounded ? ro_ref_bounded_step : ro_ref_step)(&sum->call, 0, j, acc, &in);
    *y = ro_ref_bounded(&sum->call, 0, &in);
    *places = ro_bounded_places(*y, 32);
    *bits = ro_ref_element(&sum->call, 0, &in);
}

/* Whoever states a part of a sum may have loaded a library that flushes subnormals. */
Test(bounded, modes_of_the_caller_do_not_show) {
    long_sum sum[3];
    open_sums(sum);
    for (int i = 0; i < 2 * MANY; i++)
        numbers[0][i] *= 0x1p-134f; /* so that many products and some sums would be flushed */
    for (int i = 0; i < 6; i++) {
        ro_acc acc[2];
        ro_bounded y[2];
        ro_places places[2];
        uint32_t bits[2];
        for (int hostile = 0; hostile < 2; hostile++) {
            const uint64_t before = ro_fp_read();
            if (hostile)
                ro_fp_write(HOSTILE);
            compute_all(&sum[i / 2], i % 2, &acc[hostile], &y[hostile], &places[hostile],
                        &bits[hostile]);
            ro_fp_write(before);
        }
        cr_expect(memcmp(&acc[0], &acc[1], sizeof acc[0]) == 0, "state of %d", i);
        cr_expect(bits[0] == bits[1] && bits[0] << 1 != 0, "element of %d", i);
        cr_expect(same_words(y[0].value, y[1].value) && same_words(y[0].bound, y[1].bound));
        cr_expect(places[0].low == places[1].low && places[0].high == places[1].high);
    }
}
#endif
