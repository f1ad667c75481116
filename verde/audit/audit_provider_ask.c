/* Puts one question over the network, and repeats it after trouble or while the provider works,
 * until its time is over. PROTOCOL.md sections 8.3 and 8.4. */
#include <string.h>
#include <unistd.h>

#include "verde/audit/audit_provider.h"
#include "verde/load/verdict_file.h"
#include "verde/protocol/arbiter.h"
#include "verde/protocol/provider.h"

#define RETRY_S        0.3
#define TROUBLE_MOST_S 5.0
#define WORKING_MOST_S 1.0
#define TELL_S         5.0

/* Returns the seconds that an answer may take. */
static double allowance(const vd_auditing *x, const vd_outgoing *q) {
    const vd_program *program = &x->loaded.program;
    const vd_pace_caps caps = vd_pace_caps_of(program, x->a->step_s_max * 1000000);
    const double work =
        VD_WORK_FACTOR * vd_work_seconds(q->work, program, vd_audit_pace(x->audit), &caps);
    const double patience = (double)x->a->patience_s;
    return (q->work == VD_WORK_COMMIT ? VD_PATIENCE_ANSWERS : 1) * patience + work;
}

static vd_status exchange(vd_auditing *x, const vd_outgoing *q, const vd_buf *request,
                          double seconds, vd_reply *reply) {
    const double most = (double)x->a->patience_s;
    const vd_post post = {.request = request,
                          .answer_max = q->answer_max,
                          .seconds = seconds < most ? seconds : most};
    vd_status status = vd_post_send(x->office, &post, x->err);
    *reply = (vd_reply){.kind = VD_REPLY_NONE};
    while (status == VD_OK && reply->kind == VD_REPLY_NONE)
        status = vd_post_wait(x->office, vd_seconds() + 1, reply, x->err);
    return status;
}

/* On the first question a wrong URL, job or key is the user's mistake; later it is silence. */
static bool is_mistake(const vd_auditing *x, const vd_reply *reply) {
    const bool refused = reply->kind == VD_REPLY_REFUSED && reply->said && !x->a->accepted;
    return x->questions == 1 && !vd_court_journal_has_answers(&x->journal) &&
           (reply->kind == VD_REPLY_ASTRAY || refused);
}

static void tell_reply(vd_auditing *x, const vd_reply *reply, double left) {
    char line[VD_REPLY_WHY + 80];
    if (vd_seconds() - x->told < TELL_S)
        return;
    x->told = vd_seconds();
    snprintf(line, sizeof line, "The provider: %s. %s for up to %.0f s.", reply->why,
             reply->kind == VD_REPLY_WORKING ? "Waiting" : "Asking again", left);
    vd_tell(NULL, line);
}

/* *done: there is nothing more to wait for. */
static vd_status take_reply(vd_auditing *x, const vd_reply *reply, double left, bool *done) {
    *done = reply->kind == VD_REPLY_ANSWER || reply->kind == VD_REPLY_REFUSED || left <= 0;
    return is_mistake(x, reply)
               ? vd_fail(x->err, reply->kind == VD_REPLY_ASTRAY ? VD_ERR_LOCAL : VD_ERR_USAGE,
                         "the provider takes no part, and nothing was checked: %.400s", reply->why)
               : VD_OK;
}

static double pause_after(const vd_reply *reply, double pause) {
    const double most = reply->kind == VD_REPLY_WORKING ? WORKING_MOST_S : TROUBLE_MOST_S;
    return pause < most ? pause : most;
}

vd_status vd_audit_put(vd_auditing *x, const vd_outgoing *q, vd_reply *reply, bool *answered) {
    const double end = vd_seconds() + allowance(x, q);
    vd_buf request = {0};
    bool done = false;
    x->questions++;
    x->told = vd_seconds(); /* quick answers are not reported */
    vd_status status = vd_request_write(&x->note, q->note, &request, x->err);
    for (double pause = RETRY_S; status == VD_OK && !done; pause *= 2) {
        const double left = end - vd_seconds();
        status = exchange(x, q, &request, left > 0.001 ? left : 0.001, reply);
        pause = pause_after(reply, pause);
        if (status == VD_OK)
            status = take_reply(x, reply, end - vd_seconds() - pause, &done);
        if (status != VD_OK || done)
            break;
        tell_reply(x, reply, end - vd_seconds());
        usleep((useconds_t)(pause * 1e6));
    }
    *answered = status == VD_OK && reply->kind == VD_REPLY_ANSWER;
    vd_buf_free(&request);
    return status;
}
