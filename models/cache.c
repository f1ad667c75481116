/* Attention that keeps its keys and values for later rows. */
#include "repops/op_attention.h"
#include "repops/op_movement.h"
#include "models/model.h"

int64_t vd_kept_width(const vd_model *m) {
    const int64_t size = m->head_dim ? m->head_dim : m->channels / m->heads;
    return (m->kv_heads ? m->kv_heads : m->heads) * size;
}

/* Pads rows of keys or values with zeros to the cache's length. */
static vd_value with_room(vd_builder *b, const char *name, const vd_cache *cache, vd_value rows) {
    const int64_t kept = vd_shape_of(b, rows)->dim[1];
    return kept < cache->length ? vd_pad(b, name, rows, 1, 0, cache->length - kept) : rows;
}

static vd_value split_heads(vd_builder *b, const char *name, vd_value rows, int64_t heads) {
    const vd_op op = {
        RO_OP_SPLIT_HEADS,
        {[RO_SPLIT_HEADS_PARTS] = 1, [RO_SPLIT_HEADS_PART] = 0, [RO_SPLIT_HEADS_HEADS] = heads},
        NULL};
    return VD_EMIT(b, name, op, rows);
}

static vd_value join_heads(vd_builder *b, const char *name, vd_value heads) {
    return VD_EMIT(b, name, ((vd_op){.op = RO_OP_JOIN_HEADS}), heads);
}

/* Rotates keys before they are kept, so that each is rotated only once. */
static vd_value turned(vd_builder *b, vd_value rows, const vd_heads *h) {
    if (!h->rotation)
        return rows;
    const vd_value heads = split_heads(b, "k_heads", rows, h->kv_heads);
    return join_heads(b, "k_rows", vd_rope(b, "k_turned", heads, *h->rotation));
}

/* ---- the pass's only row ---- */

static vd_value queries(vd_builder *b, vd_value rows, const vd_heads *h) {
    const vd_value heads = split_heads(b, "q", rows, h->heads);
    return h->rotation ? vd_rope(b, "q_rotated", heads, *h->rotation) : heads;
}

static vd_value kept_heads(vd_builder *b, const char *const name[2], vd_value rows,
                           const vd_heads *h) {
    const vd_value heads = split_heads(b, name[0], rows, h->kv_heads);
    const vd_op repeat = {
        RO_OP_REPEAT_HEADS, {[RO_REPEAT_HEADS_TIMES] = h->heads / h->kv_heads}, NULL};
    return h->heads == h->kv_heads ? heads : VD_EMIT(b, name[1], repeat, heads);
}

/* Adds the keys and values of the new row to the kept ones, and attends to all of them. */
static vd_value attend_kept(vd_builder *b, const vd_cache *cache, vd_value kept[2],
                            const vd_value qkv[3], const vd_heads *h) {
    static const char *const k[] = {"k", "k_repeated"}, *const v[] = {"v", "v_repeated"};
    kept[0] = vd_put_rows(b, "k_kept", kept[0], turned(b, qkv[1], h), cache->place, 1);
    kept[1] = vd_put_rows(b, "v_kept", kept[1], qkv[2], cache->place, 1);
    const vd_value heads[] = {queries(b, qkv[0], h), kept_heads(b, k, kept[0], h),
                              kept_heads(b, v, kept[1], h)};
    return join_heads(b, "join", vd_attention_at(b, heads, cache->first, h->window));
}

vd_value vd_attend(const vd_pass *p, int64_t layer, const vd_value qkv[3], const vd_heads *h) {
    vd_cache *cache = p->in->cache;
    if (!cache)
        return vd_grouped_attention(p->b, qkv, h);
    vd_value *kept = &cache->layer[2 * layer];
    if (cache->first != VD_NONE)
        return attend_kept(p->b, cache, kept, qkv, h);
    kept[0] = with_room(p->b, "k_kept", cache, turned(p->b, qkv[1], h));
    kept[1] = with_room(p->b, "v_kept", cache, qkv[2]);
    return vd_grouped_attention(p->b, qkv, h);
}
