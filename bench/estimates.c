/* Prints vd_estimate_seconds of a job's steps, and the measured time of one thread.
 *
 * Usage: estimates JOB...; a JOB is what `verde run` takes. Prints a line in Markdown for each:
 * name, milliseconds estimated and measured, and their ratio. bench/estimates.py writes jobs for
 * it. */
#include <string.h>

#include "bench/bench.h"
#include "verde/exec/estimate.h"
#include "verde/load/load.h"

/* The first step of a run takes longer than others. */
enum { STEPS = 4 };
#define ENOUGH_S 20.0 /* stop after so many seconds of steps */

static vd_status time_steps(const vd_exec *exec, double *out, vd_err *err) {
    vd_state state = {0};
    double least = INFINITY, all = 0;
    vd_status status = vd_exec_init(exec, NULL, &state, err);
    for (int i = 0; i < STEPS && i < exec->program->steps && all < ENOUGH_S && status == VD_OK;
         i++) {
        const double start = bench_now(1);
        status = vd_exec_step(exec, NULL, &state, NULL, err);
        const double took = bench_now(1) - start;
        least = took < least ? took : least;
        all += took;
    }
    *out = least;
    vd_state_free(&state);
    return status;
}

static vd_status compare(const char *job, vd_loaded *loaded, vd_err *err) {
    const vd_common common = {.threads = 1};
    const char *slash = strrchr(job, '/');
    double took;
    vd_status status = vd_load_job(job, loaded, err);
    if (status == VD_OK)
        status = vd_load_backend(loaded, &common, err);
    if (status == VD_OK)
        status = time_steps(&loaded->exec, &took, err);
    if (status != VD_OK)
        return status;
    const double estimate = vd_estimate_seconds(&loaded->program, 1).step;
    printf("| %s | %.3g | %.3g | %.2f |\n", slash ? slash + 1 : job, 1e3 * estimate, 1e3 * took,
           estimate / took);
    fflush(stdout);
    return VD_OK;
}

int main(int argc, char **argv) {
    int failed = 0;
    vd_keep_pages();
    for (int i = 1; i < argc; i++) {
        vd_err err = {0};
        vd_loaded loaded = {.data = {0}};
        if (compare(argv[i], &loaded, &err) != VD_OK) {
            fprintf(stderr, "bench: %s: %s\n", argv[i], err.text);
            failed = 1;
        }
        vd_loaded_free(&loaded);
    }
    return failed;
}
