/* Runs a target on kept inputs: TARGET FILE... */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>

enum { INPUT_MAX = 16 << 20 };

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        vd_buf bytes = {0};
        vd_err err;
        if (vd_read_file(argv[i], INPUT_MAX, &bytes, &err) != VD_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        LLVMFuzzerTestOneInput(bytes.data, bytes.size);
        vd_buf_free(&bytes);
    }
    printf("%d\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
