/* This file writes a prompt's last state as a line of JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "verde/run/answers.h"
#include "verde/run/results.h"

/* The index of the leaf of this name, or VD_LEAVES_MAX if there is none. */
static uint32_t leaf_named(const vd_program *p, const char *name) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (strcmp(p->leaf[i].name, name) == 0)
            return i;
    return VD_LEAVES_MAX;
}

static const void *tensor_named(const vd_program *p, const vd_state *s, const char *name) {
    const uint32_t leaf = leaf_named(p, name);
    return leaf < VD_LEAVES_MAX ? s->tensor[leaf] : NULL;
}

static int64_t length_of(const vd_program *p, const char *name, int axis) {
    return p->leaf[leaf_named(p, name)].shape.dim[axis];
}

/* Writes a number, or null if it is not finite, as JSON allows no others: -inf is an impossible
 * token; NaNs are counted by `not_finite`. */
static void put_real(vd_buf *out, float x) {
    if (isfinite(x))
        vd_printf(out, "%.9g", (double)x);
    else
        vd_printf(out, "null");
}

static void put_reals(vd_buf *out, const float *x, int64_t count) {
    vd_printf(out, ",\"log_probabilities\":[");
    for (int64_t i = 0; i < count; i++) {
        vd_printf(out, i ? "," : "");
        put_real(out, x[i]);
    }
    vd_printf(out, "]");
}

/* Counts log-probabilities that are NaN: exactly if the largest logit is not finite (NaN, infinity,
 * or minus infinity for all tokens). Such logits decide nothing: a drawn token is token 0, a greedy
 * one the first NaN, or else the first of the largest. */
static void put_not_finite(vd_buf *out, const float *x, int64_t count, vd_score_sum *sum) {
    uint64_t none = 0;
    for (int64_t i = 0; i < count; i++)
        none += isnan(x[i]) != 0;
    if (none > 0)
        vd_printf(out, ",\"not_finite\":%" PRIu64, none);
    sum->not_finite += none;
}

static void put_best(vd_buf *out, const int32_t *best, const float *of_best, int64_t count,
                     int64_t width) {
    vd_printf(out, ",\"best\":[");
    for (int64_t i = 0; i < count * width; i++) {
        vd_printf(out, i % width ? "," : i ? ",[" : "[");
        vd_printf(out, "[%" PRId32 ",", best[i]);
        put_real(out, of_best[i]);
        vd_printf(out, i % width == width - 1 ? "]]" : "]");
    }
    vd_printf(out, "]");
}

/* The number of tokens that a state has made; 0 for a program that scores. */
static int64_t tokens_made(const vd_program *p, const vd_state *s) {
    const int32_t *count = tensor_named(p, s, "count");
    const int64_t most = count ? length_of(p, "text", 0) : 0;
    return !count || *count < 0 ? 0 : *count > most ? most : *count;
}

static void put_text(const vd_program *p, const vd_state *s, vd_score_sum *sum, vd_buf *out) {
    const int32_t *text = tensor_named(p, s, "text"), *best = tensor_named(p, s, "best");
    const int32_t *stopped = tensor_named(p, s, "stopped");
    const float *each = tensor_named(p, s, "log_probability");
    const int64_t count = tokens_made(p, s);
    vd_printf(out, ",\"ids\":[");
    for (int64_t i = 0; i < count; i++)
        vd_printf(out, i ? ",%" PRId32 : "%" PRId32, text[i]);
    vd_printf(out, "]");
    if (each)
        put_reals(out, each, count);
    if (best)
        put_best(out, best, tensor_named(p, s, "best_log_probability"), count,
                 length_of(p, "best", 1));
    if (each)
        put_not_finite(out, each, count, sum);
    vd_printf(out, ",\"stopped\":\"%s\"}\n", *stopped ? "stop" : "length");
}

/* Writes a score: a sum in binary64, in order. It is for people, and is not committed to. */
static void put_score(const vd_program *p, const vd_state *s, vd_score_sum *sum, vd_buf *out) {
    const float *each = tensor_named(p, s, "log_probability");
    const int64_t count = length_of(p, "log_probability", 0);
    double total = 0;
    for (int64_t i = 0; i < count; i++)
        total += (double)each[i];
    put_reals(out, each, count);
    if (isfinite(total))
        vd_printf(out, ",\"log_probability\":%.9g", total);
    put_not_finite(out, each, count, sum);
    vd_printf(out, "}\n");
    sum->log_probability += total;
    sum->tokens += (uint64_t)count;
}

/* Writes the best class, the first one of equals, as an evaluation does. */
static void put_classes(const vd_program *p, const vd_state *s, vd_score_sum *sum, vd_buf *out) {
    const float *each = tensor_named(p, s, VD_CLASSES_LEAF);
    const int64_t count = length_of(p, VD_CLASSES_LEAF, 0);
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (each[i] > each[best])
            best = i;
    vd_printf(out, ",\"class\":%" PRId64, best);
    put_reals(out, each, count);
    put_not_finite(out, each, count, sum);
    vd_printf(out, "}\n");
}

/* ---- checks of a program's leaves ---- */

static bool has_leaf(const vd_program *p, const char *name, ro_shape shape) {
    const uint32_t leaf = leaf_named(p, name);
    return leaf < VD_LEAVES_MAX && ro_shape_equal(&p->leaf[leaf].shape, &shape);
}

static bool generates(const vd_program *p) {
    const int64_t count = length_of(p, "text", 0);
    const uint32_t best = leaf_named(p, "best");
    if (!has_leaf(p, "text", (ro_shape){RO_I32, 1, {count}}) ||
        !has_leaf(p, "count", (ro_shape){RO_I32, 1, {1}}) ||
        !has_leaf(p, "stopped", (ro_shape){RO_I32, 1, {1}}))
        return false;
    if (leaf_named(p, "log_probability") < VD_LEAVES_MAX &&
        !has_leaf(p, "log_probability", (ro_shape){RO_F32, 1, {count}}))
        return false;
    const int64_t width = best < VD_LEAVES_MAX ? p->leaf[best].shape.dim[1] : 0;
    return best == VD_LEAVES_MAX ||
           (has_leaf(p, "best", (ro_shape){RO_I32, 2, {count, width}}) &&
            has_leaf(p, "best_log_probability", (ro_shape){RO_F32, 2, {count, width}}));
}

static bool scores(const vd_program *p, const char *name) {
    return leaf_named(p, name) < VD_LEAVES_MAX &&
           has_leaf(p, name, (ro_shape){RO_F32, 1, {length_of(p, name, 0)}});
}

/* Writes the answers' names; their numbers are in files of their own (answers.h). */
static void put_answers(const vd_program *p, vd_buf *out) {
    const char *separator = ",\"answers\":[";
    for (uint32_t i = 0; i < p->leaf_count; i++) {
        if (!vd_answer_name(&p->leaf[i]))
            continue;
        vd_printf(out, "%s\"%s\"", separator, vd_answer_name(&p->leaf[i]));
        separator = ",";
    }
    vd_printf(out, "]}\n");
}

vd_status vd_result_line(const vd_program *p, const vd_state *s, int64_t key, vd_score_sum *sum,
                         vd_buf *out, vd_err *err) {
    const bool text = leaf_named(p, "text") < VD_LEAVES_MAX;
    const bool classes = leaf_named(p, VD_CLASSES_LEAF) < VD_LEAVES_MAX;
    const bool answers = vd_program_answers(p);
    if (!answers &&
        !(text ? generates(p) : scores(p, classes ? VD_CLASSES_LEAF : "log_probability")))
        return vd_fail(err, VD_ERR_PEER,
                       "the program of key %" PRId64 " has not the leaves of one that generates, "
                       "scores or answers",
                       key);
    vd_printf(out, "{\"key\":%" PRId64, key);
    if (answers)
        put_answers(p, out);
    else if (text)
        put_text(p, s, sum, out);
    else if (classes)
        put_classes(p, s, sum, out);
    else
        put_score(p, s, sum, out);
    return vd_buf_ok(out) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

/* Warns on standard error, which reaches people and programs. */
static void warn(const vd_score_sum *sum) {
    if (sum->not_finite)
        fprintf(stderr,
                "warning: %llu log-probabilit%s no number, since the largest logit is not finite: "
                "nothing follows from such logits; `not_finite` in results.jsonl counts them\n",
                (unsigned long long)sum->not_finite, sum->not_finite == 1 ? "y is" : "ies are");
}

void vd_score_text(vd_buf *out, const vd_score_sum *sum) {
    const double loss = -sum->log_probability / (double)sum->tokens;
    if (sum->tokens)
        vd_printf(out, "loss         %.6f of %llu tokens\nperplexity   %.6g\n", loss,
                  (unsigned long long)sum->tokens, exp(loss));
    warn(sum);
}

void vd_score_json(const vd_score_sum *sum, json_t *out) {
    const double loss = -sum->log_probability / (double)sum->tokens;
    warn(sum);
    if (sum->not_finite)
        json_object_set_new(out, "not_finite", json_integer((json_int_t)sum->not_finite));
    if (!sum->tokens)
        return;
    json_object_set_new(out, "tokens", json_integer((json_int_t)sum->tokens));
    json_object_set_new(out, "loss", isfinite(loss) ? json_real(loss) : json_null());
    json_object_set_new(out, "perplexity", isfinite(loss) ? json_real(exp(loss)) : json_null());
}
