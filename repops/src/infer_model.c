/* Valid calls of norms, loss, attention and the optimizer. SPEC.md sections 7 to 9. */
#include <string.h>

#include "repops/src/infer.h"
#include "repops/op_attention.h"
#include "repops/op_norm.h"
#include "repops/op_optimizer.h"
#include "repops/op_softmax.h"

/* ---- norms and loss ---- */

ro_status ro_check_ln_rstd(ro_check *c) {
    TRY(ro_all_f32(c));
    return ro_want_range(c, RO_LN_RSTD_N, 1, RO_MAX_NUMEL);
}

static int64_t last_dim(const ro_shape *s) {
    return s->dim[s->ndim - 1];
}

ro_status ro_check_layernorm(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_want_per_last(c, 1, 0));
    TRY(ro_want_per_last(c, 2, 0));
    TRY(ro_want_vector(c, 3, last_dim(&c->in[0])));
    return ro_want_vector(c, 4, last_dim(&c->in[0]));
}

ro_status ro_check_norm_dx(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_want_vector(c, 1, last_dim(&c->in[0])));
    TRY(ro_want_same(c, 2, 0));
    for (int i = 3; i < c->call->input_count; i++)
        TRY(ro_want_per_last(c, i, 0));
    return RO_OK;
}

ro_status ro_check_xent(ro_check *c) {
    for (int i = 0; i < c->call->input_count; i++)
        TRY(ro_want_type(c, i, i == 3 ? RO_I32 : RO_F32));
    for (int i = 1; i < c->call->input_count; i++)
        TRY(ro_want_per_last(c, i, 0));
    c->want = c->in[c->call->input_count == 4 ? 3 : 0];
    c->want.dtype = RO_F32;
    return RO_OK;
}

ro_status ro_check_xent_ignore(ro_check *c) {
    TRY(ro_want_range(c, RO_LABELS_IGNORE, INT32_MIN, INT32_MAX));
    return ro_check_xent(c);
}

ro_status ro_check_kept(ro_check *c) {
    TRY(ro_want_range(c, RO_KEPT_IGNORE, INT32_MIN, INT32_MAX));
    TRY(ro_want_type(c, 0, RO_I32));
    c->want = c->in[0];
    c->want.dtype = RO_F32;
    return RO_OK;
}

ro_status ro_check_softmax(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_want_per_last(c, 1, 0));
    return ro_want_per_last(c, 2, 0);
}

ro_status ro_check_softmax_grad(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_want_same(c, 1, 0));
    return ro_want_per_last(c, 2, 0);
}

ro_status ro_check_rmsnorm(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_want_per_last(c, 1, 0));
    return ro_want_vector(c, 2, last_dim(&c->in[0]));
}

/* ---- attention ---- */

static ro_status want_queries_and_keys(ro_check *c) {
    return c->in[0].ndim >= 2 ? RO_OK : ro_refuse(c, "input 0 must be [..., T, S]");
}

/* Wants scores s: [..., T, S], with a valid mask. */
static ro_status ro_check_scores(ro_check *c) {
    const ro_shape *s = &c->in[0];
    TRY(ro_all_f32(c));
    TRY(ro_want_range(c, RO_MASKED_CAUSAL, 0, 1));
    TRY(want_queries_and_keys(c));
    if (c->call->attr[RO_MASKED_CAUSAL] && s->dim[s->ndim - 1] != s->dim[s->ndim - 2])
        return ro_refuse(c, "causal needs T = S, got %lld and %lld", (long long)s->dim[s->ndim - 2],
                         (long long)last_dim(s));
    return ro_want_window(c, RO_ATTN_MAX_WINDOW, c->call->attr[RO_ATTN_MAX_CAUSAL] != 0);
}

static int64_t blocks_of(int64_t keys) {
    return (keys + RO_ATTN_BLOCK - 1) / RO_ATTN_BLOCK;
}

/* Wants scores whose last input is the position of the first query. */
static ro_status check_placed_scores(ro_check *c) {
    const ro_shape *s = &c->in[0];
    const int last = c->call->input_count - 1;
    for (int i = 0; i < last; i++)
        TRY(ro_want_type(c, i, RO_F32));
    TRY(ro_want_scalar_step(c, last));
    TRY(ro_want_range(c, RO_PLACED_WINDOW, 0, RO_MAX_NUMEL));
    TRY(want_queries_and_keys(c));
    c->want = *s;
    if (s->dim[s->ndim - 2] > last_dim(s))
        return ro_refuse(c, "T must be at most S, got %lld and %lld",
                         (long long)s->dim[s->ndim - 2], (long long)last_dim(s));
    return RO_OK;
}

static ro_status want_blocks(ro_check *c) {
    c->want.dim[c->want.ndim - 1] = blocks_of(last_dim(&c->in[0]));
    return RO_OK;
}

ro_status ro_check_attn_max(ro_check *c) {
    TRY(ro_check_scores(c));
    return want_blocks(c);
}

ro_status ro_check_attn_max_at(ro_check *c) {
    TRY(check_placed_scores(c));
    return want_blocks(c);
}

static ro_status check_block_maxima(ro_check *c) {
    ro_shape mc = c->in[0];
    mc.dim[mc.ndim - 1] = blocks_of(last_dim(&c->in[0]));
    return ro_want_dims(c, 1, &mc);
}

ro_status ro_check_attn_exp(ro_check *c) {
    TRY(ro_check_scores(c));
    return check_block_maxima(c);
}

ro_status ro_check_attn_exp_at(ro_check *c) {
    TRY(check_placed_scores(c));
    return check_block_maxima(c);
}

static ro_status check_values(ro_check *c) {
    const ro_shape *e = &c->in[0], *v = &c->in[1];
    int64_t keys = last_dim(e);
    if (e->ndim != v->ndim || e->ndim >= RO_MAX_DIMS || v->dim[v->ndim - 2] != keys)
        return ro_refuse(c, "v must be [..., %lld, D] like the scores", (long long)keys);
    for (int i = 0; i < e->ndim - 2; i++)
        if (e->dim[i] != v->dim[i])
            return ro_refuse(c, "dimension %d differs", i);
    c->want = *e;
    c->want.dim[e->ndim - 1] = blocks_of(keys);
    c->want.dim[c->want.ndim++] = last_dim(v);
    return RO_OK;
}

ro_status ro_check_attn_av(ro_check *c) {
    TRY(ro_check_scores(c));
    return check_values(c);
}

ro_status ro_check_attn_av_at(ro_check *c) {
    TRY(check_placed_scores(c));
    return check_values(c);
}

enum { ATTN_BLOCKS_MAX = (RO_CRUMB_LOADS - 1) / 2 };

ro_status ro_check_attn_l(ro_check *c) {
    TRY(ro_check_same_pair(c));
    if (last_dim(&c->in[0]) > ATTN_BLOCKS_MAX)
        return ro_refuse(c, "at most %d key blocks", ATTN_BLOCKS_MAX);
    c->want.dim[c->want.ndim - 1] = 1;
    return RO_OK;
}

ro_status ro_check_attn_out(ro_check *c) {
    const ro_shape *mc = &c->in[0], *ac = &c->in[1];
    TRY(ro_all_f32(c));
    if (last_dim(mc) > ATTN_BLOCKS_MAX)
        return ro_refuse(c, "at most %d key blocks", ATTN_BLOCKS_MAX);
    if (ac->ndim != mc->ndim + 1 || memcmp(ac->dim, mc->dim, (size_t)mc->ndim * sizeof *mc->dim))
        return ro_refuse(c, "input 1 must be the shape of input 0 with one more dimension");
    TRY(ro_want_per_last(c, 2, 0));
    c->want.dim[c->want.ndim - 1] = last_dim(ac);
    return RO_OK;
}

ro_status ro_check_attn_prob(ro_check *c) {
    TRY(ro_check_scores(c));
    TRY(ro_want_per_last(c, 1, 0));
    return ro_want_per_last(c, 2, 0);
}

ro_status ro_check_attn_dscore(ro_check *c) {
    TRY(ro_check_scores(c));
    TRY(ro_want_same(c, 1, 0));
    return ro_want_per_last(c, 2, 0);
}

/* Checks repeat_heads and its gradient. */
ro_status ro_check_repeat_heads(ro_check *c) {
    if (c->call->op == RO_OP_REPEAT_HEADS_GRAD)
        TRY(ro_want_type(c, 0, RO_F32));
    c->want = c->in[0];
    TRY(ro_want_range(c, RO_REPEAT_TIMES, 1, 1024));
    if (c->in[0].ndim != 4)
        return ro_refuse(c, "input must be [B, H, T, D]");
    const int64_t times = c->call->attr[RO_REPEAT_TIMES], heads = c->in[0].dim[1];
    if (c->call->op == RO_OP_REPEAT_HEADS) {
        c->want.dim[1] = heads * times;
        return RO_OK;
    }
    if (heads % times != 0)
        return ro_refuse(c, "input must have a multiple of %lld heads, got %lld", (long long)times,
                         (long long)heads);
    c->want.dim[1] = heads / times;
    return RO_OK;
}

/* ---- optimizer ---- */

ro_status ro_check_lr(ro_check *c) {
    TRY(ro_want_scalar_step(c, 0));
    TRY(ro_want_range(c, RO_LR_SCHEDULE_KIND, RO_LR_CONSTANT, RO_LR_COSINE));
    TRY(ro_want_range(c, RO_LR_SCHEDULE_WARMUP, 0, INT32_MAX));
    if (c->call->attr[RO_LR_SCHEDULE_KIND] == RO_LR_CONSTANT)
        TRY(ro_want_range(c, RO_LR_SCHEDULE_TOTAL, 0, 0));
    else
        TRY(ro_want_range(c, RO_LR_SCHEDULE_TOTAL, c->call->attr[RO_LR_SCHEDULE_WARMUP] + 1,
                          INT32_MAX));
    c->want = (ro_shape){RO_F32, 1, {1}};
    return RO_OK;
}

ro_status ro_check_scalar(ro_check *c) {
    TRY(ro_all_f32(c));
    return ro_want_one(c, 0);
}

ro_status ro_check_adamw_moment(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_want_same(c, 1, 0));
    return ro_want_one(c, 2);
}

ro_status ro_check_adamw_w(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_want_same(c, 1, 0));
    TRY(ro_want_same(c, 2, 0));
    for (int i = 3; i < 6; i++)
        TRY(ro_want_one(c, i));
    return RO_OK;
}

/* Wants tensors like the first, followed by inputs of one element. */
ro_status ro_check_sgd(ro_check *c) {
    const int tensors = c->call->op == RO_OP_SGD_W ? 2 : 3;
    TRY(ro_all_f32(c));
    for (int i = 1; i < tensors; i++)
        TRY(ro_want_same(c, i, 0));
    for (int i = tensors; i < c->call->input_count; i++)
        TRY(ro_want_one(c, i));
    return RO_OK;
}
