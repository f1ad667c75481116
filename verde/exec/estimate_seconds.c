/* This file estimates the time of a step or initialisation from its program alone. Doubles hold any
 * sum: foreign programs may mean 2^26 nodes of 2^40 elements, each of as many terms. */
#include "repops/operators.h"
#include "repops/ref.h"
#include "verde/exec/estimate.h"

/* What an operator's time is proportional to. */
typedef enum {
    READS,    /* elements that the reference reads for the output */
    OUTPUT,   /* elements of the output */
    INPUT,    /* elements of the largest input and of the output */
    AXIS,     /* as INPUT, but more if few elements are contiguous across the axis */
    SCATTER,  /* as INPUT, plus the pieces that are added */
    PRODUCTS, /* terms of a matrix product */
    TAPS,     /* terms of a convolution */
    BLOCKS,   /* terms of attention's weights and values */
    WALKS,    /* positions that computing a permutation visits */
    TOTALS,   /* elements of the output; more for logarithms of sums */
    RECORDS,  /* positions as WALKS, for each record of data, plus the output's elements */
} measure;

typedef struct {
    measure by;
    int ps; /* picoseconds per unit of `by` */
} weight;

/* Measured on one core with AVX-512, rounded; bench/estimates.py compares them. Operators without a
 * row take WRITE_PS per element of the output and READ_PS per element read. */
enum {
    WRITE_PS = 800,
    READ_PS = 150,
    MADE_PS = 1000,   /* per element of a product's result, besides its terms */
    TAKEN_PS = 250,   /* per element of a product's operands */
    PIECE_PS = 30000, /* per piece of SCATTER */
    LOG_SUMS = 20,    /* time of a logarithm of a sum, in times of a sum */
    PLACE_PS = 80000, /* per position of WALKS and RECORDS */
    NODE_PS = 1000000,
    HASHED_PS = 1000, /* per byte of a committed state */
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

/* Number of elements at one position of the axis. */
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

/* Kernels take LANES contiguous elements across the axis at a time, even if there are fewer. */
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

/* Returns the terms per element of a matrix product: a's columns; its rows if a is transposed. */
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

/* Kernels for integer sums take FILTERS filters of a group at a time, even if there are fewer.
 * Groups of one filter have slower kernels. */
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
    /* strides leave out positions, and their terms */
    const double apart =
        (double)call->attr[RO_CONV_STRIDE_H] * (double)call->attr[RO_CONV_STRIDE_W];
    const double all = (double)second->dim[0] * (double)second->dim[1] * last(second);
    return all / (apart * (double)call->attr[RO_CONV_GROUPS]) * padding(call);
}

static double products(const ro_call *call, double terms, int ps) {
    const double operands = elements(&call->input[0]) + elements(&call->input[1]);
    return elements(&call->output) * (terms * ps + MADE_PS) + operands * TAKEN_PS;
}

/* Positions visited per element of a permutation of `count`: positions up to a power of four are
 * tried until one is below `count`. */
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

/* Adds up all nodes. All iterations of a repeat have equal shapes, and so take equally long. */
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
