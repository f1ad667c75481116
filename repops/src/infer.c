/* Which calls are valid, and the shape of their output. SPEC.md sections 3 to 9 and 11. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "repops/repops.h"
#include "repops/src/call.h"

/* One check: the call, where the wanted output shape goes, and where to say what is wrong. */
typedef struct {
    const ro_call *call;
    const ro_shape *in;
    ro_shape want; /* ndim 0: declared by the caller */
    char *why;
    size_t why_size;
} check;

static ro_status refuse(check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static ro_status refuse(check *c, const char *format, ...) {
    const ro_op_info *info = ro_op_describe(c->call->op);
    if (c->why && c->why_size) {
        int at = snprintf(c->why, c->why_size, "%s: ", info ? info->name : "operator");
        va_list args;
        va_start(args, format);
        if (at > 0 && (size_t)at < c->why_size)
            vsnprintf(c->why + at, c->why_size - (size_t)at, format, args);
        va_end(args);
    }
    return RO_ERR_ARG;
}

static int valid_shape(const ro_shape *s) {
    if (ro_dtype_size(s->dtype) == 0 || s->ndim < 1 || s->ndim > RO_MAX_DIMS)
        return 0;
    int64_t numel = 1;
    for (int i = 0; i < s->ndim; i++) {
        if (s->dim[i] < 1 || s->dim[i] > RO_MAX_NUMEL / numel)
            return 0;
        numel *= s->dim[i];
    }
    for (int i = s->ndim; i < RO_MAX_DIMS; i++)
        if (s->dim[i] != 0)
            return 0;
    return 1;
}

#define NUMEL(i) ro_shape_numel(&c->in[i])

static ro_status want_type(check *c, int input, int dtype) {
    if (c->in[input].dtype == dtype)
        return RO_OK;
    return refuse(c, "input %d must be %s, got %s", input, ro_dtype_name(dtype),
                  ro_dtype_name(c->in[input].dtype));
}

static ro_status want_numel(check *c, int input, int64_t numel) {
    if (NUMEL(input) == numel)
        return RO_OK;
    return refuse(c, "input %d must have %lld elements, got %lld", input, (long long)numel,
                  (long long)NUMEL(input));
}

static ro_status want_same(check *c, int input, int as) {
    if (ro_shape_equal(&c->in[input], &c->in[as]))
        return RO_OK;
    return refuse(c, "inputs %d and %d must have the same shape", input, as);
}

static ro_status want_range(check *c, int attr, int64_t lo, int64_t hi) {
    int64_t got = c->call->attr[attr];
    if (got >= lo && got <= hi)
        return RO_OK;
    return refuse(c, "%s must be %lld..%lld, got %lld",
                  ro_op_describe(c->call->op)->attr[attr].name, (long long)lo, (long long)hi,
                  (long long)got);
}

static ro_status want_scalar_step(check *c, int input) {
    ro_status status = want_type(c, input, RO_I32);
    return status != RO_OK ? status : want_numel(c, input, 1);
}

#define TRY(expression)                                                                            \
    do {                                                                                           \
        ro_status try_status = (expression);                                                       \
        if (try_status != RO_OK)                                                                   \
            return try_status;                                                                     \
    } while (0)

/* ---- sources and movement ---- */

static ro_status declared(check *c, int dtype) {
    if (c->call->output.dtype != dtype)
        return refuse(c, "output must be %s, got %s", ro_dtype_name(dtype),
                      ro_dtype_name(c->call->output.dtype));
    return RO_OK;
}

static ro_status check_fill(check *c) {
    return declared(c, RO_F32);
}

static ro_status check_normal(check *c) {
    TRY(want_range(c, 1, 0, UINT32_MAX));
    return declared(c, RO_F32);
}

static ro_status check_iota(check *c) {
    TRY(declared(c, RO_I32));
    if (c->call->output.ndim != 1 || c->call->output.dim[0] > INT64_C(1) << 31)
        return refuse(c, "output must have one dimension of at most 2^31 elements");
    return RO_OK;
}

static ro_status check_read_batch(check *c) {
    const ro_shape *out = &c->call->output;
    TRY(declared(c, RO_I32));
    TRY(want_scalar_step(c, 1));
    if ((c->in[0].dtype != RO_U8 && c->in[0].dtype != RO_U16) || c->in[0].ndim != 1)
        return refuse(c, "data must be u8 or u16 with one dimension");
    if (out->ndim != 2)
        return refuse(c, "output must be [rows, sequence]");
    TRY(want_range(c, 1, 0, UINT32_MAX));
    TRY(want_range(c, 2, 1, INT32_MAX));
    TRY(want_range(c, 3, 0, INT32_MAX));
    TRY(want_range(c, 4, 0, 1));
    if (c->call->attr[3] + out->dim[0] > c->call->attr[2])
        return refuse(c, "first + rows must be at most batch (%lld)", (long long)c->call->attr[2]);
    if ((c->in[0].dim[0] - 1) / out->dim[1] < 1)
        return refuse(c, "data holds no window of %lld + 1 tokens", (long long)out->dim[1]);
    return RO_OK;
}

static ro_status check_embedding(check *c) {
    TRY(want_type(c, 0, RO_F32));
    TRY(want_type(c, 1, RO_I32));
    if (c->in[0].ndim != 2 || c->in[1].ndim >= RO_MAX_DIMS)
        return refuse(c, "table must be [V, C], ids at most %d dimensions", RO_MAX_DIMS - 1);
    c->want = c->in[1];
    c->want.dtype = RO_F32;
    c->want.dim[c->want.ndim++] = c->in[0].dim[1];
    return RO_OK;
}

static ro_status check_embedding_grad(check *c) {
    const ro_shape *out = &c->call->output;
    TRY(declared(c, RO_F32));
    TRY(want_type(c, 0, RO_F32));
    TRY(want_type(c, 1, RO_I32));
    if (out->ndim != 2 || c->in[0].dim[c->in[0].ndim - 1] != out->dim[1])
        return refuse(c, "output must be [V, C] with C = last dimension of dy");
    if (NUMEL(1) > INT64_C(1) << 31)
        return refuse(c, "at most 2^31 positions");
    return want_numel(c, 1, NUMEL(0) / out->dim[1]);
}

static ro_status check_split_heads(check *c) {
    const ro_shape *x = &c->in[0];
    TRY(want_type(c, 0, RO_F32));
    TRY(want_range(c, 0, 1, 8));
    TRY(want_range(c, 1, 0, c->call->attr[0] - 1));
    TRY(want_range(c, 2, 1, 1 << 20));
    int64_t cut = c->call->attr[0] * c->call->attr[2];
    if (x->ndim != 3 || x->dim[2] % cut != 0)
        return refuse(c, "input must be [B, T, n] with n a multiple of %lld", (long long)cut);
    c->want = (ro_shape){RO_F32, 4, {x->dim[0], c->call->attr[2], x->dim[1], x->dim[2] / cut}};
    return RO_OK;
}

static ro_status check_join_heads(check *c) {
    const ro_shape *x = &c->in[0];
    TRY(want_type(c, 0, RO_F32));
    if (x->ndim != 4)
        return refuse(c, "inputs must be [B, H, T, D]");
    for (int i = 1; i < c->call->input_count; i++)
        TRY(want_same(c, i, 0));
    int64_t width = x->dim[1] * x->dim[3] * c->call->input_count;
    c->want = (ro_shape){RO_F32, 3, {x->dim[0], x->dim[2], width}};
    return RO_OK;
}

static ro_status check_concat(check *c) {
    int64_t sum = 0;
    for (int i = 0; i < c->call->input_count; i++) {
        TRY(want_type(c, i, RO_F32));
        sum += NUMEL(i);
    }
    c->want = (ro_shape){RO_F32, 1, {sum}};
    return RO_OK;
}

/* ---- elementwise ---- */

static ro_status all_f32(check *c) {
    for (int i = 0; i < c->call->input_count; i++)
        TRY(want_type(c, i, RO_F32));
    c->want = c->in[0];
    return RO_OK;
}

static ro_status check_add(check *c) {
    TRY(all_f32(c));
    if (NUMEL(0) % NUMEL(1) != 0)
        return refuse(c, "%lld elements do not repeat into %lld", (long long)NUMEL(1),
                      (long long)NUMEL(0));
    return RO_OK;
}

static ro_status check_same_pair(check *c) {
    TRY(all_f32(c));
    return want_same(c, 1, 0);
}

static ro_status check_dropout(check *c) {
    TRY(want_type(c, 0, RO_F32));
    TRY(want_scalar_step(c, 1));
    TRY(want_range(c, 1, 0, UINT32_MAX));
    TRY(want_range(c, 2, 0, UINT32_MAX));
    c->want = c->in[0];
    return RO_OK;
}

/* ---- dot products ---- */

static ro_status check_matmul_batch(check *c, int bd) {
    const ro_shape *a = &c->in[0], *b = &c->in[1];
    if (a->ndim < bd + 2 || b->ndim < bd + 2)
        return refuse(c, "inputs must have at least two dimensions beyond the %d of the batch", bd);
    for (int i = 0; i < bd; i++)
        if (a->dim[i] != b->dim[i])
            return refuse(c, "batch dimension %d differs: %lld and %lld", i, (long long)a->dim[i],
                          (long long)b->dim[i]);
    return RO_OK;
}

static ro_status check_matmul(check *c) {
    TRY(all_f32(c));
    TRY(want_range(c, 0, 0, RO_MAX_DIMS - 2));
    TRY(want_range(c, 1, 0, 3));
    TRY(want_range(c, 4, 0, 2));
    if (c->call->attr[3] != RO_DOT_CHUNK && c->call->attr[3] != RO_ATTN_BLOCK)
        return refuse(c, "chunk must be %d or %d", RO_DOT_CHUNK, RO_ATTN_BLOCK);
    int bd = (int)c->call->attr[0];
    TRY(check_matmul_batch(c, bd));
    ro_matmul m = ro_matmul_of(c->call);
    if (m.k != m.k_b)
        return refuse(c, "inner dimensions differ: %lld and %lld", (long long)m.k,
                      (long long)m.k_b);
    c->want = c->in[0];
    if (m.trans_a) {
        c->want.dim[bd] = m.m;
        for (int i = bd + 1; i < RO_MAX_DIMS; i++)
            c->want.dim[i] = 0;
        c->want.ndim = bd + 2;
    }
    c->want.dim[c->want.ndim - 1] = m.n;
    return RO_OK;
}

/* ---- reductions ---- */

static ro_status check_view(check *c) {
    TRY(all_f32(c));
    TRY(declared(c, RO_F32));
    c->want.ndim = 0;
    int64_t cols = c->call->attr[0];
    if (cols < 1 || NUMEL(0) % cols != 0)
        return refuse(c, "cols must divide %lld, got %lld", (long long)NUMEL(0), (long long)cols);
    return RO_OK;
}

static ro_status want_output(check *c, int64_t numel) {
    int64_t got = ro_shape_numel(&c->call->output);
    if (got == numel)
        return RO_OK;
    return refuse(c, "output must have %lld elements, got %lld", (long long)numel, (long long)got);
}

static ro_status check_reduce(check *c) {
    TRY(check_view(c));
    int64_t cols = c->call->attr[0], block = c->call->attr[1], rows = NUMEL(0) / cols;
    TRY(want_range(c, 1, 1, RO_REDUCE_BLOCK));
    switch (c->call->op) {
    case RO_OP_REDUCE_DOT:
        if (NUMEL(0) % NUMEL(1) != 0)
            return refuse(c, "%lld elements do not repeat into %lld", (long long)NUMEL(1),
                          (long long)NUMEL(0));
        break;
    case RO_OP_REDUCE_SQDEV:
    case RO_OP_REDUCE_EXPSUM: TRY(want_numel(c, 1, rows)); break;
    case RO_OP_REDUCE_LN_GX:
        TRY(want_numel(c, 1, cols));
        TRY(want_numel(c, 2, NUMEL(0)));
        TRY(want_numel(c, 3, rows));
        TRY(want_numel(c, 4, rows));
        break;
    default: break;
    }
    return want_output(c, rows * ((cols + block - 1) / block));
}

static ro_status check_columns(check *c) {
    TRY(check_view(c));
    int64_t cols = c->call->attr[0], rows = NUMEL(0) / cols;
    if (c->call->op == RO_OP_LN_DGAMMA) {
        TRY(want_numel(c, 1, NUMEL(0)));
        TRY(want_numel(c, 2, rows));
        TRY(want_numel(c, 3, rows));
    }
    return want_output(c, (rows + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP * cols);
}

/* ---- norms and loss ---- */

static ro_status check_ln_rstd(check *c) {
    TRY(all_f32(c));
    return want_range(c, 0, 1, RO_MAX_NUMEL);
}

static int64_t last_dim(const ro_shape *s) {
    return s->dim[s->ndim - 1];
}

static ro_status check_layernorm(check *c) {
    TRY(all_f32(c));
    int64_t cols = last_dim(&c->in[0]), rows = NUMEL(0) / cols;
    TRY(want_numel(c, 1, rows));
    TRY(want_numel(c, 2, rows));
    TRY(want_numel(c, 3, cols));
    return want_numel(c, 4, cols);
}

static ro_status check_ln_dx(check *c) {
    TRY(all_f32(c));
    int64_t cols = last_dim(&c->in[0]), rows = NUMEL(0) / cols;
    TRY(want_numel(c, 1, cols));
    TRY(want_same(c, 2, 0));
    for (int i = 3; i < 7; i++)
        TRY(want_numel(c, i, rows));
    return RO_OK;
}

static ro_status check_xent(check *c) {
    int64_t rows = NUMEL(0) / last_dim(&c->in[0]);
    for (int i = 0; i < c->call->input_count; i++)
        TRY(want_type(c, i, i == 3 ? RO_I32 : RO_F32));
    for (int i = 1; i < c->call->input_count; i++)
        TRY(want_numel(c, i, rows));
    c->want = c->in[c->call->op == RO_OP_XENT ? 3 : 0];
    c->want.dtype = RO_F32;
    return RO_OK;
}

/* ---- attention ---- */

/* s: [..., T, S]. */
static ro_status check_scores(check *c) {
    const ro_shape *s = &c->in[0];
    TRY(all_f32(c));
    TRY(want_range(c, 0, 0, 1));
    if (s->ndim < 2)
        return refuse(c, "input 0 must be [..., T, S]");
    if (c->call->attr[0] && s->dim[s->ndim - 1] != s->dim[s->ndim - 2])
        return refuse(c, "causal needs T = S, got %lld and %lld", (long long)s->dim[s->ndim - 2],
                      (long long)last_dim(s));
    return RO_OK;
}

static int64_t blocks_of(int64_t keys) {
    return (keys + RO_ATTN_BLOCK - 1) / RO_ATTN_BLOCK;
}

static ro_status check_attn_max(check *c) {
    TRY(check_scores(c));
    c->want.dim[c->want.ndim - 1] = blocks_of(last_dim(&c->in[0]));
    return RO_OK;
}

static ro_status check_attn_exp(check *c) {
    TRY(check_scores(c));
    int64_t keys = last_dim(&c->in[0]);
    return want_numel(c, 1, NUMEL(0) / keys * blocks_of(keys));
}

static ro_status check_attn_av(check *c) {
    TRY(check_scores(c));
    const ro_shape *e = &c->in[0], *v = &c->in[1];
    int64_t keys = last_dim(e);
    if (e->ndim != v->ndim || e->ndim >= RO_MAX_DIMS || v->dim[v->ndim - 2] != keys)
        return refuse(c, "v must be [..., %lld, D] like the scores", (long long)keys);
    for (int i = 0; i < e->ndim - 2; i++)
        if (e->dim[i] != v->dim[i])
            return refuse(c, "dimension %d differs", i);
    c->want = *e;
    c->want.dim[e->ndim - 1] = blocks_of(keys);
    c->want.dim[c->want.ndim++] = last_dim(v);
    return RO_OK;
}

enum { ATTN_BLOCKS_MAX = (RO_CRUMB_LOADS - 1) / 2 };

static ro_status check_attn_l(check *c) {
    TRY(check_same_pair(c));
    if (last_dim(&c->in[0]) > ATTN_BLOCKS_MAX)
        return refuse(c, "at most %d key blocks", ATTN_BLOCKS_MAX);
    c->want.dim[c->want.ndim - 1] = 1;
    return RO_OK;
}

static ro_status check_attn_out(check *c) {
    const ro_shape *mc = &c->in[0], *ac = &c->in[1];
    TRY(all_f32(c));
    if (last_dim(mc) > ATTN_BLOCKS_MAX)
        return refuse(c, "at most %d key blocks", ATTN_BLOCKS_MAX);
    if (ac->ndim != mc->ndim + 1 || memcmp(ac->dim, mc->dim, (size_t)mc->ndim * sizeof *mc->dim))
        return refuse(c, "input 1 must be the shape of input 0 with one more dimension");
    TRY(want_numel(c, 2, NUMEL(0) / last_dim(mc)));
    c->want.dim[c->want.ndim - 1] = last_dim(ac);
    return RO_OK;
}

static ro_status check_attn_prob(check *c) {
    TRY(check_scores(c));
    TRY(want_numel(c, 1, NUMEL(0) / last_dim(&c->in[0])));
    return want_numel(c, 2, NUMEL(0) / last_dim(&c->in[0]));
}

static ro_status check_attn_dscore(check *c) {
    TRY(check_scores(c));
    TRY(want_same(c, 1, 0));
    return want_numel(c, 2, NUMEL(0) / last_dim(&c->in[0]));
}

/* ---- optimizer ---- */

static ro_status check_lr(check *c) {
    TRY(want_scalar_step(c, 0));
    TRY(want_range(c, 0, RO_LR_CONSTANT, RO_LR_COSINE));
    TRY(want_range(c, 3, 0, INT32_MAX));
    if (c->call->attr[0] == RO_LR_CONSTANT)
        TRY(want_range(c, 4, 0, 0));
    else
        TRY(want_range(c, 4, c->call->attr[3] + 1, INT32_MAX));
    c->want = (ro_shape){RO_F32, 1, {1}};
    return RO_OK;
}

static ro_status check_scalar(check *c) {
    TRY(all_f32(c));
    return want_numel(c, 0, 1);
}

static ro_status check_adamw_moment(check *c) {
    TRY(all_f32(c));
    TRY(want_same(c, 1, 0));
    return want_numel(c, 2, 1);
}

static ro_status check_adamw_w(check *c) {
    TRY(all_f32(c));
    TRY(want_same(c, 1, 0));
    TRY(want_same(c, 2, 0));
    for (int i = 3; i < 6; i++)
        TRY(want_numel(c, i, 1));
    return RO_OK;
}

static ro_status (*const checks[RO_OP_END])(check *) = {
    [RO_OP_FILL] = check_fill,
    [RO_OP_NORMAL] = check_normal,
    [RO_OP_READ_BATCH] = check_read_batch,
    [RO_OP_EMBEDDING] = check_embedding,
    [RO_OP_EMBEDDING_GRAD] = check_embedding_grad,
    [RO_OP_SPLIT_HEADS] = check_split_heads,
    [RO_OP_JOIN_HEADS] = check_join_heads,
    [RO_OP_CONCAT] = check_concat,
    [RO_OP_IOTA] = check_iota,
    [RO_OP_ADD] = check_add,
    [RO_OP_DIV_CONST] = all_f32,
    [RO_OP_GELU] = all_f32,
    [RO_OP_GELU_GRAD] = check_same_pair,
    [RO_OP_RELU] = all_f32,
    [RO_OP_RELU_GRAD] = check_same_pair,
    [RO_OP_DROPOUT] = check_dropout,
    [RO_OP_MATMUL] = check_matmul,
    [RO_OP_REDUCE_SUM] = check_reduce,
    [RO_OP_REDUCE_MAX] = check_reduce,
    [RO_OP_REDUCE_DOT] = check_reduce,
    [RO_OP_REDUCE_SQDEV] = check_reduce,
    [RO_OP_REDUCE_EXPSUM] = check_reduce,
    [RO_OP_REDUCE_LN_GX] = check_reduce,
    [RO_OP_SUM_ROWS] = check_columns,
    [RO_OP_LN_DGAMMA] = check_columns,
    [RO_OP_LN_RSTD] = check_ln_rstd,
    [RO_OP_LAYERNORM] = check_layernorm,
    [RO_OP_LN_DX] = check_ln_dx,
    [RO_OP_XENT] = check_xent,
    [RO_OP_XENT_GRAD] = check_xent,
    [RO_OP_ATTN_MAX] = check_attn_max,
    [RO_OP_ATTN_EXP] = check_attn_exp,
    [RO_OP_ATTN_AV] = check_attn_av,
    [RO_OP_ATTN_L] = check_attn_l,
    [RO_OP_ATTN_OUT] = check_attn_out,
    [RO_OP_ATTN_PROB] = check_attn_prob,
    [RO_OP_ATTN_DSCORE] = check_attn_dscore,
    [RO_OP_LR_SCHEDULE] = check_lr,
    [RO_OP_BIAS_CORRECTION] = check_scalar,
    [RO_OP_CLIP_SCALE] = check_scalar,
    [RO_OP_ADAMW_M] = check_adamw_moment,
    [RO_OP_ADAMW_V] = check_adamw_moment,
    [RO_OP_ADAMW_W] = check_adamw_w,
};

/* Kind f: bits of a binary32, nothing above them. */
static ro_status check_attrs(check *c, const ro_op_info *info) {
    for (int i = 0; i < info->attr_count; i++)
        if (info->attr[i].kind == 'f')
            TRY(want_range(c, i, 0, UINT32_MAX));
    for (int i = info->attr_count; i < RO_MAX_ATTRS; i++)
        if (c->call->attr[i] != 0)
            return refuse(c, "unused attribute %d must be 0", i);
    return RO_OK;
}

static ro_status check_inputs(check *c, const ro_op_info *info) {
    if (c->call->input_count < info->min_inputs || c->call->input_count > info->max_inputs)
        return refuse(c, "takes %d..%d inputs, got %d", info->min_inputs, info->max_inputs,
                      c->call->input_count);
    if (c->call->input_count > 0 && !c->in)
        return refuse(c, "the shapes of the inputs are missing");
    for (int i = 0; i < c->call->input_count; i++)
        if (!valid_shape(&c->in[i]))
            return refuse(c, "input %d has no valid shape", i);
    if ((info->declared_shape || c->call->output.ndim != 0) && !valid_shape(&c->call->output))
        return refuse(c, "output has no valid shape");
    return check_attrs(c, info);
}

ro_status ro_infer(ro_call *call, char *why, size_t why_size) {
    check c = {.call = call, .in = call->input, .why = why, .why_size = why_size};
    const ro_op_info *info = ro_op_describe(call->op);
    if (!info)
        return refuse(&c, "there is no number %d", (int)call->op);
    TRY(check_inputs(&c, info));
    TRY(checks[call->op](&c));
    if (info->declared_shape)
        return RO_OK;
    if (!valid_shape(&c.want))
        return refuse(&c, "output would have more than 2^40 elements");
    if (call->output.ndim != 0 && !ro_shape_equal(&call->output, &c.want))
        return refuse(&c, "output has another shape than its inputs give");
    call->output = c.want;
    return RO_OK;
}
