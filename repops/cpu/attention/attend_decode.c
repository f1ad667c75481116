/* Fused attention, forward, of a few new queries against a cache of keys (SPEC.md section 8).
 * Nothing is packed: keys and values are read once, for all heads that share them. An item is a
 * block of keys. A window of blocks is computed at a time; their results wait in the workspace
 * until the walk (attend_walk.h) combines them in order. */
#include "repops/cpu/attention/attend_walk.h"
#include "repops/cpu/gemm/gemm_dots.h"
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/rows/max.h"

enum {
    QUERIES_MOST = 4,
    ROWS_MOST = 64,
    ITEMS = 64,     /* blocks of keys per thread in a window */
    KEYS_AHEAD = 32 /* keys that are prefetched */
};

typedef struct {
    const ro_attention_job *job;
    int64_t rows;         /* rows of a key-value head: queries times the heads that share it */
    int64_t heads;        /* key-value heads of the whole batch */
    int64_t window;       /* most blocks of keys computed before the walk takes them */
    int64_t from, blocks; /* the current window: its first block, and how many */
    int64_t width;        /* stride of ac's rows, in floats */
    float *mc, *lc, *ac;  /* maxima, sums and values of each block: [heads, window, rows] */
    float *m, *l;         /* maximum and sum of each row so far */
    uint8_t *started;
    float *workspace; /* [rows, KB] for each thread */
} decode;

int RO_NAME(ro_attend_is_decoding)(const ro_attention *a) {
    return !a->dropout && a->queries <= QUERIES_MOST && a->head_size > 1 /* for ro_gemm_dots */ &&
           (a->q_row | a->k_row | a->v_row | a->out_row) == 0 &&
           a->queries * (a->heads / a->kv_heads) <= ROWS_MOST;
}

/* Returns the keys that row r of a key-value head attends to in block `index`. */
static ro_range admitted(const decode *d, int64_t r, int64_t index) {
    const ro_attention *a = d->job->a;
    return part_of_keys(keys_of_query(a, r % a->queries), index * KB,
                        min_i64(KB, a->keys - index * KB));
}

/* s[r, j] = canon(dot(q row r, key j) * scale), where rows of s lie KB apart. */
static void scores(const decode *d, const float *q, const float *k, int64_t count, float *s) {
    const ro_attention *a = d->job->a;
    gemm g = {.n = count, .k = a->head_size, .b = k, .a_row = a->head_size, .a_col = 1, .b_row = 1};
    g.b_col = a->head_size, g.c_row = KB, g.chunk = RO_DOT_CHUNK, g.alpha = a->scale;
    g.b_ahead = KEYS_AHEAD * a->head_size;
    for (int64_t r = 0; r < d->rows; r += DOTS_ROWS) {
        g.m = min_i64(DOTS_ROWS, d->rows - r);
        g.a = q + r * a->head_size, g.c = s + r * KB;
        RO_NAME(ro_gemm_dots).run(&g, NULL);
    }
}

/* Computes scores of fewer than VW keys from a copy that is padded to VW. */
static void few_scores(const decode *d, const float *q, const float *k, int64_t count, float *s) {
    float padded_keys[VW * RO_ATTENTION_HEAD_MAX] = {0};
    memcpy(padded_keys, k, (size_t)(count * d->job->a->head_size) * sizeof *k);
    scores(d, q, padded_keys, VW, s);
}

/* ac[r, :] = sum of s[r, j] v[j, :] over the keys j in keys[r]. */
static void times_values(const decode *d, const float *s, const ro_range *keys, const float *v,
                         float *ac) {
    const int64_t size = d->job->a->head_size;
    for (int64_t r = 0, rows; r < d->rows; r += rows) {
        const ro_range now = keys[r];
        for (rows = 1; rows < MR && r + rows < d->rows && keys[r + rows].first == now.first &&
                       keys[r + rows].last == now.last;)
            rows++;
        tile t = {.k = now.last - now.first, .a_row = KB, .a_step = 1, .b_step = size};
        t.a = s + r * KB + now.first;
        t.c_row = t.out_row = d->width, t.alpha = 1.0f, t.flags = TILE_FIRST | TILE_LAST;
        for (int64_t j = 0; j < size; j += t.cols) {
            t.cols = place_cols(rows, size - j);
            t.b = v + now.first * size + j;
            t.c = t.out = ac + r * d->width + j;
            RO_NAME(ro_tile_place)((int)rows, &t);
        }
    }
}

static void run_block(const decode *d, int64_t kv, int64_t index, float *s) {
    const ro_attention_job *j = d->job;
    const int64_t size = j->a->head_size, from = (d->from + index) * KB;
    const int64_t count = min_i64(KB, j->a->keys - from);
    const int64_t block = (kv * d->window + index) * d->rows;
    const int64_t first = (kv * j->a->kv_rows + from) * size;
    ro_range keys[ROWS_MOST];
    const float *q = j->q + kv * d->rows * size, *k = j->k + first, *v = j->v + first;
    (count < VW ? few_scores : scores)(d, q, k, count, s);
    add_bias(bias_of(j->a, kv, from), d->rows, count, s);
    for (int64_t r = 0; r < d->rows; r++) {
        const ro_range of = keys[r] = admitted(d, r, d->from + index);
        d->mc[block + r] = of.last ? max_of(s + r * KB + of.first, of.last - of.first)
                                   : ro_from_bits(RO_MINUS_INFINITY_BITS);
        d->lc[block + r] = exponentials(s + r * KB, of, d->mc[block + r]);
    }
    times_values(d, s, keys, v, d->ac + block * d->width);
}

/* An item is a block of keys of a key-value head. */
static void run_blocks(void *user, int64_t first, int64_t last, int worker) {
    const decode *d = user;
    for (int64_t i = first; i < last; i++)
        run_block(d, i / d->blocks, i % d->blocks, d->workspace + worker * d->rows * KB);
}

static walk walk_of(const decode *d, int64_t kv) {
    const int64_t size = d->job->a->head_size, row = kv * d->rows;
    return (walk){d->job->out + row * size, size, size, d->m + row, d->l + row, d->started + row};
}

static void merge_window(void *user, int64_t first, int64_t last, int worker) {
    const decode *d = user;
    (void)worker;
    for (int64_t kv = first; kv < last; kv++) {
        const walk w = walk_of(d, kv);
        for (int64_t c = 0; c < d->blocks; c++)
            for (int64_t r = 0; r < d->rows; r += STEP_ROWS) {
                const int64_t at = (kv * d->window + c) * d->rows + r;
                const int64_t rows = min_i64(STEP_ROWS, d->rows - r);
                step now = {{0}, {0}, {0}, {0}, {0}};
                memcpy(now.mc, d->mc + at, (size_t)rows * sizeof(float));
                memcpy(now.lc, d->lc + at, (size_t)rows * sizeof(float));
                merge(&w, r, (int)rows, &now, d->ac + at * d->width, d->width);
            }
    }
}

/* Places the arrays in `workspace`, and returns how many floats of it they need. */
static int64_t lay_out(decode *d, int threads, float *workspace) {
    const int64_t all = d->heads * d->rows, waiting = all * d->window;
    float *started;
    int64_t used = take(&d->mc, workspace, 0, waiting);
    used = take(&d->lc, workspace, used, waiting);
    used = take(&d->ac, workspace, used, waiting * d->width);
    used = take(&d->m, workspace, used, all);
    used = take(&d->l, workspace, used, all);
    used = take(&started, workspace, used, ceil_div(all, (int64_t)sizeof(float)));
    d->started = (uint8_t *)started;
    return take(&d->workspace, workspace, used, threads * d->rows * KB);
}

ro_status RO_NAME(ro_attend_decode)(ro_ctx *ctx, const ro_attention_job *job) {
    const ro_attention *a = job->a;
    const int threads = ro_ctx_threads(ctx);
    const int64_t all_blocks = ceil_div(a->keys, KB);
    ro_pool *pool = ro_ctx_pool(ctx);
    decode d = {.job = job, .rows = a->heads / a->kv_heads * a->queries};
    d.heads = a->batch * a->kv_heads;
    d.window = min_i64(all_blocks, ceil_div((int64_t)ITEMS * threads, d.heads));
    d.width = ceil_div(a->head_size, 16) * 16;
    float *workspace = ro_workspace(ctx, (size_t)lay_out(&d, threads, NULL) * sizeof(float));
    if (!workspace)
        return RO_ERR_MEMORY;
    lay_out(&d, threads, workspace);
    memset(d.started, 0, (size_t)(d.heads * d.rows));
    for (d.from = keys_of_query(a, 0).first / KB; d.from < all_blocks; d.from += d.window) {
        d.blocks = min_i64(d.window, all_blocks - d.from);
        const int64_t items = d.heads * d.blocks;
        ro_pool_for(pool, items, ceil_div(items, 8 * threads), run_blocks, &d);
        ro_pool_for(pool, d.heads, ceil_div(d.heads, threads), merge_window, &d);
    }
    for (int64_t kv = 0; kv < d.heads; kv++) {
        const walk w = walk_of(&d, kv);
        finish(&w, d.rows, job->m ? job->m + kv * d.rows : NULL,
               job->l ? job->l + kv * d.rows : NULL);
    }
    return RO_OK;
}
