/* Dot products and reductions. SPEC.md section 3. */
#include "repops/ref/ref.h"
#include "repops/src/half.h"
#include "repops/op_norm.h"
#include "repops/op_product.h"
#include "repops/op_reduce.h"
#include "repops/src/matmul.h"

int64_t ro_ref_matmul_steps(const ro_call *call) {
    ro_matmul v = ro_matmul_of(call);
    return (v.k + v.chunk - 1) / v.chunk;
}

ro_ref_factors ro_ref_matmul_factors(const ro_matmul *v, int64_t batch, int64_t m, int64_t n,
                                     int64_t k) {
    return (ro_ref_factors){batch * v->m * v->k + (v->trans_a ? k * v->m + m : m * v->k + k),
                            batch * v->n * v->k + (v->trans_b ? n * v->k + k : k * v->n + n), 1};
}

void ro_ref_matmul_range(const ro_matmul *v, int64_t m, int64_t step, int64_t *from, int64_t *to) {
    const ro_range r = ro_masked_range(v->mask, v->window, m, v->k);
    *from = step * v->chunk;
    *to = *from + v->chunk < r.last ? *from + v->chunk : r.last;
    *from = *from > r.first ? *from : r.first;
}

/* Adds one chunk to the total. */
static void matmul_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                        const ro_access *in) {
    ro_matmul v = ro_matmul_of(call);
    int64_t n = e % v.n, m = e / v.n % v.m, batch = e / v.n / v.m, from, to;
    float sum = 0;
    ro_ref_matmul_range(&v, m, step, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const ro_ref_factors at = ro_ref_matmul_factors(&v, batch, m, n, k);
        const float b = ro_number_of(call->input[1].dtype, load(in, 1, at.b));
        sum = ro_fma(loadf(in, 0, at.a), b, sum);
    }
    acc->word[0] = result(ro_from_bits(acc->word[0]) + sum);
}

uint32_t ro_ref_matmul(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)e, (void)in;
    return result(ro_from_bits(acc->word[0]) * attrf(call, RO_PRODUCT_ALPHA));
}
RO_REFERENCE(matmul, .finish = ro_ref_matmul, .steps = ro_ref_matmul_steps, .step = matmul_step,
             .words = 1)

/* Numbers that the terms of a row share. They are read once per element, as SPEC 11 counts. */
typedef struct {
    float mean, rstd;
} row_values;

static row_values row_of(const ro_call *call, const ro_access *in, int64_t r) {
    switch (call->op) {
    case RO_OP_REDUCE_SQDEV:
    case RO_OP_REDUCE_EXPSUM: return (row_values){.mean = loadf(in, 1, r)};
    case RO_OP_REDUCE_LN_GX: return (row_values){loadf(in, 3, r), loadf(in, 4, r)};
    case RO_OP_REDUCE_RMS_GX: return (row_values){.rstd = loadf(in, 3, r)};
    default: return (row_values){0}; /* nothing is shared */
    }
}

/* Returns a lane after one more term of SPEC 3.2. x: index in the input, i: index in the row. */
static float term(const ro_call *call, const ro_access *in, float lane, row_values row, int64_t x,
                  int64_t i) {
    float d;
    switch (call->op) {
    case RO_OP_REDUCE_SUM: return lane + loadf(in, 0, x);
    case RO_OP_REDUCE_DOT: return ro_fma(loadf(in, 0, x), loadf(in, 1, x % numel(call, 1)), lane);
    case RO_OP_REDUCE_SQDEV: d = loadf(in, 0, x) - row.mean; return ro_fma(d, d, lane);
    case RO_OP_REDUCE_EXPSUM: return lane + ro_exp(loadf(in, 0, x) - row.mean);
    case RO_OP_REDUCE_LN_GX:
        d = (loadf(in, 2, x) - row.mean) * row.rstd;
        return ro_fma(loadf(in, 0, x) * loadf(in, 1, i), d, lane);
    case RO_OP_REDUCE_RMS_GX:
        d = loadf(in, 2, x) * row.rstd;
        return ro_fma(loadf(in, 0, x) * loadf(in, 1, i), d, lane);
    default: return no_such_operator();
    }
}

/* Finds the block that output element e reduces: its row, and [from, to) in the row. */
void ro_ref_block(const ro_call *call, int64_t e, int64_t *row, int64_t *from, int64_t *to) {
    int64_t cols = call->attr[RO_ROWS_COLS], block = call->attr[RO_ROWS_BLOCK];
    int64_t blocks = ro_blocks_of(cols, block);
    *row = e / blocks;
    *from = e % blocks * block;
    *to = *from + block < cols ? *from + block : cols;
}

/* Returns the terms of the longest block. A term reads one to three elements, a row up to two
 * more. */
static int64_t terms_of(const ro_call *call) {
    const int64_t block = call->attr[RO_ROWS_BLOCK], cols = call->attr[RO_ROWS_COLS];
    return block < cols ? block : cols;
}
RO_LOADS(term_loads, terms_of(call))
RO_LOADS(dot_loads, 2 * terms_of(call))
RO_LOADS(mean_loads, terms_of(call) + 1)
RO_LOADS(ln_gx_loads, 3 * terms_of(call) + 2)
RO_LOADS(rms_gx_loads, 3 * terms_of(call) + 1)

static uint32_t reduce(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    float lane[RO_LANES] = {0};
    int64_t row, from, to;
    (void)acc;
    ro_ref_block(call, e, &row, &from, &to);
    const row_values shared = row_of(call, in, row);
    for (int64_t i = from; i < to; i++) {
        float *l = &lane[(i - from) % RO_LANES];
        *l = term(call, in, *l, shared, row * call->attr[RO_ROWS_COLS] + i, i);
    }
    for (int w = RO_LANES / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            lane[i] = lane[i] + lane[i + w];
    return result(lane[0]);
}
RO_REFERENCE(reduce_sum, .finish = reduce, .loads = term_loads)
RO_REFERENCE(reduce_dot, .finish = reduce, .loads = dot_loads)
RO_REFERENCE(reduce_sqdev, .finish = reduce, .loads = mean_loads)
RO_REFERENCE(reduce_expsum, .finish = reduce, .loads = mean_loads)
RO_REFERENCE(reduce_ln_gx, .finish = reduce, .loads = ln_gx_loads)
RO_REFERENCE(reduce_rms_gx, .finish = reduce, .loads = rms_gx_loads)

static uint32_t reduce_max(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t row, from, to;
    (void)acc;
    ro_ref_block(call, e, &row, &from, &to);
    float m = ro_from_bits(RO_MINUS_INFINITY_BITS);
    for (int64_t i = from; i < to; i++)
        m = ro_max(m, loadf(in, 0, row * call->attr[RO_REDUCE_MAX_COLS] + i));
    return result(m);
}
RO_REFERENCE(reduce_max, .finish = reduce_max, .loads = term_loads)

RO_LOADS(column_loads, RO_COLUMN_GROUP * call->input_count)

static uint32_t columns(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t cols = call->attr[RO_COLUMNS_COLS], rows = numel(call, 0) / cols, c = e % cols;
    int64_t from = e / cols * RO_COLUMN_GROUP;
    int64_t to = from + RO_COLUMN_GROUP < rows ? from + RO_COLUMN_GROUP : rows;
    float sum = 0;
    (void)acc;
    for (int64_t r = from; r < to; r++) {
        float x = loadf(in, 0, r * cols + c);
        if (call->op == RO_OP_SUM_ROWS) {
            sum = sum + x;
            continue;
        }
        float y = loadf(in, 1, r * cols + c), v = loadf(in, 2, r);
        float xh = call->op == RO_OP_RMS_DGAMMA ? y * v : (y - v) * loadf(in, 3, r);
        sum = ro_fma(x, xh, sum);
    }
    return result(sum);
}
RO_REFERENCE(sum_rows, .finish = columns, .loads = column_loads)
RO_REFERENCE(ln_dgamma, .finish = columns, .loads = column_loads)
RO_REFERENCE(rms_dgamma, .finish = columns, .loads = column_loads)
