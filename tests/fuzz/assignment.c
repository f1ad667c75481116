/* Assignments: an accepted one can be written and read again. */
#include "tests/fuzz/fuzz.h"
#include "verde/protocol/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_assignment first, second;
    vd_buf again = {0};
    vd_err err;
    if (vd_assignment_read(data, size, &first, &err) == VD_OK) {
        fuzz_need(vd_assignment_write(&first, &again, &err) == VD_OK,
                  "an assignment is not written");
        fuzz_need(vd_assignment_read(again.data, again.size, &second, &err) == VD_OK,
                  "an assignment that was written is not read");
    }
    vd_buf_free(&again);
    return 0;
}
