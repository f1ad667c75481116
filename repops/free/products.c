/* matmul (SPEC.md section 3.1), attn_av and attn_av_at (section 8). */
#include "repops/free/gemm.h"
#include "repops/src/half.h"
#include "repops/op_attention.h"
#include "repops/src/matmul.h"
#include "repops/src/keys.h"

/* Packs a part of b whose elements have 16 bits, widened in a buffer. */
static void pack_narrow(const free_gemm *g, const free_part *part, real *to) {
    float buffer[FREE_NR * FREE_KC];
    const float *lanes[FREE_NR];
    const ro_shape *b = g->user;
    const int along_n = g->b.lane_step == 1;
    const int64_t lines = along_n ? part->steps : part->lanes;
    const int64_t length = along_n ? part->lanes : part->steps;
    const int64_t step = along_n ? g->b.k_step : g->b.lane_step;
    const uint16_t *from = (const uint16_t *)(const void *)g->b.data + part->product * g->b.outer +
                           part->lane * g->b.lane_step + part->k * g->b.k_step;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = 0; j < length; j++)
            buffer[i * length + j] = ro_number_of(b->dtype, from[i * step + j]);
    if (along_n) {
        RO_FREE_NAME(ro_free_pack_lines)(buffer, length, part, FREE_NR, to);
        return;
    }
    for (int64_t i = 0; i < lines; i++)
        lanes[i] = buffer + i * length;
    RO_FREE_NAME(ro_free_pack_lanes)(lanes, lines, length, part->reverse, FREE_NR, to);
}

static ro_status matmul(const ro_free_job *job) {
    const ro_matmul v = ro_matmul_of(job->call);
    const ro_shape *b = &job->call->input[1];
    const free_gemm g = {
        .products = v.batch,
        .m = v.m,
        .n = v.n,
        .k = v.k,
        .inner = 1,
        .a = {job->in[0], v.trans_a ? 1 : v.k, v.trans_a ? v.m : 1, v.m * v.k, 0},
        .b = {job->in[1], v.trans_b ? v.k : 1, v.trans_b ? 1 : v.n, v.k * v.n, 0},
        .alpha = v.alpha,
        .absent = v.mask != RO_MASK_NONE,
        .mask = v.mask,
        .window = v.window,
        .pack_b = b->dtype == RO_F32 ? NULL : pack_narrow,
        .user = b,
    };
    return RO_FREE_NAME(ro_free_multiply)(job, &g);
}
RO_FREE_KERNEL(matmul, .run = matmul)

/* ---- attn_av and attn_av_at: one product for each key block; out is [..., T, nb, D] ---- */

typedef struct {
    int64_t queries, width, blocks, first; /* first: the block with inner index 0 */
} attention;

static int64_t place_of(const free_gemm *g, int64_t product, int64_t row) {
    const attention *v = g->user;
    const int64_t block = v->first + product % g->inner;
    return ((product / g->inner * v->queries + row) * v->blocks + block) * v->width;
}

/* Multiplies key blocks [v->first, v->first + count), of `keys` keys each. */
static ro_status multiply_blocks(const ro_free_job *job, const attention *v, int64_t count,
                                 int64_t keys) {
    const int64_t all = job->call->input[0].dim[job->call->input[0].ndim - 1];
    const int64_t heads = ro_rows_of(&job->call->input[0]) / v->queries;
    const int64_t key = v->first * RO_ATTN_BLOCK;
    free_gemm g = {.products = heads * count,
                   .m = v->queries,
                   .n = v->width,
                   .k = keys,
                   .inner = count,
                   .place = place_of,
                   .alpha = 1.0f,
                   .user = v};
    g.a = (free_matrix){(const float *)job->in[0] + key, all, 1, v->queries * all, RO_ATTN_BLOCK};
    g.b = (free_matrix){(const float *)job->in[1] + key * v->width, 1, v->width, all * v->width,
                        RO_ATTN_BLOCK * v->width};
    const int placed = ro_is_placed(job->call);
    if (placed || job->call->attr[RO_ATTN_AV_CAUSAL]) {
        g.absent = 1, g.mask = RO_MASK_UPTO_ROW;
        g.window = job->call->attr[placed ? RO_ATTN_AV_AT_WINDOW : RO_ATTN_AV_WINDOW];
        g.mask_first = (placed ? *(const int32_t *)job->in[2] : 0) - key;
        g.mask_step = -RO_ATTN_BLOCK;
    }
    return RO_FREE_NAME(ro_free_multiply)(job, &g);
}

static ro_status attn_av(const ro_free_job *job) {
    const ro_shape *e = &job->call->input[0], *out = &job->call->output;
    const int64_t keys = e->dim[e->ndim - 1], whole = keys / RO_ATTN_BLOCK;
    attention v = {.queries = e->dim[e->ndim - 2],
                   .width = out->dim[out->ndim - 1],
                   .blocks = out->dim[out->ndim - 2]};
    ro_status status = RO_OK;
    if (whole > 0)
        status = multiply_blocks(job, &v, whole, RO_ATTN_BLOCK);
    v.first = whole;
    if (status == RO_OK && whole < v.blocks)
        status = multiply_blocks(job, &v, 1, keys - whole * RO_ATTN_BLOCK);
    return status;
}
RO_FREE_KERNEL(attn_av, .run = attn_av)
RO_FREE_KERNEL(attn_av_at, .run = attn_av)
