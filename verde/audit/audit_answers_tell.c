/* This file prints what the check of answers found, and what it did not examine. */
#include "verde/audit/audit_answers.h"

enum { QUIET_SECONDS = 2, LISTED_MAX = 20 };

void vd_answers_tell_progress(vd_answers_check *c) {
    const bool last = c->checked == c->drawn_count;
    if (vd_tick(&c->ticker, QUIET_SECONDS, last))
        vd_tell_meanwhile(last, "answers checked %u/%u", c->checked, c->drawn_count);
}

static const char said_not[] =
    "the runs' states: the job root may commit to others than lead to these lines";

static bool draws(const vd_answers_check *c) {
    return c->drawn_count < vd_prompt_count(&c->loaded);
}

/* ---- for people ---- */

static void print_drawn(vd_buf *out, const vd_answers_check *c) {
    vd_printf(out, "answers      %u of %u", c->checked, vd_prompt_count(&c->loaded));
    if (draws(c) && c->a->beacon)
        vd_printf(out, ", drawn by %s, round %ld, and the job root", c->a->source, c->a->round);
    else if (draws(c))
        vd_printf(out, ", drawn by this checker");
    vd_printf(out, ", %lld token%s\n", (long long)c->tokens, vd_plural((uint64_t)c->tokens));
}

static void print_difference(vd_buf *out, const vd_answer_difference *d) {
    vd_printf(out, "differs      ");
    if (d->prompt == UINT32_MAX)
        vd_printf(out, "no prompt has key %lld", (long long)d->key);
    else
        vd_printf(out, "prompt %u of the file (key %lld)", d->prompt + 1, (long long)d->key);
    vd_printf(out, ", %s: the result has %s, right is %s\n", d->place, d->said, d->right);
}

void vd_answers_print(const vd_answers_check *c) {
    vd_buf told = {0}, *out = &told;
    const uint32_t unseen = vd_prompt_count(&c->loaded) - c->checked;
    vd_printf(out, "results      %s\n", c->lines.path);
    if (c->proven)
        vd_put_hex(out, "collection", c->collection.b);
    if (c->proven)
        vd_put_hex(out, "job root", c->job_root.b);
    else
        vd_printf(out,
                  "unproven     there is no results.proof: the lines are checked as they stand\n");
    print_drawn(out, c);
    vd_printf(out, "executed     %lld positions, each once, on backend %s, %d thread%s, %.1f s\n",
              (long long)c->rows, ro_ctx_backend(c->loaded.ro), ro_ctx_threads(c->loaded.ro),
              vd_plural((uint64_t)ro_ctx_threads(c->loaded.ro)), vd_seconds() - c->ticker.start);
    for (uint32_t i = 0; i < c->differences && i < LISTED_MAX; i++)
        print_difference(out, &c->difference[i]);
    if (c->differences > LISTED_MAX)
        vd_printf(out, "differs      %u more, which --json lists\n", c->differences - LISTED_MAX);
    if (unseen)
        vd_printf(out, "not checked  %u answer%s, in which anything may be wrong\n", unseen,
                  vd_plural(unseen));
    vd_printf(out, "not checked  %s\n", said_not);
    if (c->differences && !c->a->url && c->proven)
        vd_printf(
            out,
            "dispute      with --provider URL, --verdict FILE and --work DIR the first of them "
            "goes on to one\n");
    else if (c->differences && !c->a->url)
        vd_printf(
            out,
            "dispute      `verde run` the job, `verde serve` it, and `verde arbitrate`: without "
            "results.proof nothing\n             else leads to one\n");
    if (c->differences)
        vd_printf(out, "equal        no: %u difference%s, the first of each answer\n",
                  c->differences, vd_plural(c->differences));
    else
        vd_printf(out, "equal        yes: %s is what the job's model says, to the bit\n",
                  draws(c) ? "what was drawn" : "every line");
    vd_result_text(out);
}

/* ---- for machines ---- */

static json_t *differences_json(const vd_answers_check *c) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->differences; i++) {
        const vd_answer_difference *d = &c->difference[i];
        json_array_append_new(list, json_pack("{so sI ss ss ss}", "prompt",
                                              d->prompt == UINT32_MAX
                                                  ? json_null()
                                                  : json_integer((json_int_t)d->prompt + 1),
                                              "key", (json_int_t)d->key, "place", d->place,
                                              "result", d->said, "right", d->right));
    }
    return list;
}

static json_t *drawn_json(const vd_answers_check *c) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->drawn_count; i++)
        json_array_append_new(list, json_integer((json_int_t)c->drawn[i] + 1));
    json_t *out = json_pack("{so so}", "prompts", list, "beacon",
                            json_stringn((const char *)c->beacon.data, c->beacon.size));
    if (c->a->beacon)
        json_object_set_new(out, "source", json_string(c->a->source));
    if (c->a->beacon)
        json_object_set_new(out, "round", json_integer(c->a->round));
    return out;
}

static json_t *dispute_json(const vd_answers_check *c) {
    return c->disputed
               ? json_pack("{ss si}", "verdict", c->a->verdict, "exit_code", (int)c->outcome)
               : json_null();
}

json_t *vd_answers_json(const vd_answers_check *c) {
    return json_pack(
        "{sb so so so sI sI sI sI sI ss sf so so}", "equal", c->differences == 0, "collection",
        c->proven ? vd_hash_text(&c->collection) : json_null(), "job_root",
        c->proven ? vd_hash_text(&c->job_root) : json_null(), "drawn",
        draws(c) ? drawn_json(c) : json_null(), "prompts", (json_int_t)vd_prompt_count(&c->loaded),
        "checked", (json_int_t)c->checked, "tokens", (json_int_t)c->tokens, "positions",
        (json_int_t)c->rows, "not_checked", (json_int_t)(vd_prompt_count(&c->loaded) - c->checked),
        "backend", ro_ctx_backend(c->loaded.ro), "seconds", vd_seconds() - c->ticker.start,
        "differences", differences_json(c), "dispute", dispute_json(c));
}
