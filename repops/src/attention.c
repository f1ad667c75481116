/* ro_attention_forward and ro_attention_backward: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/math.h"
#include "repops/src/operands.h"
#include "repops/src/sized.h"

#define KEYS_MAX ((int64_t)(RO_CRUMB_LOADS - 1) / 2 * RO_ATTN_BLOCK) /* SPEC.md section 11 */

typedef struct {
    const char *name;
    int64_t value, least, most;
} limit;

static ro_status check_sizes(ro_ctx *ctx, const ro_attention *a) {
    const limit sizes[] = {{"batch", a->batch, 0, RO_MAX_NUMEL},
                           {"heads", a->heads, 1, RO_ATTENTION_HEADS_MAX},
                           {"kv_heads", a->kv_heads, 1, a->heads},
                           {"queries", a->queries, 0, RO_MAX_NUMEL},
                           {"keys", a->keys, 0, KEYS_MAX}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value < sizes[i].least || sizes[i].value > sizes[i].most)
            return ro_fail(ctx, RO_ERR_ARG, "attention: `%s` must be %lld..%lld, got %lld",
                           sizes[i].name, (long long)sizes[i].least, (long long)sizes[i].most,
                           (long long)sizes[i].value);
    if (a->head_size < 1 || a->head_size > RO_ATTENTION_HEAD_MAX)
        return ro_fail(ctx, a->head_size < 1 ? RO_ERR_ARG : RO_ERR_UNSUPPORTED,
                       "attention: `head_size` must be 1..%d, got %lld", RO_ATTENTION_HEAD_MAX,
                       (long long)a->head_size);
    if (a->heads % a->kv_heads != 0)
        return ro_fail(ctx, RO_ERR_ARG,
                       "attention: `kv_heads` must divide `heads`, got %lld and "
                       "%lld",
                       (long long)a->kv_heads, (long long)a->heads);
    return RO_OK;
}

/* Returns nonzero if a tensor of `rows` rows per head is no larger than a tensor may be. `row` is
 * the tensor's row distance in ro_attention (q_row, for instance), or 0. */
static int fits(const ro_attention *a, int64_t heads, int64_t rows, int64_t row) {
    const int64_t size = row > 0 ? row : heads * a->head_size;
    return rows <= RO_MAX_NUMEL / size && (rows == 0 || a->batch <= RO_MAX_NUMEL / (rows * size));
}

/* Copies the caller's `wanted` to `a`, with kv_rows filled in. */
static ro_status take(ro_ctx *ctx, const ro_attention *wanted, ro_attention *a) {
    if (!ctx || !wanted)
        return ro_missing(ctx, "attention", ctx ? "a" : "ctx");
    ro_status status = ro_take(ctx, &ro_sized_attention, wanted, a);
    if (status == RO_OK)
        status = check_sizes(ctx, a);
    if (status != RO_OK)
        return status;
    if (a->kv_rows == 0)
        a->kv_rows = a->keys;
    if (a->kv_rows < a->keys)
        return ro_fail(ctx, RO_ERR_ARG,
                       "attention: `kv_rows` must be 0 or at least %lld keys, got "
                       "%lld",
                       (long long)a->keys, (long long)a->kv_rows);
    const limit rows[] = {{"q_row", a->q_row, a->heads * a->head_size, RO_MAX_NUMEL},
                          {"k_row", a->k_row, a->kv_heads * a->head_size, RO_MAX_NUMEL},
                          {"v_row", a->v_row, a->kv_heads * a->head_size, RO_MAX_NUMEL},
                          {"out_row", a->out_row, a->heads * a->head_size, RO_MAX_NUMEL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].value != 0 && (rows[i].value < rows[i].least || rows[i].value > rows[i].most))
            return ro_fail(ctx, RO_ERR_ARG, "attention: `%s` must be 0 or at least %lld, got %lld",
                           rows[i].name, (long long)rows[i].least, (long long)rows[i].value);
    if (!fits(a, a->heads, a->queries, a->q_row) || !fits(a, a->heads, a->queries, a->out_row) ||
        !fits(a, a->kv_heads, a->kv_rows, a->k_row) || !fits(a, a->kv_heads, a->kv_rows, a->v_row))
        return ro_fail(ctx, RO_ERR_ARG, "attention: a tensor has at most 2^40 elements");
    if (a->window < 0 || a->window > RO_MAX_NUMEL || (a->window > 0 && !a->causal))
        return ro_fail(ctx, RO_ERR_ARG,
                       "attention: `window` must be 0..%lld, and 0 without `causal`, got %lld",
                       (long long)RO_MAX_NUMEL, (long long)a->window);
    if (a->causal && a->queries > a->keys)
        return ro_fail(ctx, RO_ERR_ARG,
                       "attention: causal needs at least as many keys as queries, "
                       "got %lld and %lld",
                       (long long)a->keys, (long long)a->queries);
    if (a->causal && a->dropout && a->queries != a->keys)
        return ro_fail(ctx, RO_ERR_ARG,
                       "attention: causal with dropout needs as many keys as "
                       "queries, got %lld and %lld",
                       (long long)a->keys, (long long)a->queries);
    return RO_OK;
}

/* ---- no queries or no keys: SPEC.md section 4 ---- */

static int empty(const ro_attention *a) {
    return a->batch == 0 || a->queries == 0 || a->keys == 0;
}

static void set_all(float *x, int64_t count, uint32_t bits) {
    for (int64_t i = 0; x && i < count; i++)
        x[i] = ro_from_bits(bits);
}

/* Sets all elements of `tokens` rows of each head to `bits`. row: their distance, or 0. */
static void set_heads(const ro_attention *a, float *x, int64_t heads, int64_t tokens, int64_t row,
                      uint32_t bits) {
    for (int64_t h = 0; h < a->batch * heads; h++) {
        const ro_head_rows rows = ro_rows_of_head(h, heads, tokens, a->head_size, row);
        for (int64_t t = 0; t < tokens; t++)
            set_all(x + rows.first + t * rows.step, a->head_size, bits);
    }
}

static void empty_forward(const ro_attention_job *j) {
    const int64_t rows = j->a->batch * j->a->heads * j->a->queries;
    set_heads(j->a, j->out, j->a->heads, j->a->queries, j->a->out_row, 0);
    set_all(j->m, rows, RO_MINUS_INFINITY_BITS);
    set_all(j->l, rows, 0);
}

/* dq and dk are products of zero terms; a sum of zeros over the heads of a group is +0. */
static void empty_backward(const ro_attention_grad_job *j) {
    const ro_attention *a = j->a;
    const uint32_t zero = ro_to_bits(ro_canon(0.0f * a->scale));
    set_heads(a, j->dq, a->heads, a->queries, a->q_row, zero);
    set_heads(a, j->dk, a->kv_heads, a->keys, a->k_row,
              a->kv_heads == a->heads ? zero : ro_to_bits(0.0f + ro_from_bits(zero)));
    set_heads(a, j->dv, a->kv_heads, a->keys, a->v_row, 0);
}

/* ---- memory ---- */

/* Returns the memory of a tensor of queries, for the overlap check. */
static ro_pieces query_rows(const ro_attention *a, const float *at, int64_t row) {
    const int64_t width = a->heads * a->head_size * 4;
    return (ro_pieces){at, a->batch * a->queries, row ? row * 4 : width, width};
}

/* Returns the memory of a tensor of keys or values, without unused rows at its end. */
static ro_pieces key_rows(const ro_attention *a, const float *at, int64_t row) {
    const int64_t size = a->head_size * 4, width = a->kv_heads * size;
    if (a->keys == 0)
        return (ro_pieces){0};
    if (row)
        return (ro_pieces){at, (a->batch - 1) * a->kv_rows + a->keys, row * 4, width};
    return (ro_pieces){at, a->batch * a->kv_heads, a->kv_rows * size, a->keys * size};
}

static ro_pieces statistic(const ro_attention *a, const float *at) {
    return ro_words(at, a->batch * a->heads * a->queries);
}

static ro_status check_forward(ro_ctx *ctx, const ro_attention_job *j) {
    const ro_attention *a = j->a;
    const ro_operand operands[] = {
        {"q", query_rows(a, j->q, a->q_row), RO_READ},
        {"k", key_rows(a, j->k, a->k_row), RO_READ},
        {"v", key_rows(a, j->v, a->v_row), RO_READ},
        {"key_bias", ro_words(a->key_bias, a->batch * a->keys), RO_OPTIONAL},
        {"out", query_rows(a, j->out, a->out_row), RO_WRITTEN},
        {"m", statistic(a, j->m), RO_WRITTEN | RO_OPTIONAL},
        {"l", statistic(a, j->l), RO_WRITTEN | RO_OPTIONAL}};
    return ro_check_operands(ctx, "attention", operands, 7);
}

static ro_status check_backward(ro_ctx *ctx, const ro_attention_grad_job *j) {
    const ro_attention *a = j->a;
    const ro_operand operands[] = {
        {"q", query_rows(a, j->q, a->q_row), RO_READ},
        {"k", key_rows(a, j->k, a->k_row), RO_READ},
        {"v", key_rows(a, j->v, a->v_row), RO_READ},
        {"key_bias", ro_words(a->key_bias, a->batch * a->keys), RO_OPTIONAL},
        {"out", query_rows(a, j->out, a->out_row), RO_READ},
        {"m", statistic(a, j->m), RO_READ},
        {"l", statistic(a, j->l), RO_READ},
        {"dout", query_rows(a, j->dout, a->out_row), RO_READ},
        {"dq", query_rows(a, j->dq, a->q_row), RO_WRITTEN},
        {"dk", key_rows(a, j->dk, a->k_row), RO_WRITTEN},
        {"dv", key_rows(a, j->dv, a->v_row), RO_WRITTEN}};
    return ro_check_operands(ctx, "attention", operands, 11);
}

ro_status ro_attention_forward(ro_ctx *ctx, const ro_attention *wanted, const float *q,
                               const float *k, const float *v, float *out, float *m, float *l) {
    ro_attention a;
    const ro_attention_job job = {&a, q, k, v, out, m, l};
    ro_status status = take(ctx, wanted, &a);
    if (status == RO_OK)
        status = check_forward(ctx, &job);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    if (empty(&a) && !ro_ctx_on(ctx))
        empty_forward(&job);
    else
        status = ro_ctx_table(ctx)->attention_forward(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_attention_backward(ro_ctx *ctx, const ro_attention *wanted, const float *q,
                                const float *k, const float *v, const float *out, const float *m,
                                const float *l, const float *dout, float *dq, float *dk,
                                float *dv) {
    ro_attention a;
    ro_status status = take(ctx, wanted, &a);
    if (status != RO_OK)
        return status;
    if (a.kv_rows != a.keys || (a.causal && a.queries != a.keys))
        return ro_fail(ctx, RO_ERR_ARG,
                       "attention: the backward pass needs kv_rows 0 and, if "
                       "causal, as many keys as queries");
    const ro_attention_grad_job job = {&a, q, k, v, out, m, l, dout, dq, dk, dv};
    status = check_backward(ctx, &job);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    if (empty(&a) && !ro_ctx_on(ctx))
        empty_backward(&job);
    else
        status = ro_ctx_table(ctx)->attention_backward(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}
