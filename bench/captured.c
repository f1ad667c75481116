/* Runs steps of a captured or built job, when bench/captured.py says so.
 *
 * Usage: captured JOB THREADS; JOB is what `verde run` takes. For each line "step" on standard
 * input it runs a step, and prints its seconds and the process's peak memory in MB, until the end
 * of input. */
#include "bench/bench.h"
#include "verde/load/load.h"

static double peak_mb(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    double kb = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %lf", &kb) == 1)
            break;
    if (file)
        fclose(file);
    return kb / 1024;
}

static vd_status serve(const vd_exec *exec, int threads, vd_err *err) {
    vd_state state = {0};
    char line[16];
    vd_status status = vd_exec_init(exec, NULL, &state, err);
    printf("ready\n");
    fflush(stdout);
    while (status == VD_OK && fgets(line, sizeof line, stdin)) {
        const clockid_t clock = threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
        const double start = clock_s(clock);
        status = vd_exec_step(exec, NULL, &state, NULL, err);
        printf("%.6f %.1f\n", clock_s(clock) - start, peak_mb());
        fflush(stdout);
    }
    vd_state_free(&state);
    return status;
}

int main(int argc, char **argv) {
    vd_err err = {0};
    vd_loaded loaded = {.data = {0}};
    vd_keep_pages();
    if (argc != 3) {
        fprintf(stderr, "usage: captured JOB THREADS\n");
        return 2;
    }
    const vd_common common = {.threads = atoi(argv[2])};
    vd_status status = vd_load_job(argv[1], &loaded, &err);
    if (status == VD_OK)
        status = vd_load_backend(&loaded, &common, &err);
    if (status == VD_OK)
        status = serve(&loaded.exec, common.threads, &err);
    if (status != VD_OK)
        fprintf(stderr, "bench: %s: %s\n", argv[1], err.text);
    vd_loaded_free(&loaded);
    return status == VD_OK ? 0 : 1;
}
