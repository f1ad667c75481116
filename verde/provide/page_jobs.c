/* Lists of jobs: waiting and running ones in order of submission, and ended ones, the latest
 * first. */
#include <stdlib.h>

#include "verde/provide/page_internal.h"

typedef struct {
    vd_job_record *active, *ended; /* VD_PAGE_JOBS of each; `ended` is a ring buffer */
    int64_t active_count, ended_count;
} page_list;

static bool sort_in(void *user, const vd_job_record *job) {
    page_list *l = user;
    if (job->state > VD_JOB_RUNNING)
        l->ended[l->ended_count++ % VD_PAGE_JOBS] = *job;
    else if (l->active_count++ < VD_PAGE_JOBS)
        l->active[l->active_count - 1] = *job;
    return true;
}

/* ---- one job ---- */

void vd_page_job_state(vd_buf *out, const vd_job_record *job) {
    const char *name = vd_job_state_name(job->state);
    vd_printf(out, "<span class=\"state %s\">%s</span>", name,
              job->state == VD_JOB_QUEUED ? "waits" : name);
}

double vd_page_job_rate(const vd_job_record *job, const vd_job_progress *p) {
    const double done = (double)(p->step - p->resumed_at);
    return job->state == VD_JOB_RUNNING && done > 0 && p->seconds > 0 ? done / p->seconds : 0;
}

void vd_page_job_progress(vd_buf *out, const vd_job_record *job, const vd_job_progress *p) {
    const long long step = job->state == VD_JOB_DONE ? (long long)job->steps : p->step;
    if (p->prompts)
        vd_printf(out, "%u of %u prompts done<br>", p->prompts_done, p->prompts);
    vd_printf(out, "<progress max=\"%lld\" value=\"%lld\"></progress> step %lld of %lld",
              (long long)job->steps, step, step, (long long)job->steps);
}

/* Writes a job's row up to the loss. */
static void put_job(vd_buf *out, const vd_job_record *job, const vd_job_progress *p) {
    vd_printf(out, "\n<tr>");
    vd_html_cell(out, "job", "");
    vd_printf(out, "<a href=\"/jobs/%s\">", job->id);
    vd_html_short(out, job->id);
    vd_printf(out, "</a>");
    vd_html_cell(out, "name", "name");
    vd_printf(out, "<bdi>");
    vd_html_text(out, job->name);
    vd_printf(out, "</bdi>");
    vd_html_cell(out, "client", "");
    vd_html_short(out, job->client);
    vd_html_cell(out, "state", "");
    vd_page_job_state(out, job);
    vd_html_cell(out, "progress", "wide");
    vd_page_job_progress(out, job, p);
    vd_html_cell(out, "loss", "number");
    if (p->has_loss)
        vd_printf(out, "%.4f", p->loss);
}

static void put_active_job(vd_buf *out, const vd_daemon *daemon, const vd_job_record *job) {
    const vd_job_progress p = vd_read_progress(daemon, job->id);
    const double rate = vd_page_job_rate(job, &p);
    put_job(out, job, &p);
    vd_html_cell(out, "rate", "number");
    if (rate > 0)
        vd_printf(out, "%.3g steps/s", rate);
    vd_html_cell(out, "time left", "number");
    if (rate > 0)
        vd_page_seconds(out, (double)(job->steps - p.step) / rate);
}

static void put_ended_job(vd_buf *out, const vd_daemon *daemon, const vd_job_record *job) {
    const vd_job_progress p = vd_read_progress(daemon, job->id);
    put_job(out, job, &p);
    vd_html_cell(out, "computed", "number");
    vd_page_seconds(out, (double)job->seconds);
    vd_html_cell(out, "submitted", "number");
    vd_page_time(out, job->created);
}

/* ---- lists ---- */

static const char jobs_head[] =
    "<div class=\"card\"><table><thead><tr><th>job<th>name<th>client<th>state<th>progress"
    "<th class=\"number\">loss<th class=\"number\">";

static void put_active(vd_buf *out, const vd_daemon *daemon, const page_list *l) {
    vd_printf(out, "<h2>Now</h2>\n");
    if (l->active_count == 0) {
        vd_printf(out, "<div class=\"card soft\">No job waits or runs.</div>\n");
        return;
    }
    vd_printf(out, "%srate<th class=\"number\">time left<tbody>\n", jobs_head);
    for (int i = 0; i < l->active_count && i < VD_PAGE_JOBS; i++) {
        put_active_job(out, daemon, &l->active[i]);
    }
    vd_printf(out, "</table></div>\n");
    if (l->active_count > VD_PAGE_JOBS)
        vd_printf(out, "<p class=\"soft\">and %lld that wait behind them</p>\n",
                  (long long)l->active_count - VD_PAGE_JOBS);
}

static void put_ended(vd_buf *out, const vd_daemon *daemon, const page_list *l) {
    const int64_t count = l->ended_count < VD_PAGE_JOBS ? l->ended_count : VD_PAGE_JOBS;
    if (count == 0)
        return;
    vd_printf(out, "<h2>Ended</h2>\n%scomputed<th class=\"number\">submitted<tbody>\n", jobs_head);
    for (int64_t i = 1; i <= count; i++)
        put_ended_job(out, daemon, &l->ended[(l->ended_count - i) % VD_PAGE_JOBS]);
    vd_printf(out, "</table></div>\n");
    if (l->ended_count > VD_PAGE_JOBS)
        vd_printf(out, "<p class=\"soft\">and %lld earlier ones</p>\n",
                  (long long)l->ended_count - VD_PAGE_JOBS);
}

vd_status vd_page_jobs(vd_daemon *daemon, vd_buf *out, vd_err *err) {
    page_list l = {.active = calloc(VD_PAGE_JOBS, sizeof *l.active),
                   .ended = calloc(VD_PAGE_JOBS, sizeof *l.ended)};
    vd_status status = l.active && l.ended
                           ? vd_ledger_list_jobs(daemon->ledger, NULL, sort_in, &l, err)
                           : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK) {
        put_active(out, daemon, &l);
        put_ended(out, daemon, &l);
    }
    free(l.active);
    free(l.ended);
    return status;
}
