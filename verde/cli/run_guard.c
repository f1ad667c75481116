/* This file is `verde run --guard`: it switches the guard on, and prints what it finds. */
#include "verde/cli/run_command.h"

#include "verde/cli/cli.h"
#include "verde/exec/run_log_found.h"

static void print_place(const char *what, int64_t first, int64_t count) {
    if (first >= 0 && count <= 1)
        fprintf(stderr, ", %s %lld", what, (long long)first);
    else if (first >= 0)
        fprintf(stderr, ", %s %lld and %lld more", what, (long long)first, (long long)count - 1);
}

static void tell(void *user, const vd_guard_finding *f) {
    static const char *const what[] = {[VD_GUARD_SUMS] = "integer sums do not fit",
                                       [VD_GUARD_PACKED] =
                                           "packed numbers changed while they were used",
                                       [VD_GUARD_ROWS] = "other kernels give other bits"};
    const vd_run_guard *g = user;
    fprintf(stderr, "%sguard: host %s, backend %s: step %lld, %s",
            vd_is_terminal() ? "\r\033[K" : "", g->machine.host, g->machine.backend,
            (long long)f->step, f->node);
    print_place("product", f->product > 0 ? f->product : -1, 1);
    print_place("chunk", f->chunk, 1);
    print_place("row", f->row, f->rows);
    print_place("column", f->col, f->cols);
    fprintf(stderr, ": %s; %s\n", what[f->kind],
            f->again ? "the second time, too: the run ends" : "it is computed again");
    if (g->json)
        vd_print_json(json_pack("{so}", "guard", vd_finding_json(f)));
    fflush(stdout);
}

static vd_status check(const vd_loaded *loaded, bool logs, vd_err *err) {
    if (logs)
        return vd_fail(err, VD_ERR_USAGE,
                       "--guard: free kernels of --backend log have no sums to check");
    return vd_job_has_prompts(&loaded->job)
               ? vd_fail(err, VD_ERR_USAGE, "--guard: the job has prompts, which are not checked")
               : VD_OK;
}

vd_status vd_run_guard_open(vd_run_guard *g, bool wanted, bool logs, bool json, vd_loaded *loaded,
                            vd_err *err) {
    const bool plants = loaded->exec.fault.kind == VD_FAULT_SUM;
    if (!wanted)
        return plants ? vd_fail(err, VD_ERR_USAGE,
                                "--fault sum: expected --guard, which is to find it")
                      : VD_OK;
    const vd_status status = check(loaded, logs, err);
    if (status != VD_OK)
        return status;
    vd_machine_here(loaded->ro, &g->machine);
    g->json = json;
    g->guard.tell = tell, g->guard.user = g, g->guard.plants = plants;
    loaded->exec.guard = &g->guard;
    return vd_guard_open(&g->guard, loaded->ro, err);
}

void vd_run_guard_close(vd_run_guard *g, vd_loaded *loaded) {
    loaded->exec.guard = NULL;
    vd_guard_close(&g->guard);
}
