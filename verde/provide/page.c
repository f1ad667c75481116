/* This file answers requests for the daemon's page, from this machine. */
#include "verde/provide/page.h"

#include <string.h>

#include "verde/provide/page_internal.h"

static const char icon[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\"><path d=\"M6 7l10 18L26 7\" "
    "fill=\"none\" stroke=\"#1a7f4b\" stroke-width=\"5\"/></svg>\n";

static const char html[] = "text/html; charset=utf-8", svg[] = "image/svg+xml";

static void page_trouble(vd_daemon *daemon, const vd_err *err, vd_loopback_reply *reply) {
    daemon->options.say("verde provide: the page: %s", err->text);
    vd_buf_free(&reply->body);
    reply->status = 500;
    reply->content_type = NULL;
    vd_printf(&reply->body, "%s\n", err->text);
}

static void page_overview(vd_daemon *daemon, vd_loopback_reply *reply) {
    vd_ledger_totals totals;
    vd_err err = {0};
    vd_buf *out = &reply->body;
    vd_status status = vd_ledger_count(daemon->ledger, &totals, &err);
    const bool busy = status == VD_OK && totals.jobs[VD_JOB_QUEUED] + totals.jobs[VD_JOB_RUNNING];
    vd_page_begin(out, "Verde provider", busy ? VD_PAGE_REFRESH_S : VD_PAGE_REFRESH_QUIET_S);
    if (status == VD_OK) {
        vd_page_tiles(&totals, out);
        status = vd_page_jobs(daemon, out, &err);
    }
    if (status == VD_OK)
        status = vd_page_clients(daemon, out, &err);
    if (status == VD_OK)
        vd_page_machine(daemon, &totals, out);
    vd_page_end(out);
    reply->content_type = html;
    if (status != VD_OK)
        page_trouble(daemon, &err, reply);
}

static void page_not_found(vd_loopback_reply *reply) {
    reply->status = 404;
    reply->content_type = NULL;
    vd_printf(&reply->body, "there is no such page\n");
}

/* Serves "/jobs/ID" or "/jobs/ID/losses.svg". */
static void page_of_job(vd_daemon *daemon, const char *rest, vd_loopback_reply *reply) {
    char id[VD_ID_SIZE];
    vd_job_record job;
    vd_err err = {0};
    bool found = false;
    snprintf(id, sizeof id, "%.64s", rest);
    rest += strlen(id);
    const bool picture = strcmp(rest, "/losses.svg") == 0, run = strcmp(rest, "/run.html") == 0;
    vd_status status = vd_ledger_get_job(daemon->ledger, NULL, id, &job, &found, &err);
    if (status != VD_OK)
        page_trouble(daemon, &err, reply);
    else if (!found || (*rest && !picture && !run))
        page_not_found(reply);
    else if (picture)
        vd_page_losses(daemon, &job, &reply->body);
    else if (run && !vd_page_run(daemon, &job, &reply->body))
        page_not_found(reply);
    else if (!run)
        vd_page_job(daemon, &job, &reply->body);
    if (reply->status == 200)
        reply->content_type = picture ? svg : html;
    reply->inline_style = picture;
    reply->whole_page = run;
}

static void page_answer(void *user, const char *path, vd_loopback_reply *reply) {
    if (strcmp(path, "/") == 0) {
        page_overview(user, reply);
    } else if (strcmp(path, "/style.css") == 0) {
        reply->content_type = "text/css; charset=utf-8";
        vd_printf(&reply->body, "%s", vd_html_style);
    } else if (strcmp(path, "/icon.svg") == 0) {
        reply->content_type = svg;
        vd_printf(&reply->body, "%s", icon);
    } else if (strncmp(path, "/jobs/", 6) == 0) {
        page_of_job(user, path + 6, reply);
    } else {
        page_not_found(reply);
    }
}

vd_status vd_page_start(vd_daemon *daemon, int port, vd_loopback **out, vd_err *err) {
    return vd_loopback_start(port, page_answer, daemon, out, err);
}
