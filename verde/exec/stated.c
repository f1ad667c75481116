#include "verde/exec/stated.h"

#include <string.h>
#include <unistd.h>

#include "repops/device.h"

/* Whatever a name has in it, what is written can be read back as text. */
static void copy_text(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from);
    for (; *to; to++)
        if (*to < ' ' || *to > '~')
            *to = '?';
}

void vd_machine_here(const ro_ctx *ro, vd_machine *out) {
    char host[256] = "";
    *out = (vd_machine){.threads = ro_ctx_threads(ro)};
    if (gethostname(host, sizeof host - 1) == 0)
        copy_text(out->host, sizeof out->host, host);
    copy_text(out->device, sizeof out->device, ro_ctx_device(ro));
    copy_text(out->uuid, sizeof out->uuid, ro_ctx_device_uuid(ro));
    copy_text(out->backend, sizeof out->backend, ro_ctx_backend(ro));
    copy_text(out->version, sizeof out->version, ro_version());
}

bool vd_machine_equal(const vd_machine *a, const vd_machine *b) {
    return strcmp(a->host, b->host) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->uuid, b->uuid) == 0 && strcmp(a->backend, b->backend) == 0 &&
           strcmp(a->version, b->version) == 0 && a->threads == b->threads;
}
