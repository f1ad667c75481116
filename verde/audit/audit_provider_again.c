/* Executes intervals again, from the provider's own states, or all of the run. If one leads to
 * another state, a search narrows it to a place, where a crumb then convicts. PROTOCOL.md section
 * 13.8. */
#include <stdlib.h>
#include <string.h>

#include "verde/audit/audit_provider.h"
#include "verde/load/verdict_file.h"
#include "verde/protocol/audit_search.h"
#include "verde/run/faults.h"
#include "verde/run/progress.h"
#include "verde/tell/stop.h"

/* ---- questions ---- */

static vd_status ask(void *user, const vd_outgoing *q, vd_buf *note, vd_err *err) {
    vd_auditing *x = user;
    vd_reply reply;
    bool answered;
    vd_status status = vd_audit_put(x, q, &reply, &answered);
    if (status != VD_OK)
        return status;
    if (!answered)
        return vd_fail(err, VD_ERR_TIMEOUT, "no answer: %.400s", reply.why);
    vd_put(note, reply.bytes, reply.size);
    return vd_buf_ok(note) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

vd_status vd_audit_open_line(vd_auditing *x, vd_audit_line *line) {
    *line = (vd_audit_line){.program = &x->loaded.program,
                            .program_hash = x->assignment.program,
                            .run_root = vd_audit_results(x->audit)->run_root,
                            .provider = x->assignment.provider[0],
                            .key = x->key,
                            .ask = ask,
                            .user = x};
    return vd_assignment_hash(x->payload.data, x->payload.size, &line->assignment)
               ? VD_OK
               : vd_fail(x->err, VD_ERR_LOCAL, "out of memory");
}

/* Returns true if the error is the provider's fault. In a search that proves nothing yet. */
static bool is_provider(vd_status status) {
    return status == VD_ERR_PEER || status == VD_ERR_TIMEOUT;
}

/* ---- a crumb at a known place ---- */

static vd_status put_to(vd_auditing *x, vd_referee *referee, const vd_outgoing *q) {
    vd_reply reply;
    bool answered;
    vd_status status = vd_audit_put(x, q, &reply, &answered);
    if (status == VD_OK && answered)
        vd_referee_answer(referee, 0, reply.bytes, reply.size);
    else if (status == VD_OK)
        vd_referee_no_answer(referee, 0, reply.why);
    return status;
}

/* Judges a crumb. *convicts: it convicts, and x->referee and x->place are set. */
static vd_status judge(vd_auditing *x, const vd_crumb *place, bool *convicts) {
    const vd_referee_options options = {.program = &x->loaded.program,
                                        .assignment = &x->payload,
                                        .key = x->key,
                                        .leaf = vd_leaf_element};
    vd_outgoing q[VD_PARTIES_MAX];
    size_t count = 0;
    vd_referee *referee = NULL;
    vd_status status = vd_crumb_open(&options, place, &referee, x->err);
    do {
        if (status == VD_OK)
            status = vd_referee_next(referee, q, &count, x->err);
        if (status == VD_OK && count > 0)
            status = put_to(x, referee, &q[0]);
    } while (status == VD_OK && count > 0);
    *convicts = status == VD_OK && vd_referee_outcome(referee)->result == VD_RESULT_CONVICTED;
    if (!*convicts) {
        vd_referee_destroy(referee);
        return status;
    }
    const struct vd_party_outcome *party = &vd_referee_outcome(referee)->party[0];
    snprintf(x->why, sizeof x->why, "%s: %.250s", vd_grade_name(party->grade), party->reason);
    x->referee = referee;
    x->place = *place;
    return VD_OK;
}

/* Judges a place. If the traces are equal one of the seams must convict, so all are judged in
 * turn. */
static vd_status judge_place(vd_auditing *x, const vd_crumb *place, bool *convicts) {
    const uint64_t leaves = x->loaded.program.leaf_count;
    vd_crumb seam = *place;
    vd_status status = VD_OK;
    *convicts = false;
    if (place->node >= 0)
        return judge(x, place, convicts);
    for (seam.leaf = 0; seam.leaf < leaves && status == VD_OK && !*convicts;
         seam.leaf += VD_SEAM_LEAVES_MAX) {
        const uint64_t left = leaves - seam.leaf;
        seam.leaf_count = left < VD_SEAM_LEAVES_MAX ? left : VD_SEAM_LEAVES_MAX;
        status = judge(x, &seam, convicts);
    }
    return status;
}

/* ---- an interval that differs ---- */

static vd_status accuse(vd_auditing *x, const vd_audit_line *line, const vd_source *own,
                        const vd_drawn_interval *interval) {
    char line_text[120];
    vd_crumb place;
    vd_err why = {0};
    bool convicts;
    snprintf(line_text, sizeof line_text,
             "Another state at step %lld than the job gives: looking for the first place.",
             (long long)interval->to);
    vd_tell(NULL, line_text);
    vd_status status = vd_search_place(line, own, interval->from, interval->to, &place, &why);
    if (status != VD_OK && !is_provider(status))
        return vd_fail(x->err, status, "%s", why.text);
    status = judge_place(x, &place, &convicts);
    x->state = convicts ? VD_AUDIT_FRAUD : VD_AUDIT_SILENT;
    if (status == VD_OK && !convicts)
        snprintf(
            x->why, sizeof x->why,
            "its state at step %lld is not the job's, and nothing that it says proves it%s%.150s",
            (long long)interval->to, why.text[0] ? ": " : "", why.text);
    return status;
}

/* Fails the audit because the provider gave no usable state to execute the interval from. */
static vd_status fail_interval(vd_auditing *x, vd_status status, const vd_err *why) {
    if (!is_provider(status))
        return vd_fail(x->err, status, "%s", why->text);
    x->state = VD_AUDIT_SILENT;
    snprintf(x->why, sizeof x->why, "of a state to execute an interval from: %.240s", why->text);
    return VD_OK;
}

/* ---- one interval ---- */

typedef struct {
    vd_auditing *x;
    const vd_audit_line *line;
    char dir[1024];
    vd_run_log log; /* of a run with a single known state */
    vd_replay *replay;
} again;

static vd_status put_bytes(void *user, const void *bytes, size_t size, vd_err *err) {
    return vd_writer_put(user, bytes, size, err);
}

static vd_status fetch_state(const again *g, int64_t step, const vd_hash *state, vd_err *why) {
    char path[1024];
    vd_writer writer = {0};
    vd_store_state_path(path, g->dir, state);
    vd_status status = vd_writer_open(&writer, path, 0644, why);
    if (status == VD_OK)
        status = vd_search_state(g->line, step, put_bytes, &writer, why);
    if (status == VD_OK)
        return vd_writer_commit(&writer, why);
    vd_writer_abort(&writer);
    return status;
}

/* Makes a run of which only this state is known (the others are zeros), so that all steps are
 * executed from it. */
static vd_status make_run(again *g, uint64_t leaf, const vd_hash *before) {
    static const vd_hash none;
    const vd_program *program = &g->x->loaded.program;
    vd_err *err = g->x->err;
    vd_status status = VD_OK;
    g->log.program = g->x->assignment.program;
    for (uint64_t i = 0; status == VD_OK && i < vd_run_leaves(program); i++)
        status = vd_run_log_put(&g->log, vd_run_leaf_step(program, i),
                                leaf > 0 && i == leaf - 1 ? before : &none, NULL, err);
    if (status == VD_OK)
        status = vd_store_save_log(g->dir, &g->log, err);
    return status == VD_OK ? vd_replay_create(g->dir, &g->x->loaded.exec, &g->replay, err) : status;
}

/* Checks the fetched state. If its file has another hash, the provider has sent something else. */
static vd_status check_state(const again *g, int64_t step, const vd_hash *before, vd_err *why) {
    vd_state state = {0};
    vd_status status = vd_store_load_file(g->x->loaded.ro, g->dir, &g->x->loaded.program,
                                          &g->log.program, step, before, &state, why);
    vd_state_free(&state);
    return status == VD_ERR_IO ? vd_fail(why, VD_ERR_PEER,
                                         "what it gave is not the state that it "
                                         "committed to")
                               : status;
}

static vd_status compare(again *g, const vd_drawn_interval *interval, const vd_hash *after) {
    const vd_source own = vd_replay_source(g->replay);
    const int64_t at = interval->to;
    vd_hash state;
    vd_status status = own.states(own.user, at, at, &state, g->x->err);
    if (status != VD_OK)
        return status;
    if (vd_hash_equal(&state, after)) {
        g->x->passed++;
        return vd_audit_note_executed(g->x, g->x->passed);
    }
    return accuse(g->x, g->line, &own, interval);
}

static vd_status run_interval(again *g, const vd_drawn_interval *interval) {
    const uint64_t leaf = vd_crumb_run_leaf(&g->x->loaded.program, interval->from);
    vd_hash before, after;
    vd_err why = {0};
    vd_status status = vd_search_ends(g->line, leaf, &before, &after, &why);
    if (status == VD_OK && leaf > 0)
        status = fetch_state(g, interval->from, &before, &why);
    if (status != VD_OK)
        return fail_interval(g->x, status, &why);
    status = make_run(g, leaf, &before);
    if (status == VD_OK && leaf > 0) {
        status = check_state(g, interval->from, &before, &why);
        if (status != VD_OK)
            return fail_interval(g->x, status, &why);
    }
    return status == VD_OK ? compare(g, interval, &after) : status;
}

static vd_status execute(vd_auditing *x, const vd_audit_line *line,
                         const vd_drawn_interval *interval) {
    again g = {.x = x, .line = line};
    char text[120];
    snprintf(text, sizeof text, "Executing steps %lld to %lld again.", (long long)interval->from,
             (long long)interval->to);
    vd_tell(NULL, interval->from < 0 ? "Executing initialisation again." : text);
    snprintf(g.dir, sizeof g.dir, "%.900s/interval-%lld", x->a->work, (long long)interval->from);
    vd_status status = vd_make_dir(g.dir, x->err);
    if (status == VD_OK)
        status = run_interval(&g, interval);
    vd_replay_destroy(g.replay);
    vd_run_log_free(&g.log);
    return status;
}

/* Skips an interval that was found right before the audit was stopped. */
static vd_status skip(vd_auditing *x) {
    x->passed++;
    return VD_OK;
}

static vd_status execute_drawn(vd_auditing *x, const vd_audit_line *line) {
    const vd_hash *root = &vd_audit_results(x->audit)->run_root;
    const uint64_t all = vd_interval_count(&x->loaded.program);
    vd_hash first, seed;
    if (!vd_draw_seed(x->beacon.data, x->beacon.size, root, &first) ||
        !vd_draw_seed(first.b, sizeof first.b, root, &seed))
        return vd_fail(x->err, VD_ERR_LOCAL, "out of memory");
    const uint32_t wanted =
        (uint64_t)x->a->intervals < all ? (uint32_t)x->a->intervals : (uint32_t)all;
    vd_status status =
        vd_draw_again(&x->loaded.program, &seed, wanted, &x->again, &x->again_count, x->err);
    const uint64_t known = vd_audit_known_intervals(x);
    for (uint32_t i = 0; status == VD_OK && x->state == VD_AUDIT_PASSED && i < x->again_count; i++)
        status = i < known ? skip(x) : execute(x, line, &x->again[i]);
    return status;
}

/* ---- all of it ---- */

static vd_status list_all(vd_auditing *x) {
    const vd_hash none = {{0}};
    return vd_draw_again(&x->loaded.program, &none, (uint32_t)vd_interval_count(&x->loaded.program),
                         &x->again, &x->again_count, x->err);
}

/* Finds the first interval after which the provider's state differs from our run's. */
static vd_status compare_runs(vd_auditing *x, const vd_audit_line *line, const vd_run_log *log) {
    const vd_tree_name run = {.kind = VD_TREE_RUN};
    vd_hash root = line->run_root, mine;
    vd_tree own = {0};
    vd_replay *replay = NULL;
    vd_err why = {0};
    uint64_t leaf = 0;
    vd_status status = vd_tree_of_hashes(&own, log->state, log->count, x->err);
    if (status == VD_OK)
        status = vd_tree_root(&own, &mine, x->err);
    x->passed = x->again_count;
    if (status != VD_OK || vd_hash_equal(&mine, &root)) {
        vd_tree_free(&own);
        return status;
    }
    status = vd_line_descend(line, &run, &own, &root, &leaf, &why);
    vd_tree_free(&own);
    x->passed = status == VD_OK ? (uint32_t)leaf : 0;
    if (status != VD_OK)
        return fail_interval(x, status, &why);
    status = vd_replay_create(x->a->work, &x->loaded.exec, &replay, x->err);
    const vd_source source = status == VD_OK ? vd_replay_source(replay) : (vd_source){0};
    if (status == VD_OK)
        status = accuse(x, line, &source, &x->again[leaf]);
    vd_replay_destroy(replay);
    return status;
}

static vd_status execute_all(vd_auditing *x, const vd_audit_line *line) {
    const vd_training *t = &x->loaded.job.training;
    vd_run_result result;
    vd_run_log log = {0};
    vd_run_printer print = {.samples_per_step = (double)(t->batch * t->sequence),
                            .samples = vd_samples_name(&x->loaded.job),
                            .no_loss = !vd_has_loss(&x->loaded.program)};
    const vd_run_options options = {
        .exec = &x->loaded.exec, .dir = x->a->work, .progress = vd_tell_progress, .user = &print};
    vd_tell(NULL, "Executing all of the run again.");
    vd_stop_line("stopped; the run so far stays in %s, and the same command goes on with it",
                 x->a->work);
    vd_status status = list_all(x);
    if (status == VD_OK)
        status = vd_run(&options, &result, x->err);
    if (status == VD_OK)
        status = vd_store_load_log(x->a->work, &log, x->err);
    if (status == VD_OK)
        status = compare_runs(x, line, &log);
    vd_run_log_free(&log);
    return status;
}

vd_status vd_audit_again(vd_auditing *x) {
    vd_audit_line line;
    vd_status status = vd_audit_open_line(x, &line);
    if (status == VD_OK)
        status = vd_make_dir(x->a->work, x->err);
    if (status != VD_OK)
        return status;
    return x->a->all ? execute_all(x, &line) : execute_drawn(x, &line);
}
