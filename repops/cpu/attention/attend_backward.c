/* Fused attention, backward (SPEC.md section 8). For each block of queries and block of keys,
 * scores and probabilities are computed again, used for all three gradients while they are in
 * cache, and dropped.
 *
 * Blocks of keys are the chunks of dq's sums, blocks of queries those of dk's and dv's; at the
 * end of every chunk its sum is added to the gradient in memory. If there are enough heads for all
 * threads, an item is a key-value head, with five products for each pair of blocks. Otherwise
 * blocks of keys are items, and then blocks of queries; this computes scores twice, seven products
 * in all, but occupies any number of threads. */
#include "repops/cpu/attention/attend_strips.h"

typedef struct {
    const ro_attention_grad_job *job;
    int64_t group;  /* query heads that share a key-value head */
    int64_t chunks; /* blocks of queries in a head */
    int64_t blocks; /* blocks of keys in a head */
    int64_t heads;  /* query heads of the whole batch */
    float *delta;   /* sum of dout * out for each query */
    float *workspace;
    int64_t workspace_size; /* floats for each thread */
} backward;

/* The arrays in one thread's workspace. */
typedef struct {
    const ro_attention *a;
    float *q_strips, *dout_strips, *k_panels, *v_panels; /* packed for scores */
    float *q_copy, *dout_copy, *k_copy; /* rows padded to whole vectors, for sums over rows */
    float *p, *ds;                      /* [KB, KB] */
    float *dk, *dv;                     /* one query head's part of the sums over its group */
} scratch;

/* A block of keys and values of a key-value head. */
typedef struct {
    int64_t index, count;
    const float *bias; /* NULL if there is none */
    matrix_rows k;
    int k_finite;
} key_block;

/* A block of queries of a head. */
typedef struct {
    int64_t head, index, row0, count; /* row0: number of its first query in the head */
    const float *m, *l, *delta;
    float *dq;
    int64_t dq_step;
    matrix_rows q_rows, dout_rows;
    int q_finite, dout_finite;
    int64_t words; /* index of its first score among all scores, for dropout */
} query_block;

/* ---- one pair of blocks ---- */

/* Is this block on the diagonal? The causal mask cuts no others if queries are as many as keys. */
static int on_diagonal(const scratch *s, const query_block *g, const key_block *c) {
    return s->a->causal && g->index == c->index;
}

/* Returns the first key of c that query i of g attends to, or c->count if there is none. */
static int64_t first_key(const scratch *s, const query_block *g, const key_block *c, int64_t i) {
    const int64_t first = keys_of_query(s->a, g->row0 + i).first - c->index * KB;
    return max_i64(0, min_i64(first, c->count));
}

/* Returns one past the last query of g that attends to key j of c. */
static int64_t last_query(const scratch *s, const query_block *g, const key_block *c, int64_t j) {
    const int64_t window = s->a->window ? s->a->window : s->a->queries;
    return max_i64(0, min_i64(c->index * KB + j + window - g->row0, g->count));
}

/* first_block returns the first block of keys that block `index` of queries attends to, last_chunk
 * the last block of queries that attends to block `index` of keys. */
static int64_t first_block(const ro_attention *a, int64_t index) {
    return keys_of_query(a, index * KB).first / KB;
}

static int64_t last_chunk(const ro_attention *a, int64_t index) {
    const int64_t last = min_i64(a->keys, (index + 1) * KB) - 1;
    return (a->window ? min_i64(a->queries, last + a->window) - 1 : a->queries - 1) / KB;
}

static void dscore_row(const float *restrict p, float delta, int64_t count, float *restrict dp) {
    for (int64_t j = 0; j < count; j++)
        dp[j] = ro_canon(p[j] * (dp[j] - delta));
}

/* Turns row i of scores, in p, into probabilities with dropout, and row i of products, in ds, into
 * gradients of scores. */
static void softmax_grad_row(const scratch *s, const query_block *g, const key_block *c, int64_t i,
                             int64_t limit, int64_t width) {
    const ro_attention_dropout *d = s->a->dropout;
    const int64_t whole = min_i64(ceil_div(limit, 16) * 16, KB);
    float *p = s->p + i * KB, *ds = s->ds + i * KB;
    uint32_t buffer[WORDS];
    const uint32_t *word = NULL;
    if (is_minus_infinity(g->m[i]))
        clear(p, whole);
    else
        map(exp_scaled, (constants){.a = g->m[i], .b = 1.0f / g->l[i]}, p, whole, p);
    if (d) {
        word = dropout_words(d, g->words + i * s->a->keys + c->index * KB, limit, buffer);
        drop(word, d, limit, ds);
    }
    dscore_row(p, g->delta[i], whole, ds);
    if (d)
        drop(word, d, limit, p);
    clear(p + limit, width - limit);
    clear(ds + limit, width - limit);
    const int64_t first = first_key(s, g, c, i);
    clear(p, first);
    clear(ds, first);
}

static void add_dq(const scratch *s, const query_block *g, const key_block *c, int64_t i, int rows,
                   int64_t width) {
    const int64_t size = s->a->head_size, diagonal = on_diagonal(s, g, c);
    const int64_t last = s->a->causal ? g->index : ceil_div(s->a->keys, KB) - 1;
    sums to = {g->dq + i * g->dq_step, g->dq_step, s->a->scale, 0};
    to.flags = c->index == first_block(s->a, g->index) ? TILE_FIRST : 0;
    to.flags |= c->index == last ? TILE_LAST : 0;
    if ((!diagonal && first_key(s, g, c, i + rows - 1) == 0) || c->k_finite) {
        strip_times(rows, s->ds + i * KB, width, c->k, size, to);
        return;
    }
    for (int r = 0; r < rows; r++, to.at += to.step) {
        const int64_t first = first_key(s, g, c, i + r), end = diagonal ? i + r + 1 : width;
        strip_times(1, s->ds + (i + r) * KB + first, max_i64(0, end - first),
                    rows_from(c->k, first), size, to);
    }
}

static void softmax_grad(const scratch *s, const query_block *g, const key_block *c, int want_dq) {
    const int64_t size = s->a->head_size, height = strip_height(g->count);
    const int diagonal = on_diagonal(s, g, c);
    for (int64_t i = 0; i < g->count; i += height) {
        const int rows = (int)min_i64(height, g->count - i);
        const int64_t width = diagonal ? min_i64(c->count, i + rows) : c->count;
        strip_scores(rows, s->q_strips + i * size, s->k_panels, size, width, s->a->scale,
                     s->p + i * KB);
        add_bias(c->bias, rows, width, s->p + i * KB);
        strip_scores(rows, s->dout_strips + i * size, s->v_panels, size, width, 1.0f,
                     s->ds + i * KB);
        for (int r = 0; r < rows; r++)
            softmax_grad_row(s, g, c, i + r, diagonal ? i + r + 1 : width, width);
        if (want_dq)
            add_dq(s, g, c, i, rows, width);
    }
}

/* to[i, :] += sum over p < count of x[p, i] b[p, :], where rows of x lie KB apart. */
static void strip_transposed_times(int rows, const float *x, int64_t count, matrix_rows b,
                                   int64_t size, sums to) {
    tile t = {.k = count, .a = x, .a_step = KB, .b_step = b.step, .c_row = to.step};
    t.out_row = to.step, t.alpha = to.alpha, t.flags = to.flags;
    for (int64_t j = 0; j < size; j += NR) {
        t.b = b.at + j;
        t.c = t.out = to.at + j;
        t.cols = min_i64(NR, size - j);
        run_tile(rows, &t);
    }
}

/* Gradients of a block of keys or of values: rows `step` elements apart. */
typedef struct {
    float *at;
    int64_t step;
} gradient_rows;

/* to[j, :] += alpha * sum over queries i of x[i, j] rows[i, :]. */
static void add_over_queries(const scratch *s, const query_block *g, const key_block *c,
                             const float *x, matrix_rows rows, int finite, gradient_rows to,
                             float alpha) {
    const int64_t size = s->a->head_size, first = s->a->causal ? c->index : 0;
    const int diagonal = on_diagonal(s, g, c);
    const int64_t last = last_chunk(s->a, c->index);
    const int cut = diagonal || last_query(s, g, c, 0) < g->count;
    const int64_t height = cut && !finite ? 1 : strip_height(c->count);
    sums out = {to.at, to.step, alpha, g->index == first ? TILE_FIRST : 0};
    out.flags |= g->index == last ? TILE_LAST : 0;
    for (int64_t j = 0; j < c->count; j += height, out.at += height * out.step) {
        const int count = (int)min_i64(height, c->count - j);
        const int64_t from = diagonal ? j : 0, to_query = last_query(s, g, c, j + count - 1);
        strip_transposed_times(count, x + from * KB + j, max_i64(0, to_query - from),
                               rows_from(rows, from), size, out);
    }
}

static void add_dk_dv(const scratch *s, const query_block *g, const key_block *c, gradient_rows dk,
                      gradient_rows dv) {
    add_over_queries(s, g, c, s->p, g->dout_rows, g->dout_finite, dv, 1.0f);
    add_over_queries(s, g, c, s->ds, g->q_rows, g->q_finite, dk, s->a->scale);
}

/* ---- blocks ---- */

static key_block take_keys(const backward *f, const scratch *s, int64_t kv, int64_t index) {
    const ro_attention *a = s->a;
    const int64_t size = a->head_size, from = index * KB;
    const matrix_rows k = rows_of_keys(a, f->job->k, a->k_row, kv, from);
    key_block c = {.index = index, .count = min_i64(KB, a->keys - from)};
    c.bias = bias_of(a, kv, from);
    c.k = view_rows(k, c.count, size, s->k_copy);
    c.k_finite = !a->causal || all_finite(k, c.count, size);
    pack_panels(k, c.count, size, s->k_panels);
    pack_panels(rows_of_keys(a, f->job->v, a->v_row, kv, from), c.count, size, s->v_panels);
    return c;
}

static query_block take_queries(const backward *f, const scratch *s, int64_t head, int64_t index) {
    const ro_attention *a = s->a;
    const ro_attention_grad_job *j = f->job;
    const int64_t size = a->head_size, row = head * a->queries + index * KB;
    const ro_head_rows dq = ro_rows_of_head(head, a->heads, a->queries, size, a->q_row);
    query_block g = {.head = head, .index = index, .row0 = index * KB};
    const matrix_rows q = rows_of_queries(a, j->q, a->q_row, head, g.row0);
    const matrix_rows dout = rows_of_queries(a, j->dout, a->out_row, head, g.row0);
    g.count = min_i64(KB, a->queries - g.row0);
    g.dq = j->dq + dq.first + g.row0 * dq.step, g.dq_step = dq.step;
    g.m = j->m + row, g.l = j->l + row, g.delta = f->delta + row;
    g.words = row * a->keys;
    g.q_rows = view_rows(q, g.count, size, s->q_copy);
    g.dout_rows = view_rows(dout, g.count, size, s->dout_copy);
    g.q_finite = !a->causal || all_finite(q, g.count, size);
    g.dout_finite = !a->causal || all_finite(dout, g.count, size);
    pack_strips(q, g.count, size, strip_height(g.count), s->q_strips);
    pack_strips(dout, g.count, size, strip_height(g.count), s->dout_strips);
    return g;
}

/* Adds one query head's gradient to the sum over its group, which starts from +0. */
static void add_head(const float *restrict x, int first, int last, int64_t rows, int64_t size,
                     gradient_rows to) {
    for (int64_t r = 0; r < rows; r++, x += size, to.at += to.step) {
        float *restrict sum = to.at;
        for (int64_t i = 0; i < size; i++) {
            const float total = (first ? 0.0f : sum[i]) + x[i];
            sum[i] = last ? ro_canon(total) : total;
        }
    }
}

static gradient_rows gradient_of_keys(const ro_attention *a, float *x, int64_t row, int64_t kv,
                                      int64_t from) {
    const ro_head_rows r = ro_rows_of_head(kv, a->kv_heads, a->keys, a->head_size, row);
    return (gradient_rows){x + r.first + from * r.step, r.step};
}

/* Runs all queries of the group's heads against one block of keys. dq is added to if want_dq. */
static void run_keys(const backward *f, const scratch *s, int64_t kv, int64_t index, int want_dq) {
    const ro_attention *a = s->a;
    const int64_t size = a->head_size, last = f->group - 1;
    const key_block c = take_keys(f, s, kv, index);
    const gradient_rows dk = gradient_of_keys(a, f->job->dk, a->k_row, kv, index * KB);
    const gradient_rows dv = gradient_of_keys(a, f->job->dv, a->v_row, kv, index * KB);
    const int grouped = f->group > 1;
    const gradient_rows head_dk = {s->dk, size}, head_dv = {s->dv, size};
    for (int64_t h = 0; h < f->group; h++) {
        for (int64_t i = a->causal ? index : 0; i <= last_chunk(a, index); i++) {
            const query_block g = take_queries(f, s, kv * f->group + h, i);
            softmax_grad(s, &g, &c, want_dq);
            add_dk_dv(s, &g, &c, grouped ? head_dk : dk, grouped ? head_dv : dv);
        }
        if (grouped) {
            add_head(s->dk, h == 0, h == last, c.count, size, dk);
            add_head(s->dv, h == 0, h == last, c.count, size, dv);
        }
    }
}

/* ---- items ---- */

static int64_t lay_out(scratch *s, const ro_attention *a, float *workspace) {
    const int64_t size = a->head_size, copy = KB * padded(size);
    int64_t used = 0;
    s->a = a;
    used = take(&s->q_strips, workspace, used, KB * size);
    used = take(&s->dout_strips, workspace, used, KB * size);
    used = take(&s->k_panels, workspace, used, PANELS * NR * size);
    used = take(&s->v_panels, workspace, used, PANELS * NR * size);
    used = take(&s->q_copy, workspace, used, copy);
    used = take(&s->dout_copy, workspace, used, copy);
    used = take(&s->k_copy, workspace, used, copy);
    used = take(&s->p, workspace, used, KB * KB);
    used = take(&s->ds, workspace, used, KB * KB);
    used = take(&s->dk, workspace, used, KB * size);
    return take(&s->dv, workspace, used, KB * size);
}

static scratch scratch_of(const backward *f, int worker) {
    scratch s;
    lay_out(&s, f->job->a, f->workspace + worker * f->workspace_size);
    return s;
}

static void run_deltas(void *user, int64_t first, int64_t last, int worker) {
    const backward *f = user;
    const ro_attention_grad_job *j = f->job;
    const ro_attention *a = j->a;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const ro_head_rows r =
            ro_rows_of_head(i / a->queries, a->heads, a->queries, a->head_size, a->out_row);
        const int64_t at = r.first + i % a->queries * r.step;
        f->delta[i] = lane_dot(j->dout + at, j->out + at, a->head_size);
    }
}

/* An item is a key-value head; all three gradients are computed. */
static void run_heads(void *user, int64_t first, int64_t last, int worker) {
    const backward *f = user;
    const scratch s = scratch_of(f, worker);
    for (int64_t kv = first; kv < last; kv++)
        for (int64_t c = 0; c < f->blocks; c++)
            run_keys(f, &s, kv, c, 1);
}

/* An item is a block of keys; dk and dv are computed. */
static void run_key_blocks(void *user, int64_t first, int64_t last, int worker) {
    const backward *f = user;
    const scratch s = scratch_of(f, worker);
    for (int64_t i = first; i < last; i++)
        run_keys(f, &s, i / f->blocks, i % f->blocks, 0);
}

/* An item is a block of queries; dq is computed. */
static void run_query_blocks(void *user, int64_t first, int64_t last, int worker) {
    const backward *f = user;
    const scratch s = scratch_of(f, worker);
    for (int64_t i = first; i < last; i++) {
        const query_block g = take_queries(f, &s, i / f->chunks, i % f->chunks);
        const int64_t blocks = s.a->causal ? g.index + 1 : f->blocks;
        for (int64_t b = first_block(s.a, g.index); b < blocks; b++) {
            const key_block c = take_keys(f, &s, g.head / f->group, b);
            softmax_grad(&s, &g, &c, 1);
        }
    }
}

/* Returns whether whole heads are to be items: only if the threads that then idle lose less time
 * than the two extra products of the other way (7 instead of 5) would take. */
static int by_heads(int64_t kv_heads, int threads) {
    return ceil_div(kv_heads, threads) * threads * 5 <= kv_heads * 7;
}

static ro_status attend_backward(ro_ctx *ctx, const ro_attention_grad_job *job) {
    const ro_attention *a = job->a;
    const int threads = ro_ctx_threads(ctx);
    ro_pool *pool = ro_ctx_pool(ctx);
    scratch s;
    backward f = {.job = job, .group = a->heads / a->kv_heads, .heads = a->batch * a->heads};
    f.chunks = ceil_div(a->queries, KB), f.blocks = ceil_div(a->keys, KB);
    f.workspace_size = lay_out(&s, a, NULL);
    const int64_t deltas = f.heads * a->queries, kv_heads = f.heads / f.group;
    const int64_t shared = ceil_div(deltas, 16) * 16;
    f.delta = ro_workspace(ctx, (size_t)(shared + f.workspace_size * threads) * sizeof(float));
    if (!f.delta)
        return RO_ERR_MEMORY;
    f.workspace = f.delta + shared;
    ro_pool_for(pool, deltas, 512, run_deltas, &f);
    if (by_heads(kv_heads, threads)) {
        ro_pool_for(pool, kv_heads, 1, run_heads, &f);
    } else {
        ro_pool_for(pool, kv_heads * f.blocks, 1, run_key_blocks, &f);
        ro_pool_for(pool, f.heads * f.chunks, 1, run_query_blocks, &f);
    }
    return RO_OK;
}
RO_FUSED(attention_backward, attend_backward)
