/* How fused.c runs the optimizers of repops/fused.h. */
#include "repops/device.h"
#include "repops/fused.h"
#include "repops/tools/fused_functions.h"
#include "repops/tools/golden.h"
#include "repops/typed.h"

enum { CLIP = 4, CLIP_C1, CLIP_C2, CLIP_RATE, SCALARS = 4 };

static int64_t elements(const golden_fused *g) {
    int64_t all = 0;
    for (int i = 0; i < SIZES; i++)
        all += g->size[i];
    return all;
}

/* Inputs: w, m, v and the gradient of all parameters, then the scalars; outputs: w, m and v. */
static void plan_adamw(const golden_fused *g, golden_block *b) {
    b->inputs = CLIP + 1;
    for (int i = 0; i < CLIP; i++)
        golden_add(b, elements(g));
    golden_add(b, SCALARS);
    for (int i = 0; i < 3; i++)
        golden_add(b, elements(g));
}

/* Fills in the scalars, and clears the signs of all second moments: none is negative. */
static void fill_adamw(const golden_fused *g, const golden_block *b) {
    static const float scalar[SCALARS] = {0.7f, 0.19f, 0.0975f, 1e-3f};
    for (int64_t e = 0; e < elements(g); e++)
        b->host[b->at[2] + e] &= UINT32_C(0x7fffffff);
    memcpy(b->host + b->at[CLIP], scalar, sizeof scalar);
}

static ro_adamw_step step_of(int64_t count, const float *scalar) {
    return (ro_adamw_step){.size = sizeof(ro_adamw_step),
                           .count = count,
                           .beta1 = 0.9f,
                           .beta2 = 0.95f,
                           .eps = 1e-8f,
                           .decay = 0.1f,
                           .clip = scalar,
                           .c1 = scalar + 1,
                           .c2 = scalar + 2,
                           .rate = scalar + 3};
}

static ro_status run_adamw(ro_ctx *ctx, const golden_fused *g, const golden_block *b, float *x) {
    const int64_t *at = b->at;
    const float *scalar = x + at[CLIP];
    ro_adamw_step step[SIZES];
    ro_adamw_parameter all[SIZES];
    for (int64_t i = 0, from = 0; i < SIZES; from += g->size[i++]) {
        step[i] = step_of(g->size[i], scalar);
        all[i] = (ro_adamw_parameter){.size = sizeof(ro_adamw_parameter),
                                      .step = &step[i],
                                      .w = x + at[0] + from,
                                      .m = x + at[1] + from,
                                      .v = x + at[2] + from,
                                      .gradient = x + at[3] + from,
                                      .w_out = x + at[5] + from,
                                      .m_out = x + at[6] + from,
                                      .v_out = x + at[7] + from};
    }
    if (strcmp(g->function, "adamw_all") == 0)
        return ro_adamw_all(ctx, SIZES, all);
    const ro_adamw_parameter *p = &all[0];
    return ro_adamw(ctx, p->step, p->w, p->m, p->v, p->gradient, p->w_out, p->m_out, p->v_out);
}

enum { BF16_STEP = CLIP + 1, BF16_OUT };

/* Inputs are w, m and v, rounded to bf16 beforehand, the gradient, the scalars and the step;
 * outputs are w, m and v, as f32. */
static void plan_adamw_bf16(const golden_fused *g, golden_block *b) {
    b->inputs = BF16_OUT;
    for (int i = 0; i < CLIP; i++)
        golden_add(b, elements(g));
    golden_add(b, SCALARS);
    golden_add(b, 1);
    for (int i = 0; i < 3; i++)
        golden_add(b, elements(g));
}

static void fill_adamw_bf16(const golden_fused *g, const golden_block *b) {
    fill_adamw(g, b);
    b->host[b->at[BF16_STEP]] = 77;
}

static ro_status cast(ro_ctx *ctx, int64_t count, ro_dtype from, void *x, ro_dtype to, void *y) {
    const ro_tensor in = {{from, 1, {count}}, x};
    ro_tensor out = {{to, 1, {count}}, y};
    return ro_op_cast(ctx, &in, &(ro_op_cast_attrs){to}, &out);
}

static ro_status step_halves(ro_ctx *ctx, const golden_fused *g, const golden_block *b, float *x,
                             uint16_t *const half[3]) {
    const int64_t count = g->size[0], *at = b->at;
    const float *scalar = x + at[CLIP];
    const int32_t *step = (const int32_t *)(const void *)(x + at[BF16_STEP]);
    const ro_adamw_step adamw = step_of(count, scalar);
    const ro_adamw_rounding rounding = {
        .size = sizeof rounding, .stream = {7, 8, 9}, .seed = 0x123456789abcdef, .step = step};
    const ro_adamw_bf16_parameter p = {.size = sizeof p,
                                       .step = &adamw,
                                       .rounding = &rounding,
                                       .w = half[0],
                                       .m = half[1],
                                       .v = half[2],
                                       .gradient = x + at[3],
                                       .w_out = half[0],
                                       .m_out = half[1],
                                       .v_out = half[2]};
    ro_status status = RO_OK;
    for (int i = 0; i < 3 && status == RO_OK; i++)
        status = cast(ctx, count, RO_F32, x + at[i], RO_BF16, half[i]);
    if (status == RO_OK)
        status = ro_adamw_bf16(ctx, &p);
    for (int i = 0; i < 3 && status == RO_OK; i++)
        status = cast(ctx, count, RO_BF16, half[i], RO_F32, x + at[BF16_OUT + i]);
    return status;
}

static ro_status run_adamw_bf16(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                                float *x) {
    const size_t size = (size_t)(g->size[0] + 31) / 32 * 32;
    uint16_t *all = ro_alloc(ctx, 3 * size * sizeof *all);
    if (!all)
        return RO_ERR_MEMORY;
    const ro_status status =
        step_halves(ctx, g, b, x, (uint16_t *const[]){all, all + size, all + 2 * size});
    ro_free(ctx, all);
    return status;
}

/* Inputs: w, m and the gradient, then clip and rate; outputs: w and m. causal: Nesterov's. */
static void plan_sgd(const golden_fused *g, golden_block *b) {
    const int64_t count[] = {g->size[0], g->size[0], g->size[0], 2, g->size[0], g->size[0]};
    b->inputs = 4;
    for (int i = 0; i < 6; i++)
        golden_add(b, count[i]);
}

static void fill_sgd(const golden_fused *g, const golden_block *b) {
    static const float scalar[] = {0.7f, 0.1f};
    (void)g;
    memcpy(b->host + b->at[3], scalar, sizeof scalar);
}

static ro_status run_sgd(ro_ctx *ctx, const golden_fused *g, const golden_block *b, float *x) {
    const int64_t *at = b->at;
    const float *clip = x + at[3];
    const ro_sgd_step step = {.size = sizeof step,
                              .nesterov = g->causal,
                              .count = g->size[0],
                              .momentum = 0.9f,
                              .decay = 5e-4f,
                              .clip = clip,
                              .rate = clip + 1};
    return ro_sgd(ctx, &step, x + at[0], x + at[1], x + at[2], x + at[4], x + at[5]);
}

/* ---- all ---- */

static const golden_function functions[] = {
    {"adamw", plan_adamw, fill_adamw, run_adamw},
    {"adamw_all", plan_adamw, fill_adamw, run_adamw},
    {"adamw_bf16", plan_adamw_bf16, fill_adamw_bf16, run_adamw_bf16},
    {"sgd", plan_sgd, fill_sgd, run_sgd},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

const golden_function *golden_optimizer_at(int i) {
    return i < FUNCTIONS ? &functions[i] : golden_layer_function_at(i - FUNCTIONS);
}
