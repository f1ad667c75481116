/* This file guards products without integer sums: other kernels compute rows again. */
#include <stdlib.h>
#include <string.h>

#include "repops/device.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "verde/exec/guard.h"
#include "verde/exec/kept_weights.h"

/* Rows of a matrix that are computed together, if there are as many, because each computation reads
 * all of the other matrix. Images are computed singly. */
enum { TOGETHER = 16 };

/* Draws rows [first, last) to compute again, or none. Each row is drawn with probability 1/64. */
static bool draw_rows(vd_guard *g, int64_t rows, int64_t together, int64_t *first, int64_t *last) {
    int64_t parts = VD_GUARD_SHARE;
    while (parts > 1 && rows < together * parts)
        parts /= 2;
    uint64_t x = g->seed + ++g->draws * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    const int64_t part = (int64_t)((x ^ x >> 31) % VD_GUARD_SHARE);
    if (part >= parts)
        return false;
    *first = rows * part / parts, *last = rows * (part + 1) / parts;
    g->rows += (uint64_t)(*last - *first);
    return *first < *last;
}

/* A product to check; its result has rows of `cols` numbers. */
typedef struct guarded guarded;
struct guarded {
    /* Computes rows [first, last) by other kernels into `out`. */
    vd_status (*part)(const guarded *p, vd_guard *g, int64_t first, int64_t last, float *out,
                      vd_err *err);
    vd_status (*whole)(const guarded *p, vd_guard *g,
                       vd_err *err); /* recomputes all in the original way */
    const ro_call *call;
    const void *const *in;
    const vd_fused *group;
    const vd_fused_memory *at;
    vd_kept_weights *kept;
    float *out;
    int64_t rows, cols, together;
};

/* Sets in `finding` where `count` rows differ first, and how many do; leaves it if none does. */
static void find(const float *own, const float *part, int64_t count, int64_t cols,
                 vd_guard_finding *finding) {
    for (int64_t i = 0; i < count; i++) {
        const float *x = own + i * cols, *y = part + i * cols;
        if (memcmp(x, y, (size_t)cols * sizeof *x) == 0)
            continue;
        for (int64_t n = 0; finding->rows == 0 && n < cols; n++)
            if (memcmp(x + n, y + n, sizeof *x) != 0 && finding->row < 0)
                finding->row = i, finding->col = n, finding->cols = 1;
        finding->rows++;
    }
}

static vd_status failed(const ro_ctx *ro, vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
}

/* The same for rows in the context's memory. */
static vd_status find_in(ro_ctx *ro, const float *own, const float *part, int64_t count,
                         int64_t cols, vd_guard_finding *finding, vd_err *err) {
    const size_t numel = (size_t)(count * cols), size = numel * sizeof(float);
    if (ro_ctx_in_host_memory(ro)) {
        find(own, part, count, cols, finding);
        return VD_OK;
    }
    float *copies = malloc(2 * size);
    if (!copies)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory for rows to compare");
    ro_status status = ro_read(ro, copies, own, size);
    if (status == RO_OK)
        status = ro_read(ro, copies + numel, part, size);
    if (status == RO_OK)
        find(copies, copies + numel, count, cols, finding);
    free(copies);
    return status == RO_OK ? VD_OK : failed(ro, err);
}

static vd_status compare(const guarded *p, vd_guard *g, int64_t first, int64_t last, float *part,
                         bool again, bool *differs, vd_err *err) {
    vd_guard_finding finding = g->at;
    finding.kind = VD_GUARD_ROWS, finding.again = again;
    finding.chunk = finding.row = finding.col = -1;
    ro_ctx_plain(g->other, 1);
    vd_status status = p->part(p, g, first, last, part, err);
    ro_ctx_plain(g->other, 0);
    if (status == VD_OK)
        status =
            find_in(g->ro, p->out + first * p->cols, part, last - first, p->cols, &finding, err);
    *differs = status == VD_OK && finding.rows > 0;
    finding.row += *differs ? first : 0;
    if (*differs)
        vd_guard_note(g, &finding);
    return status;
}

static vd_status check_rows(const guarded *p, vd_guard *g, vd_err *err) {
    int64_t first, last;
    bool differs = false;
    if (!g->other || !draw_rows(g, p->rows, p->together, &first, &last))
        return VD_OK;
    float *part = ro_alloc(g->ro, (size_t)((last - first) * p->cols) * sizeof *part);
    if (!part)
        return failed(g->ro, err);
    vd_status status = compare(p, g, first, last, part, false, &differs, err);
    if (status == VD_OK && differs) {
        vd_kept_weights_forget(p->kept);
        status = p->whole(p, g, err);
    }
    if (status == VD_OK && differs)
        status = compare(p, g, first, last, part, true, &differs, err);
    ro_free(g->ro, part);
    return status == VD_OK && differs
               ? vd_fail(err, VD_ERR_LOCAL,
                         "step %lld, %s: computed twice, and other kernels give other bits",
                         (long long)g->at.step, g->at.node)
               : status;
}

static vd_status run_other(vd_guard *g, ro_call *call, const void *const *in, float *out,
                           vd_err *err) {
    char why[200];
    const ro_status status = ro_infer(call, why, sizeof why);
    if (status != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "--guard: %s", why);
    return ro_run(g->other, call, in, out) == RO_OK ? VD_OK : failed(g->other, err);
}

static vd_status whole_node(const guarded *p, vd_guard *g, vd_err *err) {
    return ro_run(g->ro, p->call, p->in, p->out) == RO_OK ? VD_OK : failed(g->ro, err);
}

/* ---- matrix products ---- */

typedef struct {
    int64_t batch, m, n, k;
    bool trans_a, trans_b;
} product;

static product product_of(const ro_call *call) {
    const ro_shape *a = &call->input[0];
    const int64_t dims = call->attr[RO_PRODUCT_BATCH_DIMS], trans = call->attr[RO_PRODUCT_TRANS];
    product p = {.batch = 1, .trans_a = trans & 1, .trans_b = trans & 2};
    for (int64_t i = 0; i < dims; i++)
        p.batch *= a->dim[i];
    const int64_t cols = a->dim[a->ndim - 1], rows = ro_shape_numel(a) / p.batch / cols;
    p.m = p.trans_a ? cols : rows, p.k = p.trans_a ? rows : cols;
    p.n = ro_shape_numel(&call->output) / p.batch / p.m;
    return p;
}

/* Copies columns [row, row + rows) of a, which is stored transposed, into rows. */
static vd_status take_columns(vd_guard *g, const float *a, const product *p, int64_t row,
                              int64_t rows, float *to, vd_err *err) {
    const ro_shape in = {RO_F32, 2, {p->k, p->m}};
    ro_call call = {.op = RO_OP_SLICE, .input_count = 1, .input = &in};
    call.attr[RO_SLICE_AXIS] = 1, call.attr[RO_SLICE_STEP] = 1;
    call.attr[RO_SLICE_START] = row, call.attr[RO_SLICE_LENGTH] = rows;
    return run_other(g, &call, (const void *const[]){a}, to, err);
}

/* Computes rows of one product of the batch. */
static vd_status part_of_product(const guarded *of, const product *p, vd_guard *g, int64_t number,
                                 int64_t row, int64_t rows, float *out, vd_err *err) {
    const float *a = (const float *)of->in[0] + number * p->m * p->k;
    const size_t b_size = ro_dtype_size(of->call->input[1].dtype);
    const void *b = (const char *)of->in[1] + (size_t)(number * p->n * p->k) * b_size;
    const ro_shape in[2] = {
        {RO_F32, 2, {p->trans_a ? p->k : rows, p->trans_a ? rows : p->k}},
        {of->call->input[1].dtype, 2, {p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n}}};
    ro_call call = *of->call;
    call.input = in, call.attr[RO_PRODUCT_BATCH_DIMS] = 0, call.output = (ro_shape){0};
    const size_t size = (size_t)(rows * p->k) * sizeof(float);
    float *columns = p->trans_a ? ro_alloc(g->ro, size ? size : 1) : NULL;
    if (p->trans_a && !columns)
        return failed(g->ro, err);
    vd_status status = p->trans_a ? take_columns(g, a, p, row, rows, columns, err) : VD_OK;
    const void *const parts[] = {p->trans_a ? columns : a + row * p->k, b};
    if (status == VD_OK)
        status = run_other(g, &call, parts, out, err);
    ro_free(g->ro, columns);
    return status;
}

static vd_status part_of_matmul(const guarded *of, vd_guard *g, int64_t first, int64_t last,
                                float *out, vd_err *err) {
    const product p = product_of(of->call);
    vd_status status = VD_OK;
    for (int64_t row = first; row < last && status == VD_OK;) {
        const int64_t number = row / p.m, at = row % p.m;
        const int64_t rows = p.m - at < last - row ? p.m - at : last - row;
        status = part_of_product(of, &p, g, number, at, rows, out + (row - first) * p.n, err);
        row += rows;
    }
    return status;
}

/* A product with a mask cannot be computed by parts, since masks depend on rows' numbers. */
static bool has_mask(const ro_call *call) {
    return call->op == RO_OP_MATMUL && call->attr[RO_MATMUL_MASK] != RO_MASK_NONE;
}

/* ---- convolutions: rows are images ---- */

static vd_status part_of_conv(const guarded *of, vd_guard *g, int64_t first, int64_t last,
                              float *out, vd_err *err) {
    ro_shape in[2] = {of->call->input[0], of->call->input[1]};
    const int64_t image = ro_shape_numel(&in[0]) / in[0].dim[0];
    ro_call call = *of->call;
    in[0].dim[0] = call.output.dim[0] = last - first;
    call.input = in;
    return run_other(g, &call,
                     (const void *const[]){(const float *)of->in[0] + first * image, of->in[1]},
                     out, err);
}

static vd_status check_conv(vd_guard *g, const ro_call *call, const void *const *in, float *out,
                            vd_kept_weights *kept, vd_err *err) {
    const int64_t images = call->output.dim[0];
    const guarded p = {.part = part_of_conv,
                       .whole = whole_node,
                       .call = call,
                       .in = in,
                       .kept = kept,
                       .out = out,
                       .rows = images,
                       .cols = ro_shape_numel(&call->output) / images,
                       .together = 1};
    return check_rows(&p, g, err);
}

/* ---- entry points for the executor ---- */

/* Checks a node. `kept`: packed weights that the node may have read, or NULL. */
static vd_status guard_node(vd_guard *g, const ro_call *call, const void *const *in, void *out,
                            vd_kept_weights *kept, vd_err *err) {
    if (!g)
        return VD_OK;
    if (g->flips)
        return vd_fail(err, VD_ERR_USAGE,
                       "--fault sum: node %s adds up no integers that --guard checks, expected a "
                       "fixed product on backend avx2, avx512 or cuda",
                       g->at.node);
    switch (call->op) {
    case RO_OP_CONV2D:
    case RO_OP_CONV2D_DX:
    case RO_OP_CONV2D_FIXED:
    case RO_OP_CONV2D_FIXED_DX: return check_conv(g, call, in, out, kept, err);
    case RO_OP_MATMUL_FIXED:
        if (ro_ctx_guards(g->ro, (int)call->attr[RO_MATMUL_FIXED_BITS]))
            return VD_OK;
        break;
    case RO_OP_MATMUL: break;
    default: return VD_OK;
    }
    if (has_mask(call))
        return VD_OK;
    const product x = product_of(call);
    const guarded p = {.part = part_of_matmul,
                       .whole = whole_node,
                       .call = call,
                       .in = in,
                       .kept = kept,
                       .out = out,
                       .rows = x.batch * x.m,
                       .cols = x.n,
                       .together = TOGETHER};
    return check_rows(&p, g, err);
}

vd_status vd_guard_node(vd_guard *g, const ro_call *call, const void *const *in, void *out,
                        vd_err *err) {
    return guard_node(g, call, in, out, NULL, err);
}

static vd_status part_of_layer(const guarded *p, vd_guard *g, int64_t first, int64_t last,
                               float *out, vd_err *err) {
    vd_fused layer = *p->group;
    vd_fused_memory at = *p->at;
    layer.linear.rows = last - first, layer.output_count = 1;
    at.operand[0] = at.operand[1] = NULL;
    at.in[0] = (const float *)p->at->in[0] + first * layer.linear.in;
    at.out[0] = out;
    return vd_fused_run(&layer, &at, 1, g->other, NULL, 0, err);
}

static vd_status whole_layer(const guarded *p, vd_guard *g, vd_err *err) {
    vd_fused_memory at = *p->at;
    at.operand[0] = at.operand[1] = NULL; /* their reads were counted when the group ran */
    return vd_fused_run(p->group, &at, 1, g->ro, p->kept, 0, err);
}

vd_status vd_guard_group(vd_guard *g, const vd_fused *group, const vd_fused_memory *at,
                         vd_kept_weights *kept, vd_err *err) {
    const ro_linear_layer *l = &group->linear;
    if (g && group->kind == VD_FUSED_CONV) {
        ro_call own = group->conv->own;
        own.input = group->conv->own_shape;
        return guard_node(g, &own, at->in, at->out[0], kept, err);
    }
    if (!g || group->kind != VD_FUSED_LINEAR ||
        (l->fixed_bits != 0 && ro_ctx_guards(g->ro, l->fixed_bits)))
        return VD_OK;
    const guarded p = {.part = part_of_layer,
                       .whole = whole_layer,
                       .group = group,
                       .at = at,
                       .kept = kept,
                       .out = at->out[0],
                       .rows = l->rows,
                       .cols = l->out,
                       .together = TOGETHER};
    return check_rows(&p, g, err);
}
