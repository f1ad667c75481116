/* This file describes the current machine, in printable characters. */
#include "verde/exec/stated.h"

#include <string.h>
#include <unistd.h>

#include "repops/device.h"

static void clean(char *text) {
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

void vd_machine_clean(vd_machine *m) {
    clean(m->host);
    clean(m->device);
    clean(m->uuid);
    clean(m->backend);
    clean(m->version);
}

void vd_machine_here(const ro_ctx *ro, vd_machine *out) {
    char host[256] = "";
    *out = (vd_machine){.threads = ro_ctx_threads(ro)};
    if (gethostname(host, sizeof host - 1) == 0)
        snprintf(out->host, sizeof out->host, "%.63s", host);
    snprintf(out->device, sizeof out->device, "%s", ro_ctx_device(ro));
    snprintf(out->uuid, sizeof out->uuid, "%s", ro_ctx_device_uuid(ro));
    snprintf(out->backend, sizeof out->backend, "%s", ro_ctx_backend(ro));
    snprintf(out->version, sizeof out->version, "%s", ro_version());
    vd_machine_clean(out);
}

bool vd_machine_equal(const vd_machine *a, const vd_machine *b) {
    return strcmp(a->host, b->host) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->uuid, b->uuid) == 0 && strcmp(a->backend, b->backend) == 0 &&
           strcmp(a->version, b->version) == 0 && a->threads == b->threads;
}
