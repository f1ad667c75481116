/* Decodes bytes as a program; if they are accepted, encoding gives the same bytes. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_program program = {0};
    vd_buf again = {0};
    vd_err err;
    if (vd_program_decode(data, size, &program, &err) == VD_OK) {
        vd_program_encode(&program, &again);
        fuzz_need(fuzz_equal(&again, data, size), "a program has two spellings");
        vd_program_free(&program);
    }
    vd_buf_free(&again);
    return 0;
}
