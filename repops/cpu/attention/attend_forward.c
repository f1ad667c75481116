/* Fused attention, forward (SPEC.md section 8). An item is a range of queries of one head. For each
 * block of keys, strips of queries compute scores, exponentials and sums of values in cache; then
 * the walk (attend_walk.h) adds the block to the sums so far. */
#include "repops/cpu/attention/attend_strips.h"
#include "repops/cpu/attention/attend_walk.h"
#include "repops/cpu/rows/max.h"

/* Most queries of an item: enough to pay for packing the keys. */
enum { RANGE = 18 * 14 };

typedef struct {
    const ro_attention_job *job;
    int64_t ranges, rows; /* items per head; queries per item */
    float *workspace;
    int64_t workspace_size; /* floats for each thread */
} forward;

/* An item at work. strips, panels, values, s and ac lie in the thread's workspace. */
typedef struct {
    const ro_attention *a;
    matrix_rows k, v;    /* keys and values of the head */
    const float *bias;   /* of the head's keys, or NULL */
    int64_t row0, count; /* the item's queries */
    int64_t words;       /* index of the item's first score among all scores, for dropout */
    int64_t height;
    float *strips, *panels, *values, *s, *ac;
    walk w;
    float m[RANGE], l[RANGE];
    uint8_t started[RANGE];
} item;

/* A block of keys, packed. */
typedef struct {
    int64_t from, count;
    matrix_rows v;
    int finite;
} key_block;

/* Returns the keys of the block that row r of the item attends to, relative to the block. */
static ro_range range_of(const item *x, const key_block *b, int64_t r) {
    return part_of_keys(keys_of_query(x->a, x->row0 + r), b->from, b->count);
}

/* Returns whether rows r0 to r1 of the item all attend to the block's first `width` keys. Of their
 * ranges of keys, r0's ends first and r1's starts last. */
static int all_admit(const item *x, const key_block *b, int64_t r0, int64_t r1, int64_t width) {
    return keys_of_query(x->a, x->row0 + r0).last >= b->from + width &&
           keys_of_query(x->a, x->row0 + r1).first <= b->from;
}

static void times_values(item *x, const key_block *b, int64_t r0, int rows, int64_t width) {
    const int64_t stride = padded(x->a->head_size);
    const sums to = {x->ac, stride, 1.0f, TILE_FIRST | TILE_LAST};
    if (b->finite || all_admit(x, b, r0, r0 + rows - 1, width)) {
        strip_times(rows, x->s, width, b->v, x->a->head_size, to);
        return;
    }
    for (int r = 0; r < rows; r++) {
        const ro_range keys = range_of(x, b, r0 + r);
        sums row = to;
        row.at += r * stride;
        strip_times(1, x->s + r * KB + keys.first, keys.last - keys.first,
                    rows_from(b->v, keys.first), x->a->head_size, row);
    }
}

static void run_strip(item *x, const key_block *b, int64_t r0, int rows) {
    const ro_attention *a = x->a;
    const int64_t last_key = keys_of_query(a, x->row0 + r0 + rows - 1).last;
    const int64_t width = max_i64(0, min_i64(b->count, last_key - b->from));
    uint32_t word[WORDS];
    step now = {{0}, {0}, {0}, {0}, {0}};
    if (width == 0 || keys_of_query(a, x->row0 + r0).first >= b->from + b->count)
        return;
    strip_scores(rows, x->strips + r0 * a->head_size, x->panels, a->head_size, width, a->scale,
                 x->s);
    add_bias(x->bias ? x->bias + b->from : NULL, rows, width, x->s);
    for (int r = 0; r < rows; r++) {
        float *s = x->s + r * KB;
        const ro_range keys = range_of(x, b, r0 + r);
        const int64_t count = keys.last - keys.first;
        const int64_t e = x->words + (r0 + r) * a->keys + b->from + keys.first;
        now.mc[r] = count ? max_of(s + keys.first, count) : ro_from_bits(RO_MINUS_INFINITY_BITS);
        now.lc[r] = exponentials(s, keys, now.mc[r]);
        if (a->dropout && count)
            drop(dropout_words(a->dropout, e, count, word), a->dropout, count, s + keys.first);
    }
    times_values(x, b, r0, rows, width);
    merge(&x->w, r0, rows, &now, x->ac, padded(a->head_size));
}

static void run_block(item *x, int64_t from) {
    const int64_t size = x->a->head_size;
    key_block b = {.from = from, .count = min_i64(KB, x->a->keys - from)};
    const matrix_rows k = {x->k.at + from * x->k.step, x->k.step};
    const matrix_rows v = {x->v.at + from * x->v.step, x->v.step};
    pack_panels(k, b.count, size, x->panels);
    b.v = view_rows(v, b.count, size, x->values);
    b.finite = all_admit(x, &b, 0, x->count - 1, b.count) || all_finite(v, b.count, size);
    for (int64_t r = 0; r < x->count; r += x->height)
        run_strip(x, &b, r, (int)min_i64(x->height, x->count - r));
}

/* ---- items ---- */

/* Places the arrays of an item in `workspace`, and returns how many floats of it they need. */
static int64_t lay_out(item *x, const ro_attention *a, int64_t rows, float *workspace) {
    const int64_t size = a->head_size;
    int64_t used = take(&x->strips, workspace, 0, rows * size);
    used = take(&x->panels, workspace, used, PANELS * NR * size);
    used = take(&x->values, workspace, used, KB * padded(size));
    used = take(&x->s, workspace, used, MR * KB);
    return take(&x->ac, workspace, used, MR * padded(size));
}

static void run_item(const forward *f, int64_t index, float *workspace) {
    const ro_attention_job *j = f->job;
    const ro_attention *a = j->a;
    const int64_t head = index / f->ranges, row0 = index % f->ranges * f->rows;
    const int64_t kv = head / a->heads * a->kv_heads + head % a->heads / (a->heads / a->kv_heads);
    const int64_t first = head * a->queries + row0, size = a->head_size;
    item x;
    x.a = a;
    x.row0 = row0, x.count = min_i64(f->rows, a->queries - row0);
    const ro_head_rows out = ro_rows_of_head(head, a->heads, a->queries, size, a->out_row);
    x.k = rows_of_keys(a, j->k, a->k_row, kv, 0), x.v = rows_of_keys(a, j->v, a->v_row, kv, 0);
    x.bias = bias_of(a, kv, 0);
    x.w = (walk){j->out + out.first + row0 * out.step, out.step, size, x.m, x.l, x.started};
    x.words = first * a->keys;
    x.height = strip_height(x.count);
    lay_out(&x, a, f->rows, workspace);
    memset(x.started, 0, sizeof x.started);
    pack_strips(rows_of_queries(a, j->q, a->q_row, head, row0), x.count, size, x.height, x.strips);
    const int64_t begin = keys_of_query(a, row0).first / KB * KB;
    const int64_t end = keys_of_query(a, row0 + x.count - 1).last;
    for (int64_t from = begin; from < end; from += KB)
        run_block(&x, from);
    finish(&x.w, x.count, j->m ? j->m + first : NULL, j->l ? j->l + first : NULL);
}

static void run_items(void *user, int64_t first, int64_t last, int worker) {
    const forward *f = user;
    for (int64_t i = first; i < last; i++)
        run_item(f, i, f->workspace + worker * f->workspace_size);
}

static ro_status attend_forward(ro_ctx *ctx, const ro_attention_job *job) {
    const ro_attention *a = job->a;
    const int threads = ro_ctx_threads(ctx);
    item x;
    if (RO_NAME(ro_attend_is_decoding)(a))
        return RO_NAME(ro_attend_decode)(ctx, job);
    forward f = {.job = job, .ranges = ceil_div(a->queries, RANGE)};
    const int64_t heads = a->batch * a->heads;
    /* With few heads, ranges become shorter, but not below a block of queries, so that every thread
     * gets some. */
    while (heads * f.ranges < 2 * threads && a->queries / f.ranges >= 2 * KB)
        f.ranges *= 2;
    f.rows = ceil_div(a->queries, f.ranges);
    f.ranges = ceil_div(a->queries, f.rows);
    f.workspace_size = lay_out(&x, a, f.rows, NULL);
    f.workspace = ro_workspace(ctx, (size_t)(f.workspace_size * threads) * sizeof(float));
    if (!f.workspace)
        return RO_ERR_MEMORY;
    /* Under a causal mask later ranges take longer, and threads take items in order. So one item is
     * taken at a time. */
    ro_pool_for(ro_ctx_pool(ctx), heads * f.ranges, 1, run_items, &f);
    return RO_OK;
}
RO_FUSED(attention_forward, attend_forward)
