/* repops/SPEC.md section 15 states which input elements an output element reads. The reference must
 * read exactly these, even while some are not known yet and count as 0. Referees and providers rely
 * on it to name the same leaves (verde/PROTOCOL.md 5.5). */
#include "reads.h"

#include "each_operator.h"
#include "op_cases.h"
#include "repops/operators.h"
#include "repops/ref.h"

#include <criterion/parameterized.h>

enum { CASES = 12, ELEMENTS = 6, STEPS = 3, READS_MAX = 1 << 13 };

static const struct {
    const char *inputs, *reads;
} operators[RO_OP_END] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, check, inputs, text,      \
                    reads)                                                                         \
    [number] = {inputs, reads},
#include "repops/src/operators.def"
};

/* ---- sets of elements ---- */

typedef struct {
    int input;
    int64_t index;
} element;

typedef struct {
    const ro_call *call;
    const void *const *data; /* NULL: no element is known yet */
    element list[READS_MAX];
    int count;
} set;

static uint32_t record(void *user, int input, int64_t index) {
    set *s = user;
    ro_ref_memory memory = {s->call, s->data};
    cr_assert(s->count < READS_MAX);
    s->list[s->count++] = (element){input, index};
    return s->data ? ro_ref_load_memory(&memory, input, index) : 0;
}

static int64_t load_signed(void *user, int input, int64_t index) {
    const set *s = user;
    const uint32_t bits = record(user, input, index);
    return ro_dtype_size(s->call->input[input].dtype) == 4 ? (int32_t)bits : (int64_t)bits;
}

static int by_place(const void *a, const void *b) {
    const element *x = a, *y = b;
    return x->input != y->input ? x->input - y->input
                                : (x->index > y->index) - (x->index < y->index);
}

/* Sorts the elements and removes duplicates. */
static void settle(set *s) {
    int kept = 0;
    qsort(s->list, (size_t)s->count, sizeof *s->list, by_place);
    for (int i = 0; i < s->count; i++)
        if (i == 0 || by_place(&s->list[i], &s->list[i - 1]) != 0)
            s->list[kept++] = s->list[i];
    s->count = kept;
}

static void expect_equal(const set *said, const set *read, int64_t e, int64_t step) {
    const char *name = ro_op_describe(said->call->op)->name;
    for (int i = 0; i < said->count || i < read->count; i++) {
        const element none = {-1, -1};
        const element a = i < said->count ? said->list[i] : none;
        const element b = i < read->count ? read->list[i] : none;
        cr_assert(
            by_place(&a, &b) == 0,
            "%s, element %lld, step %lld: SPEC.md says element %lld of input %d, the reference "
            "reads element %lld of input %d",
            name, (long long)e, (long long)step, (long long)a.index, a.input, (long long)b.index,
            b.input);
    }
}

/* ---- one element ---- */

static set said, read_;

static void say(const ro_call *call, const void *const *data, int64_t e, int64_t step) {
    said.call = call, said.data = data, said.count = 0;
    reads r = {
        .call = call, .inputs = operators[call->op].inputs, .load = load_signed, .user = &said};
    reads_run(&r, operators[call->op].reads, e, step);
    settle(&said);
}

static void compare(const ro_call *call, const void *const *data, int64_t e) {
    const ro_access in = {record, &read_};
    const int64_t steps = ro_ref_steps(call), stride = steps > STEPS ? steps / STEPS : 1;
    ro_acc acc;
    ro_ref_begin(call, e, &acc);
    for (int64_t j = 0; j < steps; j += stride) {
        read_.call = call, read_.data = data, read_.count = 0;
        ro_ref_step(call, e, j, &acc, &in);
        settle(&read_);
        say(call, data, e, j);
        expect_equal(&said, &read_, e, j);
    }
    read_.call = call, read_.data = data, read_.count = 0;
    ro_ref_finish(call, e, &acc, &in);
    settle(&read_);
    if (steps == 0)
        say(call, data, e, 0);
    else
        said.call = call, said.count = 0; /* after its steps, a fold reads nothing more */
    expect_equal(&said, &read_, e, -1);
}

/* ---- every operator ---- */

ParameterizedTestParameters(reads, are_what_the_reference_reads) {
    static int op[RO_OP_END];
    return cr_make_param_array(int, op, list_operators(op));
}

ParameterizedTest(int *op, reads, are_what_the_reference_reads) {
    for (int i = 0; i < CASES; i++) {
        op_case c;
        const uint64_t seed = (uint64_t)*op * 1000 + (uint64_t)i;
        const char *why = case_roll(&c, *op, seed);
        cr_assert(why == NULL, "%s", why);
        const int64_t numel = ro_shape_numel(&c.call.output);
        for (int k = 0; k < ELEMENTS; k++) {
            const int64_t e =
                k == 0 ? numel - 1 : (int64_t)(case_word(seed, 20, k) % (uint64_t)numel);
            compare(&c.call, (const void *const *)c.data, e);
            compare(&c.call, NULL, e);
        }
        case_free(&c);
    }
}

/* ---- reads that an implementation might think it can leave out ---- */

static void expect_reads(ro_call call, const void *const *data, int64_t e, int count,
                         const element *want) {
    const ro_access in = {record, &read_};
    cr_assert(ro_infer(&call, NULL, 0) == RO_OK);
    read_.call = &call, read_.data = data, read_.count = 0;
    ro_ref_element(&call, e, &in);
    settle(&read_);
    cr_expect(read_.count == count, "%d elements", read_.count);
    for (int i = 0; i < count && i < read_.count; i++)
        cr_expect(by_place(&read_.list[i], &want[i]) == 0, "%d: element %lld of input %d", i,
                  (long long)read_.list[i].index, read_.list[i].input);
}
#define EXPECT_READS(call, data, e, ...)                                                           \
    expect_reads(call, data, e, sizeof((const element[]){__VA_ARGS__}) / sizeof(element),          \
                 (const element[]){__VA_ARGS__})

Test(reads, an_element_that_dropout_drops_and_a_gradient_that_relu_stops) {
    const ro_shape x[] = {{RO_F32, 1, {4}}, {RO_I32, 1, {1}}}, pair[] = {x[0], x[0]};
    const float minus[4] = {-1, -1, -1, -1};
    const int32_t step = 3;
    const ro_call dropout = {RO_OP_DROPOUT, 2, {1, 2, UINT32_MAX, 0}, x, {0}};
    const ro_call relu_grad = {RO_OP_RELU_GRAD, 2, {0}, pair, {0}};
    EXPECT_READS(dropout, ((const void *[]){minus, &step}), 2, {0, 2}, {1, 0});
    EXPECT_READS(relu_grad, ((const void *[]){minus, minus}), 2, {0, 2}, {1, 2});
}

Test(reads, a_label_that_is_ignored_or_out_of_range) {
    const ro_shape in[] = {{RO_F32, 2, {3, 5}},
                           {RO_F32, 1, {3}},
                           {RO_F32, 1, {3}},
                           {RO_I32, 1, {3}},
                           {RO_F32, 1, {3}}};
    const float x[15] = {0}, row[3] = {0, 1, 2};
    const int32_t ids[3] = {4, -100, 5};
    const void *data[] = {x, row, row, ids, row};
    const ro_call xent = {RO_OP_XENT_IGNORE, 4, {-100}, in, {0}};
    const ro_call grad = {RO_OP_XENT_IGNORE_GRAD, 5, {-100}, in, {0}};
    EXPECT_READS(xent, data, 0, {0, 4}, {1, 0}, {2, 0}, {3, 0});
    EXPECT_READS(xent, data, 1, {1, 1}, {2, 1}, {3, 1});
    EXPECT_READS(xent, data, 2, {1, 2}, {2, 2}, {3, 2});
    EXPECT_READS(grad, data, 7, {0, 7}, {1, 1}, {2, 1}, {3, 1}, {4, 1});
    EXPECT_READS(xent, NULL, 1, {0, 5}, {1, 1}, {2, 1}, {3, 1}); /* label 0 until it is known */
}

Test(reads, scores_that_are_not_admitted_and_blocks_of_minus_infinity) {
    const ro_shape exp_in[] = {{RO_F32, 2, {4, 4}}, {RO_F32, 2, {4, 1}}};
    const ro_shape l_in[] = {{RO_F32, 2, {1, 3}}, {RO_F32, 2, {1, 3}}};
    const ro_shape grad_in[] = {exp_in[0], exp_in[0], exp_in[1]};
    const float inf = -__builtin_inff(), s[16] = {0}, mc[4] = {0, inf, 0, 0};
    const ro_call exp_call = {RO_OP_ATTN_EXP, 2, {1}, exp_in, {0}};
    const ro_call l = {RO_OP_ATTN_L, 2, {0}, l_in, {0}};
    const ro_call dscore = {RO_OP_ATTN_DSCORE, 3, {1}, grad_in, {0}};
    EXPECT_READS(exp_call, ((const void *[]){s, mc}), 8, {0, 8}, {1, 2});
    EXPECT_READS(exp_call, ((const void *[]){s, mc}), 3, {1, 0}); /* key 3 of query 0 */
    EXPECT_READS(exp_call, ((const void *[]){s, mc}), 4, {1, 1}); /* a block of -inf */
    EXPECT_READS(l, ((const void *[]){mc, s}), 0, {0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2});
    EXPECT_READS(dscore, ((const void *[]){s, s, s}), 3, {0, 3}, {1, 3}, {2, 0});
}

Test(reads, what_sums_of_no_columns_share) {
    const ro_shape in[] = {{RO_F32, 2, {3, 0}}, {RO_F32, 1, {3}}};
    const float mean[3] = {0};
    const ro_call sqdev = {RO_OP_REDUCE_SQDEV, 2, {0, 64}, in, {RO_F32, 1, {3}}};
    EXPECT_READS(sqdev, ((const void *[]){NULL, mean}), 2, {1, 2});
}
