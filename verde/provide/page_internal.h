/* Declarations shared by the page's files. Text from clients and jobs is escaped wherever it is
 * put. */
#ifndef VD_PAGE_INTERNAL_H
#define VD_PAGE_INTERNAL_H

#include "verde/base/html.h"
#include "verde/provide/internal.h"
#include "verde/provide/page.h"

enum {
    VD_PAGE_JOBS = 100,           /* in a list: waiting or running ones, or ended ones */
    VD_PAGE_CLIENTS = 100,        /* in a list */
    VD_PAGE_LOSSES_MAX = 4 << 20, /* bytes at the end of the losses that are drawn */
    VD_PAGE_LOG_MAX = 4000,       /* bytes at the end of a job's output that are shown */
    VD_PAGE_REFRESH_S = 5,        /* while any job waits or runs */
    VD_PAGE_REFRESH_QUIET_S = 30,
};

/* ---- page_html.c ---- */

void vd_page_begin(vd_buf *out, const char *title, int refresh_s);
void vd_page_end(vd_buf *out);
void vd_page_size(vd_buf *out, int64_t bytes);
void vd_page_seconds(vd_buf *out, double seconds);
void vd_page_time(vd_buf *out, int64_t unix_s); /* in UTC */
/* Appends "3 of 8" or "1.2 GB of 100.0 GB" with a bar, or without a limit only the value. */
typedef void (*vd_page_unit)(vd_buf *out, int64_t value);
void vd_page_meter(vd_buf *out, int64_t value, int64_t limit, vd_page_unit unit);

/* ---- page_jobs.c, page_job.c, page_machine.c ---- */

void vd_page_job_progress(vd_buf *out, const vd_job_record *job, const vd_job_progress *p);
double vd_page_job_rate(const vd_job_record *job, const vd_job_progress *p); /* 0: not known */
void vd_page_job_state(vd_buf *out, const vd_job_record *job);
VD_MUST_USE vd_status vd_page_jobs(vd_daemon *daemon, vd_buf *out, vd_err *err);
void vd_page_tiles(const vd_ledger_totals *totals, vd_buf *out);
void vd_page_machine(const vd_daemon *daemon, const vd_ledger_totals *totals, vd_buf *out);
VD_MUST_USE vd_status vd_page_clients(vd_daemon *daemon, vd_buf *out, vd_err *err);
void vd_page_job(vd_daemon *daemon, const vd_job_record *job, vd_buf *out);
/* Writes a page about the job's run so far, as a single file. False: there is no run. */
VD_MUST_USE bool vd_page_run(vd_daemon *daemon, const vd_job_record *job, vd_buf *out);
void vd_page_losses(vd_daemon *daemon, const vd_job_record *job, vd_buf *out);

#endif
