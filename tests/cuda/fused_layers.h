/* Random cases of layers: embeddings, rotary positions, and AdamW of bf16 parameters. Part of
 * fused.c. */
#ifndef TESTS_CUDA_FUSED_LAYERS_H
#define TESTS_CUDA_FUSED_LAYERS_H

#include "tests/cuda/fused_work.h"

/* Copies a->want to the device. */
static void send(work *w, array *a) {
    expect(w, ro_write(w->device, a->on_device, a->want, (size_t)a->count * sizeof *a->want),
           w->device);
}

/* ---- embeddings ---- */

/* Ids of a table's rows, some out of range. Frequent ids have more positions than a group of order
 * K, and in the largest cases more than a group of groups. */
static void fill_ids(const work *w, int32_t *id, int64_t positions, int64_t rows) {
    const uint64_t range = roll(w, 4, 3) ? (uint64_t)rows + 2 : 1 + roll(w, 5, 3);
    for (int64_t i = 0; i < positions; i++)
        id[i] = (int32_t)(case_word(w->seed, 98, i) % range) - (range > (uint64_t)rows);
}

static void embedding_backward(work *w) {
    static const int16_t row_counts[] = {1, 2, 7, 8, 9, 50, 200, 1000};
    static const int16_t widths[] = {1, 2, 3, 4, 31, 64, 100, 768, 1024, 1028, 1100};
    static const int16_t lengths[] = {0, 1, 2, 63, 64, 65, 130, 1023, 1024, 1025, 4097, 9000};
    const int sorted = roll(w, 6, 4) == 0; /* a kernel for many ids of narrow rows */
    const int64_t rows =
        sorted ? 1000 : pick(w, 0, row_counts, sizeof row_counts / sizeof *row_counts);
    const int64_t cols = pick(w, 1, widths, sorted ? 4 : sizeof widths / sizeof *widths);
    const int64_t positions = sorted ? 4097 : pick(w, 2, lengths, cols > 100 ? 8 : 12);
    const int add_to = roll(w, 3, 2) == 0;
    array *dy = input(w, "dy", positions * cols, class_of(w)), *ids = add(w, "ids", positions);
    array *table = input(w, "table", rows * cols, class_of(w));
    fill_ids(w, (int32_t *)ids->want, positions, rows);
    send(w, ids);
    expect(w,
           ro_embedding_backward(w->cpu, rows, cols, positions, dy->want, (int32_t *)ids->want,
                                 (ro_gradient){table->want, add_to}),
           w->cpu);
    expect(w,
           ro_embedding_backward(w->device, rows, cols, positions, dy->on_device,
                                 (int32_t *)ids->on_device,
                                 (ro_gradient){table->on_device, add_to}),
           w->device);
    char what[120];
    snprintf(what, sizeof what, "embedding_backward of %lld positions, %lld x %lld%s",
             (long long)positions, (long long)rows, (long long)cols, add_to ? ", added" : "");
    compare(w, table, what);
}

/* ---- rotary positions ---- */

static void rotary_memory(work *w, const ro_rotary_layer *l, array **position, array **turns) {
    *position = add(w, "position", l->tokens * (l->each ? l->batch : 1));
    *turns = add(w, "turns", l->head_size);
    for (int i = 0; i < 2; i++) {
        array *a = i ? *turns : *position;
        for (int64_t k = 0; k < a->count; k++) {
            const uint32_t word = (uint32_t)case_word(w->seed, 97 + i, k);
            const int32_t place = i ? (int32_t)(word >> k % 2 * 2) : (int32_t)(word % 5000) - 50;
            memcpy(&a->want[k], &place, sizeof place);
        }
        send(w, a);
    }
}

static void rotary(work *w) {
    static const int16_t sizes[] = {2, 4, 6, 16, 64, 64, 80, 128, 256};
    const ro_rotary_layer l = {.size = sizeof l,
                               .batch = 1 + (int64_t)roll(w, 0, 3),
                               .tokens = 1 + (int64_t)roll(w, 1, 40),
                               .heads = 1 + (int64_t)roll(w, 2, 9),
                               .head_size = pick(w, 3, sizes, sizeof sizes / sizeof *sizes),
                               .neighbours = roll(w, 4, 2) == 0,
                               .each = roll(w, 5, 2) == 0};
    const int64_t count = l.batch * l.tokens * l.heads * l.head_size;
    const int inverse = roll(w, 6, 2) == 0, add_to = inverse && roll(w, 7, 2) == 0;
    array *position, *turns, *x = input(w, "x", count, class_of(w));
    array *y = input(w, "y", count, class_of(w));
    rotary_memory(w, &l, &position, &turns);
    for (int i = 0; i < 2; i++) {
        ro_ctx *ctx = i ? w->device : w->cpu;
        const float *from = i ? x->on_device : x->want;
        float *to = i ? y->on_device : y->want;
        const int32_t *at = (int32_t *)(i ? position->on_device : position->want);
        const int32_t *by = (int32_t *)(i ? turns->on_device : turns->want);
        expect(w,
               inverse ? ro_rotary_backward(ctx, &l, from, at, by, (ro_gradient){to, add_to})
                       : ro_rotary(ctx, &l, from, at, by, to),
               ctx);
    }
    char what[120];
    snprintf(what, sizeof what, "rotary%s of %lld x %lld x %lld x %lld%s%s",
             inverse ? "_backward" : "", (long long)l.batch, (long long)l.tokens,
             (long long)l.heads, (long long)l.head_size, l.neighbours ? ", neighbours" : "",
             add_to ? ", added" : "");
    compare(w, y, what);
}

/* ---- AdamW of a parameter of bf16 ---- */

/* 16-bit numbers, two in each element, with NaNs and infinities. */
static array *halves(work *w, const char *name, int64_t count) {
    array *a = input(w, name, (count + 1) / 2, class_of(w));
    uint16_t *at = (uint16_t *)a->want;
    for (int64_t i = 0; i < count; i++)
        at[i] = (uint16_t)(case_f32(case_word(w->seed, w->count + 60, i), class_of(w)) >> 16);
    send(w, a);
    return a;
}

static void adamw_bf16(work *w) {
    static const int16_t counts[] = {0, 1, 7, 8, 9, 16, 255, 2047, 2048, 2049, 4096, 9000, 9001};
    static const char *const names[] = {"w", "m", "v", "w_out", "m_out", "v_out"};
    const int64_t count = pick(w, 0, counts, sizeof counts / sizeof *counts);
    const int in_place = roll(w, 1, 2) == 0;
    array *g = input(w, "gradient", count, class_of(w)), *s = input(w, "scalars", 5, DATA_NORMAL);
    array *x[6];
    for (int i = 0; i < 6; i++)
        x[i] = i >= 3 && in_place ? x[i - 3] : halves(w, names[i], count);
    const int32_t step_number = (int32_t)roll(w, 2, 1000);
    memcpy(&s->want[4], &step_number, sizeof step_number);
    send(w, s);
    for (int i = 0; i < 2; i++) {
        ro_ctx *ctx = i ? w->device : w->cpu;
        const float *one = i ? s->on_device : s->want;
        uint16_t *at[6];
        for (int k = 0; k < 6; k++)
            at[k] = (uint16_t *)(i ? x[k]->on_device : x[k]->want);
        const ro_adamw_step step = {.size = sizeof step,
                                    .count = count,
                                    .beta1 = 0.9f,
                                    .beta2 = 0.95f,
                                    .eps = 1e-8f,
                                    .decay = 0.1f,
                                    .clip = one,
                                    .c1 = one + 1,
                                    .c2 = one + 2,
                                    .rate = one + 3};
        const ro_adamw_rounding rounding = {.size = sizeof rounding,
                                            .stream = {5, 6, 0xfffffff0},
                                            .seed = w->seed * 0x123456789,
                                            .step = (const int32_t *)one + 4};
        const ro_adamw_bf16_parameter p = {.size = sizeof p,
                                           .step = &step,
                                           .rounding = &rounding,
                                           .w = at[0],
                                           .m = at[1],
                                           .v = at[2],
                                           .gradient = i ? g->on_device : g->want,
                                           .w_out = at[3],
                                           .m_out = at[4],
                                           .v_out = at[5]};
        expect(w, ro_adamw_bf16(ctx, &p), ctx);
    }
    for (int i = 0; i < 6; i++)
        compare(w, x[i], "adamw_bf16");
}

#endif
