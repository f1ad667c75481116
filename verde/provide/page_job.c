/* The page of one job, and its losses as a picture. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/items.h"
#include "verde/exec/losses_svg.h"
#include "verde/exec/store.h"
#include "verde/page/page.h"
#include "verde/provide/page_internal.h"

static void put_hash(vd_buf *out, const char *name, const char *value) {
    if (*value)
        vd_printf(out, "<dt>%s<dd><code>%s</code>\n", name, value);
}

static void put_how_far(vd_buf *out, const vd_job_progress *progress, const vd_job_record *job) {
    const vd_job_progress p = *progress;
    const double rate = vd_page_job_rate(job, &p);
    vd_printf(out, "<dt>state<dd>");
    vd_page_job_state(out, job);
    vd_printf(out, "\n<dt>progress<dd>");
    vd_page_job_progress(out, job, &p);
    if (rate > 0) {
        vd_printf(out, ", %.3g steps/s, ", rate);
        vd_page_seconds(out, (double)(job->steps - p.step) / rate);
        vd_printf(out, " left");
    }
    if (p.has_loss)
        vd_printf(out, "\n<dt>loss<dd>%.4f", p.loss);
    vd_printf(out, "\n<dt>computed<dd>");
    vd_page_seconds(out, (double)job->seconds);
    vd_printf(out, "\n<dt>submitted<dd>");
    vd_page_time(out, job->created);
    vd_printf(out, "\n");
}

static void put_facts(vd_buf *out, const vd_job_record *job) {
    put_hash(out, "job", job->id);
    put_hash(out, "client", job->client);
    put_hash(out, "program", job->program_hash);
    put_hash(out, "run root", job->run_root);
    put_hash(out, "final state", job->final_state);
    vd_printf(out, "<dt>takes<dd>");
    vd_page_size(out, job->memory);
    vd_printf(out, " of memory for tensors, ");
    vd_page_size(out, job->disk);
    vd_printf(out, " of disk\n");
}

/* Writes the end of the log, from the beginning of a line. */
static void put_log(vd_buf *out, const vd_daemon *daemon, const vd_job_record *job) {
    char path[1200], text[VD_PAGE_LOG_MAX + 1];
    int fd;
    uint64_t size;
    vd_job_path(daemon, job->id, VD_JOB_LOG, path);
    if (vd_open_file(path, &fd, &size, NULL) != VD_OK)
        return;
    const uint64_t from = size > VD_PAGE_LOG_MAX ? size - VD_PAGE_LOG_MAX : 0;
    const ssize_t got = pread(fd, text, VD_PAGE_LOG_MAX, (off_t)from);
    close(fd);
    if (got <= 0)
        return;
    text[got] = 0;
    const char *begin = from ? strchr(text, '\n') : NULL;
    vd_printf(out, "<h2>What it said last</h2>\n<div class=\"card\"><pre>");
    vd_html_text(out, begin ? begin + 1 : text);
    vd_printf(out, "</pre></div>\n");
}

void vd_page_job(vd_daemon *daemon, const vd_job_record *job, vd_buf *out) {
    const bool active = job->state <= VD_JOB_RUNNING;
    const vd_job_progress p = vd_read_progress(daemon, job->id);
    vd_page_begin(out, job->name, active ? VD_PAGE_REFRESH_S : VD_PAGE_REFRESH_QUIET_S);
    vd_printf(out, "<h2><bdi>");
    vd_html_text(out, job->name);
    vd_printf(out, "</bdi></h2>\n<div class=\"card\"><dl>\n");
    put_how_far(out, &p, job);
    if (job->error[0]) {
        vd_printf(out, "<dt>why<dd>");
        vd_html_text(out, job->error);
        vd_printf(out, "\n");
    }
    put_facts(out, job);
    vd_printf(out, "<dt>its run<dd><a href=\"/jobs/%s/run.html\">%s</a>\n", job->id,
              p.prompts ? "prompts, answers, roots" : "checkpoints, program, cost");
    vd_printf(out, "</dl></div>\n");
    if (!p.prompts)
        vd_printf(out,
                  "<h2>Loss</h2>\n<div class=\"card\"><img src=\"/jobs/%s/losses.svg\" "
                  "width=\"720\" height=\"360\" alt=\"loss of each step\"></div>\n",
                  job->id);
    put_log(out, daemon, job);
    vd_page_end(out);
}

bool vd_page_run(vd_daemon *daemon, const vd_job_record *job, vd_buf *out) {
    char path[1200];
    vd_program program = {0};
    vd_run_log log = {0};
    vd_job_path(daemon, job->id, VD_JOB_RUN, path);
    if (vd_items_are_in(path))
        return vd_page_of_prompts(path, out, NULL) == VD_OK;
    const bool there =
        vd_store_program(path, &program, NULL) == VD_OK &&
        vd_store_load_log(path, &log, NULL) == VD_OK &&
        vd_page_of_run(path, &program, &log, NULL, VD_PAGE_LOSSES_MAX, out, NULL) == VD_OK;
    vd_run_log_free(&log);
    vd_program_free(&program);
    return there;
}

void vd_page_losses(vd_daemon *daemon, const vd_job_record *job, vd_buf *out) {
    char path[1200];
    vd_job_path(daemon, job->id, VD_JOB_RUN, path);
    if (vd_losses_svg(path, VD_PAGE_LOSSES_MAX, out, NULL) == VD_OK)
        return;
    vd_buf_free(out);
    vd_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 360\" width=\"720\""
                   " height=\"360\"><text x=\"360\" y=\"180\" text-anchor=\"middle\" "
                   "fill=\"#888\" style=\"font:24px sans-serif\">no losses yet</text></svg>\n");
}
