/* The audit of a job that a single provider has run: there is no rival. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/audit/audit_answers.h"
#include "verde/audit/audit_provider.h"
#include "verde/delegate/delegation.h"

uint32_t vd_delegation_least(const vd_delegation *d) {
    return d->o->audit ? 1 : 2;
}

/* ---- what is drawn ---- */

static bool take_number(const char *text, const char *name, long least, long most, long *out) {
    const size_t length = strlen(name);
    char *end;
    if (strncmp(text, name, length) != 0 || text[length] != '=')
        return false;
    const char *digits = text + length + 1;
    const long value = strtol(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || value < least || value > most)
        return false;
    *out = value;
    return true;
}

static bool take_item(const char *text, vd_audit_arguments *a) {
    if (strcmp(text, "all") == 0)
        return a->all = true;
    return take_number(text, "crumbs", 0, VD_AUDIT_CRUMBS_MAX, &a->crumbs) ||
           take_number(text, "steps", 0, VD_AUDIT_STEPS_MAX, &a->steps) ||
           take_number(text, "intervals", 1, VD_AUDIT_STEPS_MAX, &a->intervals);
}

static vd_status read_list(const vd_delegation *d, vd_audit_arguments *a) {
    char text[256], *rest = text;
    bool good = snprintf(text, sizeof text, "%s", d->o->audit) < (int)sizeof text;
    for (char *item; good && (item = strsep(&rest, ",")) != NULL;)
        good = take_item(item, a);
    if (good && !(a->all && a->intervals) && (a->steps || a->all || a->intervals))
        return VD_OK;
    return vd_fail(
        d->err, VD_ERR_USAGE,
        "--audit must be a list such as intervals=2,crumbs=1000, of crumbs=N, steps=M, and "
        "intervals=K or all; or answers, or answers=N; got \"%.80s\"",
        d->o->audit);
}

vd_status vd_delegation_audit_check(vd_delegation *d) {
    vd_audit_arguments a = {VD_AUDIT_DEFAULTS};
    if (!d->o->audit)
        return VD_OK;
    d->answers = strcmp(d->o->audit, "answers") == 0 ||
                 take_number(d->o->audit, "answers", 1, INT32_MAX, &d->answers_count);
    return d->answers ? VD_OK : read_list(d, &a);
}

/* Checks that the audit fits the job: that of a run needs one program, that of answers prompts. */
vd_status vd_delegation_audit_fits(const vd_delegation *d) {
    const vd_job *job = &d->loaded.job;
    const bool generates = d->prompts && !job->packed && job->task == VD_JOB_GENERATES;
    if (!d->o->audit || (d->answers ? generates : !d->prompts))
        return VD_OK;
    return vd_fail(d->err, VD_ERR_USAGE,
                   d->answers ? "%s: --audit answers is of a job with `task: generate`"
                              : "%s: of a job with prompts --audit is answers, or answers=N",
                   d->o->job);
}

/* ---- the audit ---- */

void vd_delegation_audit(vd_delegation *d, bool *accepted) {
    char proof[1100], work[1100];
    vd_audit_arguments a = {.job = d->o->job,
                            .url = d->o->url[0],
                            .proof = proof,
                            .key_dir = d->o->key_dir,
                            .report = d->o->common.json ? &d->audited : NULL,
                            .force = true,
                            .accepted = true,
                            .common = d->o->common,
                            VD_AUDIT_DEFAULTS};
    snprintf(proof, sizeof proof, "%.900s/fraud.json", d->o->out);
    snprintf(work, sizeof work, "%.900s/audit", d->o->out);
    const vd_status status = read_list(d, &a);
    a.patience_s = d->o->question_s;
    a.step_s_max = d->o->step_s_max;
    a.work = a.all || a.intervals ? work : NULL;
    d->code = status == VD_OK ? vd_audit_run(&a, &d->run_root) : vd_report(d->err);
    *accepted = d->code == VD_EXIT_OK;
    d->no_verdict = !*accepted;
}

/* ---- answers ---- */

static void refuse(const vd_delegation *d, const char *name, const char *as) {
    char from[1100], to[1100];
    snprintf(from, sizeof from, "%.900s/%s", d->o->out, name);
    snprintf(to, sizeof to, "%.900s/%s", d->o->out, as);
    if (rename(from, to) != 0)
        unlink(from); /* so that nobody takes it for accepted */
}

void vd_delegation_answers(vd_delegation *d) {
    char verdict[1100], work[1100];
    vd_answers_arguments a = {.job = d->o->job,
                              .dir = d->o->out,
                              .url = d->o->url[0],
                              .key_dir = d->o->key_dir,
                              .verdict = verdict,
                              .work = work,
                              .count = d->answers_count,
                              .together = VD_ANSWERS_TOGETHER,
                              .patience_s = d->o->question_s,
                              .step_s_max = d->o->step_s_max,
                              .force = true,
                              .accepted = true,
                              .report = d->o->common.json ? &d->audited : NULL,
                              .common = d->o->common};
    vd_delegation_verdict(d, verdict);
    snprintf(work, sizeof work, "%.900s/rival", d->o->out);
    unlink(verdict); /* an earlier command's */
    d->code = vd_audit_answers(&a);
    d->has_verdict = access(verdict, F_OK) == 0;
    if (d->code == VD_EXIT_OK)
        return;
    refuse(d, "results.jsonl", VD_REFUSED_RESULTS);
    refuse(d, "results.proof", "refused.proof");
    fprintf(stderr, "verde: the results are not accepted; they are %.900s/%s\n", d->o->out,
            VD_REFUSED_RESULTS);
}
