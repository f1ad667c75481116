/* What the benchmarks share: clocks, medians, data, and tables written as text and CSV. */
#ifndef BENCH_H
#define BENCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double clock_s(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Time of a single thread, without what other processes take away; or of the wall. */
static inline double bench_now(int threads) {
    return clock_s(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
}

static inline void bench_pause(int milliseconds) {
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
}

static inline int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts x. */
static inline double bench_median(double *x, int count) {
    qsort(x, (size_t)count, sizeof *x, compare_doubles);
    return count % 2 ? x[count / 2] : (x[count / 2 - 1] + x[count / 2]) / 2;
}

static inline uint64_t bench_word(uint64_t i) {
    uint64_t z = i * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in (-1, 1); aligned to 64 bytes. */
static inline float *bench_uniform(int64_t count, uint64_t seed) {
    float *x = aligned_alloc(64, ((size_t)count * sizeof *x + 127) / 64 * 64);
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (float)(int32_t)(bench_word(seed + (uint64_t)i) >> 32) * 0x1p-31f;
    return x;
}

/* Standard normal. */
static inline float *bench_normal(int64_t count, uint64_t seed) {
    float *x = bench_uniform(count, 0);
    for (int64_t i = 0; x && i < count; i++) {
        const uint64_t h = bench_word(seed + (uint64_t)i);
        const double u = (double)((h >> 40) + 1) * 0x1p-24, v = (double)(h & 0xffffff) * 0x1p-24;
        x[i] = (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    }
    return x;
}

/* Geometric mean of what was added. */
typedef struct {
    double log_sum;
    int count;
} bench_mean;

static inline void bench_add(bench_mean *mean, double x) {
    if (x > 0)
        mean->log_sum += log(x), mean->count++;
}

static inline double bench_value(const bench_mean *mean) {
    return mean->count ? exp(mean->log_sum / mean->count) : 0;
}

#endif
