/* The state of the daemon as a whole: numbers, disk, enrolled clients. */
#include "verde/provide/page_internal.h"

static void put_tile(vd_buf *out, const char *name, int64_t count) {
    vd_printf(out, "<div class=\"card\"><b>%lld</b>%s</div>\n", (long long)count, name);
}

static void put_count(vd_buf *out, int64_t count) {
    vd_printf(out, "%lld", (long long)count);
}

static void put_page_seconds(vd_buf *out, int64_t seconds) {
    vd_page_seconds(out, (double)seconds);
}

static void put_disk(const vd_daemon *daemon, const vd_ledger_totals *totals, vd_buf *out) {
    int64_t free_bytes, size_bytes;
    vd_printf(out, "<dt>data of clients<dd>");
    vd_page_size(out, totals->blob_bytes);
    vd_printf(out, " in %lld files; %lld upload%s under way\n", (long long)totals->blobs,
              (long long)totals->uploads, totals->uploads == 1 ? "" : "s");
    if (!vd_meter_disk(daemon->options.dir, &free_bytes, &size_bytes))
        return;
    vd_printf(out, "<dt>free on disk<dd>");
    vd_page_meter(out, free_bytes, size_bytes, vd_page_size);
    vd_printf(out, "\n");
}

void vd_page_tiles(const vd_ledger_totals *totals, vd_buf *out) {
    vd_printf(out, "<div class=\"tiles\">\n");
    put_tile(out, totals->jobs[VD_JOB_RUNNING] == 1 ? "job runs" : "jobs run",
             totals->jobs[VD_JOB_RUNNING]);
    put_tile(out, totals->jobs[VD_JOB_QUEUED] == 1 ? "waits" : "wait", totals->jobs[VD_JOB_QUEUED]);
    put_tile(out, "done", totals->jobs[VD_JOB_DONE]);
    put_tile(out, "failed", totals->jobs[VD_JOB_FAILED]);
    put_tile(out, "cancelled", totals->jobs[VD_JOB_CANCELLED]);
    vd_printf(out, "</div>\n");
}

void vd_page_machine(const vd_daemon *daemon, const vd_ledger_totals *totals, vd_buf *out) {
    const vd_provide_limits *l = &daemon->options.limits;
    vd_printf(out,
              "<h2>Machine</h2>\n<div class=\"card\"><dl>\n<dt>key of this provider"
              "<dd><code>%s</code>\n",
              daemon->key_hex);
    put_disk(daemon, totals, out);
    vd_printf(out, "<dt>jobs at once<dd>%d, each with up to ", daemon->options.jobs);
    vd_page_size(out, l->memory);
    vd_printf(out, " of tensors");
    if (l->job_seconds) {
        vd_printf(out, ", for up to ");
        vd_page_seconds(out, (double)l->job_seconds);
    }
    vd_printf(out, "\n<dt>up since<dd>");
    vd_page_time(out, vd_unix_time() - (int64_t)(vd_seconds() - daemon->meter.started));
    vd_printf(out, ", for ");
    vd_page_seconds(out, vd_seconds() - daemon->meter.started);
    vd_printf(out, "\n<dt>version<dd>%s\n</dl></div>\n", ro_version());
}

static vd_status put_client(const vd_daemon *daemon, const vd_public_key *key, vd_buf *out,
                            vd_err *err) {
    const vd_provide_limits *l = &daemon->options.limits;
    char hex[VD_ID_SIZE];
    vd_usage usage;
    vd_hex(key->b, VD_KEY_SIZE, hex);
    vd_status status = vd_ledger_usage(daemon->ledger, hex, &usage, err);
    if (status != VD_OK)
        return status;
    vd_printf(out, "\n<tr>");
    vd_html_cell(out, "key", "");
    vd_html_short(out, hex);
    vd_html_cell(out, "jobs that wait or run", "");
    vd_page_meter(out, usage.jobs, l->client_jobs, put_count);
    vd_html_cell(out, "on disk", "");
    vd_page_meter(out, usage.bytes, l->client_bytes, vd_page_size);
    vd_html_cell(out, "computed", "");
    vd_page_meter(out, usage.seconds, l->client_seconds, put_page_seconds);
    return VD_OK;
}

vd_status vd_page_clients(vd_daemon *daemon, vd_buf *out, vd_err *err) {
    const uint32_t count = daemon->options.client_count;
    vd_status status = VD_OK;
    vd_printf(out, "<h2>Clients</h2>\n<div class=\"card\"><table><thead><tr><th>key<th>jobs that "
                   "wait or run<th>on disk<th>computed<tbody>\n");
    for (uint32_t i = 0; i < count && i < VD_PAGE_CLIENTS && status == VD_OK; i++)
        status = put_client(daemon, &daemon->options.client[i], out, err);
    vd_printf(out, "</table></div>\n");
    if (count > VD_PAGE_CLIENTS)
        vd_printf(out, "<p class=\"soft\">and %u more</p>\n", count - VD_PAGE_CLIENTS);
    return status;
}
