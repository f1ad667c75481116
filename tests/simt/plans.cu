/* Plans of products for devices with different amounts of shared memory: every kind of operands
 * gets a tile that fits, and a larger one if there is room. No kernel runs. */
#include "repops/cuda/image/conv.cuh"

#include <stdio.h>

static long planned, bad;
static bool taken[GEMM_TILES];

static void check(const ro_cuda *d, const gemm_problem *p, const gemm_memory &memory, bool flat,
                  const char *operands) {
    const gemm_plan plan = ro_gemm_plan(d, p, memory, flat);
    planned++;
    taken[plan.tile] = true;
    if (memory.bytes[plan.tile] <= d->shared_memory && plan.lead >= 1 && plan.lead <= plan.chunks)
        return;
    if (bad++ < 10)
        printf("%s, %lld x %lld x %lld: tile %d of %d bytes, the device has %d\n", operands,
               (long long)p->m, (long long)p->n, (long long)p->k, plan.tile,
               memory.bytes[plan.tile], d->shared_memory);
}

static void check_operands(const ro_cuda *d, const gemm_problem *p) {
    gemm_problem masked = *p;
    masked.mask = RO_MASK_UPTO_ROW;
    const gemm_memory plain = gemm_memory_of<strided<true>, strided<false>>();
    check(d, p, plain, true, "matrices");
    check(d, &masked, plain, false, "masked matrices");
    check(d, p, gemm_memory_of<conv_operand<false, false>, strided<false>>(), false, "conv2d");
    check(d, p, gemm_memory_of<conv_operand<true, false>, conv_weights>(), false, "conv2d_dx");
    check(d, p, gemm_memory_of<conv_operand<false, true>, strided<false>>(), false, "conv2d_dw");
}

static void check_device(const ro_cuda *d) {
    const int64_t sizes[] = {1, 8, 16, 60, 128, 500, 4096, 100000};
    for (const int64_t m : sizes)
        for (const int64_t n : sizes)
            for (const int64_t k : sizes) {
                const gemm_problem p = {m, n, k, 1, RO_DOT_CHUNK, RO_MASK_NONE, nullptr};
                check_operands(d, &p);
            }
}

static ro_cuda device_of(int kib, int multiprocessors) {
    ro_cuda d = {};
    d.shared_memory = kib << 10;
    d.shared_reserve = 1 << 10;
    d.shared_of_all = d.shared_memory + d.shared_reserve;
    d.multiprocessors = multiprocessors;
    return d;
}

/* Checks the tile chosen for a product of m x n x 4096 on 132 multiprocessors. */
static void check_taken(int kib, int64_t m, int64_t n, ro_mask mask, gemm_tile_name wanted) {
    const gemm_problem p = {m, n, 4096, 1, RO_DOT_CHUNK, mask, nullptr};
    const ro_cuda d = device_of(kib, 132);
    const gemm_memory memory = gemm_memory_of<strided<true>, strided<false>>();
    const gemm_tile_name tile = ro_gemm_plan(&d, &p, memory, mask == RO_MASK_NONE).tile;
    if (tile != wanted && ++bad)
        printf("%lld x %lld on %d KiB, mask %d: tile %d, expected %d\n", (long long)m, (long long)n,
               kib, mask, tile, wanted);
}

/* Checks that every tile is inside the product, and the first and last one in the right place. */
static void check_places(int tiles_m, int tiles_n) {
    const int64_t tiles = (int64_t)tiles_m * tiles_n;
    gemm_shape s = {};
    s.tiles_m = tiles_m, s.tiles_n = tiles_n, s.batch = 1;
    for (int64_t i = 0; i < 1000; i++) {
        const gemm_block b = gemm_block::of(s, (unsigned)(i * (tiles - 1) / 999));
        const bool inside =
            b.tile_m >= 0 && b.tile_m < tiles_m && b.tile_n >= 0 && b.tile_n < tiles_n;
        const bool first = b.tile_m == 0 && b.tile_n == 0;
        const bool last = b.tile_m == tiles_m - 1 && b.tile_n == tiles_n - 1;
        if (!(inside && (i > 0 || first) && (i < 999 || last)) && bad++ < 10)
            printf("%d x %d tiles: one at %d, %d\n", tiles_m, tiles_n, b.tile_m, b.tile_n);
    }
}

int main() {
    const int kib[] = {48, 64, 99, 163, 227}, multiprocessors[] = {1, 16, 132};
    for (const int shared : kib)
        for (const int count : multiprocessors) {
            const ro_cuda d = device_of(shared, count);
            check_device(&d);
        }
    check_places(1, (1 << 28) + 1);
    check_places(7, 300000000);
    check_places(8, (1 << 28) - 1);
    check_places(100000, 20000);
    /* Three blocks of `medium` keep a multiprocessor busy, if it has room for them. */
    check_taken(99, 4096, 4096, RO_MASK_UPTO_ROW, GEMM_SMALL);
    check_taken(227, 4096, 4096, RO_MASK_UPTO_ROW, GEMM_MEDIUM);
    check_taken(227, 4096, 4096, RO_MASK_NONE, GEMM_LARGE);
    check_taken(227, 16, 4096, RO_MASK_NONE, GEMM_FLAT16);
    check_taken(227, 8, 4096, RO_MASK_NONE, GEMM_FLAT8);
    for (int i = 0; i < GEMM_TILES; i++)
        if (!taken[i] && ++bad)
            printf("no product took tile %d\n", i);
    printf("%ld plans, %ld wrong\n", planned, bad);
    return bad ? 1 : 0;
}
