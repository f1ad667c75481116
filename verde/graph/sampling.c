/* Putting rows into a larger tensor, and drawing tokens by weights. SPEC 5, 10.3. These layers have
 * no backward pass. */
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_sampling.h"
#include "verde/graph/build.h"

vd_value vd_put_rows(vd_builder *b, const char *name, vd_value x, vd_value rows, vd_value at,
                     int axis) {
    return VD_EMIT(b, name, ((vd_op){RO_OP_PUT_ROWS, {[RO_PUT_ROWS_AXIS] = axis}, NULL}), x, rows,
                   at);
}

vd_value vd_iadd(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return VD_EMIT(b, name, ((vd_op){.op = RO_OP_IADD}), x, y);
}

vd_value vd_weight(vd_builder *b, const char *name, vd_value x, vd_value m) {
    return VD_EMIT(b, name, ((vd_op){.op = RO_OP_WEIGHT}), x, m);
}

vd_value vd_top_k(vd_builder *b, const char *name, vd_value q, int64_t k) {
    return VD_EMIT(b, name, ((vd_op){RO_OP_TOP_K, {[RO_TOP_K_K] = k}, NULL}), q);
}

vd_value vd_top_p(vd_builder *b, const char *name, vd_value q, int64_t p) {
    return VD_EMIT(b, name, ((vd_op){RO_OP_TOP_P, {[RO_TOP_P_P] = p}, NULL}), q);
}

vd_value vd_keep_top(vd_builder *b, const char *name, vd_value q, vd_value cut) {
    return VD_EMIT(b, name, ((vd_op){.op = RO_OP_KEEP_TOP}), q, cut);
}

vd_value vd_random_words(vd_builder *b, const char *name, vd_value key, vd_value position,
                         uint64_t seed, int64_t stream) {
    const vd_op op = {RO_OP_RANDOM_WORDS,
                      {[RO_RANDOM_WORDS_SEED] = (int64_t)seed, [RO_RANDOM_WORDS_STREAM] = stream},
                      NULL};
    return VD_EMIT(b, name, op, key, position);
}

vd_value vd_draw(vd_builder *b, const char *name, vd_value q, vd_value words) {
    return VD_EMIT(b, name, ((vd_op){.op = RO_OP_DRAW}), q, words);
}
