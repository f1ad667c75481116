/* The structure of programs: their hash without names (PROTOCOL.md section 1.7), and their bytes in
 * pieces. */
#include "repops/op_movement.h"
#include "models/models.h"
#include "verde/exec/exec.h"

#include <criterion/criterion.h>
#include <string.h>

static vd_hash hash_of(const vd_program *p) {
    vd_hash hash;
    cr_assert(vd_program_hash(p, &hash, NULL) == VD_OK);
    return hash;
}

static vd_hash structure_of(const vd_program *p) {
    vd_hash hash;
    cr_assert(vd_program_structure(p, &hash, NULL) == VD_OK);
    return hash;
}

/* A program with a repeat, whose sums also have names. */
static vd_program repeating_program(int64_t iterations) {
    const vd_training training = {
        .model = {VD_MODEL_MLP, .vocab = 11, .layers = 1, .channels = 4, .hidden = 4},
        .optimizer = {.lr = 1e-3f, .schedule = RO_LR_CONSTANT},
        .batch = iterations,
        .micro_batches = iterations,
        .sequence = 8,
        .steps = 2,
        .checkpoint_interval = 1,
        .data_dtype = RO_U8,
        .data_count = 100,
        .data_below = 11,
    };
    vd_program p;
    vd_err err;
    cr_assert(vd_training_program(&training, &p, &err) == VD_OK, "%s", err.text);
    cr_assert(p.step.repeat_count > 0 && p.step.sum_count > 0);
    return p;
}

static void expect_renamed(vd_program *p, const char *what) {
    static vd_hash plain, last;
    const vd_hash hash = hash_of(p), structure = structure_of(p);
    if (!what) {
        plain = structure;
        last = hash;
        return;
    }
    cr_expect(!vd_hash_equal(&hash, &last), "%s: the hash is the same", what);
    cr_expect(vd_hash_equal(&structure, &plain), "%s: the structure is another", what);
    last = hash;
}

Test(structure, renaming_changes_the_hash_alone) {
    vd_program p = repeating_program(4);
    vd_graph *g = &p.step;
    expect_renamed(&p, NULL);
    strcpy(p.data[0].tensor.name, "words");
    expect_renamed(&p, "a data tensor");
    memset(p.leaf[1].name, 'n', VD_NAME_SIZE - 1);
    p.leaf[1].name[VD_NAME_SIZE - 1] = 0;
    expect_renamed(&p, "a leaf");
    cr_assert(vd_store_name(&p.init, &p.init.stored[0], "first", 5));
    expect_renamed(&p, "a node");
    cr_assert(vd_store_name(g, &g->stored[g->repeat[0].first], "", 0));
    expect_renamed(&p, "a body node");
    cr_assert(vd_store_name(g, &g->sum[0].add, "total\1", 6));
    expect_renamed(&p, "a sum");
    vd_program_free(&p);
}

Test(structure, all_but_names_is_in_it) {
    vd_program p = repeating_program(4);
    vd_hash last = structure_of(&p);
    for (int i = 0; i < 5; i++) {
        p.seed += i == 0;
        p.data[0].root[3] += i == 1;
        p.step.stored[0].attr[RO_READ_BATCH_SEED] += i == 2;
        p.data[0].range.greatest -= i == 3;
        p.rounding = (vd_program_rounding){.bits = i == 4 ? 20 : 0, .encoding = 1};
        const vd_hash now = structure_of(&p);
        cr_expect(!vd_hash_equal(&now, &last), "change %d", i);
        last = now;
    }
    vd_program_free(&p);
}

/* ---- bytes in pieces ---- */

typedef struct {
    vd_buf all;
    size_t count;
} pieces;

static void take_piece(void *user, const void *bytes, size_t size) {
    pieces *p = user;
    vd_put(&p->all, bytes, size);
    p->count++;
}

Test(structure, pieces_are_the_canonical_bytes) {
    vd_program p = repeating_program(4), unrolled = repeating_program(64);
    vd_err err;
    cr_assert(vd_graph_unroll(&unrolled.step, &err) == VD_OK);
    for (int i = 0; i < 2; i++) {
        const vd_program *q = i ? &unrolled : &p;
        vd_buf bytes = {0};
        vd_program_encode(q, &bytes);
        pieces got = {.count = 0};
        cr_assert(vd_program_pieces(q, true, take_piece, &got));
        cr_expect(got.all.size == bytes.size && !memcmp(got.all.data, bytes.data, bytes.size));
        cr_expect(i ? got.count > 1 : got.count == 1, "%zu pieces", got.count);
        vd_buf_free(&got.all);
        vd_buf_free(&bytes);
    }
    vd_program_free(&p);
    vd_program_free(&unrolled);
}
