/* Launches a kernel of a PTX file, as described in tests/ptx/planted/right.ptx, and checks
 * its output. Exits with 1 if that is wrong; the emulator may end the program earlier.
 *
 * Usage: planted FILE KERNEL [threads=N] [shared=N] [blocks=N] [freed] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/ptx.h"

enum { WORDS = 256 };

struct options {
    uint32_t threads = 64, blocks = 1, shared = WORDS * 4;
    bool freed = false;
};

static options parse(int argc, char **argv) {
    options o;
    for (int i = 3; i < argc; i++)
        if (sscanf(argv[i], "threads=%u", &o.threads) != 1 &&
            sscanf(argv[i], "shared=%u", &o.shared) != 1 &&
            sscanf(argv[i], "blocks=%u", &o.blocks) != 1) {
            o.freed = strcmp(argv[i], "freed") == 0;
            if (!o.freed)
                ptx::die("%s: no such option", argv[i]);
        }
    return o;
}

static float *allocate() {
    return static_cast<float *>(ptx::global_memory().allocate(WORDS * sizeof(float)));
}

int main(int argc, char **argv) {
    if (argc < 3)
        ptx::die("usage: planted FILE KERNEL [OPTION...]");
    const options o = parse(argc, argv);
    const auto module = ptx::load_module(argv[1]);
    ptx::kernel *const kernel = ptx::find_kernel(*module, argv[2]);
    if (!kernel)
        ptx::die("%s: no kernel %s", argv[1], argv[2]);
    float *in = allocate(), *out = allocate();
    for (int n = 0; n < WORDS; n++)
        in[n] = (float)n + 0.5f;
    if (o.freed)
        ptx::global_memory().release(in);
    const void *const arguments[] = {&in, &out};
    ptx::launch(*kernel, {o.blocks, 1, 1}, {o.threads, 1, 1}, o.shared, arguments);
    const float times = strcmp(argv[2], "sums") == 0 ? 2 : 1;
    for (int n = 0; n < WORDS; n++)
        if (out[n] != times * ((float)n + 0.5f)) {
            printf("%s: out[%d] is %g\n", argv[2], n, (double)out[n]);
            return 1;
        }
    return 0;
}
