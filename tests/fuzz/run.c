/* run.json of a run's folder. */
#include "tests/fuzz/fuzz.h"
#include "verde/exec/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_run_log log = {.count = 0};
    vd_err err;
    if (vd_store_load_log(fuzz_folder("run.json", data, size), &log, &err) == VD_OK) {
        if (vd_run_log_fits(&log, fuzz_program(), "run", &err) == VD_OK && log.count)
            fuzz_need(vd_run_log_kept(&log, log.count - 1) < log.count,
                      "a state that is not there");
        vd_run_log_free(&log);
    }
    return 0;
}
