/* Data movement, SPEC.md section 5. */
#include "repops/ref/ref.h"
#include "repops/src/half.h"
#include "repops/op_movement.h"

static uint32_t fill(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)e, (void)acc, (void)in;
    return (uint32_t)call->attr[RO_FILL_VALUE];
}
RO_REFERENCE(fill, .finish = fill)

static uint32_t iota(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc, (void)in;
    return (uint32_t)e;
}
RO_REFERENCE(iota, .finish = iota)

/* Draws the block of random words that contains element e. An operator without an input draws the
 * same words in each step. */
static void draw_words(const ro_call *call, int64_t e, const ro_access *in, uint32_t word[4]) {
    ro_philox_block((uint64_t)call->attr[RO_RANDOM_SEED], (uint64_t)e / 4,
                    call->input_count > 0 ? load(in, 0, 0) : 0,
                    (uint32_t)call->attr[RO_RANDOM_STREAM], word);
}

static uint32_t normal(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    uint32_t word[4];
    (void)acc;
    draw_words(call, e, in, word);
    uint32_t p = word[e & 2], turn = word[(e & 2) + 1] >> 8;
    float u = (float)((p >> 8) + 1) * 0x1p-24f;
    float radius = ro_sqrt(-2.0f * ro_log(u));
    float z = radius * (e & 1 ? ro_sin_turn(turn) : ro_cos_turn(turn));
    return result(ro_fma(attrf(call, RO_NORMAL_STD), z, attrf(call, RO_NORMAL_MEAN)));
}
RO_REFERENCE(normal, .finish = normal)
RO_REFERENCE(normal_at, .finish = normal)

static uint32_t uniform(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    uint32_t word[4];
    (void)acc;
    draw_words(call, e, in, word);
    float u = (float)(word[e % 4] >> 8) * 0x1p-24f, low = attrf(call, RO_UNIFORM_LOW),
          high = attrf(call, RO_UNIFORM_HIGH);
    return result(ro_fma(high - low, u, low));
}
RO_REFERENCE(uniform, .finish = uniform)
RO_REFERENCE(uniform_at, .finish = uniform)

static uint32_t permutation(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    (void)acc;
    return (uint32_t)ro_permute((uint64_t)call->attr[RO_PERMUTATION_SEED],
                                (uint32_t)call->attr[RO_PERMUTATION_STREAM], load(in, 0, 0),
                                (uint64_t)call->output.dim[0], (uint64_t)e);
}
RO_REFERENCE(permutation, .finish = permutation)

/* Returns how many windows data tensor q has. */
static uint64_t windows_in(const ro_call *call, int q) {
    return (uint64_t)(call->input[q].dim[0] - 1) / (uint64_t)call->output.dim[1];
}

static uint32_t read_batch(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    const int64_t *attr = call->attr;
    const int last = call->input_count - 1;
    uint64_t sequence = (uint64_t)call->output.dim[1], row = (uint64_t)e / sequence, windows = 0;
    int q = 0;
    for (int i = 0; i < last; i++)
        windows += windows_in(call, i);
    uint64_t slot = (uint64_t)load(in, last, 0) * (uint64_t)attr[RO_READ_BATCH_BATCH] +
                    (uint64_t)attr[RO_READ_BATCH_FIRST] + row;
    uint64_t window =
        ro_permute((uint64_t)attr[RO_READ_BATCH_SEED], (uint32_t)attr[RO_READ_BATCH_STREAM],
                   slot / windows, windows, slot % windows);
    for (; window >= windows_in(call, q); q++)
        window -= windows_in(call, q);
    uint64_t index =
        window * sequence + (uint64_t)e % sequence + (uint64_t)attr[RO_READ_BATCH_SHIFT];
    return load(in, q, (int64_t)index);
}
RO_REFERENCE(read_batch, .finish = read_batch)

static uint32_t embedding(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int64_t cols = call->input[0].dim[1];
    int32_t id = (int32_t)load(in, 1, e / cols);
    if (id < 0 || id >= call->input[0].dim[0])
        return ro_nan_of(call->output.dtype);
    return load(in, 0, id * cols + e % cols);
}
RO_REFERENCE(embedding, .finish = embedding)

/* State: the number of rows so far, then one sum per level of SPEC 3.3. A full group's sum moves up
 * a level. */
enum { LEVELS = 7 };

static int64_t embedding_grad_steps(const ro_call *call) {
    return (numel(call, 1) + RO_REF_TERMS - 1) / RO_REF_TERMS;
}

static void push_row(ro_acc *acc, float x) {
    acc->word[0]++;
    uint32_t rows = acc->word[0];
    for (int level = 0; level < LEVELS; level++) {
        acc->word[1 + level] = ro_to_bits(ro_from_bits(acc->word[1 + level]) + x);
        if (level == LEVELS - 1 || rows % RO_COLUMN_GROUP != 0)
            return;
        x = ro_from_bits(acc->word[1 + level]);
        acc->word[1 + level] = 0;
        rows /= RO_COLUMN_GROUP;
    }
}

/* Replaces NaNs in an accumulator that is stated in a dispute: providers commit to it, so it must
 * be canonical. */
static void canonical(ro_acc *acc) {
    for (int level = 0; level < LEVELS; level++)
        acc->word[1 + level] = result(ro_from_bits(acc->word[1 + level]));
}

/* Adds a step to element (o, v, c) of the gradient [outer, V, inner]: the sum of dy[o, p, c] over
 * positions p with id v. */
static void scatter_step(const ro_call *call, int64_t axis, int64_t e, int64_t step, ro_acc *acc,
                         const ro_access *in) {
    const ro_axis out = ro_axis_of(&call->output, axis);
    int64_t c = e % out.inner, v = e / out.inner % out.n, o = e / out.inner / out.n;
    int64_t count = numel(call, 1), from, to;
    ro_ref_step_range(step, count, &from, &to);
    for (int64_t p = from; p < to; p++)
        if ((int32_t)load(in, 1, p) == v)
            push_row(acc, loadf(in, 0, (o * count + p) * out.inner + c));
    canonical(acc);
}

static void embedding_grad_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                                const ro_access *in) {
    scatter_step(call, 0, e, step, acc, in);
}

static void gather_grad_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                             const ro_access *in) {
    scatter_step(call, call->attr[RO_GATHER_GRAD_AXIS], e, step, acc, in);
}

static uint32_t embedding_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                               const ro_access *in) {
    (void)call, (void)e, (void)in;
    float sum = ro_from_bits(acc->word[1]);
    for (int level = 1; level < LEVELS; level++)
        sum = ro_from_bits(acc->word[1 + level]) + sum;
    return result(sum);
}
RO_REFERENCE(embedding_grad, .finish = embedding_grad, .steps = embedding_grad_steps,
             .step = embedding_grad_step, .words = 1 + LEVELS)
RO_REFERENCE(gather_grad, .finish = embedding_grad, .steps = embedding_grad_steps,
             .step = gather_grad_step, .words = 1 + LEVELS)

static uint32_t split_heads(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    (void)acc;
    const int64_t *out = call->output.dim; /* shape [B, H, T, D] */
    int64_t d = e % out[3], t = e / out[3] % out[2], h = e / out[3] / out[2] % out[1];
    int64_t b = e / out[3] / out[2] / out[1];
    int64_t column = (call->attr[RO_SPLIT_HEADS_PART] * out[1] + h) * out[3] + d;
    return load(in, 0, (b * out[2] + t) * call->input[0].dim[2] + column);
}
RO_REFERENCE(split_heads, .finish = split_heads)

static uint32_t join_heads(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    const int64_t *x = call->input[0].dim; /* shape [B, H, T, D] */
    int64_t width = call->output.dim[2], column = e % width, t = e / width % x[2];
    int64_t b = e / width / x[2], d = column % x[3], h = column / x[3] % x[1];
    return load(in, (int)(column / x[3] / x[1]), ((b * x[1] + h) * x[2] + t) * x[3] + d);
}
RO_REFERENCE(join_heads, .finish = join_heads)

static uint32_t concat(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int input = 0;
    while (e >= numel(call, input))
        e -= numel(call, input++);
    return load(in, input, e);
}
RO_REFERENCE(concat, .finish = concat)
