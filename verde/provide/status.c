/* What anybody may know of a daemon. */
#include <sys/statvfs.h>

#include "verde/provide/internal.h"

void vd_serve_provider(vd_daemon *daemon, vd_response *response) {
    const vd_provide_limits *l = &daemon->options.limits;
    vd_reply(response, 200,
             json_pack("{si ss s{sI sI sI sI sI sI si}}", "verde", 1, "key", daemon->key_hex,
                       "limits", "client_bytes", (json_int_t)l->client_bytes, "client_blobs",
                       (json_int_t)l->client_blobs, "client_jobs", (json_int_t)l->client_jobs,
                       "client_seconds", (json_int_t)l->client_seconds, "job_seconds",
                       (json_int_t)l->job_seconds, "memory", (json_int_t)l->memory, "chunk",
                       VD_CHUNK_MAX));
}

static void put_disk(const vd_daemon *daemon, vd_buf *out) {
    struct statvfs disk;
    if (statvfs(daemon->options.dir, &disk) != 0)
        return;
    vd_printf(out,
              "# TYPE verde_disk_free_bytes gauge\nverde_disk_free_bytes %llu\n"
              "# TYPE verde_disk_size_bytes gauge\nverde_disk_size_bytes %llu\n",
              (unsigned long long)disk.f_bavail * disk.f_frsize,
              (unsigned long long)disk.f_blocks * disk.f_frsize);
}

static void put_counts(const vd_ledger_totals *totals, vd_buf *out) {
    vd_printf(out, "# TYPE verde_jobs gauge\n");
    for (int i = 0; i <= VD_JOB_CANCELLED; i++)
        vd_printf(out, "verde_jobs{state=\"%s\"} %lld\n", vd_job_state_name((vd_job_state)i),
                  (long long)totals->jobs[i]);
    vd_printf(out,
              "# TYPE verde_blobs gauge\nverde_blobs %lld\n"
              "# TYPE verde_blob_bytes gauge\nverde_blob_bytes %lld\n"
              "# TYPE verde_uploads gauge\nverde_uploads %lld\n",
              (long long)totals->blobs, (long long)totals->blob_bytes, (long long)totals->uploads);
}

/* The text format of Prometheus. Neither jobs nor clients are named. */
void vd_serve_metrics(vd_daemon *daemon, vd_response *response) {
    vd_ledger_totals totals;
    vd_err err = {0};
    vd_buf *out = &response->body;
    if (vd_ledger_count(daemon->ledger, &totals, &err) != VD_OK) {
        vd_reply_trouble(daemon, response, &err);
        return;
    }
    put_counts(&totals, out);
    put_disk(daemon, out);
    vd_printf(out,
              "# TYPE verde_requests_total counter\nverde_requests_total %lld\n"
              "# TYPE verde_refused_total counter\nverde_refused_total %lld\n"
              "# TYPE verde_uploaded_bytes_total counter\nverde_uploaded_bytes_total %lld\n"
              "# TYPE verde_up_seconds gauge\nverde_up_seconds %.0f\n"
              "# TYPE verde_memory_peak_bytes gauge\nverde_memory_peak_bytes %zu\n",
              (long long)atomic_load(&daemon->requests), (long long)atomic_load(&daemon->refused),
              (long long)atomic_load(&daemon->bytes_in), vd_seconds() - daemon->started,
              vd_peak_bytes());
    response->content_type = "text/plain; version=0.0.4";
}
