/* This file answers what anybody may ask about the daemon: its health and its counters. */
#include "verde/provide/meter.h"

#include <sys/statvfs.h>

#include "verde/commit/json.h"

void vd_meter_health(bool confined, const char *status, vd_response *response) {
    json_t *out = json_pack("{sb ss}", "confined", confined, "status", status);
    if (!out || !vd_json_dump(out, &response->body))
        response->status = 500;
    response->content_type = "application/json";
    json_decref(out);
}

bool vd_meter_disk(const char *dir, int64_t *free_bytes, int64_t *size_bytes) {
    struct statvfs disk;
    if (statvfs(dir, &disk) != 0)
        return false;
    *free_bytes = (int64_t)(disk.f_bavail * disk.f_frsize);
    *size_bytes = (int64_t)(disk.f_blocks * disk.f_frsize);
    return true;
}

static void put_disk(const char *dir, vd_buf *out) {
    int64_t free_bytes, size_bytes;
    if (!vd_meter_disk(dir, &free_bytes, &size_bytes))
        return;
    vd_printf(out,
              "# TYPE verde_disk_free_bytes gauge\nverde_disk_free_bytes %lld\n"
              "# TYPE verde_disk_size_bytes gauge\nverde_disk_size_bytes %lld\n",
              (long long)free_bytes, (long long)size_bytes);
}

void vd_meter_put(const vd_meter *meter, const char *dir, vd_response *response) {
    put_disk(dir, &response->body);
    vd_printf(&response->body,
              "# TYPE verde_requests_total counter\nverde_requests_total %lld\n"
              "# TYPE verde_refused_total counter\nverde_refused_total %lld\n"
              "# TYPE verde_up_seconds gauge\nverde_up_seconds %.0f\n"
              "# TYPE verde_memory_peak_bytes gauge\nverde_memory_peak_bytes %zu\n",
              (long long)atomic_load(&meter->requests), (long long)atomic_load(&meter->refused),
              vd_seconds() - meter->started, vd_peak_bytes());
    response->content_type = "text/plain; version=0.0.4";
}
