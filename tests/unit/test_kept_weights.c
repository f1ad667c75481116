/* Generation with fixed products: weights that stay packed give the same states as weights packed
 * for each product, step by step and in a batch, until the data are dropped. */
#include "tests/support/random_model.h"
#include "verde/exec/batch.h"
#include "verde/exec/estimate.h"
#include "verde/exec/kept_weights.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 5, TOKENS = 4 };

typedef struct {
    test_model model;
    vd_program program;
    int32_t prompt[PROMPT];
    const void *data[TEST_MODEL_DATA_MAX];
    vd_hash hash;
    ro_ctx *ro;
} generation;

/* Keeps the upper half of each word, which is bf16. */
static void narrow_weights(test_model *m) {
    for (uint32_t i = 0; i < m->count; i++) {
        const int64_t count = ro_shape_numel(&m->start[i].shape);
        uint16_t *to = m->weight[i];
        const uint32_t *from = m->weight[i];
        for (int64_t e = 0; e < count; e++)
            to[e] = (uint16_t)(from[e] >> 16);
        m->start[i].shape.dtype = RO_BF16;
    }
}

static void open_generation(generation *g, const vd_model *model, int bits, ro_dtype dtype,
                            const char *backend) {
    const vd_generation how = {.max_tokens = TOKENS,
                               .greedy = 1,
                               .temperature = 1,
                               .top_p = VD_TOP_P_ONE,
                               .repetition_penalty = 1,
                               .best = -1};
    const vd_prompt_form form = {.count = PROMPT};
    vd_err err = {0};
    *g = (generation){.prompt = {3, 1, 4, 1, 5}};
    test_model_open(&g->model, model);
    g->model.training.products = vd_products_alike(bits);
    if (dtype == RO_BF16)
        narrow_weights(&g->model);
    cr_assert(vd_generation_program(&g->model.training, &how, &form, &g->program, &err) == VD_OK,
              "%s", err.text);
    cr_assert(vd_program_hash(&g->program, &g->hash, &err) == VD_OK);
    g->data[0] = g->prompt;
    for (uint32_t i = 0; i < g->model.count; i++)
        g->data[1 + i] = g->model.weight[i];
    cr_assert(
        ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2, .backend = backend},
                      &g->ro) == RO_OK);
}

static void close_generation(generation *g) {
    vd_program_free(&g->program);
    test_model_close(&g->model);
    ro_ctx_destroy(g->ro);
}

/* Returns the commitment of the last state. */
static vd_hash run(const generation *g, const vd_exec *exec) {
    vd_state state;
    vd_hash last;
    vd_err err = {0};
    cr_assert(vd_exec_init(exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    while (state.step < g->program.steps)
        cr_assert(vd_exec_step(exec, NULL, &state, NULL, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_state_hash(NULL, &g->program, &g->hash, &state, NULL, &last, &err) == VD_OK);
    vd_state_free(&state);
    return last;
}

static vd_status reached(void *user, const vd_batch_state *s, vd_err *err) {
    (void)err;
    if (s->last)
        *(vd_hash *)user = *s->commitment;
    return VD_OK;
}

static vd_hash run_batch(const generation *g, const vd_exec *exec) {
    vd_hash last = {{0}};
    const vd_batch_options options = {1, 64, reached, &last};
    vd_batch *b;
    vd_err err = {0};
    cr_assert(vd_batch_create(exec, &options, &b, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_batch_add(b, 0, &g->program, g->data, NULL, &err) == VD_OK, "%s", err.text);
    while (vd_batch_count(b) > 0)
        cr_assert(vd_batch_pass(b, &err) == VD_OK, "%s", err.text);
    vd_batch_destroy(b);
    return last;
}

static vd_exec exec_of(const generation *g) {
    return (vd_exec){.program = &g->program, .ro = g->ro, .data = g->data};
}

static void place(vd_exec *exec) {
    vd_err err = {0};
    cr_assert(vd_exec_place(exec, &err) == VD_OK, "%s", err.text);
}

static void check_states(const generation *g, const char *what) {
    vd_exec alone = exec_of(g), anew = exec_of(g), kept = exec_of(g);
    alone.unfused = true;
    place(&kept);
    const vd_hash want = run(g, &alone), first = run(g, &anew), second = run(g, &kept);
    const vd_hash third = run(g, &kept), together = run_batch(g, &anew);
    cr_expect(vd_hash_equal(&want, &first), "%s: packed anew", what);
    cr_expect(vd_hash_equal(&want, &second), "%s: packed once", what);
    cr_expect(vd_hash_equal(&want, &third), "%s: packed before", what);
    cr_expect(vd_hash_equal(&want, &together), "%s: in a batch", what);
    vd_exec_drop(&kept);
}

Test(kept_weights, give_the_states_of_weights_that_are_packed_anew) {
    generation *g = malloc(sizeof *g);
    for (int i = 0; i < 8; i++) {
        const int bits = i & 1 ? (i & 4 ? RO_FIXED_8 : RO_FIXED_16) : RO_FIXED_24;
        const ro_dtype dtype = i & 2 ? RO_BF16 : RO_F32;
        const vd_model *model = &test_models[i >> 2];
        char what[80];
        snprintf(what, sizeof what, "model %d, %d bits, %s", i >> 2, bits, ro_dtype_name(dtype));
        open_generation(g, model, bits, dtype, NULL);
        check_states(g, what);
        close_generation(g);
        open_generation(g, model, bits, dtype, "scalar");
        check_states(g, what);
        close_generation(g);
    }
    free(g);
}

/* Weights whose rows lie along the sums are kept transposed, those of Llama and GPT-2 as they are
 * read. */
Test(kept_weights, give_the_states_of_floats_that_lie_as_they_did) {
    generation *g = malloc(sizeof *g);
    size_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        open_generation(g, &test_models[i >> 1], 0, RO_F32, i & 1 ? "scalar" : NULL);
        check_states(g, "floats");
        vd_exec kept = exec_of(g);
        place(&kept);
        (void)run(g, &kept);
        bytes += vd_kept_weights_bytes(kept.kept);
        vd_exec_drop(&kept);
        close_generation(g);
    }
    cr_expect(bytes > 0, "none was kept");
    free(g);
}

/* The weights change in place, as by a training. Without vd_exec_drop the old packed ones are still
 * read. */
Test(kept_weights, are_packed_again_after_the_data_were_dropped) {
    generation *g = malloc(sizeof *g);
    open_generation(g, &test_models[0], RO_FIXED_16, RO_F32, NULL);
    vd_exec anew = exec_of(g), kept = exec_of(g);
    place(&kept);
    const vd_hash before = run(g, &kept);
    for (uint32_t i = 0; i < g->model.count; i++)
        for (int64_t e = 0; e < ro_shape_numel(&g->model.start[i].shape); e++)
            ((float *)g->model.weight[i])[e] *= 1.25f;
    const vd_hash want = run(g, &anew), stale = run(g, &kept);
    vd_exec_drop(&kept);
    place(&kept);
    const vd_hash after = run(g, &kept);
    cr_expect(!vd_hash_equal(&before, &want));
    cr_expect(!vd_hash_equal(&stale, &want), "the weights were packed anew");
    cr_expect(vd_hash_equal(&after, &want));
    vd_exec_drop(&kept);
    close_generation(g);
    free(g);
}

/* The model has 2 layers of 12 C^2 numbers and a head of 1000 C, with C = 64. */
Test(kept_weights, take_at_most_eight_bytes_of_each_number_of_whole_chunks) {
    generation *g = malloc(sizeof *g);
    open_generation(g, &test_models[0], RO_FIXED_24, RO_F32, "scalar");
    vd_exec kept = exec_of(g);
    place(&kept);
    cr_expect(vd_kept_weights_bytes(kept.kept) == 0);
    (void)run(g, &kept);
    const size_t bytes = vd_kept_weights_bytes(kept.kept);
    const size_t chunked = 256 * (2 * (192 + 64 + 256 + 64) + 1008);
    cr_expect(bytes > 0 && bytes <= 9 * chunked, "%zu bytes", bytes);
    (void)run(g, &kept);
    cr_expect(vd_kept_weights_bytes(kept.kept) == bytes);
    vd_exec_drop(&kept);
    close_generation(g);
    free(g);
}

Test(kept_weights, leave_a_limited_process_what_its_program_needs) {
    generation *g = malloc(sizeof *g);
    open_generation(g, &test_models[0], RO_FIXED_24, RO_F32, "scalar");
    const vd_program *p = &g->program;
    uint64_t needed;
    vd_err err;
    cr_assert(vd_estimate_memory(p, &needed, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_kept_weights_room(p, needed / 2) == 0 && vd_kept_weights_room(p, needed) == 0);
    cr_expect(vd_kept_weights_room(p, needed + 100) == 100);
    cr_expect(vd_kept_weights_room(p, 8 * needed) == 2 * needed);
    cr_expect(vd_kept_weights_room(p, UINT64_MAX) > 2 * needed);
    close_generation(g);
    free(g);
}
