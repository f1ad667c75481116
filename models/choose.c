/* Chooses the next token from the logits. */
#include <math.h>

#include "repops/op_movement.h"
#include "repops/op_reduce.h"
#include "repops/op_softmax.h"
#include "models/model.h"

/* ---- parts ---- */

static vd_value filled(vd_builder *b, const char *name, float value, ro_shape shape) {
    const vd_op op = {RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32(value)}, &shape};
    return vd_emit(b, name, op, 0, NULL);
}

vd_value vd_whole(vd_builder *b, const char *name, int64_t value) {
    const vd_op cast = {RO_OP_CAST, {[RO_CAST_DTYPE] = RO_I32}, NULL};
    return VD_EMIT(b, name, cast, filled(b, name, (float)value, VD_SHAPE(RO_F32, 1)));
}

static vd_value word(vd_builder *b, const char *name, vd_value x) {
    return vd_reshape(b, name, x, VD_SHAPE(RO_I32, 1));
}

/* Returns minus infinity: the logit of a token that must not be chosen. */
static vd_value never(vd_builder *b) {
    return filled(b, "never", -INFINITY, VD_SHAPE(RO_F32, 1, 1));
}

/* ---- what changes logits ---- */

static vd_value penalize(vd_builder *b, const vd_choosing *c, vd_value x) {
    const float penalty = c->how->repetition_penalty;
    const ro_shape row = VD_SHAPE(RO_I32, 1, vd_shape_of(b, x)->dim[1]);
    if (c->seen == VD_NONE)
        return x;
    vd_scope(b, "penalty");
    const vd_value zero = filled(b, "zero", 0, VD_SHAPE(RO_F32, 1));
    const vd_value below = vd_compare(b, "below", x, zero, RO_LESS);
    const vd_value divided = vd_div_const(b, "divided", x, penalty);
    const vd_value times = vd_scale(b, "times", x, penalty);
    const vd_value worse = vd_where(b, "worse", below, times, divided);
    return vd_where(b, "logits", vd_reshape(b, "seen", c->seen, row), worse, x);
}

static vd_value forbid_stops(vd_builder *b, const vd_choosing *c, vd_value x) {
    const vd_generation *how = c->how;
    if (how->min_tokens == 0 || how->stop_count == 0)
        return x;
    vd_scope(b, "minimum");
    const vd_value least = vd_whole(b, "least", how->min_tokens);
    const vd_value early = vd_compare(b, "early", c->step, least, RO_LESS);
    const vd_value nowhere = vd_whole(b, "nowhere", -1), none = never(b);
    for (int64_t i = 0; i < how->stop_count; i++) {
        const vd_value stop = vd_whole(b, "stop", how->stop[i]);
        x = vd_put_rows(b, "logits", x, none, vd_where(b, "at", early, stop, nowhere), 1);
    }
    return x;
}

/* ---- drawing ---- */

static vd_value draw(vd_builder *b, const vd_choosing *c, vd_value x) {
    const vd_generation *how = c->how;
    const int64_t vocab = vd_shape_of(b, x)->dim[1];
    vd_scope(b, "draw");
    if (how->temperature != 1)
        x = vd_div_const(b, "temperature", x, how->temperature);
    const vd_value most = vd_reduce(b, "max", RO_OP_REDUCE_MAX, vocab, 1, &x);
    vd_value q = vd_weight(b, "weights", x, most);
    if (how->top_k > 0 && how->top_k < vocab)
        q = vd_keep_top(b, "kept", q, vd_top_k(b, "top_k", q, how->top_k));
    if (how->top_p < VD_TOP_P_ONE)
        q = vd_keep_top(b, "kept", q, vd_top_p(b, "top_p", q, how->top_p));
    const vd_value key = vd_reshape(b, "key", c->key, VD_SHAPE(RO_I32, 1, 2));
    return vd_draw(b, "index", q,
                   vd_random_words(b, "words", key, c->first, how->seed, VD_STREAM_SAMPLE));
}

vd_value vd_choose_token(vd_builder *b, const vd_choosing *c) {
    vd_value x = forbid_stops(b, c, penalize(b, c, c->logits));
    const vd_value index =
        c->how->greedy ? (vd_scope(b, "choice"), vd_argmax(b, x, 1)) : draw(b, c, x);
    vd_scope(b, "choice");
    return word(b, "token", index);
}

/* ---- log-probabilities ---- */

/* The logits' maximum and sum of exponentials, which give every token's log-probability. */
typedef struct {
    vd_value logits, most, sum;
} row_sums;

static row_sums sum_row(vd_builder *b, vd_value logits) {
    const int64_t vocab = vd_shape_of(b, logits)->dim[1];
    const vd_value most = vd_reduce(b, "max", RO_OP_REDUCE_MAX, vocab, 1, &logits);
    const vd_value in[] = {logits, most};
    return (row_sums){logits, most, vd_reduce(b, "expsum", RO_OP_REDUCE_EXPSUM, vocab, 2, in)};
}

static vd_value log_probability(vd_builder *b, const row_sums *s, vd_value token) {
    const vd_value loss =
        VD_EMIT(b, "xent", ((vd_op){.op = RO_OP_XENT}), s->logits, s->most, s->sum, token);
    return vd_scale(b, "log_probability", loss, -1);
}

static vd_value in_row(vd_builder *b, const char *name, int64_t count, const vd_value *x,
                       int type) {
    return vd_reshape(b, name, vd_concat(b, name, 0, (int32_t)count, x), VD_SHAPE(type, 1, count));
}

vd_likely vd_tell_likely(vd_builder *b, const vd_choosing *c, vd_value token) {
    vd_value best[VD_BEST_MAX], of_best[VD_BEST_MAX], left = c->logits;
    vd_scope(b, "likely");
    const row_sums s = sum_row(b, c->logits);
    vd_likely out = {log_probability(b, &s, token), VD_NONE, VD_NONE};
    const vd_value none = c->how->best > 1 ? never(b) : VD_NONE;
    for (int64_t i = 0; i < c->how->best; i++) {
        best[i] = word(b, "best", vd_argmax(b, left, 1));
        of_best[i] = log_probability(b, &s, best[i]);
        if (i + 1 < c->how->best)
            left = vd_put_rows(b, "left", left, none, best[i], 1);
    }
    if (c->how->best > 0) {
        out.best = in_row(b, "best", c->how->best, best, RO_I32);
        out.best_chosen = in_row(b, "best_chosen", c->how->best, of_best, RO_F32);
    }
    return out;
}
