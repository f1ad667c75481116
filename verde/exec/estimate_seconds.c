/* How long a step or initialisation takes, from its program alone. Sums are of doubles, which hold
 * any: a program of strangers may mean 2^26 nodes of 2^40 elements, of as many terms each. */
#include "repops/operators.h"
#include "repops/ref.h"
#include "verde/exec/estimate.h"

/* What an operator's time grows with. */
typedef enum {
    READS,    /* what the elements of the output read, by the reference */
    OUTPUT,   /* elements of the output */
    INPUT,    /* elements of the largest input, and of the output */
    AXIS,     /* the same; more for each where neighbours along the axis lie side by side */
    SCATTER,  /* the same, and the pieces in which they are added */
    PRODUCTS, /* products of a matrix product, */
    TAPS,     /* of a convolution, */
    BLOCKS,   /* and of attention's weights and values */
    WALKS,    /* places that a permutation looks at */
    TOTALS,   /* elements of the output, of which logarithms of sums take longer */
    RECORDS,  /* those for one record of data each, and elements of the output */
} measure;

typedef struct {
    measure by;
    int ps; /* picoseconds for each of them */
} weight;

/* On one core with AVX-512, rounded: bench/estimates.py compares. An operator without a row takes
 * WRITE_PS for each element of its output and READ_PS for each that it reads. */
enum {
    WRITE_PS = 800,
    READ_PS = 150,
    MADE_PS = 1000,   /* for each element of a product's result, beside its terms, */
    TAKEN_PS = 250,   /* and of its operands */
    PIECE_PS = 30000, /* for each piece of a SCATTER */
    LOG_SUMS = 20,    /* how many sums of TOTALS take as long as one such logarithm */
    PLACE_PS = 80000, /* for each place of WALKS and RECORDS */
    NODE_PS = 1000000,
    HASHED_PS = 1000, /* for each byte of a committed state */
};

static const weight weights[RO_OP_END] = {
    [RO_OP_FILL] = {OUTPUT, 1200},
    [RO_OP_IOTA] = {OUTPUT, 1200},
    [RO_OP_NORMAL] = {OUTPUT, 2000},
    [RO_OP_PERMUTATION] = {WALKS, PLACE_PS},
    [RO_OP_READ_BATCH] = {RECORDS, 900},
    [RO_OP_READ_IMAGES] = {RECORDS, 1200},
    [RO_OP_READ_LABELS] = {RECORDS, 1200},
    [RO_OP_RANDOM_WORDS] = {OUTPUT, 5000},
    [RO_OP_ROPE_TURNS] = {OUTPUT, 150000},
    [RO_OP_ROPE] = {OUTPUT, 900},
    [RO_OP_CONCAT] = {OUTPUT, 1200},
    [RO_OP_CONCAT_AXIS] = {OUTPUT, 1200},
    [RO_OP_JOIN_HEADS] = {OUTPUT, 1000},
    [RO_OP_SLICE] = {OUTPUT, 2000},
    [RO_OP_PAD] = {OUTPUT, 1500},
    [RO_OP_GATHER] = {OUTPUT, 2000},
    [RO_OP_EMBEDDING_GRAD] = {SCATTER, 400},
    [RO_OP_GATHER_GRAD] = {SCATTER, 400},
    [RO_OP_SUM_ROWS] = {INPUT, 200},
    [RO_OP_LN_DGAMMA] = {INPUT, 450},
    [RO_OP_RMS_DGAMMA] = {INPUT, 450},
    [RO_OP_BN_MEAN] = {INPUT, 200},
    [RO_OP_BN_SQDEV] = {INPUT, 200},
    [RO_OP_BN_DGAMMA] = {INPUT, 450},
    [RO_OP_BATCHNORM] = {OUTPUT, 900},
    [RO_OP_BN_DX] = {OUTPUT, 1200},
    [RO_OP_XENT_GRAD] = {OUTPUT, 1200},
    [RO_OP_XENT_IGNORE_GRAD] = {OUTPUT, 1200},
    [RO_OP_SUM_AXIS] = {AXIS, 150},
    [RO_OP_MAX_AXIS] = {AXIS, 150},
    [RO_OP_ARGMAX] = {INPUT, 300},
    [RO_OP_TOP_K] = {INPUT, 3500},
    [RO_OP_TOP_P] = {INPUT, 8000},
    [RO_OP_DRAW] = {INPUT, 300},
    [RO_OP_SIN] = {OUTPUT, 2000},
    [RO_OP_COS] = {OUTPUT, 2000},
    [RO_OP_TAN] = {OUTPUT, 2500},
    [RO_OP_ASIN] = {OUTPUT, 2000},
    [RO_OP_ACOS] = {OUTPUT, 2000},
    [RO_OP_ATAN] = {OUTPUT, 2000},
    [RO_OP_SINH] = {OUTPUT, 2500},
    [RO_OP_COSH] = {OUTPUT, 2000},
    [RO_OP_ASINH] = {OUTPUT, 3200},
    [RO_OP_ACOSH] = {OUTPUT, 2800},
    [RO_OP_ATANH] = {OUTPUT, 2500},
    [RO_OP_LOG1P] = {OUTPUT, 1800},
    [RO_OP_EXPM1] = {OUTPUT, 1700},
    [RO_OP_LOG2] = {OUTPUT, 1700},
    [RO_OP_EXP2] = {OUTPUT, 1700},
    [RO_OP_ATAN2] = {OUTPUT, 4500},
    [RO_OP_POW] = {OUTPUT, 34000},
    [RO_OP_INTEGER] = {OUTPUT, 1800},
    [RO_OP_PUT_ALONG] = {INPUT, 2000},
    [RO_OP_ARGSORT] = {OUTPUT, 180000},
    [RO_OP_RUNNING] = {TOTALS, 4500},
    [RO_OP_ISUM] = {INPUT, 150},
    [RO_OP_ATTN_MAX] = {INPUT, 400},
    [RO_OP_ATTN_MAX_AT] = {INPUT, 400},
    [RO_OP_ATTN_L] = {INPUT, 12000},
    [RO_OP_ATTN_AV] = {BLOCKS, 25},
    [RO_OP_ATTN_AV_AT] = {BLOCKS, 25},
    [RO_OP_MATMUL] = {PRODUCTS, 17},
    [RO_OP_MATMUL_FIXED] = {PRODUCTS, 30},
    [RO_OP_CONV2D] = {TAPS, 16},
    [RO_OP_CONV2D_DX] = {TAPS, 16},
    [RO_OP_CONV2D_DW] = {TAPS, 16},
    [RO_OP_CONV2D_FIXED] = {TAPS, 30},
    [RO_OP_CONV2D_FIXED_DX] = {TAPS, 30},
    [RO_OP_CONV2D_FIXED_DW] = {TAPS, 30},
};

static double elements(const ro_shape *shape) {
    double count = 1;
    for (int i = 0; i < shape->ndim; i++)
        count *= (double)shape->dim[i];
    return count;
}

/* Elements of one place along the axis. */
static double inner(const ro_shape *shape, int64_t axis) {
    double count = 1;
    for (int64_t i = axis + 1; i < shape->ndim; i++)
        count *= (double)shape->dim[i];
    return count;
}

static double last(const ro_shape *shape) {
    return (double)shape->dim[shape->ndim - 1];
}

static double reads(const ro_call *call) {
    const double steps = (double)ro_ref_steps(call) * (double)ro_ref_step_loads(call);
    const double each = steps + (double)ro_ref_finish_loads(call);
    return elements(&call->output) * (WRITE_PS + each * READ_PS);
}

static double input(const ro_call *call) {
    double most = 0;
    for (int32_t i = 0; i < call->input_count; i++)
        most = elements(&call->input[i]) > most ? elements(&call->input[i]) : most;
    return most + elements(&call->output);
}

/* Kernels take so many neighbours at a time, where the axis is another one. */
static double along_axis(const ro_call *call) {
    enum { LANES = 16 };
    const double beside = inner(&call->input[0], call->attr[RO_ALONG_AXIS]);
    return input(call) * (beside < LANES ? LANES / beside : 1);
}

static double scatter(const ro_call *call, int ps) {
    const ro_shape *dy = &call->input[0], *out = &call->output;
    const double beside =
        call->op == RO_OP_GATHER_GRAD ? inner(out, call->attr[RO_GATHER_GRAD_AXIS]) : last(out);
    return input(call) * ps + elements(dy) / beside * PIECE_PS;
}

/* ---- products ---- */

/* Returns the terms of each element of a matrix product: the columns of a, or its rows if it is
 * transposed. */
static double product_terms(const ro_call *call) {
    const ro_shape *a = &call->input[0];
    double rows = 1;
    for (int64_t i = call->attr[RO_PRODUCT_BATCH_DIMS]; i < a->ndim - 1; i++)
        rows *= (double)a->dim[i];
    return call->attr[RO_PRODUCT_TRANS] % 2 ? rows : last(a);
}

static bool is_fixed_convolution(int op) {
    return op == RO_OP_CONV2D_FIXED || op == RO_OP_CONV2D_FIXED_DX || op == RO_OP_CONV2D_FIXED_DW;
}

/* Kernels for sums of integers take so many filters of a group at a time: where it has fewer, each
 * product takes as long as several. A group of one filter has kernels that take still longer. */
static double padding(const ro_call *call) {
    enum { FILTERS = 36, ONE_OF_24 = 180, ONE_OF_16 = 80 };
    const ro_shape *w = call->op == RO_OP_CONV2D_FIXED_DW ? &call->output : &call->input[1];
    const double filters = last(w) / (double)call->attr[RO_CONV_GROUPS];
    if (!is_fixed_convolution(call->op) || filters >= FILTERS)
        return 1;
    if (filters > 1)
        return FILTERS / filters;
    return call->attr[RO_CONV_FIXED_BITS] == RO_FIXED_24 ? ONE_OF_24 : ONE_OF_16;
}

static double taps(const ro_call *call) {
    const ro_shape *second = &call->input[1];
    if (call->op != RO_OP_CONV2D_DX && call->op != RO_OP_CONV2D_FIXED_DX)
        return elements(second) / last(second) * padding(call);
    /* where strides leave places out, there are no terms */
    const double apart =
        (double)call->attr[RO_CONV_STRIDE_H] * (double)call->attr[RO_CONV_STRIDE_W];
    const double all = (double)second->dim[0] * (double)second->dim[1] * last(second);
    return all / (apart * (double)call->attr[RO_CONV_GROUPS]) * padding(call);
}

static double products(const ro_call *call, double terms, int ps) {
    const double operands = elements(&call->input[0]) + elements(&call->input[1]);
    return elements(&call->output) * (terms * ps + MADE_PS) + operands * TAKEN_PS;
}

/* For one of `count`: a place of a power of four is looked at until it is one of the permutation.
 */
static double walk(double count) {
    double places = 4;
    while (places < count)
        places *= 4;
    return places / count;
}

static double totals(const ro_call *call) {
    const int is_slow = call->attr[RO_RUNNING_KIND] == RO_RUNNING_LOG_SUM;
    return elements(&call->output) * (is_slow ? LOG_SUMS : 1);
}

static double records(const ro_call *call, int ps) {
    const ro_shape *out = &call->output;
    double count = 1, read = elements(out);
    if (call->op == RO_OP_READ_BATCH) {
        for (int32_t i = 0; i < call->input_count - 1; i++)
            count += elements(&call->input[i]) / last(out);
        read /= last(out);
    } else {
        count = elements(&call->input[0]) / (double)call->attr[RO_RECORDS_RECORD];
        read = (double)out->dim[0];
    }
    return elements(out) * ps + read * walk(count) * PLACE_PS;
}

/* ---- nodes ---- */

static double picoseconds(const ro_call *call) {
    const int ps = weights[call->op].ps;
    switch (weights[call->op].by) {
    case OUTPUT: return elements(&call->output) * ps;
    case INPUT: return input(call) * ps;
    case AXIS: return along_axis(call) * ps;
    case SCATTER: return scatter(call, ps);
    case PRODUCTS: return products(call, product_terms(call), ps);
    case TAPS: return products(call, taps(call), ps);
    case BLOCKS: return products(call, RO_ATTN_BLOCK, ps);
    case WALKS: return elements(&call->output) * walk(elements(&call->output)) * ps;
    case TOTALS: return totals(call) * ps;
    case RECORDS: return records(call, ps);
    default: return reads(call);
    }
}

static double node_seconds(const vd_program *program, const vd_graph *graph, uint32_t node,
                           int cores) {
    ro_call call;
    ro_shape input[RO_MAX_INPUTS];
    vd_node_call(program, graph, node, &call, input);
    return (NODE_PS + picoseconds(&call) / cores) * 1e-12;
}

/* Iterations of a repeat differ in no shape, so that each takes as long as the first one. */
static double graph_seconds(const vd_program *program, const vd_graph *graph, int cores) {
    double seconds = 0;
    for (uint32_t i = 0; i < graph->stored_count; i++) {
        const vd_repeat *r = vd_repeat_of(graph, i);
        const double once = node_seconds(program, graph, vd_node_number(graph, i, 0), cores);
        seconds += once * (r ? r->count : 1);
    }
    for (uint32_t i = 0; i < graph->repeat_count; i++) {
        const vd_repeat *r = &graph->repeat[i];
        for (uint32_t sum = 0; sum < r->sum_count; sum++) {
            const uint32_t node = vd_repeat_sum_value(graph, r, sum) - graph->sources;
            seconds += node_seconds(program, graph, node, cores) * (r->count - 1);
        }
    }
    return seconds;
}

vd_estimated_seconds vd_estimate_seconds(const vd_program *program, int cores) {
    vd_estimated_seconds s = {.init = graph_seconds(program, &program->init, cores),
                              .step = graph_seconds(program, &program->step, cores)};
    double state = 0;
    for (uint32_t i = 0; i < program->leaf_count; i++)
        state += (double)vd_estimate_shape(&program->leaf[i].shape);
    s.run = s.init + s.step * (double)program->steps +
            (double)vd_run_leaves(program) * state * HASHED_PS * 1e-12 / cores;
    return s;
}
