#include "repops/device.h"
#include "repops/layers.h"
#include "repops/tools/fused_functions.h"
#include "repops/tools/golden.h"

/* ---- RMS norm ---- */

/* x, gamma; y, rstd */
static void plan_rms_norm(const golden_fused *g, golden_block *b) {
    const int64_t rows = g->size[0], cols = g->size[1];
    b->inputs = 2;
    golden_add(b, rows * cols);
    golden_add(b, cols);
    golden_add(b, rows * cols);
    golden_add(b, rows);
}

static ro_status run_rms_norm(ro_ctx *ctx, const golden_fused *g, const golden_block *b, float *x) {
    const int64_t *at = b->at;
    return ro_rms_norm(ctx, g->size[0], g->size[1], 1e-5f, x + at[0], x + at[1], x + at[2],
                       x + at[3]);
}

/* x, gamma, rstd, dy; dx, dgamma */
static void plan_rms_norm_backward(const golden_fused *g, golden_block *b) {
    const int64_t rows = g->size[0], cols = g->size[1], all = rows * cols;
    const int64_t count[] = {all, cols, rows, all, all, cols};
    b->inputs = 4;
    for (int i = 0; i < 6; i++)
        golden_add(b, count[i]);
}

static ro_status run_rms_norm_backward(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                                       float *x) {
    const int64_t *at = b->at;
    return ro_rms_norm_backward(ctx, g->size[0], g->size[1], x + at[0], x + at[1], x + at[2],
                                x + at[3], (ro_gradient){x + at[4], 0},
                                (ro_gradient){x + at[5], 0});
}

/* ---- rotary positions: forward, then backward with the input as dy ---- */

enum { X, POSITION, TURNS, Y, DX };

static ro_rotary_layer layer_of(const golden_fused *g) {
    const long long *n = g->size;
    return (ro_rotary_layer){.size = sizeof(ro_rotary_layer),
                             .batch = n[0],
                             .tokens = n[1],
                             .heads = n[2],
                             .head_size = n[3],
                             .neighbours = g->causal,
                             .each = g->dropout};
}

static void plan_rotary(const golden_fused *g, golden_block *b) {
    const ro_rotary_layer l = layer_of(g);
    const int64_t all = l.batch * l.tokens * l.heads * l.head_size;
    b->inputs = Y;
    golden_add(b, all);
    golden_add(b, l.tokens * (l.each ? l.batch : 1));
    golden_add(b, l.head_size);
    golden_add(b, all);
    golden_add(b, all);
}

/* Fills positions from -1,000 to 3,999; turns may be any words. */
static void fill_rotary(const golden_fused *g, const golden_block *b) {
    const uint64_t seed = golden_seed(g->name);
    for (int64_t e = 0; e < b->count[POSITION]; e++)
        b->host[b->at[POSITION] + e] = (uint32_t)(case_word(seed, POSITION, e) % 5000) - 1000;
    for (int64_t e = 0; e < b->count[TURNS]; e++)
        b->host[b->at[TURNS] + e] = (uint32_t)case_word(seed, TURNS, e);
}

static ro_status run_rotary(ro_ctx *ctx, const golden_fused *g, const golden_block *b, float *x) {
    const ro_rotary_layer l = layer_of(g);
    const int32_t *position = (const int32_t *)(const void *)(x + b->at[POSITION]);
    const int32_t *turns = (const int32_t *)(const void *)(x + b->at[TURNS]);
    const ro_status status = ro_rotary(ctx, &l, x + b->at[X], position, turns, x + b->at[Y]);
    return status == RO_OK ? ro_rotary_backward(ctx, &l, x + b->at[X], position, turns,
                                                (ro_gradient){x + b->at[DX], 0})
                           : status;
}

/* ---- embeddings: a written gradient, and one that is added to what is there ---- */

enum { EMBEDDED, IDS, BEFORE, TABLE, SUM };

/* Lays out a case by its rows, cols and positions. */
static void plan_embedding(const golden_fused *g, golden_block *b) {
    const int64_t table = g->size[0] * g->size[1];
    const int64_t count[] = {g->size[2] * g->size[1], g->size[2], table, table, table};
    b->inputs = TABLE;
    for (int i = 0; i <= SUM; i++)
        golden_add(b, count[i]);
}

/* Fills ids, some of which are outside the table. */
static void fill_embedding(const golden_fused *g, const golden_block *b) {
    const uint64_t seed = golden_seed(g->name);
    for (int64_t p = 0; p < g->size[2]; p++)
        b->host[b->at[IDS] + p] = case_i32(case_word(seed, IDS, p), (int64_t)g->size[0]);
}

static ro_status run_embedding(ro_ctx *ctx, const golden_fused *g, const golden_block *b,
                               float *x) {
    const int64_t rows = g->size[0], cols = g->size[1], positions = g->size[2], *at = b->at;
    const int32_t *ids = (const int32_t *)(const void *)(x + at[IDS]);
    const float *dy = x + at[EMBEDDED];
    ro_status status = ro_copy(ctx, x + at[SUM], x + at[BEFORE], (size_t)(rows * cols) * sizeof *x);
    if (status == RO_OK)
        status = ro_embedding_backward(ctx, rows, cols, positions, dy, ids,
                                       (ro_gradient){x + at[TABLE], 0});
    if (status == RO_OK)
        status = ro_embedding_backward(ctx, rows, cols, positions, dy, ids,
                                       (ro_gradient){x + at[SUM], 1});
    return status;
}

/* ---- all ---- */

static const golden_function functions[] = {
    {"rms_norm", plan_rms_norm, NULL, run_rms_norm},
    {"rms_norm_backward", plan_rms_norm_backward, NULL, run_rms_norm_backward},
    {"rotary", plan_rotary, fill_rotary, run_rotary},
    {"embedding_backward", plan_embedding, fill_embedding, run_embedding},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

const golden_function *golden_layer_function_at(int i) {
    return i < FUNCTIONS ? &functions[i] : NULL;
}
