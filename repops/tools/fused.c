#include "repops/tools/fused.h"
#include "repops/fused.h"
#include "repops/tools/case_run.h"
#include "repops/tools/golden.h"

#include <stdio.h>

/* ---- all tensors of a case in one block ---- */

enum { PARTS = 10, ALIGNED = 64 /* words, as a device's allocations are at least */ };

typedef struct {
    int64_t count[PARTS], at[PARTS], words;
    int parts, inputs; /* inputs come first */
    uint32_t *host;
} block;

static void add(block *b, int64_t count) {
    b->count[b->parts] = count;
    b->at[b->parts++] = b->words;
    b->words += (count + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* Inputs by their formula, other words 0x5a5a5a5a. */
static int fill(block *b, const golden_fused *g) {
    const data_class class = golden_class(g->class);
    const uint64_t seed = golden_seed(g->name);
    b->host = malloc((size_t)(b->words + 1) * sizeof *b->host);
    if (!b->host || class == DATA_END)
        return 0;
    memset(b->host, 0x5a, (size_t)b->words * sizeof *b->host);
    for (int i = 0; i < b->inputs; i++)
        for (int64_t e = 0; e < b->count[i]; e++)
            b->host[b->at[i] + e] = case_f32(case_word(seed, i, e), class);
    return 1;
}

static float *results(const block *b, int64_t *count) {
    *count = 0;
    float *out = malloc((size_t)b->words * sizeof *out + 1);
    for (int i = b->inputs; out && i < b->parts; i++) {
        memcpy(out + *count, b->host + b->at[i], (size_t)b->count[i] * sizeof *out);
        *count += b->count[i];
    }
    return out;
}

/* ---- attention ---- */

static const ro_attention_dropout thinned = {0x123456789abcdef, 77, 0x40000000, 0x1.555556p0f, 5};

static ro_attention attention_of(const golden_fused *g) {
    const long long *n = g->size;
    return (ro_attention){.batch = n[0],
                          .heads = n[1],
                          .kv_heads = n[2],
                          .queries = n[3],
                          .keys = n[4],
                          .head_size = n[5],
                          .causal = g->causal,
                          .scale = strtof(g->scale, NULL),
                          .dropout = g->dropout ? &thinned : NULL};
}

static int decodes(const ro_attention *a) {
    return a->causal && a->queries != a->keys;
}

enum { Q, K, V, DOUT, OUT, M, L, DQ, DK, DV };

static void plan_attention(const golden_fused *g, block *b) {
    const ro_attention a = attention_of(g);
    const int64_t rows = a.batch * a.heads * a.queries, q = rows * a.head_size;
    const int64_t k = a.batch * a.kv_heads * a.keys * a.head_size;
    const int64_t count[PARTS] = {q, k, k, q, q, rows, rows, q, k, k};
    b->inputs = OUT;
    for (int i = 0; i < (decodes(&a) ? DQ : PARTS); i++)
        add(b, count[i]);
}

static ro_status run_attention(ro_ctx *ctx, const golden_fused *g, const block *b, float *x) {
    const ro_attention a = attention_of(g);
    float *p[PARTS] = {0};
    for (int i = 0; i < b->parts; i++)
        p[i] = x + b->at[i];
    const ro_status status = ro_attention_forward(ctx, &a, p[Q], p[K], p[V], p[OUT], p[M], p[L]);
    if (status != RO_OK || decodes(&a))
        return status;
    return ro_attention_backward(ctx, &a, p[Q], p[K], p[V], p[OUT], p[M], p[L], p[DOUT], p[DQ],
                                 p[DK], p[DV]);
}

/* ---- cross-entropy ---- */

enum { X, DLOSS, IDS, LOSS, ROW_MAX, ROW_SUM, DX };

static void plan_cross_entropy(const golden_fused *g, block *b) {
    const int64_t rows = g->size[0], all = rows * g->size[1];
    const int64_t count[] = {all, rows, rows, rows, rows, rows, all};
    b->inputs = LOSS;
    for (int i = 0; i <= DX; i++)
        add(b, count[i]);
}

/* Some are outside [0, cols). */
static void fill_ids(const golden_fused *g, const block *b) {
    for (int64_t r = 0; r < g->size[0]; r++)
        b->host[b->at[IDS] + r] =
            case_i32(case_word(golden_seed(g->name), IDS, r), (int64_t)g->size[1]);
}

static ro_status run_cross_entropy(ro_ctx *ctx, const golden_fused *g, const block *b, float *x) {
    return ro_cross_entropy(ctx, g->size[0], g->size[1], x + b->at[X],
                            (const int32_t *)(const void *)(x + b->at[IDS]), x + b->at[DLOSS],
                            x + b->at[LOSS], x + b->at[ROW_MAX], x + b->at[ROW_SUM], x + b->at[DX]);
}

/* ---- both ---- */

int golden_fused_parse(const char *line, golden_fused *out) {
    char sizes[64], *at = sizes;
    *out = (golden_fused){.hash = "-"};
    if (sscanf(line, "%15s %39s %63s %d %d %23s %11s %64s", out->function, out->name, sizes,
               &out->causal, &out->dropout, out->scale, out->class, out->hash) < 7)
        return 0;
    for (int i = 0; i < 6 && *at; i++) {
        out->size[i] = strtoll(at, &at, 10);
        at += *at == 'x';
    }
    return 1;
}

ro_status golden_fused_run(ro_ctx *ctx, const golden_fused *g, float **out, int64_t *count) {
    const int attends = strcmp(g->function, "attention") == 0;
    ro_status status = RO_ERR_MEMORY;
    block b = {0};
    *out = NULL;
    attends ? plan_attention(g, &b) : plan_cross_entropy(g, &b);
    const size_t size = (size_t)b.words * sizeof *b.host;
    if (fill(&b, g)) {
        if (!attends)
            fill_ids(g, &b);
        float *x = case_upload(ctx, b.host, size);
        if (x)
            status = attends ? run_attention(ctx, g, &b, x) : run_cross_entropy(ctx, g, &b, x);
        if (status == RO_OK && (void *)x != (void *)b.host)
            status = ro_read(ctx, b.host, x, size);
        if (status == RO_OK)
            *out = results(&b, count);
        if (x)
            case_drop(ctx, b.host, x);
    }
    free(b.host);
    return status == RO_OK && !*out ? RO_ERR_MEMORY : status;
}
