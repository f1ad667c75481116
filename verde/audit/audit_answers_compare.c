/* Finds where a delivered answer first differs from the correct one. */
#include <math.h>
#include <string.h>

#include "verde/audit/audit_answers.h"

typedef struct {
    const vd_answer_claim *claim;
    const int32_t *text, *best;
    const float *log_probability, *best_log_probability;
    int64_t max_tokens, width; /* `width`: of `best` */
    int64_t stop;
    vd_answer_difference *out;
} comparing;

int64_t vd_answer_steps(const vd_answer_claim *claim, int64_t max_tokens, int64_t vocab) {
    const int64_t rows = claim->count < max_tokens ? claim->count + 1 : max_tokens;
    for (int64_t i = 0; i + 1 < rows; i++) /* after an invalid token nothing can be computed */
        if (claim->token[i] < 0 || claim->token[i] >= vocab)
            return i + 1;
    return rows;
}

/* ---- reporting a difference ---- */

static json_int_t token_said(const comparing *c, int64_t i) {
    return json_integer_value(json_array_get(json_object_get(c->claim->line, "ids"), (size_t)i));
}

static bool differ(const comparing *c, const char *said, const char *right) {
    snprintf(c->out->said, sizeof c->out->said, "%s", said);
    snprintf(c->out->right, sizeof c->out->right, "%s", right);
    return true;
}

static bool differ_tokens(const comparing *c, json_int_t said, int32_t right) {
    char a[24], b[24];
    snprintf(a, sizeof a, "%lld", (long long)said);
    snprintf(b, sizeof b, "%d", (int)right);
    return differ(c, a, b);
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Compares a number; in a line null stands for NaN and infinities. */
static bool same_real(const json_t *said, float right) {
    return json_is_null(said) ? !isfinite(right)
                              : isfinite(right) && (float)json_number_value(said) == right;
}

static bool differ_reals(const comparing *c, const json_t *said, float right) {
    char a[VD_ELEMENT_TEXT] = "null", b[VD_ELEMENT_TEXT];
    if (!json_is_null(said))
        vd_element_text(RO_F32, bits_of((float)json_number_value(said)), a);
    vd_element_text(RO_F32, bits_of(right), b);
    return differ(c, a, b);
}

/* ---- what a line states for each token ---- */

static bool compare_token(const comparing *c, int64_t i) {
    snprintf(c->out->place, VD_ANSWER_PLACE, "ids[%lld]", (long long)i);
    return token_said(c, i) != c->text[i] && differ_tokens(c, token_said(c, i), c->text[i]);
}

static bool compare_log_probability(const comparing *c, int64_t i) {
    const json_t *said = json_array_get(c->claim->log_probability, (size_t)i);
    snprintf(c->out->place, VD_ANSWER_PLACE, "log_probabilities[%lld]", (long long)i);
    return c->claim->log_probability && !same_real(said, c->log_probability[i]) &&
           differ_reals(c, said, c->log_probability[i]);
}

static bool compare_best(const comparing *c, int64_t i) {
    const json_t *row = json_array_get(c->claim->best, (size_t)i);
    for (int64_t k = 0; c->claim->best && k < c->width; k++) {
        const json_t *pair = json_array_get(row, (size_t)k), *real = json_array_get(pair, 1);
        const json_int_t token = json_integer_value(json_array_get(pair, 0));
        const int32_t right = c->best[i * c->width + k];
        const float of_right = c->best_log_probability[i * c->width + k];
        snprintf(c->out->place, VD_ANSWER_PLACE, "best[%lld][%lld][%d]", (long long)i, (long long)k,
                 token == right);
        if (token != right)
            return differ_tokens(c, token, right);
        if (!same_real(real, of_right))
            return differ_reals(c, real, of_right);
    }
    return false;
}

/* ---- where the text ends ---- */

static bool compare_stop(const comparing *c, int64_t i) {
    const int64_t next = i + 1;
    char said[24];
    if (c->stop != i || next == c->claim->count)
        return false;
    snprintf(c->out->place, VD_ANSWER_PLACE, "ids[%lld]", (long long)next);
    snprintf(said, sizeof said, "%lld", (long long)token_said(c, next));
    return differ(c, said, "no more: the token before is a stop");
}

static bool compare_end(const comparing *c, int64_t rows) {
    const int64_t count = c->claim->count;
    const bool stops = count > 0 && c->stop == count - 1;
    char text[24];
    if (count > c->max_tokens) {
        snprintf(c->out->place, VD_ANSWER_PLACE, "ids[%lld]", (long long)c->max_tokens);
        snprintf(text, sizeof text, "%lld", (long long)token_said(c, c->max_tokens));
        return differ(c, text, "no more: it has as many as may be");
    }
    if (!stops && count < rows) {
        snprintf(c->out->place, VD_ANSWER_PLACE, "ids[%lld]", (long long)count);
        snprintf(text, sizeof text, "%d", (int)c->text[count]);
        return differ(c, "no more", text);
    }
    snprintf(c->out->place, VD_ANSWER_PLACE, "stopped");
    if (c->claim->stop == stops)
        return false;
    return differ(c, stops ? "length" : "stop", stops ? "stop" : "length");
}

static bool compare_not_finite(const comparing *c) {
    const json_int_t said = json_integer_value(json_object_get(c->claim->line, "not_finite"));
    int32_t right = 0;
    for (int64_t i = 0; c->claim->log_probability && i < c->claim->count; i++)
        right += isnan(c->log_probability[i]) != 0;
    snprintf(c->out->place, VD_ANSWER_PLACE, "not_finite");
    return said != right && differ_tokens(c, said, right);
}

static const void *leaf_named(const vd_program *p, const vd_state *s, const char *name,
                              const ro_shape **shape) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (strcmp(p->leaf[i].name, name) == 0) {
            *shape = &p->leaf[i].shape;
            return s->tensor[i];
        }
    return NULL;
}

bool vd_answer_compare(const vd_answer_claim *claim, const vd_program *program,
                       const vd_state *state, int64_t stop, int64_t rows,
                       vd_answer_difference *out) {
    const ro_shape *shape = NULL;
    comparing c = {.claim = claim, .max_tokens = program->steps, .stop = stop, .out = out};
    c.text = leaf_named(program, state, "text", &shape);
    c.log_probability = leaf_named(program, state, "log_probability", &shape);
    c.best_log_probability = leaf_named(program, state, "best_log_probability", &shape);
    c.best = leaf_named(program, state, "best", &shape);
    c.width = c.best ? shape->dim[1] : 0;
    for (int64_t i = 0; i < rows && i < claim->count; i++)
        if (compare_token(&c, i) || compare_log_probability(&c, i) || compare_best(&c, i) ||
            compare_stop(&c, i))
            return true;
    return compare_end(&c, rows) || compare_not_finite(&c);
}
