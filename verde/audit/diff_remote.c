/* One side is a provider's run: `verde diff RUN URL`. The provider is asked as by a checker
 * (PROTOCOL.md section 13), and only for what differs. */
#include <stdlib.h>
#include <string.h>

#include "verde/audit/audit_provider.h"
#include "verde/audit/diff.h"
#include "verde/protocol/remote_run.h"

struct vd_diff_remote {
    vd_audit_arguments arguments;
    vd_auditing x;
    vd_audit_line line;
    vd_source own;
    vd_remote_run *run;
};

bool vd_is_remote(const char *path) {
    return strncmp(path, "https://", strlen("https://")) == 0;
}

static vd_status meet(vd_diff_remote *r, const vd_diff_options *o, const char *url,
                      const vd_diff_run *own, vd_err *err) {
    r->arguments = (vd_audit_arguments){
        .url = url, .key_dir = o->key_dir, .ca = o->ca, .common = o->common, VD_AUDIT_DEFAULTS};
    r->arguments.patience_s = o->patience_s;
    r->arguments.steps = r->arguments.crumbs = 0;
    r->x = (vd_auditing){.a = &r->arguments, .start = vd_seconds(), .err = err, .journal.fd = -1};
    r->x.loaded.program = own->loaded.program;
    vd_status status = vd_audit_meet(&r->x);
    return status == VD_OK ? vd_audit_open_line(&r->x, &r->line) : status;
}

vd_status vd_diff_remote_open(const vd_diff_options *o, const char *url, const vd_diff_run *own,
                              const vd_source *source, vd_diff_run *run, vd_diff_remote **out,
                              vd_err *err) {
    if (own->log.backend)
        return vd_fail(err, VD_ERR_USAGE, "%s: a run with %s is not compared with a provider's",
                       own->dir, own->log.backend->emits);
    vd_diff_remote *r = calloc(1, sizeof *r);
    if (!r)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    *out = r;
    *run = (vd_diff_run){.dir = url, .remote = true};
    run->loaded.program = own->loaded.program;
    run->log.program = own->log.program;
    run->log.count = (uint32_t)vd_run_leaves(&own->loaded.program);
    r->own = *source;
    vd_status status = meet(r, o, url, own, err);
    return status == VD_OK ? vd_remote_run_open(&r->line, &r->own, own->log.count, &r->run, err)
                           : status;
}

vd_source vd_diff_remote_source(const vd_diff_remote *r) {
    return vd_remote_run_source(r->run);
}

void vd_diff_remote_close(vd_diff_remote *r) {
    if (!r)
        return;
    vd_remote_run_close(r->run);
    vd_audit_part(&r->x);
    free(r);
}
