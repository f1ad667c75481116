/* Trees that are updated after writes give the same commitment as hashing the whole state anew. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "verde/exec/live.h"

enum { LEAVES = 7, WRITES = 400, AT_ONCE = 5 };

static uint64_t seed;
static uint64_t draw(uint64_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

/* Sizes around those of a leaf and of a whole tree: a scalar, vectors, tensors with several
 * axes. */
static vd_leaf layout[LEAVES] = {
    {"k", {RO_F32, 3, {1, 33, 96}}},   {"one", {RO_I32, 1, {1}}},
    {"v", {RO_F32, 3, {1, 257, 63}}},  {"full", {RO_F32, 1, {256}}},
    {"over", {RO_F32, 1, {257}}},      {"half", {RO_U16, 2, {3, 511}}},
    {"wide", {RO_F32, 2, {512, 300}}},
};

typedef struct {
    vd_program program;
    vd_hash hash;
    vd_state state;
    void *tensor[LEAVES];
} fixture;

static void fixture_open(fixture *f, uint32_t leaves) {
    *f = (fixture){.program = {.leaf = layout, .leaf_count = leaves}, .hash = {{1, 2, 3}}};
    f->state = (vd_state){.tensor = f->tensor, .count = leaves};
    for (uint32_t i = 0; i < leaves; i++) {
        const size_t size = vd_shape_bytes(&layout[i].shape);
        uint8_t *bytes = f->tensor[i] = malloc(size);
        for (size_t k = 0; k < size; k++)
            bytes[k] = (uint8_t)draw(256);
    }
}

static void fixture_close(fixture *f) {
    for (uint32_t i = 0; i < f->state.count; i++)
        free(f->tensor[i]);
}

static vd_written write_somewhere(fixture *f) {
    const uint32_t leaf = (uint32_t)draw(f->state.count);
    const size_t element = ro_dtype_size(layout[leaf].shape.dtype);
    const uint64_t count = vd_shape_bytes(&layout[leaf].shape) / element;
    const uint64_t from = draw(count), most = draw(2) ? 4 : 1000;
    uint64_t size = 1 + draw(most);
    size = size < count - from ? size : count - from;
    for (uint64_t i = from * element; i < (from + size) * element; i++)
        ((uint8_t *)f->tensor[leaf])[i] = (uint8_t)draw(256);
    return (vd_written){leaf, from * element, size * element};
}

static void expect_same(const fixture *f, const vd_live *live, int64_t step) {
    vd_state state = f->state;
    vd_hash got, whole;
    state.step = step;
    cr_assert(vd_live_commit(live, step, &got, NULL) == VD_OK);
    cr_assert(vd_state_hash(NULL, &f->program, &f->hash, &state, NULL, &whole, NULL) == VD_OK);
    cr_assert(vd_hash_equal(&got, &whole), "step %d, seed %llu", (int)step,
              (unsigned long long)seed);
}

Test(live, is_the_whole_states_commitment_after_any_writes) {
    for (uint32_t leaves = 1; leaves <= LEAVES; leaves++) {
        fixture f;
        vd_live live;
        vd_written written[AT_ONCE];
        seed = leaves;
        fixture_open(&f, leaves);
        cr_assert(vd_live_create(NULL, &f.program, &f.hash, &f.state, &live, NULL) == VD_OK);
        expect_same(&f, &live, 0);
        for (int64_t step = 1; step <= WRITES / LEAVES; step++) {
            const uint32_t count = (uint32_t)draw(AT_ONCE + 1);
            for (uint32_t i = 0; i < count; i++)
                written[i] = write_somewhere(&f);
            cr_assert(vd_live_update(&live, &f.state, written, count, NULL) == VD_OK);
            expect_same(&f, &live, step);
        }
        cr_expect(vd_live_check(&live, NULL, &f.state, NULL) == VD_OK);
        vd_live_free(&live);
        vd_live_free(&live);
        fixture_close(&f);
    }
}

Test(live, every_node_of_a_tree_is_what_it_would_be_anew) {
    const ro_shape *shape = &layout[2].shape;
    fixture f;
    vd_tree kept, anew;
    seed = 99;
    fixture_open(&f, 3);
    float *data = f.tensor[2];
    cr_assert(vd_tensor_tree(NULL, shape, data, &kept, NULL) == VD_OK);
    for (int round = 0; round < 50; round++) {
        const uint64_t at = draw(257 * 63 - 63);
        for (int i = 0; i < 63; i++)
            data[at + (uint64_t)i] = (float)draw(1000);
        cr_assert(vd_tensor_update(shape, data, at * 4, 63 * 4, &kept, NULL) == VD_OK);
        cr_assert(vd_tensor_tree(NULL, shape, data, &anew, NULL) == VD_OK);
        cr_expect(memcmp(kept.leaf, anew.leaf, (2 * kept.count - 1) * sizeof *kept.leaf) == 0);
        vd_tree_free(&anew);
    }
    vd_tree_free(&kept);
    fixture_close(&f);
}

Test(live, a_write_that_was_not_told_is_found_and_named) {
    fixture f;
    vd_live live;
    vd_err err = {0};
    seed = 5;
    fixture_open(&f, LEAVES);
    cr_assert(vd_live_create(NULL, &f.program, &f.hash, &f.state, &live, NULL) == VD_OK);
    ((uint8_t *)f.tensor[5])[2 * 3 * 511 - 1] ^= 1;
    f.state.step = 12;
    cr_expect(vd_live_check(&live, NULL, &f.state, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "half of the state at step 12"), "%s", err.text);
    vd_live_free(&live);
    fixture_close(&f);
}

Test(live, bytes_outside_a_tensor_are_refused) {
    fixture f;
    vd_live live;
    vd_err err;
    seed = 6;
    fixture_open(&f, LEAVES);
    cr_assert(vd_live_create(NULL, &f.program, &f.hash, &f.state, &live, NULL) == VD_OK);
    const vd_written bad[] = {{1, 0, 5}, {1, 4, 1}, {1, 0, 0}, {3, 1, 1024}, {0, UINT64_MAX, 2}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(vd_live_update(&live, &f.state, &bad[i], 1, &err) == VD_ERR_LOCAL);
    cr_expect(vd_tree_update_items(&live.state, live.tensor, 32, 6, 8, &err) == VD_ERR_LOCAL);
    cr_expect(vd_tree_update_items(&live.state, live.tensor, 32, 3, 3, &err) == VD_ERR_LOCAL);
    vd_live_free(&live);
    fixture_close(&f);
}
