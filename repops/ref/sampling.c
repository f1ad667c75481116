/* Drawing an index with integer weights. SPEC.md section 10.3. */
#include "repops/ref/ref.h"
#include "repops/src/sampling.h"
#include "repops/op_sampling.h"

static uint32_t weight(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const float y = ro_exp(loadf(in, 0, e) - loadf(in, 1, e / last_dim(&call->input[0])));
    (void)acc;
    return ro_weight_of(y);
}
RO_REFERENCE(weight, .finish = weight)

static uint32_t random_words(const ro_call *call, int64_t e, const ro_acc *acc,
                             const ro_access *in) {
    uint32_t word[4] = {load(in, 0, e / 2 * 2), load(in, 0, e / 2 * 2 + 1), load(in, 1, 0),
                        (uint32_t)call->attr[RO_RANDOM_WORDS_STREAM]};
    (void)acc;
    ro_philox((uint64_t)call->attr[RO_RANDOM_WORDS_SEED], word);
    return word[e % 2];
}
RO_LOADS(random_words_loads, 3)
RO_REFERENCE(random_words, .finish = random_words, .loads = random_words_loads)

static uint32_t keep_top(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const int64_t size = last_dim(&call->input[0]), row = e / size;
    const uint32_t q = ro_counted((int32_t)load(in, 0, e));
    const ro_cut cut = {(int32_t)load(in, 1, 2 * row), (int32_t)load(in, 1, 2 * row + 1)};
    (void)acc;
    return ro_is_kept(cut, (int32_t)q, e % size) ? q : 0;
}
RO_LOADS(keep_top_loads, 3)
RO_REFERENCE(keep_top, .finish = keep_top, .loads = keep_top_loads)

/* ---- passes over a row: steps of 512 elements ---- */

static int64_t steps_of_pass(const ro_call *call) {
    return (last_dim(&call->input[0]) + RO_STEP_LOADS - 1) / RO_STEP_LOADS;
}

/* The elements of a row that a step of a pass covers: [from, to). */
typedef struct {
    int64_t from, to;
} span;

static span span_of(const ro_call *call, int64_t step) {
    const int64_t size = last_dim(&call->input[0]), from = step * RO_STEP_LOADS;
    return (span){from, from + RO_STEP_LOADS < size ? from + RO_STEP_LOADS : size};
}

static uint32_t weight_at(const ro_access *in, int64_t index) {
    return ro_counted((int32_t)load(in, 0, index));
}

/* ---- top_k and top_p: finds t digit by digit, from the highest, and then c ---- */

enum { DIGITS = 6, BUCKETS = 64 };

/* Words of the state. */
enum { CUT_T = 0, CUT_C = 1, ABOVE = 2, GOAL = 4, SUMS = 6, WORDS = SUMS + 2 * BUCKETS };

static int64_t top_steps(const ro_call *call) {
    return (DIGITS + 1) * steps_of_pass(call);
}

/* Returns how many bits are below the digit that pass p finds. */
static int shift_of(int64_t p) {
    return p < DIGITS - 1 ? 25 - 6 * (int)p : 0;
}

static uint64_t measure_of(const ro_call *call, uint32_t q) {
    return call->op == RO_OP_TOP_K ? 1 : q;
}

static void add_digits(const ro_call *call, int64_t row, int64_t p, span s, ro_acc *acc,
                       const ro_access *in) {
    const int before = p > 0 ? shift_of(p - 1) : 31, shift = shift_of(p);
    const uint32_t mask = (UINT32_C(1) << (before - shift)) - 1;
    for (int64_t i = s.from; i < s.to; i++) {
        const uint32_t q = weight_at(in, row * last_dim(&call->input[0]) + i);
        const int bucket = SUMS + 2 * (int)(q >> shift & mask);
        if (p == 0 || q >> before == acc->word[CUT_T] >> before)
            put64(acc, bucket, get64(acc, bucket) + measure_of(call, q));
    }
}

static void find_goal(const ro_call *call, ro_acc *acc) {
    uint64_t sum = 0;
    for (int b = 0; b < BUCKETS; b++)
        sum += get64(acc, SUMS + 2 * b);
    put64(acc, GOAL,
          call->op == RO_OP_TOP_K ? (uint64_t)call->attr[RO_TOP_K_K]
                                  : ro_share_of(sum, (uint64_t)call->attr[RO_TOP_P_P]));
}

static void find_digit(int64_t p, ro_acc *acc) {
    const uint64_t goal = get64(acc, GOAL);
    uint64_t above = get64(acc, ABOVE);
    int b = BUCKETS - 1;
    for (; b > 0 && above + get64(acc, SUMS + 2 * b) < goal; b--)
        above += get64(acc, SUMS + 2 * b);
    acc->word[CUT_T] += (uint32_t)b << shift_of(p);
    put64(acc, ABOVE, above);
    memset(acc->word + SUMS, 0, 2 * BUCKETS * sizeof *acc->word);
}

/* Finds the index after the last of the elements equal to t that the goal includes. */
static void find_end(const ro_call *call, int64_t row, span s, ro_acc *acc, const ro_access *in) {
    const uint64_t goal = get64(acc, GOAL);
    uint64_t above = get64(acc, ABOVE);
    for (int64_t i = s.from; i < s.to; i++) {
        const uint32_t q = weight_at(in, row * last_dim(&call->input[0]) + i);
        if (q != acc->word[CUT_T] || above >= goal)
            continue;
        acc->word[CUT_C] = (uint32_t)i + 1;
        above += measure_of(call, q);
    }
    put64(acc, ABOVE, above);
}

static void top_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                     const ro_access *in) {
    const int64_t steps = steps_of_pass(call), p = step / steps;
    const span s = span_of(call, step % steps);
    if (p == DIGITS) {
        find_end(call, e / 2, s, acc, in);
        return;
    }
    add_digits(call, e / 2, p, s, acc, in);
    if (step % steps != steps - 1)
        return;
    if (p == 0)
        find_goal(call, acc);
    find_digit(p, acc);
}

static uint32_t top(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const int64_t size = last_dim(&call->input[0]);
    const int all = call->op == RO_OP_TOP_K ? call->attr[RO_TOP_K_K] >= size : !get64(acc, GOAL);
    (void)in;
    if (all)
        return e % 2 ? (uint32_t)size : 0;
    return acc->word[e % 2 ? CUT_C : CUT_T];
}
RO_REFERENCE(top_k, .finish = top, .steps = top_steps, .step = top_step, .words = WORDS)
RO_REFERENCE(top_p, .finish = top, .steps = top_steps, .step = top_step, .words = WORDS)

/* ---- draw: the words, the sum, the index ---- */

enum { DRAW_R = 0, DRAW_SUM = 2, DRAW_INDEX = 4, DRAW_FOUND = 5, DRAW_WORDS };

static int64_t draw_steps(const ro_call *call) {
    return 1 + 2 * steps_of_pass(call);
}

static void add_weights(const ro_call *call, int64_t row, span s, ro_acc *acc,
                        const ro_access *in) {
    uint64_t sum = get64(acc, DRAW_SUM);
    for (int64_t i = s.from; i < s.to; i++)
        sum += weight_at(in, row * last_dim(&call->input[0]) + i);
    put64(acc, DRAW_SUM, sum);
}

static void find_index(const ro_call *call, int64_t row, span s, ro_acc *acc, const ro_access *in) {
    uint64_t sum = get64(acc, DRAW_SUM);
    for (int64_t i = s.from; i < s.to; i++) {
        const uint32_t q = weight_at(in, row * last_dim(&call->input[0]) + i);
        if (acc->word[DRAW_FOUND])
            continue;
        sum += q;
        if (sum <= get64(acc, DRAW_R))
            continue;
        acc->word[DRAW_FOUND] = 1;
        acc->word[DRAW_INDEX] = (uint32_t)i;
    }
    put64(acc, DRAW_SUM, sum);
}

static void draw_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                      const ro_access *in) {
    const int64_t steps = steps_of_pass(call);
    if (step == 0) {
        acc->word[DRAW_R] = load(in, 1, 2 * e);
        acc->word[DRAW_R + 1] = load(in, 1, 2 * e + 1);
    } else if (step > steps) {
        find_index(call, e, span_of(call, step - 1 - steps), acc, in);
    } else {
        add_weights(call, e, span_of(call, step - 1), acc, in);
        if (step < steps)
            return;
        put64(acc, DRAW_R, ro_mul_high(get64(acc, DRAW_R), get64(acc, DRAW_SUM)));
        put64(acc, DRAW_SUM, 0);
    }
}

static uint32_t draw(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)e, (void)in;
    return acc->word[DRAW_INDEX];
}
RO_REFERENCE(draw, .finish = draw, .steps = draw_steps, .step = draw_step, .words = DRAW_WORDS)
