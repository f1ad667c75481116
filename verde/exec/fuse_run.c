/* This file runs groups of nodes by calls of repops' fused functions. */
#include "repops/device.h"
#include "repops/op_movement.h"
#include "verde/exec/fuse.h"
#include "verde/exec/kept_weights.h"
#include "verde/exec/memory.h"

static ro_status fill(const vd_fused *g, ro_ctx *ro, float *dloss) {
    ro_call call = {.op = RO_OP_FILL, .attr = {ro_attr_f32(g->dloss)}};
    call.output = (ro_shape){RO_F32, 1, {g->rows}};
    return ro_run(ro, &call, NULL, dloss);
}

static vd_status run_cross_entropy(const vd_fused *g, ro_ctx *ro, const void *const *in,
                                   void *const *out, vd_err *err) {
    const bool given = g->input_count > 2;
    float *filled = given ? NULL : vd_memory_alloc(ro, (size_t)g->rows * sizeof *filled);
    if (!given && !filled)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    ro_status status = given ? RO_OK : fill(g, ro, filled);
    if (status == RO_OK)
        status = ro_cross_entropy(ro, g->rows, g->cols, in[0], in[1], g->ignore,
                                  given ? in[2] : filled, out[0], NULL, NULL, out[1]);
    vd_memory_free(ro, filled);
    return status == RO_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
}

static ro_status run_attention(const vd_fused *g, ro_ctx *ro, int32_t step, const void *const *in,
                               void *const *out) {
    ro_attention a = g->attention;
    ro_attention_dropout dropout = g->dropout;
    dropout.step += step;
    a.dropout = g->drops ? &dropout : NULL;
    if (g->placed)
        a.keys = (int64_t)step + g->first_key + a.queries;
    const uint32_t inputs = g->kind == VD_FUSED_ATTENTION ? 3 : 7;
    a.key_bias = g->input_count > inputs ? in[inputs] : NULL;
    const float *x[3];
    float *to[3] = {NULL};
    for (uint32_t i = 0; i < g->output_count; i++)
        to[i] = out[i];
    for (int i = 0; i < 3; i++)
        x[i] = (const float *)in[i] + g->first[i];
    if (g->kind == VD_FUSED_ATTENTION)
        return ro_attention_forward(ro, &a, x[0], x[1], x[2], to[0], to[1], to[2]);
    for (int i = 0; g->joined && i < 3; i++)
        to[i] = (float *)out[0] + i * a.heads * a.head_size;
    return ro_attention_backward(ro, &a, x[0], x[1], x[2], in[3], in[4], in[5], in[6], to[0], to[1],
                                 to[2]);
}

static ro_adamw_step adamw_step(const vd_fused *g, const void *const *in) {
    ro_adamw_step step = g->adamw;
    step.clip = in[4], step.c1 = in[5], step.c2 = in[6], step.rate = in[7];
    return step;
}

static ro_status run_adamw(const vd_fused *g, const vd_fused_memory *at, uint32_t count,
                           ro_ctx *ro) {
    ro_adamw_step step[VD_FUSED_BATCH];
    ro_adamw_parameter all[VD_FUSED_BATCH];
    for (uint32_t i = 0; i < count; i++) {
        const void *const *in = at[i].in;
        void *const *out = at[i].out;
        step[i] = adamw_step(&g[i], in);
        all[i] = (ro_adamw_parameter){.size = sizeof *all,
                                      .step = &step[i],
                                      .w = in[0],
                                      .m = in[1],
                                      .v = in[2],
                                      .gradient = in[3],
                                      .w_out = out[0],
                                      .m_out = out[1],
                                      .v_out = out[2]};
    }
    return ro_adamw_all(ro, count, all);
}

static ro_status run_adamw_bf16(const vd_fused *g, ro_ctx *ro, const void *const *in,
                                void *const *out) {
    const ro_adamw_step step = adamw_step(g, in);
    ro_adamw_rounding rounding = g->rounding;
    const ro_adamw_bf16_parameter p = {.size = sizeof p,
                                       .step = &step,
                                       .rounding = &rounding,
                                       .w = in[0],
                                       .m = in[1],
                                       .v = in[2],
                                       .gradient = in[3],
                                       .w_out = out[0],
                                       .m_out = out[1],
                                       .v_out = out[2]};
    rounding.step = in[8];
    return ro_adamw_bf16(ro, &p);
}

/* Adds the second gradient to the first one, or to a copy of it if the first is still needed. */
static ro_status run_embedding_grad(const vd_fused *g, ro_ctx *ro, const void *const *in,
                                    void *const *out) {
    const size_t size = (size_t)(g->rows * g->cols) * sizeof(float);
    ro_status status = in[0] == out[0] ? RO_OK : ro_copy(ro, out[0], in[0], size);
    if (status == RO_OK)
        status = ro_embedding_backward(ro, g->rows, g->cols, g->positions, in[1], in[2],
                                       (ro_gradient){out[0], 1});
    return status;
}

static ro_status run_layer_norm(const vd_fused *g, ro_ctx *ro, const void *const *in,
                                void *const *out) {
    return ro_layer_norm(ro, g->rows, g->cols, g->eps, in[0], in[1], in[2], out[0], out[1], out[2]);
}

static ro_status run_layer_norm_grad(const vd_fused *g, ro_ctx *ro, const void *const *in,
                                     void *const *out) {
    return ro_layer_norm_backward(ro, g->rows, g->cols, in[1], in[2], in[3], in[4], in[0], out[0],
                                  out[1], out[2]);
}

static ro_status run_rms_norm(const vd_fused *g, ro_ctx *ro, const void *const *in,
                              void *const *out) {
    return ro_rms_norm(ro, g->rows, g->cols, g->eps, in[0], in[1], out[0], out[1]);
}

static ro_status run_rms_norm_grad(const vd_fused *g, ro_ctx *ro, const void *const *in,
                                   void *const *out) {
    const ro_gradient dx = {out[0], 0}, dgamma = {g->output_count > 1 ? out[1] : NULL, 0};
    return ro_rms_norm_backward(ro, g->rows, g->cols, in[1], in[2], in[3], in[0], dx, dgamma);
}

static ro_status run_sgd(const vd_fused *g, ro_ctx *ro, const void *const *in, void *const *out) {
    ro_sgd_step step = g->sgd;
    step.clip = in[3], step.rate = in[4];
    return ro_sgd(ro, &step, in[0], in[1], in[2], out[0], out[1]);
}

static ro_status run_elements(const vd_fused *g, ro_ctx *ro, const void *const *in,
                              void *const *out) {
    const vd_elements *e = g->elements;
    ro_chain_input input[RO_CHAIN_INPUTS];
    for (uint32_t i = 0; i < e->input_count; i++) {
        input[i] = e->input[i];
        input[i].data = i < g->input_count ? in[i] : &e->number[i];
    }
    return ro_chain(ro, e->count, e->input_count, input, e->step_count, e->step, out[0]);
}

vd_status vd_fused_run(const vd_fused *g, const vd_fused_memory *at, uint32_t count, ro_ctx *ro,
                       vd_kept_weights *kept, int32_t step, vd_err *err) {
    ro_status status = RO_OK;
    switch (g->kind) {
    case VD_FUSED_CROSS_ENTROPY: return run_cross_entropy(g, ro, at->in, at->out, err);
    case VD_FUSED_CONV: return vd_conv_run(g, at, ro, kept, err);
    case VD_FUSED_LINEAR: return vd_linear_run(g, at, ro, kept, err);
    case VD_FUSED_LAYER_NORM: status = run_layer_norm(g, ro, at->in, at->out); break;
    case VD_FUSED_LAYER_NORM_GRAD: status = run_layer_norm_grad(g, ro, at->in, at->out); break;
    case VD_FUSED_RMS_NORM: status = run_rms_norm(g, ro, at->in, at->out); break;
    case VD_FUSED_RMS_NORM_GRAD: status = run_rms_norm_grad(g, ro, at->in, at->out); break;
    case VD_FUSED_ADAMW: status = run_adamw(g, at, count, ro); break;
    case VD_FUSED_ADAMW_BF16: status = run_adamw_bf16(g, ro, at->in, at->out); break;
    case VD_FUSED_EMBEDDING_GRAD: status = run_embedding_grad(g, ro, at->in, at->out); break;
    case VD_FUSED_SGD: status = run_sgd(g, ro, at->in, at->out); break;
    case VD_FUSED_ROTARY:
        status = ro_rotary(ro, &g->rotary, at->in[0], at->in[1], at->in[2], at->out[0]);
        break;
    case VD_FUSED_ROTARY_GRAD:
        status = ro_rotary_backward(ro, &g->rotary, at->in[0], at->in[1], at->in[2],
                                    (ro_gradient){at->out[0], 0});
        break;
    case VD_FUSED_ELEMENTS: status = run_elements(g, ro, at->in, at->out); break;
    case VD_FUSED_ATTENTION:
    case VD_FUSED_ATTENTION_GRAD: status = run_attention(g, ro, step, at->in, at->out); break;
    }
    return status == RO_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
}

uint32_t vd_fused_in_place(const vd_fused *g, uint32_t i) {
    switch (g->kind) {
    case VD_FUSED_ADAMW:
    case VD_FUSED_ADAMW_BF16:
    case VD_FUSED_SGD: return i; /* w, m, v */
    case VD_FUSED_LAYER_NORM_GRAD:
    case VD_FUSED_RMS_NORM_GRAD:
    case VD_FUSED_EMBEDDING_GRAD: return i == 0 ? 0 : VD_NO_GROUP;
    case VD_FUSED_CROSS_ENTROPY: return i == 1 ? 0 : VD_NO_GROUP;
    case VD_FUSED_ELEMENTS: return g->elements->onto;
    default: return VD_NO_GROUP;
    }
}
