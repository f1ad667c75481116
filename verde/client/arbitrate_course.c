/* The vd_world of an arbiter: this machine's journal, clock and network. */

#include "verde/client/arbitrate.h"
#include "verde/load/verdict_file.h"

/* ---- the world ---- */

static double world_now(void *user) {
    (void)user;
    return vd_seconds();
}

static vd_status world_send(void *user, const vd_post *post, vd_err *err) {
    return vd_post_send(((vd_arbitration *)user)->office, post, err);
}

static vd_status world_wait(void *user, double until, vd_reply *out, vd_err *err) {
    return vd_post_wait(((vd_arbitration *)user)->office, until, out, err);
}

static vd_status world_append(void *user, const void *bytes, size_t size, vd_err *err) {
    return vd_court_journal_append(&((vd_arbitration *)user)->journal, bytes, size, err);
}

static void world_tell(void *user, vd_telling how, const char *line) {
    (void)user;
    if (how == VD_TELL_LINE || (how == VD_TELL_EITHER && !vd_is_terminal()))
        vd_tell(NULL, line);
    else
        vd_tell_now(line);
}

static void tell_silent(uint32_t provider, double seconds) {
    char line[80], since[32];
    vd_print_seconds(seconds, since);
    snprintf(line, sizeof line, "Provider %u: no answer for %s.", provider + 1, since);
    vd_tell(NULL, line);
}

static vd_status make_world(vd_arbitration *x) {
    x->world = (vd_world){.user = x,
                          .now = world_now,
                          .send = world_send,
                          .wait = world_wait,
                          .append = world_append,
                          .tell = world_tell};
    const vd_post_options options = {x->a->ca, x->key, &x->assignment, x->endpoint, tell_silent};
    return vd_post_create(&options, &x->office, x->err);
}

/* ---- the journal ---- */

/* Checks that the journal is of this dispute: without --force no statements are discarded. */
static vd_status check_journal(vd_arbitration *x) {
    if (x->a->resume && x->journal.minutes.count == 0)
        return vd_fail(x->err, VD_ERR_USAGE, "%s: there is no dispute in it", x->journal.path);
    if (x->a->resume || x->a->goes_on)
        return VD_OK;
    if (x->a->force || !vd_court_journal_has_answers(&x->journal))
        return vd_court_journal_clear(&x->journal, x->err);
    vd_status status =
        vd_fail(x->err, VD_ERR_USAGE,
                "%s: of a dispute that was interrupted; --resume with this file goes "
                "on with it, --force begins again",
                x->journal.path);
    return status;
}

static vd_status open_journal(vd_arbitration *x) {
    char path[1100];
    snprintf(path, sizeof path, "%.1000s.journal", x->a->verdict);
    vd_status status = x->a->resume
                           ? vd_court_journal_open(x->a->resume, false, &x->journal, x->err)
                           : vd_court_journal_open(path, true, &x->journal, x->err);
    return status == VD_OK ? check_journal(x) : status;
}

/* ---- all of it ---- */

static vd_status make_arbiter(vd_arbitration *x) {
    const vd_arbiter_options options = {
        .referee = {.program = vd_arbitration_program(x),
                    .collection = x->collection.count ? &x->collection : NULL,
                    .assignment = &x->payload,
                    .key = x->key,
                    .leaf = vd_leaf_element,
                    .story = vd_tell},
        .assignment = &x->note,
        .world = &x->world,
        .patience_s = (double)x->a->patience_s,
        .step_us_max = x->a->step_s_max * 1000000,
        .own_rival = x->a->own_rival,
        .longest_item = x->collection.count ? &x->longest : NULL,
        .minutes = &x->journal.minutes,
        .opened = vd_tell_claims};
    return vd_arbiter_create(&options, &x->arbiter, x->err);
}

vd_status vd_arbitrate_prepare(vd_arbitration *x) {
    vd_status status = open_journal(x);
    if (status == VD_OK)
        status = vd_assign(x);
    if (status == VD_OK)
        status = make_world(x);
    return status == VD_OK ? make_arbiter(x) : status;
}
