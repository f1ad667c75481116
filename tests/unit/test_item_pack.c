/* Packs of programs: a written pack reads back the same, and no invalid pack is accepted. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dispute.h"
#include "tests/support/random_model.h"
#include "verde/exec/item_pack.h"

enum { ITEMS = 7, LONGEST = 23 };
static const int64_t lengths[ITEMS] = {1, 4, LONGEST, 1, 9, 4, 2};

typedef struct {
    test_model model;
    vd_program program[ITEMS];
    int32_t prompt[ITEMS][LONGEST], key[ITEMS][2];
    int32_t odd; /* the second token of item 4; 0: a usual one */
    vd_packing packing;
} world;

static vd_err why; /* of the last refusal */

static void make_item(world *w, int i) {
    const vd_generation how = {
        .max_tokens = 5, .temperature = 1, .top_p = VD_TOP_P_ONE, .repetition_penalty = 1};
    const vd_prompt_form form = {.count = lengths[i]};
    const void *data[2] = {w->prompt[i], w->key[i]};
    vd_training *t = &w->model.training;
    for (int64_t k = 0; k < lengths[i]; k++)
        w->prompt[i][k] = (int32_t)(7 * k + i);
    if (i == 4 && w->odd)
        w->prompt[i][1] = w->odd;
    w->key[i][0] = i;
    cr_assert(vd_generation_program(t, &how, &form, &w->program[i], &why) == VD_OK, "%s", why.text);
    for (uint32_t d = 0; d < 2; d++) {
        vd_hash root, commitment;
        const ro_shape *shape = &w->program[i].data[d].tensor.shape;
        cr_assert(vd_tensor_hash(NULL, shape, data[d], &root, &commitment, &why) == VD_OK);
        memcpy(w->program[i].data[d].root, commitment.b, VD_HASH_SIZE);
    }
    cr_assert(vd_packing_put(&w->packing, 100 - i, &w->program[i], data, &why) == VD_OK);
}

static world *open_world_with(int32_t odd) {
    world *w = calloc(1, sizeof *w);
    w->odd = odd;
    test_model_open(&w->model, &test_models[0]);
    vd_packing_begin(&w->packing, ITEMS, 2);
    for (int i = 0; i < ITEMS; i++)
        make_item(w, i);
    return w;
}

static world *open_world(void) {
    return open_world_with(0);
}

static void close_world(world *w) {
    vd_packing_free(&w->packing);
    for (int i = 0; i < ITEMS; i++)
        vd_program_free(&w->program[i]);
    test_model_close(&w->model);
    free(w);
}

/* Reads a pack as a judge does: opens it, and decodes every program in it. */
static vd_status judge(const void *bytes, size_t size) {
    vd_pack pack;
    vd_status status = vd_pack_open(bytes, size, &pack, &why);
    for (uint32_t i = 0; status == VD_OK && i < pack.count; i++) {
        vd_program program;
        status = vd_pack_program(&pack, i, &program, NULL, &why);
        vd_program_free(&program);
    }
    vd_pack_free(&pack);
    return status;
}

Test(item_pack, what_goes_in_comes_out) {
    world *w = open_world();
    const vd_buf *bytes = &w->packing.bytes;
    vd_pack pack;
    size_t whole = 0;
    cr_assert(vd_pack_open(bytes->data, bytes->size, &pack, &why) == VD_OK, "%s", why.text);
    cr_expect(pack.count == ITEMS && pack.own == 2);
    cr_expect(vd_pack_count(bytes->data, VD_PACK_HEAD_BYTES) == ITEMS);
    for (uint32_t i = 0; i < ITEMS; i++) {
        vd_program program;
        vd_hash hash, expected;
        cr_assert(vd_program_hash(&w->program[i], &expected, NULL) == VD_OK);
        cr_assert(vd_pack_program(&pack, i, &program, &hash, &why) == VD_OK, "%s", why.text);
        cr_expect(vd_hash_equal(&hash, &expected) && pack.item[i].key == 100 - i);
        int32_t *prompt = vd_pack_own(&pack, i, &program, 0);
        int32_t *key = vd_pack_own(&pack, i, &program, 1);
        cr_expect(memcmp(prompt, w->prompt[i], (size_t)lengths[i] * sizeof *prompt) == 0);
        cr_expect(key[0] == (int32_t)i && key[1] == 0);
        whole += pack.item[i].base == i;
        free(prompt);
        free(key);
        vd_program_free(&program);
    }
    cr_expect(whole == 3,
              "%zu programs lie there whole, expected one of one token, of two, of more", whole);
    vd_pack_free(&pack);
    close_world(w);
}

Test(item_pack, what_is_cut_is_no_pack) {
    world *w = open_world();
    const vd_buf *bytes = &w->packing.bytes;
    for (size_t size = 0; size < bytes->size; size += 1 + size / 16)
        cr_expect(judge(bytes->data, size) == VD_ERR_PEER && why.text[0], "%zu bytes", size);
    close_world(w);
}

/* A changed bit is refused or gives another valid pack, with another key or attribute. It never
 * does anything else. */
Test(item_pack, changes_are_refused_or_make_valid_programs) {
    world *w = open_world();
    vd_buf *bytes = &w->packing.bytes;
    uint64_t random = 5;
    int refused = 0;
    cr_assert(judge(bytes->data, bytes->size) == VD_OK);
    for (int i = 0; i < 600; i++) {
        const size_t at = i < 100 ? (size_t)i : (size_t)(test_random(&random) % bytes->size);
        const uint8_t was = bytes->data[at];
        bytes->data[at] ^= (uint8_t)(1 << test_random(&random) % 8);
        const vd_status status = judge(bytes->data, bytes->size);
        const bool in_version = at == 11 || at == 12; /* the version, after the name and its zero */
        cr_expect(in_version ? status == VD_ERR_VERSION
                             : status == VD_OK || status == VD_ERR_PEER || status == VD_ERR_VERSION,
                  "byte %zu: %s", at, why.text);
        refused += status != VD_OK;
        bytes->data[at] = was;
    }
    cr_expect(refused > 300, "%d of 600 changes are refused", refused);
    close_world(w);
}

Test(item_pack, tokens_that_are_not_in_the_vocabulary_are_refused) {
    for (int32_t odd = 999; odd <= 1000; odd++) {
        world *w = open_world_with(odd);
        const vd_buf *bytes = &w->packing.bytes;
        cr_expect(judge(bytes->data, bytes->size) == (odd < 1000 ? VD_OK : VD_ERR_PEER));
        cr_expect(odd < 1000 || strstr(why.text, "(item 4): data tensor prompt: element 1 is 1000, "
                                                 "expected 0 to 999 as the program says"),
                  "%s", why.text);
        close_world(w);
    }
}

Test(item_pack, limits_have_names) {
    world *w = open_world();
    vd_buf *bytes = &w->packing.bytes;
    bytes->data[15] = 1; /* 65,536 more items */
    cr_expect(judge(bytes->data, bytes->size) == VD_ERR_PEER && strstr(why.text, "1 to 65536"));
    cr_expect(vd_pack_count(bytes->data, bytes->size) == 0);
    cr_expect(judge(bytes->data, (size_t)VD_PACK_BYTES_MAX + 1) == VD_ERR_PEER &&
              strstr(why.text, "at most 268435456 bytes"));
    close_world(w);
}
