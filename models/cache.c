/* Attention that keeps its keys and values for the rows to come. */
#include "models/model.h"

/* Rows past the kept ones are zeros. */
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

/* Keys are kept as they are after rotation. */
static vd_value turned(vd_builder *b, vd_value rows, const vd_heads *h) {
    if (!h->rotation)
        return rows;
    const vd_value heads = split_heads(b, "k_heads", rows, h->kv_heads);
    const vd_value turns = vd_rope(b, "k_turned", heads, *h->rotation);
    return VD_EMIT(b, "k_rows", ((vd_op){.op = RO_OP_JOIN_HEADS}), turns);
}

vd_value vd_attend(const vd_pass *p, int64_t layer, const vd_value qkv[3], const vd_heads *h) {
    vd_cache *cache = p->in->cache;
    if (!cache)
        return vd_grouped_attention(p->b, qkv, h);
    vd_value *kept = &cache->layer[2 * layer];
    kept[0] = with_room(p->b, "k_kept", cache, turned(p->b, qkv[1], h));
    kept[1] = with_room(p->b, "v_kept", cache, qkv[2]);
    return vd_grouped_attention(p->b, qkv, h);
}
