/* Fused attention has the same bytes as its operators run one by one, for every shape, mask,
 * dropout, grouping, backend and number of threads. */
#include "attention_nodes.h"
#include "hostile_modes.h"

#include <criterion/parameterized.h>
#include <math.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

static ro_ctx *context(const char *backend, int threads) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = threads};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

static const ro_attention_dropout thinned = {0x123456789abcdef, 77, 0x40000000, 1.3333334f, 5};

static ro_attention sizes(int64_t batch, int64_t heads, int64_t kv_heads, int64_t queries,
                          int64_t keys, int64_t head_size, int causal) {
    return (ro_attention){.size = sizeof(ro_attention),
                          .batch = batch,
                          .heads = heads,
                          .kv_heads = kv_heads,
                          .queries = queries,
                          .keys = keys,
                          .head_size = head_size,
                          .causal = causal,
                          .scale = 0.125f};
}

static void expect_same(const float *got, const float *want, int64_t count, const char *name,
                        const ro_attention *a, const char *backend, int threads) {
    if (memcmp(got, want, (size_t)count * sizeof *got) == 0)
        return;
    int64_t e = 0;
    while (memcmp(&got[e], &want[e], sizeof *got) == 0)
        e++;
    cr_assert_fail("%s[%lld] is %a, expected %a: H %lld/%lld, T %lld, S %lld, D %lld%s%s on %s "
                   "with %d threads",
                   name, (long long)e, (double)got[e], (double)want[e], (long long)a->heads,
                   (long long)a->kv_heads, (long long)a->queries, (long long)a->keys,
                   (long long)a->head_size, a->causal ? ", causal" : "",
                   a->dropout ? ", dropout" : "", backend, threads);
}

static void compare(ro_ctx *ctx, const ro_attention *a, const attention_tensors *want,
                    int threads) {
    const char *backend = ro_ctx_backend(ctx);
    attention_tensors got = tensors_of(a);
    cr_assert(ro_attention_forward(ctx, a, want->q, want->k, want->v, got.out, got.m, got.l) ==
                  RO_OK,
              "%s", ro_ctx_error(ctx));
    expect_same(got.m, want->m, want->rows, "m", a, backend, threads);
    expect_same(got.l, want->l, want->rows, "l", a, backend, threads);
    expect_same(got.out, want->out, want->q_count, "out", a, backend, threads);
    cr_assert(ro_attention_backward(ctx, a, want->q, want->k, want->v, want->out, want->m, want->l,
                                    want->dout, got.dq, got.dk, got.dv) == RO_OK,
              "%s", ro_ctx_error(ctx));
    expect_same(got.dv, want->dv, want->k_count, "dv", a, backend, threads);
    expect_same(got.dk, want->dk, want->k_count, "dk", a, backend, threads);
    expect_same(got.dq, want->dq, want->q_count, "dq", a, backend, threads);
    tensors_free(&got);
}

/* ---- heads side by side in rows of tokens ---- */

/* Position of the rows of a tensor [batch, heads, tokens, D] in a matrix. */
typedef struct {
    float *at;
    int64_t heads, tokens, row;
} matrix_part;

static float *element_of(const ro_attention *a, const matrix_part *p, int64_t e) {
    const int64_t d = e % a->head_size, t = e / a->head_size % p->tokens;
    const int64_t h = e / a->head_size / p->tokens;
    return p->at + (h / p->heads * p->tokens + t) * p->row + h % p->heads * a->head_size + d;
}

static void put_part(const ro_attention *a, const matrix_part *p, const float *x, int64_t count) {
    for (int64_t e = 0; e < count; e++)
        *element_of(a, p, e) = x[e];
}

/* Checks the part, and overwrites it, so that other bytes of the matrix can be checked
 * afterwards. */
static void expect_part(const ro_attention *a, const matrix_part *p, const float *want,
                        int64_t count, const char *name, ro_ctx *ctx) {
    float *got = floats(count);
    for (int64_t e = 0; e < count; e++) {
        got[e] = *element_of(a, p, e);
        memset(element_of(a, p, e), 0xa5, sizeof *got);
    }
    expect_same(got, want, count, name, a, ro_ctx_backend(ctx), ro_ctx_threads(ctx));
    free(got);
}

static void expect_untouched(const float *x, int64_t count) {
    const unsigned char *byte = (const unsigned char *)x;
    for (int64_t i = 0; i < count * (int64_t)sizeof *x; i++)
        cr_assert(byte[i] == 0xa5, "byte %lld between rows was written", (long long)i);
}

/* q, k and v are columns of one matrix, as a product makes them, and so are their gradients;
 * results have rows with `gap` elements in between. */
static void compare_rows(ro_ctx *ctx, const ro_attention *dense, const attention_tensors *want,
                         int64_t gap) {
    ro_attention a = *dense;
    const int64_t of_q = a.heads * a.head_size, of_k = a.kv_heads * a.head_size;
    const int64_t tokens = a.queries > a.keys ? a.queries : a.keys;
    const int64_t in = a.batch * tokens * (of_q + 2 * of_k + gap);
    const int64_t out = a.batch * a.queries * (of_q + gap);
    float *qkv = floats(in), *dqkv = floats(in), *o = floats(out), *dout = floats(out);
    float *m = floats(want->rows), *l = floats(want->rows);
    a.q_row = a.k_row = a.v_row = of_q + 2 * of_k + gap, a.out_row = of_q + gap;
    const matrix_part q = {qkv, a.heads, a.queries, a.q_row},
                      dq = {dqkv, a.heads, a.queries, a.q_row};
    const matrix_part k = {qkv + of_q, a.kv_heads, a.keys, a.k_row};
    const matrix_part v = {k.at + of_k, a.kv_heads, a.keys, a.v_row};
    const matrix_part dk = {dqkv + of_q, a.kv_heads, a.keys, a.k_row};
    const matrix_part dv = {dk.at + of_k, a.kv_heads, a.keys, a.v_row};
    const matrix_part result = {o, a.heads, a.queries, a.out_row},
                      d = {dout, a.heads, a.queries, a.out_row};
    put_part(&a, &q, want->q, want->q_count), put_part(&a, &k, want->k, want->k_count);
    put_part(&a, &v, want->v, want->k_count), put_part(&a, &d, want->dout, want->q_count);
    cr_assert(ro_attention_forward(ctx, &a, q.at, k.at, v.at, o, m, l) == RO_OK, "%s",
              ro_ctx_error(ctx));
    cr_assert(ro_attention_backward(ctx, &a, q.at, k.at, v.at, o, want->m, want->l, dout, dq.at,
                                    dk.at, dv.at) == RO_OK,
              "%s", ro_ctx_error(ctx));
    expect_same(m, want->m, want->rows, "m, rows", &a, ro_ctx_backend(ctx), ro_ctx_threads(ctx));
    expect_same(l, want->l, want->rows, "l, rows", &a, ro_ctx_backend(ctx), ro_ctx_threads(ctx));
    expect_part(&a, &result, want->out, want->q_count, "out, rows", ctx);
    expect_part(&a, &dv, want->dv, want->k_count, "dv, rows", ctx);
    expect_part(&a, &dk, want->dk, want->k_count, "dk, rows", ctx);
    expect_part(&a, &dq, want->dq, want->q_count, "dq, rows", ctx);
    expect_untouched(o, out);
    expect_untouched(dqkv, in);
    free(qkv), free(dqkv), free(o), free(dout), free(m), free(l);
}

/* Checks the best backend with one thread and with three; all: every backend. */
static void check(const ro_attention *a, uint64_t seed, data_class class, int all) {
    attention_tensors want = tensors_of(a);
    tensors_fill(&want, seed, class);
    ro_ctx *ctx = context("cpu", 1);
    nodes_forward(ctx, a, &want);
    nodes_backward(ctx, a, &want);
    compare(ctx, a, &want, 1);
    ro_ctx_destroy(ctx);
    ctx = context("cpu", 3);
    compare(ctx, a, &want, 3);
    compare_rows(ctx, a, &want, (int64_t)(seed % 3));
    ro_ctx_destroy(ctx);
    for (int b = 0; all && b < BACKENDS; b++) {
        ctx = context(backends[b], 2);
        if (ctx) {
            compare(ctx, a, &want, 2);
            compare_rows(ctx, a, &want, (int64_t)(seed % 3));
        }
        ro_ctx_destroy(ctx);
    }
    tensors_free(&want);
}

#ifdef HOSTILE
Test(attention_fused, modes_of_the_caller_do_not_show) {
    for (int b = 0; b < 2 * BACKENDS; b++) {
        ro_attention a = sizes(1, 2, 1, 130, 130, 24, 1);
        attention_tensors want = tensors_of(&a);
        a.dropout = b & 1 ? &thinned : NULL;
        tensors_fill(&want, (uint64_t)b, b % 2 ? DATA_NORMAL : DATA_TINY);
        ro_ctx *ctx = context(backends[b / 2], 2);
        if (ctx) {
            nodes_forward(ctx, &a, &want);
            nodes_backward(ctx, &a, &want);
            const uint64_t before = ro_fp_read();
            ro_fp_write(HOSTILE);
            compare(ctx, &a, &want, 2);
            const uint64_t after = ro_fp_read();
            ro_fp_write(before);
            cr_expect((after | RO_FP_STICKY) == (HOSTILE | RO_FP_STICKY), "modes are now %x",
                      (unsigned)after);
        }
        tensors_free(&want);
        ro_ctx_destroy(ctx);
    }
}
#endif

/* ---- shapes ---- */

static const int64_t edges[] = {1, 2, 13, 14, 15, 31, 33, 64, 127, 128, 129, 255, 256, 257, 300};
enum { EDGES = sizeof edges / sizeof edges[0] };

Test(attention_fused, has_the_bytes_of_its_nodes_at_every_edge_of_a_block) {
    for (int i = 0; i < EDGES; i++)
        for (int variant = 0; variant < 4; variant++) {
            ro_attention a = sizes(1, 2, 2, edges[i], edges[i], 16, variant & 1);
            a.dropout = variant & 2 ? &thinned : NULL;
            check(&a, (uint64_t)i, DATA_NORMAL, 1);
        }
}

/* Windows from one key to more than there are, at edges of blocks; excluded values would change the
 * sums if they were added. */
Test(attention_fused, a_window_leaves_the_last_keys) {
    static const int64_t windows[] = {1, 2, 31, 127, 128, 129, 200, 256, 300, 5000};
    for (int i = 0; i < 10; i++)
        for (int variant = 0; variant < 8; variant++) {
            const int64_t length = variant & 1 ? 300 : 391;
            ro_attention a = sizes(1, 2, variant & 4 ? 1 : 2, length, length, 24, 1);
            a.window = windows[i];
            a.dropout = variant & 2 ? &thinned : NULL;
            check(&a, (uint64_t)(900 + i), variant & 1 ? DATA_RARE : DATA_NORMAL, 1);
            check(&a, (uint64_t)(950 + i), DATA_SPECIAL, 0);
        }
}

Test(attention_fused, any_head_size) {
    for (int64_t size = 1; size <= 128; size += size < 20 ? 1 : 9)
        for (int causal = 0; causal < 2; causal++) {
            ro_attention a = sizes(1, 1, 1, 131, 131, size, causal);
            a.dropout = size % 2 ? &thinned : NULL;
            check(&a, (uint64_t)size, DATA_NORMAL, 1);
        }
    const ro_attention a = sizes(1, 1, 1, 130, 130, RO_ATTENTION_HEAD_MAX, 1);
    check(&a, 9, DATA_NORMAL, 1);
}

Test(attention_fused, full_attention_of_other_than_as_many_keys) {
    for (int i = 0; i < EDGES; i += 2)
        for (int j = 1; j < EDGES; j += 2) {
            ro_attention a = sizes(2, 2, 1, edges[i], edges[j], 24, 0);
            a.dropout = (i + j) % 4 == 1 ? &thinned : NULL;
            check(&a, (uint64_t)(i * EDGES + j), DATA_NORMAL, 0);
        }
}

Test(attention_fused, no_queries_no_keys_or_no_batch) {
    static const int64_t none[][3] = {{2, 5, 0}, {2, 0, 5}, {2, 0, 0}, {0, 5, 5}};
    for (int i = 0; i < 4; i++)
        for (int variant = 0; variant < 4; variant++) {
            ro_attention a =
                sizes(none[i][0], 4, variant & 1 ? 2 : 4, none[i][1], none[i][2], 3, 0);
            a.scale = variant & 2 ? -0.5f : 0.5f;
            check(&a, (uint64_t)i, DATA_NORMAL, 1);
        }
}

Test(attention_fused, long_sequences) {
    for (int causal = 0; causal < 2; causal++) {
        ro_attention a = sizes(1, 2, 2, 2048, 2048, 64, causal);
        check(&a, 3, DATA_NORMAL, 0);
        a = sizes(1, 1, 1, 1001, 1001, 80, causal);
        a.dropout = &thinned;
        check(&a, 4, DATA_NORMAL, 0);
    }
}

Test(attention_fused, heads_of_a_group_share_keys_and_values) {
    for (int64_t group = 1; group <= 6; group++)
        for (int causal = 0; causal < 2; causal++) {
            ro_attention a = sizes(2, 2 * group, 2, 140, 140, 20, causal);
            a.dropout = group == 3 ? &thinned : NULL;
            check(&a, (uint64_t)group, DATA_NORMAL, 1);
        }
}

/* Infinities and NaN outside of the mask, empty blocks, underflow, zeros of both signs. */
Test(attention_fused, special_values_stay_where_the_nodes_leave_them) {
    for (int class = 0; class < DATA_END; class ++)
        for (int variant = 0; variant < 8; variant++) {
            ro_attention a = sizes(1, 2, variant & 4 ? 1 : 2, 141, 141, 17, variant & 1);
            a.dropout = variant & 2 ? &thinned : NULL;
            check(&a, (uint64_t)(100 + 8 * class + variant), (data_class) class, 1);
            a.scale = -1.0f;
            check(&a, (uint64_t)(200 + 8 * class + variant), (data_class) class, 0);
        }
}

/* Padding masks no keys, some of each sequence, whole blocks, or all; then the bias is any
 * numbers. */
Test(attention_fused, keys_have_a_bias) {
    static const int64_t of[][2] = {{140, 140}, {129, 129}, {5, 300},
                                    {300, 17},  {3, 260},   {64, 64}};
    float bias[3 * 300];
    for (int i = 0; i < 6; i++)
        for (int variant = 0; variant < 12; variant++) {
            const int64_t keys = of[i][1], kept[] = {keys, keys / 2, variant % 3 ? 1 : 0};
            for (int64_t e = 0; e < 3 * keys; e++)
                bias[e] = e % keys < kept[e / keys] ? 0.0f : -INFINITY;
            for (int64_t e = 0; e < 3 * keys && variant >= 6; e++)
                bias[e] = (float)(e * 37 % 11) - 5.0f;
            bias[2] = variant == 7 ? NAN : bias[2];
            ro_attention a = sizes(3, 4, variant & 1 ? 4 : 2, of[i][0], keys, 20,
                                   variant & 2 && of[i][0] == keys);
            a.key_bias = bias, a.dropout = variant & 4 ? &thinned : NULL;
            check(&a, (uint64_t)(12 * i + variant), DATA_NORMAL, 1);
            check(&a, (uint64_t)(12 * i + variant), variant & 1 ? DATA_SPECIAL : DATA_MASKED, 0);
        }
}

/* Padding may hold any finite numbers: SPEC 8. */
Test(attention_fused, what_padding_holds_does_not_show) {
    enum { KEYS = 200, PRESENT = 131, SIZE = 20 };
    float bias[KEYS];
    for (int64_t e = 0; e < KEYS; e++)
        bias[e] = e < PRESENT ? 0.0f : -INFINITY;
    for (int b = 0; b < 2 * BACKENDS; b++) {
        ro_attention a = sizes(1, 2, 2, b % 2 ? 2 : KEYS, KEYS, SIZE, 0);
        attention_tensors want = tensors_of(&a);
        a.key_bias = bias;
        tensors_fill(&want, 31, DATA_NORMAL);
        ro_ctx *ctx = context(backends[b / 2], 2);
        if (ctx) {
            nodes_forward(ctx, &a, &want);
            nodes_backward(ctx, &a, &want);
            for (int64_t e = 0; e < want.k_count; e++)
                if (e / SIZE % KEYS >= PRESENT)
                    want.k[e] = -3e15f, want.v[e] = 3e15f;
            compare(ctx, &a, &want, 2);
            for (int64_t e = 0; e < want.k_count; e++)
                cr_expect(e / SIZE % KEYS < PRESENT || (want.dk[e] == 0 && want.dv[e] == 0));
        }
        ro_ctx_destroy(ctx);
        tensors_free(&want);
    }
}

/* One NaN among finite values reaches exactly those rows that may see it. */
Test(attention_fused, a_later_nan_does_not_reach_earlier_queries) {
    ro_attention a = sizes(1, 1, 1, 200, 200, 8, 1);
    attention_tensors t = tensors_of(&a);
    tensors_fill(&t, 8, DATA_NORMAL);
    t.v[150 * 8 + 3] = NAN;
    ro_ctx *ctx = context("cpu", 1);
    cr_assert(ro_attention_forward(ctx, &a, t.q, t.k, t.v, t.out, NULL, NULL) == RO_OK);
    for (int64_t i = 0; i < 200; i++)
        cr_expect(isnan(t.out[i * 8 + 3]) == (i >= 150) && !isnan(t.out[i * 8 + 2]), "query %lld",
                  (long long)i);
    ro_ctx_destroy(ctx);
    tensors_free(&t);
}

/* ---- decoding ---- */

/* Makes a cache of keys or values with spare capacity, [heads, capacity, D]. */
static float *cache_of(const float *x, const ro_attention *a, int64_t capacity) {
    const int64_t size = a->head_size, heads = a->batch * a->kv_heads;
    float *out = floats(heads * capacity * size);
    for (int64_t h = 0; h < heads; h++)
        memcpy(out + h * capacity * size, x + h * a->keys * size,
               (size_t)(a->keys * size) * sizeof *x);
    return out;
}

/* Compares the last `count` queries over the first `keys` of the cache with rows of the prefill. */
static void check_decoding(ro_ctx *ctx, const ro_attention *whole, const attention_tensors *t,
                           int64_t keys, int64_t count, int causal) {
    const int64_t size = whole->head_size, heads = whole->heads, capacity = whole->keys + 5;
    ro_attention a = *whole;
    a.queries = count, a.keys = keys, a.kv_rows = capacity, a.causal = causal;
    float *k = cache_of(t->k, whole, capacity), *v = cache_of(t->v, whole, capacity);
    float *q = floats(heads * count * size), *out = floats(heads * count * size);
    for (int64_t h = 0; h < heads; h++)
        memcpy(q + h * count * size, t->q + (h * whole->queries + keys - count) * size,
               (size_t)(count * size) * sizeof *q);
    cr_assert(ro_attention_forward(ctx, &a, q, k, v, out, NULL, NULL) == RO_OK, "%s",
              ro_ctx_error(ctx));
    for (int64_t h = 0; h < heads; h++)
        expect_same(out + h * count * size, t->out + (h * whole->queries + keys - count) * size,
                    count * size, "row", &a, ro_ctx_backend(ctx), ro_ctx_threads(ctx));
    free(k), free(v), free(q), free(out);
}

static void check_decoded(int64_t window) {
    ro_attention a = sizes(1, 4, 2, 300, 300, 40, 1);
    a.window = window;
    attention_tensors t = tensors_of(&a);
    float bias[300];
    tensors_fill(&t, 12, DATA_RARE);
    for (int64_t e = 0; e < 300; e++)
        bias[e] = e % 7 == 2 ? -INFINITY : e == 260 ? INFINITY : (float)(e % 3);
    for (int b = 0; b < 2 * BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b / 2], 2);
        a.key_bias = b % 2 ? bias : NULL;
        if (!ctx)
            continue;
        cr_assert(ro_attention_forward(ctx, &a, t.q, t.k, t.v, t.out, NULL, NULL) == RO_OK);
        for (int i = 0; i < EDGES; i++)
            check_decoding(ctx, &a, &t, edges[i], 1, window || i % 2);
        for (int i = 3; i < EDGES; i++)
            check_decoding(ctx, &a, &t, edges[i], edges[i - 3], 1);
        ro_ctx_destroy(ctx);
    }
    tensors_free(&t);
}

Test(attention_fused, a_decoded_query_is_a_row_of_the_prefill) {
    check_decoded(0);
}

Test(attention_fused, a_decoded_query_with_a_window_is_a_row_of_the_prefill) {
    check_decoded(1);
    check_decoded(100);
    check_decoded(128);
    check_decoded(150);
}

/* Many heads that share keys, and head sizes that are not multiples of vectors. */
Test(attention_fused, a_few_queries_of_many_heads) {
    static const struct {
        int64_t batch, heads, kv_heads, queries, keys, size;
    } of[] = {{2, 3, 3, 1, 700, 64},  {1, 16, 1, 4, 390, 24}, {1, 17, 1, 4, 129, 8},
              {1, 12, 2, 3, 140, 65}, {3, 9, 3, 2, 17, 256},  {1, 1, 1, 4, 8200, 5},
              {1, 1, 1, 1, 1, 1},     {1, 3, 1, 1, 40, 1}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++) {
            const ro_attention a = sizes(of[i].batch, of[i].heads, of[i].kv_heads, of[i].queries,
                                         of[i].keys, of[i].size, 0);
            check(&a, 60 + i, (data_class) class, 1);
        }
}

/* ---- what is refused ---- */

typedef struct {
    ro_attention a;
    ro_status status;
    const char *sentence;
} refusal;

Test(attention_fused, impossible_sizes_are_refused_with_a_sentence) {
    ro_attention cache = sizes(1, 1, 1, 4, 4, 4, 0), thin = sizes(1, 1, 1, 3, 4, 4, 1);
    ro_attention narrow = sizes(1, 4, 2, 4, 4, 4, 0), narrow_keys = narrow, narrow_values = narrow,
                 narrow_results = narrow;
    cache.kv_rows = 3;
    narrow.q_row = 15, narrow_keys.k_row = -8, narrow_values.v_row = 7, narrow_results.out_row = 1;
    thin.dropout = &thinned;
    const refusal list[] = {
        {sizes(-1, 1, 1, 4, 4, 4, 0), RO_ERR_ARG, "`batch` must be 0.."},
        {sizes(1, 0, 1, 4, 4, 4, 0), RO_ERR_ARG, "`heads` must be 1.."},
        {sizes(1, 4, 5, 4, 4, 4, 0), RO_ERR_ARG, "`kv_heads` must be 1..4, got 5"},
        {sizes(1, 4, 3, 4, 4, 4, 0), RO_ERR_ARG, "`kv_heads` must divide `heads`, got 3 and 4"},
        {sizes(1, 1, 1, -1, 4, 4, 0), RO_ERR_ARG, "`queries` must be 0.."},
        {sizes(1, 1, 1, 4, 2047 * 128 + 1, 4, 0), RO_ERR_ARG, "`keys` must be 0..262016"},
        {sizes(1, 1, 1, 4, 4, 0, 0), RO_ERR_ARG, "`head_size` must be 1..256, got 0"},
        {sizes(1, 1, 1, 4, 4, 257, 0), RO_ERR_UNSUPPORTED, "`head_size` must be 1..256, got 257"},
        {sizes(1, 1, 1, 5, 4, 4, 1), RO_ERR_ARG, "as many keys as queries, got 4 and 5"},
        {cache, RO_ERR_ARG, "`kv_rows` must be 0 or at least 4 keys, got 3"},
        {thin, RO_ERR_ARG, "causal with dropout needs as many keys as queries"},
        {narrow, RO_ERR_ARG, "`q_row` must be 0 or at least 16, got 15"},
        {narrow_keys, RO_ERR_ARG, "`k_row` must be 0 or at least 8, got -8"},
        {narrow_values, RO_ERR_ARG, "`v_row` must be 0 or at least 8, got 7"},
        {narrow_results, RO_ERR_ARG, "`out_row` must be 0 or at least 16, got 1"},
    };
    ro_ctx *ctx = context("cpu", 1);
    float x[64] = {0};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        cr_expect(ro_attention_forward(ctx, &list[i].a, x, x, x, x, x, x) == list[i].status);
        cr_expect(strstr(ro_ctx_error(ctx), list[i].sentence), "\"%s\"", ro_ctx_error(ctx));
    }
    const ro_attention fewer = sizes(1, 1, 1, 3, 4, 4, 1);
    cr_expect(ro_attention_backward(ctx, &fewer, x, x, x, x, x, x, x, x, x, x) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "the backward pass needs"));
    ro_ctx_destroy(ctx);
}

static void *no_memory(void *user, size_t size, size_t alignment) {
    return (*(int *)user)-- > 0 ? aligned_alloc(alignment, (size + 63) / 64 * 64) : NULL;
}

static void release(void *user, void *block) {
    (void)user;
    free(block);
}

Test(attention_fused, lack_of_memory_is_a_status) {
    int left = 1;
    ro_ctx *ctx;
    const ro_options options = {
        .size = sizeof options, .threads = 1, .alloc = no_memory, .free = release, .user = &left};
    const ro_attention a = sizes(1, 1, 1, 4, 4, 4, 1);
    float x[16] = {0}, y[16], z[16], w[16];
    cr_assert(ro_ctx_create(&options, &ctx) == RO_OK);
    cr_expect(ro_attention_forward(ctx, &a, x, x, x, y, NULL, NULL) == RO_ERR_MEMORY);
    cr_expect(ro_attention_backward(ctx, &a, x, x, x, x, x, x, x, y, z, w) == RO_ERR_MEMORY);
    ro_ctx_destroy(ctx);
}
