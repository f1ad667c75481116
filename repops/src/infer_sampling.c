/* Valid calls of operators that draw tokens. SPEC.md section 10.3. */
#include "repops/src/infer.h"
#include "repops/op_sampling.h"

static int64_t *last_of(ro_shape *s) {
    return &s->dim[s->ndim - 1];
}

/* Wants weights [..., V]; the output's last dimension is `last`. */
static ro_status want_weights(ro_check *c, int64_t last) {
    TRY(ro_want_type(c, 0, RO_I32));
    c->want = c->in[0];
    if (*last_of(&c->want) > INT32_MAX)
        return ro_refuse(c, "rows of at most %lld elements", (long long)INT32_MAX);
    *last_of(&c->want) = last;
    return RO_OK;
}

/* Wants a pair for each row of input 0. */
static ro_status want_pairs(ro_check *c, int input) {
    ro_shape pairs = c->in[0];
    TRY(ro_want_type(c, input, RO_I32));
    *last_of(&pairs) = 2;
    return ro_want_dims(c, input, &pairs);
}

ro_status ro_check_weight(ro_check *c) {
    TRY(ro_all_f32(c));
    c->want.dtype = RO_I32;
    return ro_want_per_last(c, 1, 0);
}

ro_status ro_check_top_k(ro_check *c) {
    TRY(ro_want_range(c, RO_TOP_K_K, 1, INT32_MAX));
    return want_weights(c, 2);
}

ro_status ro_check_top_p(ro_check *c) {
    TRY(ro_want_range(c, RO_TOP_P_P, 1, INT64_C(1) << 24));
    return want_weights(c, 2);
}

ro_status ro_check_keep_top(ro_check *c) {
    const ro_shape *q = &c->in[0];
    TRY(want_weights(c, q->dim[q->ndim - 1]));
    return want_pairs(c, 1);
}

ro_status ro_check_random_words(ro_check *c) {
    TRY(ro_want_type(c, 0, RO_I32));
    TRY(ro_want_scalar_step(c, 1));
    TRY(ro_want_range(c, RO_RANDOM_WORDS_STREAM, 0, UINT32_MAX));
    c->want = c->in[0];
    if (*last_of(&c->want) != 2)
        return ro_refuse(c, "input 0 must be [..., 2]");
    return RO_OK;
}

ro_status ro_check_draw(ro_check *c) {
    TRY(want_weights(c, 1));
    if (c->in[0].dim[c->in[0].ndim - 1] == 0)
        return ro_refuse(c, "there is nothing to draw from");
    return want_pairs(c, 1);
}
