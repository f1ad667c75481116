/* Shared by the cases of fused functions: arrays on a device and in host memory, and their
 * comparison. Part of fused.c. */
#ifndef TESTS_CUDA_FUSED_WORK_H
#define TESTS_CUDA_FUSED_WORK_H

#include "repops/device.h"
#include "repops/fused.h"
#include "repops/layers.h"
#include "repops/tools/op_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An array in host memory and on the device, where it may begin one element into its block, so that
 * alignment varies. */
typedef struct {
    const char *name;
    int64_t count;
    float *host, *want;
    float *block, *on_device;
} array;

enum { ARRAYS = 11 };

typedef struct {
    uint64_t seed;
    ro_ctx *cpu, *device;
    array all[ARRAYS];
    int count;
    int failed;
} work;

static uint64_t roll(const work *w, int what, uint64_t below) {
    return case_word(w->seed, 100 + what, 0) % below;
}

static int64_t pick(const work *w, int what, const int16_t *from, int count) {
    return from[roll(w, what, (uint64_t)count)];
}

static array *add(work *w, const char *name, int64_t count) {
    array *a = &w->all[w->count++];
    const int64_t shift = (int64_t)roll(w, 50, 8) == 0;
    *a = (array){.name = name, .count = count};
    a->host = calloc((size_t)count + 1, sizeof *a->host);
    a->want = calloc((size_t)count + 1, sizeof *a->want);
    a->block = ro_alloc(w->device, (size_t)(count + shift) * sizeof *a->block);
    if (!a->host || !a->want || !a->block) {
        fflush(stdout);
        fprintf(stderr, "fused: case %llu: %s\n", (unsigned long long)w->seed,
                a->host && a->want ? ro_ctx_error(w->device) : "no memory");
        exit(2);
    }
    a->on_device = a->block + shift;
    return a;
}

static void expect(work *w, ro_status status, ro_ctx *ctx) {
    if (status == RO_OK)
        return;
    printf("  case %llu: %s\n", (unsigned long long)w->seed, ro_ctx_error(ctx));
    w->failed = 1;
}

static array *input(work *w, const char *name, int64_t count, data_class class) {
    array *a = add(w, name, count);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = case_f32(case_word(w->seed, w->count, i), class);
        memcpy(&a->want[i], &bits, sizeof bits);
    }
    expect(w, ro_write(w->device, a->on_device, a->want, (size_t)count * sizeof *a->want),
           w->device);
    return a;
}

/* Allocates an output, with content, since not every element is written. */
static array *output(work *w, const char *name, int64_t count) {
    return input(w, name, count, DATA_NORMAL);
}

static void compare(work *w, const array *a, const char *what) {
    const size_t size = (size_t)a->count * sizeof *a->host;
    int64_t at = 0;
    expect(w, ro_read(w->device, a->host, a->on_device, size), w->device);
    if (w->failed || memcmp(a->host, a->want, size) == 0)
        return;
    while (memcmp(&a->host[at], &a->want[at], sizeof *a->host) == 0)
        at++;
    printf("  case %llu, %s: %s[%lld] is %a, not %a\n", (unsigned long long)w->seed, what, a->name,
           (long long)at, (double)a->host[at], (double)a->want[at]);
    w->failed = 1;
}

static data_class class_of(const work *w) {
    static const data_class classes[] = {DATA_NORMAL,  DATA_NORMAL, DATA_NORMAL, DATA_RARE,
                                         DATA_SPECIAL, DATA_TINY,   DATA_MASKED, DATA_WIDE};
    return classes[roll(w, 51, sizeof classes / sizeof classes[0])];
}

#endif
