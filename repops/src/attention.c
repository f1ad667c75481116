/* ro_attention_forward and ro_attention_backward: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

#define KEYS_MAX ((int64_t)(RO_CRUMB_LOADS - 1) / 2 * RO_ATTN_BLOCK) /* SPEC.md section 11 */

typedef struct {
    const char *name;
    int64_t value, most;
} limit;

static ro_status check_sizes(ro_ctx *ctx, const ro_attention *a) {
    const limit sizes[] = {{"batch", a->batch, RO_MAX_NUMEL},
                           {"heads", a->heads, INT64_C(1) << 20},
                           {"kv_heads", a->kv_heads, a->heads},
                           {"queries", a->queries, RO_MAX_NUMEL},
                           {"keys", a->keys, KEYS_MAX}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].most)
            return ro_fail(ctx, RO_ERR_ARG, "attention: `%s` must be 1..%lld, got %lld",
                           sizes[i].name, (long long)sizes[i].most, (long long)sizes[i].value);
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

static ro_status check(ro_ctx *ctx, ro_attention *a) {
    const ro_status status = check_sizes(ctx, a);
    if (status != RO_OK)
        return status;
    if (a->kv_rows == 0)
        a->kv_rows = a->keys;
    if (a->kv_rows < a->keys)
        return ro_fail(ctx, RO_ERR_ARG,
                       "attention: `kv_rows` must be 0 or at least %lld keys, got "
                       "%lld",
                       (long long)a->keys, (long long)a->kv_rows);
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

ro_status ro_attention_forward(ro_ctx *ctx, const ro_attention *wanted, const float *q,
                               const float *k, const float *v, float *out, float *m, float *l) {
    ro_attention a = *wanted;
    ro_status status = check(ctx, &a);
    if (status != RO_OK)
        return status;
    const ro_attention_job job = {&a, q, k, v, out, m, l};
    const ro_fpenv env = ro_fpenv_enter();
    status = ro_ctx_table(ctx)->attention_forward(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_attention_backward(ro_ctx *ctx, const ro_attention *wanted, const float *q,
                                const float *k, const float *v, const float *out, const float *m,
                                const float *l, const float *dout, float *dq, float *dk,
                                float *dv) {
    ro_attention a = *wanted;
    ro_status status = check(ctx, &a);
    if (status != RO_OK)
        return status;
    if (a.kv_rows != a.keys || (a.causal && a.queries != a.keys))
        return ro_fail(ctx, RO_ERR_ARG,
                       "attention: the backward pass needs kv_rows 0 and, if "
                       "causal, as many keys as queries");
    const ro_attention_grad_job job = {&a, q, k, v, out, m, l, dout, dq, dk, dv};
    const ro_fpenv env = ro_fpenv_enter();
    status = ro_ctx_table(ctx)->attention_backward(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}
