/* This file estimates the memory of kernels on a CPU: packed operands, lists and lines. A context
 * keeps the most that any kernel has taken. The formulas are bounds of what repops/cpu allocates;
 * tests/unit/test_estimate_kernels.c compares them. */
#include "repops/operators.h"
#include "repops/repops.h"
#include "verde/exec/estimate.h"

enum {
    FLOAT = 4,
    PART = 6 << 20,         /* most bytes of one thread's part, whatever the tensors' size */
    PART_OF_ELEMENT = 1024, /* bytes of such a part per element of small, padded products */
    LANES = 64,             /* most columns that are packed together */
    BLOCK = 32,             /* rows and columns of one block of a fixed product */
    WHOLE_MOST = 1 << 26,   /* most bytes of a fixed product's operand packed for all blocks */
    TAP = 256,              /* bytes of a thread's lists per position in a convolution's kernel */
};

static double elements(const ro_shape *shape) {
    double count = 1;
    for (int i = 0; i < shape->ndim; i++)
        count *= (double)shape->dim[i];
    return count;
}

static double parts(const ro_call *call, int threads) {
    const double all =
        elements(&call->input[0]) + elements(&call->input[1]) + elements(&call->output);
    return threads * (all < PART / PART_OF_ELEMENT ? all * PART_OF_ELEMENT : PART);
}

typedef struct {
    double batch, rows, columns, length;
} sizes;

static sizes sizes_of(const ro_call *call) {
    const ro_shape *a = &call->input[0], *b = &call->input[1], *y = &call->output;
    sizes s = {.batch = 1, .columns = (double)y->dim[y->ndim - 1]};
    for (int64_t i = 0; i < call->attr[RO_PRODUCT_BATCH_DIMS]; i++)
        s.batch *= (double)a->dim[i];
    s.rows = elements(y) / s.batch / s.columns;
    s.length = elements(b) / s.batch / s.columns;
    return s;
}

/* A few lines of an operand, copied densely, or converted to f32 if they have 16 bits. */
static double of_product(const ro_call *call, int threads) {
    const sizes s = sizes_of(call);
    const double least = s.rows < s.columns ? s.rows : s.columns;
    const double lines =
        call->input[0].dtype == call->input[1].dtype && least < LANES ? least : LANES;
    return threads * lines * s.length * FLOAT + parts(call, threads);
}

/* An operand packed as a whole, padded to groups and chunks, with an exponent for each chunk of a
 * line. It is packed so only if the other operand has several blocks. */
static double packed(double lines, double length, double others) {
    const double chunks = (double)(((int64_t)length + RO_DOT_CHUNK - 1) / RO_DOT_CHUNK);
    const double bytes = (lines + LANES) * chunks * (RO_DOT_CHUNK + 1) * sizeof(double);
    return others <= BLOCK ? 0 : bytes < WHOLE_MOST ? bytes : WHOLE_MOST;
}

static double of_fixed_product(const ro_call *call, int threads) {
    const sizes s = sizes_of(call);
    const double whole = packed(s.rows, s.length, s.columns) + packed(s.columns, s.length, s.rows);
    return of_product(call, threads) + (s.batch > 1 ? 0 : whole);
}

/* The packed kernel; lists of its positions, and the lines of the padded image that they read. */
static double of_convolution(const ro_call *call, int threads) {
    const bool dw = call->op == RO_OP_CONV2D_DW || call->op == RO_OP_CONV2D_FIXED_DW;
    const bool dx = call->op == RO_OP_CONV2D_DX || call->op == RO_OP_CONV2D_FIXED_DX;
    const ro_shape *x = dx ? &call->output : &call->input[0];
    const ro_shape *y = dx ? &call->input[0] : dw ? &call->input[1] : &call->output;
    const ro_shape *w = dw ? &call->output : &call->input[1];
    const double groups = (double)call->attr[RO_CONV_GROUPS];
    const double height = (double)w->dim[0], width = (double)w->dim[1];
    const double columns = dx ? (double)w->dim[2] : (double)w->dim[3] / groups;
    const double padded = columns < LANES ? LANES / columns : 1;
    const double reach = (width - 1) * (double)call->attr[RO_CONV_DILATION_W] + 1;
    const double line =
        (double)y->dim[2] * (double)call->attr[RO_CONV_STRIDE_W] + reach + (double)x->dim[2];
    const double lines = height * line * (double)w->dim[2] * FLOAT;
    return FLOAT * elements(w) * padded + threads * (lines + height * width * TAP) +
           parts(call, threads);
}

/* Where each row begins, and the positions sorted by row. */
static double scatter(const ro_call *call, int64_t axis) {
    return sizeof(int64_t) * ((double)call->output.dim[axis] + 1 + elements(&call->input[1]));
}

static double of_embedding(const ro_call *call, int threads) {
    (void)threads;
    return scatter(call, 0);
}

static double of_gather(const ro_call *call, int threads) {
    (void)threads;
    return scatter(call, call->attr[RO_GATHER_GRAD_AXIS]);
}

/* Angles of all positions, and frequencies. */
static double of_rope(const ro_call *call, int threads) {
    (void)threads;
    return FLOAT * elements(&call->input[0]) + 8 * elements(&call->input[2]);
}

/* Sums of groups of rows, for gamma and beta in one kernel. */
static double of_gamma(const ro_call *call, int threads) {
    (void)threads;
    return 2 * FLOAT * elements(&call->output);
}

/* The formula for each operator; NULL: its kernel allocates nothing. */
static double (*const bytes_of[RO_OP_END])(const ro_call *call, int threads) = {
    [RO_OP_MATMUL] = of_product,
    [RO_OP_MATMUL_FIXED] = of_fixed_product,
    [RO_OP_CONV2D] = of_convolution,
    [RO_OP_CONV2D_DX] = of_convolution,
    [RO_OP_CONV2D_DW] = of_convolution,
    [RO_OP_CONV2D_FIXED] = of_convolution,
    [RO_OP_CONV2D_FIXED_DX] = of_convolution,
    [RO_OP_CONV2D_FIXED_DW] = of_convolution,
    [RO_OP_EMBEDDING_GRAD] = of_embedding,
    [RO_OP_GATHER_GRAD] = of_gather,
    [RO_OP_ROPE] = of_rope,
    [RO_OP_ATTN_AV] = parts,
    [RO_OP_ATTN_AV_AT] = parts,
    [RO_OP_LN_DGAMMA] = of_gamma,
    [RO_OP_RMS_DGAMMA] = of_gamma,
};

/* Looks only at nodes with such kernels, because a judge has little time. */
static double most_of(const vd_program *program, const vd_graph *graph, int threads) {
    double most = 0;
    for (uint32_t i = 0; i < graph->stored_count; i++) {
        ro_call call;
        ro_shape input[RO_MAX_INPUTS];
        if (!bytes_of[graph->stored[i].op])
            continue;
        vd_node_call(program, graph, vd_node_number(graph, i, 0), &call, input);
        const double bytes = bytes_of[call.op](&call, threads);
        most = bytes > most ? bytes : most;
    }
    return most;
}

uint64_t vd_estimate_kernels(const vd_program *program, int threads) {
    const double init = most_of(program, &program->init, threads);
    const double step = most_of(program, &program->step, threads);
    const double most = init > step ? init : step;
    return most < (double)UINT64_MAX ? (uint64_t)most : UINT64_MAX;
}
