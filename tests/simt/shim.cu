/* Tests the shim itself: correct kernels are correct in every order, and bugs that only some orders
 * reveal are found. Usage: shim; with an argument, runs only that kernel once: for
 * -fsanitize=thread, which must report `no_barrier` and `no_warp_barrier` and nothing else. */
#include "repops/cuda/cuda.cuh"
#include "repops/cuda/ptx.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 96, SEEDS = 20 };

/* Each thread reads what the opposite thread wrote. */
template <bool barrier> __global__ void mirror(const float *in, float *out) {
    RO_SMEM(float, x);
    x[threadIdx.x] = in[threadIdx.x];
    if (barrier)
        __syncthreads();
    out[threadIdx.x] = x[THREADS - 1 - threadIdx.x];
}

/* The same within a warp. */
template <bool barrier> __global__ void mirror_warp(const float *in, float *out) {
    RO_SMEM(float, x);
    x[threadIdx.x] = in[threadIdx.x];
    if (barrier)
        __syncwarp();
    out[threadIdx.x] = x[threadIdx.x ^ 31];
}

/* The result depends on which lane comes first. */
__global__ void first_lane(const float *in, float *out) {
    RO_SMEM(uint32_t, place);
    if (threadIdx.x == 0)
        *place = 0;
    __syncthreads();
    const uint32_t at = atomicAdd(place, 1u);
    out[at] = in[threadIdx.x];
}

/* Asynchronous copies, with or without a wait. */
template <bool wait> __global__ void copies(const float *in, float *out) {
    RO_SMEM(float, x);
    ro_copy_async<4>(&x[threadIdx.x], &in[threadIdx.x], true);
    ro_copy_commit();
    if (wait)
        ro_copy_wait<0>();
    __syncthreads();
    out[threadIdx.x] = x[THREADS - 1 - threadIdx.x];
    ro_copy_wait<0>();
}

typedef void run(const float *in, float *out);

static void launch_mirror(const float *in, float *out) {
    RO_LAUNCH(mirror<true>, dim3(1), dim3(THREADS), THREADS * sizeof(float), 0, in, out);
}
static void launch_no_barrier(const float *in, float *out) {
    RO_LAUNCH(mirror<false>, dim3(1), dim3(THREADS), THREADS * sizeof(float), 0, in, out);
}
static void launch_mirror_warp(const float *in, float *out) {
    RO_LAUNCH(mirror_warp<true>, dim3(1), dim3(THREADS), THREADS * sizeof(float), 0, in, out);
}
static void launch_no_warp_barrier(const float *in, float *out) {
    RO_LAUNCH(mirror_warp<false>, dim3(1), dim3(THREADS), THREADS * sizeof(float), 0, in, out);
}
static void launch_first_lane(const float *in, float *out) {
    RO_LAUNCH(first_lane, dim3(1), dim3(THREADS), sizeof(uint32_t), 0, in, out);
}
static void launch_copies(const float *in, float *out) {
    RO_LAUNCH(copies<true>, dim3(1), dim3(THREADS), THREADS * sizeof(float), 0, in, out);
}
static void launch_no_wait(const float *in, float *out) {
    RO_LAUNCH(copies<false>, dim3(1), dim3(THREADS), THREADS * sizeof(float), 0, in, out);
}

static const struct {
    const char *name;
    run *launch;
    int right; /* 0: some order must reveal the bug */
    int mask;  /* the expected lane: THREADS - 1 - i, or i ^ 31 */
} kernels[] = {
    {"mirror", launch_mirror, 1, 0},
    {"no_barrier", launch_no_barrier, 0, 0},
    {"mirror_warp", launch_mirror_warp, 1, 31},
    {"no_warp_barrier", launch_no_warp_barrier, 0, 31},
    {"first_lane", launch_first_lane, 0, 31},
    {"copies", launch_copies, 1, 0},
    {"no_wait", launch_no_wait, 0, 0},
};

static int differs(run *launch, int mask) {
    float in[THREADS], out[THREADS];
    for (int i = 0; i < THREADS; i++)
        in[i] = (float)i;
    launch(in, out);
    for (int i = 0; i < THREADS; i++)
        if (out[i] != (float)(mask ? i ^ mask : THREADS - 1 - i))
            return 1;
    return 0;
}

/* Tests both code paths of ro_divider, near multiples and at the ends of its range. */
static int divides() {
    const int64_t end = (INT64_C(1) << 41) - 1;
    uint64_t random = 1;
    int bad = 0;
    for (int i = 0; i < 200000; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const int64_t d = ((int64_t)(random >> 22) >> (i % 42)) + 1;
        const ro_divider by(d);
        const int64_t many = end / d, some = (int64_t)(random >> 23) % (many + 1);
        const int64_t n[] = {0, d - 1, some * d, some > 0 ? some * d - 1 : 0, many * d, end};
        for (const int64_t x : n)
            bad += x <= end && (by.quotient(x) != x / d || by.remainder(x) != x % d);
    }
    return bad;
}

int main(int argc, char **argv) {
    int bad = argc > 1 ? 0 : divides(), seen = 0;
    if (bad)
        printf("%d quotients are wrong\n", bad);
    for (const auto &k : kernels) {
        int shown = 0;
        if (argc > 1 && strcmp(argv[1], k.name) != 0)
            continue;
        seen++;
        for (int seed = 1; seed <= (argc > 1 ? 1 : SEEDS); seed++) {
            char text[16];
            snprintf(text, sizeof text, "%d", seed);
            setenv("SIMT_SEED", text, 1);
            shown += differs(k.launch, k.mask);
        }
        if (argc > 1)
            continue;
        printf("%-16s wrong in %2d of %d orders, expected %s\n", k.name, shown, SEEDS,
               k.right ? "none" : "some");
        bad += k.right ? shown > 0 : shown == 0;
    }
    return bad || !seen;
}
