/* Drawing an index with integer weights, SPEC.md section 10.3. Sums of integers do not depend on
 * their order. */
#include "repops/cpu/elements/functions.h"
#include "repops/cpu/elements/integers.h"
#include "repops/src/philox.h"
#include "repops/src/sampling.h"
#include "repops/op_sampling.h"

static int64_t rows(const ro_call *call) {
    return ro_rows_of(&call->input[0]);
}

static int64_t length_of(const ro_job *job) {
    const ro_shape *q = &job->call->input[0];
    return q->dim[q->ndim - 1];
}

/* ---- weights ---- */

/* Computes weights. exp_scaled and the conversion turn a NaN into 0, and what is too large into
 * INT32_MAX. */
static void weight(const ro_job *job, int64_t first, int64_t last) {
    enum { BLOCK = 1024 };
    const int64_t size = length_of(job);
    const float *x = job->in[0], *m = job->in[1];
    float y[BLOCK];
    for (int64_t i = first; i < last;) {
        const int64_t n = min_i64(min_i64(BLOCK, last - i), size - i % size);
        map(exp_scaled, (constants){.a = m[i / size], .b = 0x1p31f}, x + i, n, y);
        integers_of(y, n, (int32_t *)job->out + i);
        i += n;
    }
}
RO_KERNEL(weight, .range = weight)

static void random_words(const ro_job *job, int64_t first, int64_t last) {
    const uint32_t *key = job->in[0], position = *(const uint32_t *)job->in[1];
    const int64_t *attr = job->call->attr;
    for (int64_t row = first; row < last; row++) {
        uint32_t word[4] = {key[2 * row], key[2 * row + 1], position,
                            (uint32_t)attr[RO_RANDOM_WORDS_STREAM]};
        ro_philox((uint64_t)attr[RO_RANDOM_WORDS_SEED], word);
        memcpy((uint32_t *)job->out + 2 * row, word, 2 * sizeof *word);
    }
}
RO_KERNEL(random_words, .range = random_words, .items = rows)

/* ---- cuts. The measure of an index is 1 for top_k, and its weight for top_p ---- */

RO_INLINE uint64_t measure_of(int op, int32_t q) {
    return op == RO_OP_TOP_K ? 1 : ro_counted(q);
}

/* Weights are counted in buckets by the bits of the nearest f32: 32 buckets for each power of two,
 * so that the small weights of most tokens do not share one. Buckets are in the order of
 * weights. */
enum { MANTISSA = 5, KEYS = (32 << MANTISSA) + 2, TABLES = 2 };

RO_INLINE int32_t key_of(int32_t q) {
    const int32_t one = (127 << MANTISSA) - 1;
    return q > 0 ? (int32_t)(ro_to_bits((float)q) >> (23 - MANTISSA)) - one : 0;
}

/* Returns the lowest weight of a bucket, or 2^31 if no weight has this key or a larger one. */
static int64_t lowest_of(int32_t key) {
    int64_t low = 0, high = INT64_C(1) << 31;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (key_of((int32_t)middle) >= key)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Adds up measures by key. Neighbours go to different tables, so that no addition waits for the one
 * before it. */
RO_INLINE void fill_keys(int op, const int32_t *q, int64_t n, uint64_t *restrict table) {
    memset(table, 0, TABLES * KEYS * sizeof *table);
    for (int64_t i = 0; i < n; i++)
        table[i % TABLES * KEYS + key_of(q[i])] += measure_of(op, q[i]);
    for (int64_t k = 0; k < KEYS; k++)
        for (int t = 1; t < TABLES; t++)
            table[k] += table[t * KEYS + k];
}

/* The range of weights [low, high] in which the measure, from the largest weight down, reaches the
 * goal. `above` is the measure of all weights above the range. */
typedef struct {
    int64_t low, high;
    uint64_t above, goal;
} search;

/* Returns which of `count` buckets, from the largest weights down, reaches the goal. */
static int64_t walk_down(search *s, const uint64_t *table, int64_t count) {
    int64_t k = count - 1;
    for (; k > 0 && s->above + table[k] < s->goal; k--)
        s->above += table[k];
    return k;
}

enum { FINE_BITS = 10, BLOCK = 256 };

RO_INLINE int any_within(const int32_t *q, int64_t n, int32_t low, int32_t high) {
    int found = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t x = q[i] > 0 ? q[i] : 0;
        found |= (x >= low) & (x <= high);
    }
    return found;
}

/* Cuts [low, high] into at most 1,024 parts, and makes the one that reaches the goal the new
 * range. */
RO_INLINE void refine(int op, const int32_t *q, int64_t n, search *s) {
    uint64_t table[1 << FINE_BITS] = {0};
    int shift = 0;
    while ((s->high - s->low) >> shift >= 1 << FINE_BITS)
        shift++;
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int64_t count = min_i64(BLOCK, n - from);
        if (!any_within(q + from, count, (int32_t)s->low, (int32_t)s->high))
            continue;
        for (int64_t i = from; i < from + count; i++) {
            const int64_t x = ro_counted(q[i]);
            if (x >= s->low && x <= s->high)
                table[(x - s->low) >> shift] += measure_of(op, q[i]);
        }
    }
    s->low += walk_down(s, table, 1 << FINE_BITS) << shift;
    s->high = min_i64(s->high, s->low + (INT64_C(1) << shift) - 1);
}

/* Returns one past the index of the last weight equal to t that the goal includes. */
RO_INLINE int32_t end_of(int op, const int32_t *q, int64_t n, const search *s) {
    uint64_t above = s->above;
    int64_t end = 0;
    const int32_t t = (int32_t)s->low;
    for (int64_t from = 0; from < n && above < s->goal; from += BLOCK) {
        const int64_t count = min_i64(BLOCK, n - from);
        if (!any_within(q + from, count, t, t))
            continue;
        for (int64_t i = from; i < from + count && above < s->goal; i++)
            if ((int32_t)ro_counted(q[i]) == t) {
                above += measure_of(op, q[i]);
                end = i + 1;
            }
    }
    return (int32_t)end;
}

RO_INLINE ro_cut cut_of(int op, const int32_t *q, int64_t n, int64_t attr) {
    uint64_t table[TABLES * KEYS], sum = 0;
    search s = {.goal = (uint64_t)attr};
    if (op == RO_OP_TOP_K && attr >= n)
        return (ro_cut){0, (int32_t)n};
    fill_keys(op, q, n, table);
    for (int64_t k = 0; k < KEYS; k++)
        sum += table[k];
    if (op == RO_OP_TOP_P)
        s.goal = ro_share_of(sum, (uint64_t)attr);
    if (s.goal == 0)
        return (ro_cut){0, (int32_t)n};
    const int32_t key = (int32_t)walk_down(&s, table, KEYS);
    s.low = lowest_of(key);
    s.high = lowest_of(key + 1) - 1;
    while (s.low < s.high)
        refine(op, q, n, &s);
    return (ro_cut){(int32_t)s.low, end_of(op, q, n, &s)};
}

/* `op` is a constant in every call. */
RO_INLINE void top(int op, const ro_job *job, int64_t first, int64_t last) {
    const int64_t size = length_of(job), attr = job->call->attr[0];
    for (int64_t row = first; row < last; row++)
        ((ro_cut *)job->out)[row] =
            cut_of(op, (const int32_t *)job->in[0] + row * size, size, attr);
}

static void top_k(const ro_job *job, int64_t first, int64_t last) {
    top(RO_OP_TOP_K, job, first, last);
}
RO_KERNEL(top_k, .range = top_k, .items = rows)

static void top_p(const ro_job *job, int64_t first, int64_t last) {
    top(RO_OP_TOP_P, job, first, last);
}
RO_KERNEL(top_p, .range = top_p, .items = rows)

/* Keeps weights of at least `least`, and stores 0 for the others. */
static void keep_from(const int32_t *q, int64_t n, int64_t least, int32_t *out) {
    const int32_t low = (int32_t)min_i64(max_i64(least, 1), INT32_MAX);
    const int32_t none = least > INT32_MAX;
    RO_SAME_INDEX
    for (int64_t i = 0; i < n; i++)
        out[i] = (q[i] >= low) & !none ? q[i] : 0;
}

static void keep_top(const ro_job *job, int64_t first, int64_t last) {
    const int64_t size = length_of(job);
    for (int64_t row = first; row < last; row++) {
        const int32_t *q = (const int32_t *)job->in[0] + row * size;
        const ro_cut cut = ((const ro_cut *)job->in[1])[row];
        int32_t *out = (int32_t *)job->out + row * size;
        const int64_t end = min_i64(max_i64(cut.c, 0), size);
        keep_from(q, end, cut.t, out);
        keep_from(q + end, size - end, (int64_t)cut.t + 1, out + end);
    }
}
RO_KERNEL(keep_top, .range = keep_top, .items = rows)

/* ---- draws ---- */

static uint64_t sum_of(const int32_t *q, int64_t n) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += ro_counted(q[i]);
    return sum;
}

static int32_t draw_from(const int32_t *q, int64_t n, uint64_t words) {
    uint64_t r = ro_mul_high(words, sum_of(q, n));
    int64_t i = 0;
    for (uint64_t sum; i + BLOCK < n && (sum = sum_of(q + i, BLOCK)) <= r; i += BLOCK)
        r -= sum;
    for (; i < n && ro_counted(q[i]) <= r; i++)
        r -= ro_counted(q[i]);
    return i < n ? (int32_t)i : 0;
}

static void draw(const ro_job *job, int64_t first, int64_t last) {
    const int64_t size = length_of(job);
    const uint32_t *words = job->in[1];
    for (int64_t row = first; row < last; row++)
        ((int32_t *)job->out)[row] = draw_from((const int32_t *)job->in[0] + row * size, size,
                                               (uint64_t)words[2 * row + 1] << 32 | words[2 * row]);
}
RO_KERNEL(draw, .range = draw, .items = rows)
