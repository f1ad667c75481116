/* What a provider hands out of finished items, and how a client reads it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/dispute.h"
#include "tests/support/random_model.h"
#include "verde/delivery/item_results.h"
#include "verde/exec/item_run.h"

enum { ITEMS = 3, TOKENS = 6, PROMPT = 4 };

typedef struct {
    test_model model;
    vd_program program[ITEMS];
    int32_t prompt[ITEMS][PROMPT];
    vd_items items;
    char dir[64], path[128];
    ro_ctx *ro;
} world;

typedef struct {
    vd_item_run run;
    ro_ctx *ro;
} running;

static vd_err why;

static vd_status reached(void *user, const vd_batch_state *s, vd_err *err) {
    running *r = user;
    return vd_item_run_reached(&r->run, r->ro, s, err);
}

static void run_item(world *w, uint32_t i) {
    char dir[1024];
    running r = {.ro = w->ro};
    const void *data[TEST_MODEL_DATA_MAX] = {w->prompt[i]};
    const vd_exec exec = {.program = &w->program[i], .ro = w->ro, .data = data};
    const vd_batch_options options = {1, 2, reached, &r};
    vd_batch *b;
    vd_state from;
    vd_hash final;
    for (uint32_t k = 0; k < w->model.count; k++)
        data[1 + k] = w->model.weight[k];
    vd_items_path(dir, w->dir, w->items.key[i]);
    cr_assert(vd_item_run_open(w->ro, dir, &w->program[i], &r.run, &from, &why) == VD_OK);
    cr_assert(vd_batch_create(&exec, &options, &b, &why) == VD_OK, "%s", why.text);
    cr_assert(vd_batch_add(b, 0, &w->program[i], data, NULL, &why) == VD_OK, "%s", why.text);
    while (vd_batch_count(b))
        cr_assert(vd_batch_pass(b, &why) == VD_OK, "%s", why.text);
    cr_assert(vd_run_root(&exec, &r.run.log, &w->items.run_root[i], &final, &why) == VD_OK);
    w->items.done[i] = true;
    vd_batch_destroy(b);
    vd_item_run_close(&r.run);
}

static void make_program(world *w, uint32_t i) {
    const vd_generation how = {.max_tokens = TOKENS,
                               .greedy = 1,
                               .temperature = 1,
                               .top_p = VD_TOP_P_ONE,
                               .repetition_penalty = 1,
                               .best = 2};
    const vd_prompt_form form = {.count = PROMPT};
    for (int k = 0; k < PROMPT; k++)
        w->prompt[i][k] = (int32_t)(i + 1) * (k + 3);
    cr_assert(vd_generation_program(&w->model.training, &how, &form, &w->program[i], &why) ==
              VD_OK);
    vd_hash root, commitment;
    cr_assert(vd_tensor_hash(NULL, &w->program[i].data[0].tensor.shape, w->prompt[i], &root,
                             &commitment, &why) == VD_OK);
    memcpy(w->program[i].data[0].root, commitment.b, VD_HASH_SIZE);
    cr_assert(vd_program_hash(&w->program[i], &w->items.program[i], &why) == VD_OK);
    w->items.key[i] = 10 * i;
}

static world *open_world(void) {
    world *w = calloc(1, sizeof *w);
    strcpy(w->dir, "/tmp/vd-results-XXXXXX");
    cr_assert(mkdtemp(w->dir) &&
              ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &w->ro) ==
                  RO_OK);
    test_model_open(&w->model, &test_models[0]);
    cr_assert(vd_items_create(ITEMS, &w->items, &why) == VD_OK);
    for (uint32_t i = 0; i < ITEMS; i++)
        make_program(w, i);
    cr_assert(vd_items_begin(w->dir, &w->items, &why) == VD_OK, "%s", why.text);
    for (uint32_t i = 0; i < ITEMS; i++)
        run_item(w, i);
    snprintf(w->path, sizeof w->path, "%s/results.offer", w->dir);
    cr_assert(vd_item_results_write(w->ro, w->dir, &w->items, w->path, &why) == VD_OK, "%s",
              why.text);
    return w;
}

static void close_world(world *w) {
    for (uint32_t i = 0; i < ITEMS; i++)
        vd_program_free(&w->program[i]);
    vd_items_free(&w->items);
    test_model_close(&w->model);
    ro_ctx_destroy(w->ro);
    test_remove_dir(w->dir);
    free(w);
}

static vd_response answer(const world *w, const char *rest) {
    vd_response response = {.status = 200};
    vd_item_results_answer(w->path, rest, &response);
    return response;
}

static vd_status read_record(const world *w, uint32_t i, const uint8_t *bytes, size_t size,
                             size_t *used, vd_state *state) {
    return vd_item_record_read(&w->program[i], &w->items.program[i], &w->items.run_root[i], bytes,
                               size, used, state, &why);
}

Test(item_results, records_lead_to_the_run_roots) {
    world *w = open_world();
    vd_response roots = answer(w, "/items"), all = answer(w, "/items/0"),
                last = answer(w, "/items/2"), piece = answer(w, "/items/2/0");
    size_t at = 0, used = 0;
    cr_expect(roots.body.size == ITEMS * VD_HASH_SIZE &&
              memcmp(roots.body.data, w->items.run_root, roots.body.size) == 0);
    for (uint32_t i = 0; i < ITEMS; i++) {
        vd_state state;
        cr_assert(read_record(w, i, all.body.data + at, all.body.size - at, &used, &state) == VD_OK,
                  "%s", why.text);
        at += used;
        uint32_t results = 0;
        for (uint32_t k = 0; k < state.count; k++)
            results += state.tensor[k] != NULL;
        cr_expect(results == 6 && state.step == TOKENS);
        vd_state_free(&state);
    }
    cr_expect(at == all.body.size && last.body.size == used);
    cr_expect(memcmp(last.body.data, all.body.data + at - used, used) == 0);
    cr_expect(piece.body.size == used && memcmp(piece.body.data, last.body.data, used) == 0);
    vd_buf_free(&piece.body);
    vd_buf_free(&roots.body);
    vd_buf_free(&all.body);
    vd_buf_free(&last.body);
    close_world(w);
}

Test(item_results, what_is_not_there_is_404) {
    static const char *const none[] = {"/items/3",   "/items/",     "/items/00",
                                       "/items/-1",  "/items/1x",   "/items/+1",
                                       "/state",     "/itemsx",     "/items/18446744073709551616",
                                       "/items/0/1", "/items/0/",   "/items/0/00",
                                       "/items/3/0", "/items/0/0/0"};
    world *w = open_world();
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        vd_response response = answer(w, none[i]);
        cr_expect(response.status == 404, "%s: %d", none[i], response.status);
        vd_buf_free(&response.body);
    }
    cr_assert(truncate(w->path, 100) == 0);
    vd_response cut = answer(w, "/items/0");
    cr_expect(cut.status == 503);
    vd_buf_free(&cut.body);
    close_world(w);
}

Test(item_results, no_other_byte_is_taken) {
    world *w = open_world();
    vd_response one = answer(w, "/items/1");
    uint8_t *bytes = one.body.data;
    size_t used;
    vd_state state;
    const size_t size = (size_t)vd_item_record_bytes(&w->program[1]);
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= (uint8_t)(1 << at % 8);
        cr_expect(read_record(w, 1, bytes, one.body.size, &used, &state) == VD_ERR_PEER, "byte %zu",
                  at);
        bytes[at] ^= (uint8_t)(1 << at % 8);
    }
    for (size_t cut = 0; cut < size; cut += 7)
        cr_expect(read_record(w, 1, bytes, cut, &used, &state) == VD_ERR_PEER);
    cr_expect(read_record(w, 2, bytes, one.body.size, &used, &state) == VD_ERR_PEER,
              "another item's run");
    cr_expect(!state.tensor);
    vd_buf_free(&one.body);
    close_world(w);
}
