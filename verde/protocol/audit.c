/* An audit opens a new referee for each place, which begins with the commitment. Statements that
 * the provider has already made are kept, and are given to the new referee instead of asking again:
 * so each referee has complete evidence for its place, and few statements are kept. */
#include "verde/protocol/audit.h"

#include <stdlib.h>
#include <string.h>

#include "verde/protocol/dispute.h"

/* The statement that the current referee must reach before anything more can be drawn. */
typedef enum { TO_CLAIM, TO_SUBRUN, TO_TRACE, TO_FOLD, TO_END } until;

enum { KEPT_MAX = 4096 }; /* statements: those that lead to a step, and those of one crumb */

typedef struct {
    vd_hash question;
    vd_buf note;
} kept;

struct vd_audit {
    vd_audit_options options;
    vd_audit_result result;
    vd_audit_state state;
    vd_referee *referee;
    vd_crumb place;
    until until;
    kept kept[KEPT_MAX];
    uint32_t kept_count, opening,
        way; /* number of kept statements of the opening, and of those that lead to the step */
    uint32_t interval_way;
    vd_hash question; /* the one that is asked now */
    bool beacon;
    vd_pace pace;
    vd_drawn_interval *interval;
    uint32_t interval_count, interval_at;
    int64_t *step; /* the drawn steps of this interval */
    uint32_t step_at;
    vd_crumb *crumb; /* the crumbs of this step */
    size_t crumb_count, crumb_at;
    uint32_t crumbs_left, steps_left;
    uint64_t done, of;
    vd_hash secret[VD_DRAWS];
};

static vd_status no_memory(vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "audit: out of memory");
}

/* ---- life ---- */

static uint32_t at_most(uint32_t count, uint64_t most) {
    return count < most ? count : (uint32_t)most;
}

/* The place used in questions about a step until its trace is stated: the step's first seam. */
static vd_crumb seam_of(int64_t step) {
    return (vd_crumb){.step = step, .node = -1, .part = -1, .leaf_count = 1};
}

vd_status vd_audit_create(const vd_audit_options *options, vd_audit **out, vd_err *err) {
    vd_audit *a = calloc(1, sizeof *a);
    if (!a)
        return no_memory(err);
    a->options = *options;
    a->steps_left = at_most(options->steps, (uint64_t)options->program->steps + 1);
    a->crumbs_left = options->crumbs;
    a->result.step = calloc((size_t)a->steps_left + 1, sizeof *a->result.step);
    /* The questions up to the reveal are the same for all places, so any place serves here. */
    a->place = seam_of(-1);
    if (!a->result.step) {
        free(a);
        return no_memory(err);
    }
    *out = a;
    return VD_OK;
}

static void forget(vd_audit *a, uint32_t from) {
    while (a->kept_count > from)
        vd_buf_free(&a->kept[--a->kept_count].note);
}

void vd_audit_destroy(vd_audit *a) {
    if (!a)
        return;
    vd_referee_destroy(a->referee);
    forget(a, 0);
    free(a->result.step);
    free(a->interval);
    free(a->step);
    free(a->crumb);
    free(a);
}

const vd_audit_result *vd_audit_results(const vd_audit *a) {
    return &a->result;
}

void vd_audit_progress(const vd_audit *a, uint64_t *done, uint64_t *of) {
    *done = a->done;
    *of = a->of + (uint64_t)a->crumbs_left;
}

bool vd_audit_is_at_crumb(const vd_audit *a) {
    return a->until >= TO_FOLD;
}

const vd_pace *vd_audit_pace(const vd_audit *a) {
    return &a->pace;
}

const vd_referee *vd_audit_referee(const vd_audit *a) {
    return a->referee;
}

const vd_crumb *vd_audit_place(const vd_audit *a) {
    return &a->place;
}

/* ---- what was said ---- */

static const vd_buf *find_kept(const vd_audit *a, const vd_hash *question) {
    for (uint32_t i = a->kept_count; i-- > 0;)
        if (vd_hash_equal(&a->kept[i].question, question))
            return &a->kept[i].note;
    return NULL;
}

void vd_audit_answer(vd_audit *a, const void *note, size_t size) {
    vd_referee_answer(a->referee, 0, note, size);
    if (a->result.questions == 1)
        vd_referee_pace(a->referee, 0, &a->pace);
    if (a->until == TO_END || a->kept_count == KEPT_MAX)
        return; /* the place is known: only this referee needs the answer */
    kept *k = &a->kept[a->kept_count++];
    *k = (kept){.question = a->question};
    vd_put(&k->note, note, size);
}

void vd_audit_no_answer(vd_audit *a, const char *why) {
    vd_referee_no_answer(a->referee, 0, why);
}

/* ---- from a statement to what is drawn from it ---- */

static vd_status fresh_secret(vd_audit *a, vd_draw_kind draw, vd_err *err) {
    const uint64_t crumb = draw == VD_DRAW_FOLD ? a->done + 1 : 0;
    vd_status status = a->options.random(a->options.user, crumb, a->secret[draw].b, err);
    if (status != VD_OK)
        return status;
    return vd_secret_hash(&a->secret[draw], &a->place.draw[draw]) ? VD_OK : no_memory(err);
}

static vd_status seed_of(const vd_audit *a, vd_draw_kind draw, const vd_hash *root, vd_hash *seed,
                         vd_err *err) {
    return vd_draw_seed(a->secret[draw].b, VD_HASH_SIZE, root, seed) ? VD_OK : no_memory(err);
}

static void drop_referee(vd_audit *a) {
    vd_referee_destroy(a->referee);
    a->referee = NULL;
}

/* Begins the next drawn step of the interval by asking for its trace. */
static vd_status begin_step(vd_audit *a, vd_err *err) {
    const vd_hash subrun = a->place.draw[VD_DRAW_SUBRUN];
    forget(a, a->interval_way);
    a->place = seam_of(a->step[a->step_at]);
    a->place.draw[VD_DRAW_SUBRUN] = subrun;
    a->until = TO_TRACE;
    return fresh_secret(a, VD_DRAW_TRACE, err);
}

static vd_status begin_steps(vd_audit *a, const vd_hash *seed, vd_err *err) {
    vd_drawn_interval *interval = &a->interval[a->interval_at];
    free(a->step);
    a->step_at = 0;
    a->step = calloc(interval->steps, sizeof *a->step);
    if (!a->step)
        return no_memory(err);
    vd_status status = vd_draw_steps(interval, seed, a->step, err);
    a->interval_way = a->kept_count;
    return status == VD_OK ? begin_step(a, err) : status;
}

/* The steps of an interval are drawn after the provider has stated all of its states: otherwise a
 * liar could put the wrong step where nobody looks. */
static vd_status begin_interval(vd_audit *a, vd_err *err) {
    static const vd_hash none;
    forget(a, a->opening);
    a->place = seam_of(a->interval[a->interval_at].from);
    if (a->interval[a->interval_at].to - a->interval[a->interval_at].from == 1)
        return begin_steps(a, &none, err);
    a->until = TO_SUBRUN;
    return fresh_secret(a, VD_DRAW_SUBRUN, err);
}

static bool is_known(const vd_audit *a) {
    return a->done < a->options.known;
}

static vd_status begin_crumb(vd_audit *a, vd_err *err) {
    const vd_graph *graph = vd_step_graph(a->options.program, a->place.step);
    vd_crumb *c = &a->crumb[a->crumb_at];
    vd_fold fold;
    forget(a, a->way);
    memcpy(c->draw, a->place.draw, sizeof c->draw);
    c->draw[VD_DRAW_FOLD] = (vd_hash){{0}};
    a->place = *c;
    a->until = TO_END;
    if (c->node < 0 ||
        !vd_fold_open(&fold, a->options.program, graph, (uint32_t)c->node, c->element))
        return VD_OK;
    a->place.part = 0; /* the first questions are the same for all parts */
    if (is_known(a))
        return VD_OK;
    a->until = TO_FOLD;
    return fresh_secret(a, VD_DRAW_FOLD, err);
}

/* Draws this step's share of the crumbs, so that all steps together have as many as were wanted. */
static vd_status begin_crumbs(vd_audit *a, const vd_hash *seed, vd_err *err) {
    const uint32_t share = (a->crumbs_left + a->steps_left - 1) / a->steps_left;
    free(a->crumb);
    a->crumb = NULL;
    a->crumb_at = 0;
    vd_status status = vd_draw_crumbs(a->options.program, a->place.step, seed, share, &a->crumb,
                                      &a->crumb_count, err);
    a->crumbs_left -= share;
    a->steps_left--;
    a->of += a->crumb_count;
    a->way = a->kept_count;
    return status == VD_OK ? begin_crumb(a, err) : status;
}

vd_status vd_audit_beacon(vd_audit *a, const void *value, size_t size, vd_err *err) {
    vd_hash seed;
    if (!vd_draw_seed(value, size, &a->result.run_root, &seed))
        return no_memory(err);
    vd_status status = vd_draw_intervals(a->options.program, &seed, a->steps_left, &a->interval,
                                         &a->interval_count, err);
    a->beacon = true;
    a->opening = a->kept_count;
    if (status == VD_OK && a->interval_count == 0)
        a->state = VD_AUDIT_PASSED; /* the audit only executes intervals again */
    return status == VD_OK && a->interval_count ? begin_interval(a, err) : status;
}

/* ---- the course ---- */

static void note_step(vd_audit *a, const vd_hash *root) {
    const vd_drawn_interval *interval = &a->interval[a->interval_at];
    vd_audited_step *step = &a->result.step[a->result.step_count++];
    step->step = a->place.step;
    step->inside = interval->to - interval->from > 1;
    for (int i = 0; i < 2; i++)
        step->secret[i] = a->secret[i];
    step->root[0] = a->referee->party[0].subrun_root;
    step->root[1] = *root;
}

/* Returns true if the statement that `until` names has been judged; *root: its root. */
static bool has_stated(const vd_audit *a, vd_hash *root) {
    const vd_referee *r = a->referee;
    const vd_party *party = &r->party[0];
    switch (a->until) {
    case TO_CLAIM: *root = party->root; return r->outcome.party[0].claimed;
    case TO_SUBRUN: *root = party->subrun_root; return r->phase == VD_PHASE_SUBRUN_PROVE;
    case TO_TRACE: *root = party->trace_root; return r->phase == VD_PHASE_SEAM_LEAVES;
    case TO_FOLD: *root = party->fold_root; return r->phase == VD_PHASE_FOLD_PROVE;
    default: return false;
    }
}

static vd_status draw_part(vd_audit *a, const vd_hash *root, vd_err *err) {
    uint64_t part;
    vd_hash seed;
    vd_status status = seed_of(a, VD_DRAW_FOLD, root, &seed, err);
    if (status != VD_OK || !vd_draw_below(&seed, 0, a->referee->fold.parts, &part))
        return status == VD_OK ? no_memory(err) : status;
    a->place.part = (int64_t)part;
    a->until = TO_END;
    return VD_OK;
}

static vd_status draw_from(vd_audit *a, const vd_hash *root, vd_err *err) {
    vd_hash seed;
    vd_status status = VD_OK;
    switch (a->until) {
    case TO_CLAIM:
        a->result.run_root = *root;
        a->result.claimed = true;
        break;
    case TO_SUBRUN:
        status = seed_of(a, VD_DRAW_SUBRUN, root, &seed, err);
        status = status == VD_OK ? begin_steps(a, &seed, err) : status;
        break;
    case TO_TRACE:
        note_step(a, root);
        status = seed_of(a, VD_DRAW_TRACE, root, &seed, err);
        status = status == VD_OK ? begin_crumbs(a, &seed, err) : status;
        break;
    default: status = draw_part(a, root, err); break;
    }
    drop_referee(a);
    return status;
}

static void count_crumb(vd_audit *a) {
    vd_audit_result *r = &a->result;
    a->done++;
    if (a->place.node < 0) {
        r->seams += a->place.leaf_count;
        return;
    }
    r->nodes += a->crumb_at == 0 || a->crumb[a->crumb_at - 1].node != a->place.node;
    r->crumbs += a->place.drawn;
    r->whole += !a->place.drawn;
    r->whole_elements += a->place.drawn ? 0 : (uint64_t)a->place.count;
    r->parts += a->place.part >= 0;
}

static vd_status tell_passed(const vd_audit *a, vd_err *err) {
    const vd_audit_options *o = &a->options;
    return o->passed && a->done > o->known ? o->passed(o->user, &a->place, a->done, err) : VD_OK;
}

/* The place is right: counts it and begins the next one. */
static vd_status go_on(vd_audit *a, vd_err *err) {
    count_crumb(a);
    drop_referee(a);
    vd_status status = tell_passed(a, err);
    if (status != VD_OK)
        return status;
    if (++a->crumb_at < a->crumb_count)
        return begin_crumb(a, err);
    if (++a->step_at < a->interval[a->interval_at].steps)
        return begin_step(a, err);
    if (++a->interval_at < a->interval_count)
        return begin_interval(a, err);
    a->state = VD_AUDIT_PASSED;
    return VD_OK;
}

static vd_status take_end(vd_audit *a, vd_err *err) {
    const vd_outcome *o = vd_referee_outcome(a->referee);
    if (o->party[0].standing == VD_STANDS)
        return go_on(a, err);
    const char *reason = o->party[0].reason;
    a->state = o->party[0].standing == VD_CONVICTED ? VD_AUDIT_FRAUD : VD_AUDIT_SILENT;
    if (a->state == VD_AUDIT_FRAUD)
        snprintf(a->result.why, sizeof a->result.why, "%s: %.230s",
                 vd_grade_name(o->party[0].grade), reason);
    else /* no answer, a refusal, or bytes that are no valid statement: `reason` says which */
        snprintf(a->result.why, sizeof a->result.why, "%.250s", *reason ? reason : "no answer");
    return VD_OK;
}

static vd_status open_referee(vd_audit *a, vd_err *err) {
    const vd_referee_options options = {.program = a->options.program,
                                        .assignment = a->options.assignment,
                                        .key = a->options.key,
                                        .leaf = a->options.leaf};
    return vd_crumb_open(&options, &a->place, &a->referee, err);
}

/* Lets the referee take one turn. *asks: *out is a question that no kept statement answers. */
static vd_status turn(vd_audit *a, bool *asks, vd_outgoing *out, vd_err *err) {
    vd_outgoing list[VD_PARTIES_MAX];
    vd_hash root;
    size_t count;
    if (vd_audit_is_at_crumb(a) && is_known(a))
        return go_on(a, err);
    vd_status status = a->referee ? VD_OK : open_referee(a, err);
    if (status == VD_OK)
        status = vd_referee_next(a->referee, list, &count, err);
    if (status != VD_OK)
        return status;
    if (count == 0)
        return take_end(a, err);
    if (has_stated(a, &root))
        return draw_from(a, &root, err);
    const vd_buf *said = find_kept(a, &list[0].question);
    if (said) {
        vd_referee_answer(a->referee, 0, said->data, said->size);
        return VD_OK;
    }
    *asks = true;
    *out = list[0];
    a->question = list[0].question;
    a->result.questions++;
    return VD_OK;
}

vd_status vd_audit_next(vd_audit *a, vd_audit_state *state, vd_outgoing *out, vd_err *err) {
    bool asks = false;
    vd_status status = VD_OK;
    while (status == VD_OK && !asks && a->state == VD_AUDIT_ASKS) {
        if (a->result.claimed && !a->beacon) {
            *state = VD_AUDIT_WAITS;
            return VD_OK;
        }
        status = turn(a, &asks, out, err);
    }
    *state = a->state;
    return status;
}
