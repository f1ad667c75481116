/* Writes images in the format of CIFAR-10's binary files, for machines without CIFAR-10: stripes
 * whose direction, width and colour identify the class, at a random place, under noise. Any model
 * that can tell directions apart learns them in seconds. The bytes are the same everywhere.
 *
 * Usage: standin RECORDS > data_batch_1.bin */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 32, CLASSES = 10, MOST = 1000000 };

/* Lehmer's generator with the constants of Park & Miller, 1988. */
static uint64_t state = 1;

static int draw(int below) {
    state = state * 16807 % 2147483647;
    return (int)(state / 16 % (uint64_t)below);
}

typedef struct {
    int x, y, period; /* of the stripes */
    int colour;       /* a bit for each colour channel in which the stripes show */
} pattern;

static const pattern patterns[CLASSES] = {
    {1, 0, 8, 7},  {0, 1, 8, 7},  {1, 1, 8, 7}, {1, 31, 8, 7}, {1, 0, 16, 5},
    {0, 1, 16, 3}, {1, 1, 16, 6}, {2, 1, 8, 1}, {1, 2, 8, 2},  {1, 30, 8, 4},
};

static void put_image(int label) {
    const pattern *p = &patterns[label];
    const int phase = draw(p->period), contrast = 40 + draw(40);
    putchar(label);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < SIZE; y++)
            for (int x = 0; x < SIZE; x++) {
                const int on = (p->x * x + p->y * y + phase) % p->period < p->period / 2;
                const int shown = p->colour >> c & 1 ? (on ? contrast : -contrast) : 0;
                putchar(128 + shown + draw(64) - 32 - draw(16));
            }
}

int main(int argc, char **argv) {
    const long records = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (records < 1 || records > MOST) {
        fputs("usage: standin RECORDS > FILE\n", stderr);
        return 2;
    }
    for (long i = 0; i < records; i++)
        put_image(draw(CLASSES));
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("standin: cannot write\n", stderr);
        return 1;
    }
    fputs("standin: these are made-up stripes in the format of CIFAR-10, not CIFAR-10\n", stderr);
    return 0;
}
