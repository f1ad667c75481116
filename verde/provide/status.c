/* Public information about a daemon. */
#include "verde/protocol/message.h"
#include "verde/provide/internal.h"

void vd_serve_provider(vd_daemon *daemon, vd_response *response) {
    const vd_provide_limits *l = &daemon->options.limits;
    vd_reply(response, 200,
             json_pack("{si ss so s{sI sI sI sI sI sI si}}", "verde", 1, "key", daemon->key_hex,
                       "speaks", vd_speaks(), "limits", "client_bytes", (json_int_t)l->client_bytes,
                       "client_blobs", (json_int_t)l->client_blobs, "client_jobs",
                       (json_int_t)l->client_jobs, "client_seconds", (json_int_t)l->client_seconds,
                       "job_seconds", (json_int_t)l->job_seconds, "memory", (json_int_t)l->memory,
                       "chunk", VD_CHUNK_MAX));
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

/* The metrics must not name jobs or clients. */
void vd_serve_metrics(vd_daemon *daemon, vd_response *response) {
    vd_ledger_totals totals;
    vd_err err = {0};
    vd_buf *out = &response->body;
    if (vd_ledger_count(daemon->ledger, &totals, &err) != VD_OK) {
        vd_reply_trouble(daemon, response, &err);
        return;
    }
    put_counts(&totals, out);
    vd_printf(out, "# TYPE verde_uploaded_bytes_total counter\nverde_uploaded_bytes_total %lld\n",
              (long long)atomic_load(&daemon->bytes_in));
    vd_printf(out, "# TYPE verde_ledger_fine gauge\nverde_ledger_fine %d\n",
              vd_ledger_is_fine(daemon->ledger));
    vd_meter_put(&daemon->meter, daemon->options.dir, response);
}
