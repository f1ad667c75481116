/* Node records: an accepted one has only one encoding. */
#include "verde/commit/record.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static vd_node_record record;
    vd_buf again = {0};
    if (vd_record_decode(data, size, &record)) {
        vd_record_encode(&record.descriptor, record.input, record.input_count, &record.output,
                         &again);
        fuzz_need(fuzz_equal(&again, data, size), "a record has two spellings");
    }
    vd_buf_free(&again);
    return 0;
}
