/* Launches a kernel of tests/ptx/planted/products.ptx and checks its output. Exits with 1
 * if that is wrong; the emulator may end the program earlier.
 *
 * Usage: planted_products FILE KERNEL [threads=N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/ptx.h"

enum { ROWS = 64, COLUMNS = 8, STEPS = 64, STAGES = 4, STAGE = (ROWS + COLUMNS) * STEPS };
enum { SHARED = 2 * STAGE + 4 * 8 }; /* two stages, four barriers */

/* Byte k of a's row r, or of b's column r - ROWS. */
static int8_t number(int stage, int r, int k) {
    uint32_t x = (uint32_t)(stage * STAGE + r * STEPS + k) * 2654435761u;
    x ^= x >> 15;
    return (int8_t)(x * 2246822519u >> 24);
}

/* Offset in swizzled rows of 64 bytes; see descriptor in products.cc. */
static int swizzled(int r, int k) {
    const int at = r * STEPS + k;
    return at ^ (at >> 7 & 3) << 4;
}

/* Offset in fragments [k / 32, r / 16, lane, word, byte]: PTX ISA 9.7.15.5.1.1. */
static int in_fragments(int r, int k) {
    const int lane = r % 8 * 4 + k % 16 / 4, word = r / 8 % 2 + k % 32 / 16 * 2;
    return k / 32 * 2048 + r / 16 * 512 + lane * 16 + word * 4 + k % 4;
}

static void fill(int8_t *in, bool fragments) {
    for (int stage = 0; stage < STAGES; stage++)
        for (int r = 0; r < ROWS + COLUMNS; r++)
            for (int k = 0; k < STEPS; k++) {
                const bool of_a = r < ROWS;
                const int at = of_a && fragments ? in_fragments(r, k)
                               : of_a            ? swizzled(r, k)
                                                 : ROWS * STEPS + swizzled(r - ROWS, k);
                in[stage * STAGE + at] = number(stage, r, k);
            }
}

static int sum(int row, int column) {
    int s = 0;
    for (int stage = 0; stage < STAGES; stage++)
        for (int k = 0; k < STEPS; k++)
            s += number(stage, row, k) * number(stage, ROWS + column, k);
    return s;
}

int main(int argc, char **argv) {
    uint32_t threads = 160;
    if (argc < 3 || (argc > 3 && sscanf(argv[3], "threads=%u", &threads) != 1))
        ptx::die("usage: planted_products FILE KERNEL [threads=N]");
    const auto module = ptx::load_module(argv[1]);
    ptx::kernel *const kernel = ptx::find_kernel(*module, argv[2]);
    if (!kernel)
        ptx::die("%s: no kernel %s", argv[1], argv[2]);
    void *in = ptx::global_memory().allocate(STAGES * STAGE);
    void *out = ptx::global_memory().allocate(ROWS * COLUMNS * sizeof(int));
    fill(static_cast<int8_t *>(in), strcmp(argv[2], "fragments") == 0);
    const void *const arguments[] = {&in, &out};
    ptx::launch(*kernel, {1, 1, 1}, {threads, 1, 1}, SHARED, arguments);
    for (int n = 0; n < ROWS * COLUMNS; n++)
        if (static_cast<int *>(out)[n] != sum(n / COLUMNS, n % COLUMNS)) {
            printf("%s: out[%d] is %d, not %d\n", argv[2], n, static_cast<int *>(out)[n],
                   sum(n / COLUMNS, n % COLUMNS));
            return 1;
        }
    return 0;
}
