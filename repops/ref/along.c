/* Taking and putting along an axis, sorting and running totals: SPEC.md sections 5 and 6.1. */
#include "repops/op_along.h"
#include "repops/op_movement.h"
#include "repops/ref/ref.h"
#include "repops/src/along.h"
#include "repops/src/half.h"

static ro_axis axis_of(const ro_call *call, int input) {
    return ro_axis_of(&call->input[input], call->attr[RO_ALONG_AXIS]);
}

static int64_t steps_of(int64_t count, int64_t each) {
    return count > each ? (count + each - 1) / each : 1;
}

/* ---- take_along ---- */

static uint32_t take_along(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const ro_axis x = axis_of(call, 0), ids = axis_of(call, 1);
    const int32_t id = (int32_t)load(in, 1, e);
    (void)acc;
    if (id < 0 || id >= x.n)
        return ro_nan_of(call->output.dtype);
    return load(in, 0, (e / x.inner / ids.n * x.n + id) * x.inner + e % x.inner);
}
RO_REFERENCE(take_along, .finish = take_along)

/* ---- put_along: the state is the element's value so far ---- */

enum { PUTS = 64 }; /* puts per step */

static int64_t put_steps(const ro_call *call) {
    return steps_of(axis_of(call, 2).n, PUTS);
}

static void put_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                     const ro_access *in) {
    const ro_axis x = axis_of(call, 0), rows = axis_of(call, 2);
    const int64_t o = e / x.inner / x.n, at = e / x.inner % x.n, from = step * PUTS;
    const int64_t to = from + PUTS < rows.n ? from + PUTS : rows.n;
    if (step == 0)
        acc->word[0] = load(in, 0, e);
    for (int64_t k = from; k < to; k++) {
        const int64_t p = (o * rows.n + k) * x.inner + e % x.inner;
        if ((int32_t)load(in, 1, p) == at)
            acc->word[0] = ro_put(call->output.dtype, (int)call->attr[RO_PUT_ALONG_KIND],
                                  acc->word[0], load(in, 2, p));
    }
}

static uint32_t put_along(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)e, (void)in;
    return acc->word[0];
}
RO_REFERENCE(put_along, .finish = put_along, .steps = put_steps, .step = put_step, .words = 1)

/* ---- argsort: finds the key digit by digit, from the highest, and then the place ---- */

enum { DIGITS = 6, BUCKETS = 64, SPAN = 256 };

/* Words of the state: the key so far, how many elements are before it, the place, whether it was
 * found, and how many elements have each digit. */
enum { KEY = 0, BEFORE = 1, PLACE = 2, FOUND = 3, COUNTS = 4, WORDS = COUNTS + BUCKETS };

/* Returns how many bits are below the digit that pass p finds. */
static int shift_of(int64_t p) {
    return p < DIGITS - 1 ? 26 - 6 * (int)p : 0;
}

static uint32_t key_at(const ro_call *call, int64_t index, const ro_access *in) {
    return ro_sort_key(call->input[0].dtype, (int)call->attr[RO_ARGSORT_DESCENDING],
                       load(in, 0, index));
}

static int64_t sort_steps(const ro_call *call) {
    return (DIGITS + 1) * steps_of(axis_of(call, 0).n, SPAN);
}

static void find_digit(int64_t p, uint32_t rank, ro_acc *acc) {
    int b = 0;
    for (; b < BUCKETS - 1 && acc->word[BEFORE] + acc->word[COUNTS + b] <= rank; b++)
        acc->word[BEFORE] += acc->word[COUNTS + b];
    acc->word[KEY] |= (uint32_t)b << shift_of(p);
    memset(acc->word + COUNTS, 0, BUCKETS * sizeof *acc->word);
}

static void sort_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                      const ro_access *in) {
    const ro_axis x = axis_of(call, 0);
    const int64_t steps = steps_of(x.n, SPAN), p = step / steps, from = step % steps * SPAN;
    const int64_t to = from + SPAN < x.n ? from + SPAN : x.n;
    const uint32_t rank = (uint32_t)(e / x.inner % x.n);
    const int shift = shift_of(p), digit = p < DIGITS - 1 ? 6 : 2;
    for (int64_t k = from; k < to; k++) {
        const uint32_t key =
            key_at(call, (e / x.inner / x.n * x.n + k) * x.inner + e % x.inner, in);
        if (p == DIGITS) {
            if (key != acc->word[KEY] || acc->word[FOUND])
                continue;
            acc->word[PLACE] = (uint32_t)k;
            acc->word[FOUND] = acc->word[BEFORE]++ == rank;
        } else if (p == 0 || key >> (shift + digit) == acc->word[KEY] >> (shift + digit)) {
            acc->word[COUNTS + (key >> shift & ((1u << digit) - 1))]++;
        }
    }
    if (p < DIGITS && step % steps == steps - 1)
        find_digit(p, rank, acc);
}

static uint32_t argsort(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)e, (void)in;
    return acc->word[PLACE];
}
RO_REFERENCE(argsort, .finish = argsort, .steps = sort_steps, .step = sort_step, .words = WORDS)

/* ---- running: the state is the total of the chunks before, and of this chunk so far ---- */

static int64_t run_steps(const ro_call *call) {
    return steps_of(axis_of(call, 0).n, RO_RUN_CHUNK);
}

static double get_total(const ro_acc *acc, int at) {
    return ro_from_bits64(get64(acc, at));
}

static void put_total(ro_acc *acc, int at, double x) {
    put64(acc, at, ro_to_bits64(x));
}

static void run_integers(const ro_call *call, int64_t start, int64_t from, int64_t to,
                         int64_t inner, ro_acc *acc, const ro_access *in) {
    const int kind = (int)call->attr[RO_RUNNING_KIND];
    if (from == 0)
        acc->word[0] = kind == RO_RUNNING_PRODUCT;
    for (int64_t k = from; k < to; k++)
        acc->word[0] = ro_run_number(kind, acc->word[0], load(in, 0, start + k * inner));
}

static void run_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                     const ro_access *in) {
    const ro_axis x = axis_of(call, 0);
    const int kind = (int)call->attr[RO_RUNNING_KIND];
    const int64_t at = e / x.inner % x.n, from = step * RO_RUN_CHUNK;
    const int64_t start = e / x.inner / x.n * x.n * x.inner + e % x.inner;
    const int64_t to = from + RO_RUN_CHUNK < at + 1 ? from + RO_RUN_CHUNK : at + 1;
    if (call->input[0].dtype == RO_I32) {
        run_integers(call, start, from, to, x.inner, acc, in);
        return;
    }
    double total = step ? ro_join(kind, get_total(acc, 0), get_total(acc, 2)) : ro_run_start(kind);
    double chunk = ro_run_start(kind);
    if (from > at)
        return;
    for (int64_t k = from; k < to; k++)
        chunk = ro_join(kind, chunk, (double)loadf(in, 0, start + k * x.inner));
    put_total(acc, 0, total);
    put_total(acc, 2, chunk);
}

static uint32_t running(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const int kind = (int)call->attr[RO_RUNNING_KIND];
    (void)e, (void)in;
    if (call->input[0].dtype == RO_I32)
        return acc->word[0];
    return ro_to_bits(ro_rounded64(ro_join(kind, get_total(acc, 0), get_total(acc, 2))));
}
RO_REFERENCE(running, .finish = running, .steps = run_steps, .step = run_step, .words = 4)

/* ---- isum ---- */

static void isum_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                      const ro_access *in) {
    const ro_axis x = axis_of(call, 0);
    const int64_t from = step * RO_RUN_CHUNK;
    const int64_t to = from + RO_RUN_CHUNK < x.n ? from + RO_RUN_CHUNK : x.n;
    for (int64_t k = from; k < to; k++)
        acc->word[0] += load(in, 0, (e / x.inner * x.n + k) * x.inner + e % x.inner);
}

static uint32_t isum(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)e, (void)in;
    return acc->word[0];
}
RO_REFERENCE(isum, .finish = isum, .steps = run_steps, .step = isum_step, .words = 1)
