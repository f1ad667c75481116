/* Tables of thresholds: an accepted one has only one encoding. */
#include "tests/fuzz/fuzz.h"
#include "verde/log/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_thresholds table;
    vd_buf again = {0};
    vd_err err;
    if (vd_thresholds_load(fuzz_file(data, size), &table, &err) == VD_OK)
        fuzz_need(vd_thresholds_print(&table, &again, &err) == VD_OK &&
                      fuzz_equal(&again, data, size),
                  "a table has two spellings");
    vd_buf_free(&again);
    return 0;
}
