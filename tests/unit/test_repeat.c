/* Repeats: a program with many micro-batches stores one of them, and stands for all. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "repops/op_movement.h"
#include "models/models.h"
#include "tests/support/dispute.h"
#include "tests/unit/small_models.h"
#include "tests/unit/unrolled.h"
#include "verde/graph/build.h"

/* ---- the order of unrolled nodes ---- */

typedef struct {
    char text[8000];
} order;

static void put_word(order *o, const char *word) {
    const char *last = strrchr(o->text, ' ');
    const size_t at = strlen(o->text);
    if (last && strcmp(last + 1, word) == 0)
        return;
    snprintf(o->text + at, sizeof o->text - at, " %s", word);
}

/* Writes the expected order for micro-batches [lo, hi): both halves, split at the largest power of
 * two below their number, and then their sum. */
static void put_wanted(order *o, int lo, int hi) {
    char word[32];
    int half = 1;
    if (hi - lo == 1) {
        snprintf(word, sizeof word, "m%d", lo);
        put_word(o, word);
        return;
    }
    while (2 * half < hi - lo)
        half *= 2;
    put_wanted(o, lo, lo + half);
    put_wanted(o, lo + half, hi);
    snprintf(word, sizeof word, "sum.m%d-%d", lo, hi - 1);
    put_word(o, word);
}

static void put_node(order *o, const vd_graph *g, uint32_t node) {
    vd_name name = vd_node_name(g, node);
    const bool sum = strncmp(name.text, "sum.", 4) == 0;
    if (name.text[0] != 'm' && !sum)
        return;
    if (!sum && (name.text[1] < '0' || name.text[1] > '9'))
        return;
    name.text[(sum ? 4 : 0) + strcspn(name.text + (sum ? 4 : 0), ".")] = 0;
    put_word(o, name.text);
}

Test(repeat, micro_batches_and_their_sums_come_in_the_order_of_the_tree) {
    for (int micro = 1; micro <= 17; micro++) {
        vd_program p = program_of(VD_MODEL_MLP, micro);
        order *got = calloc(1, sizeof *got), *want = calloc(1, sizeof *want);
        for (uint32_t i = 0; i < p.step.node_count; i++)
            put_node(got, &p.step, i);
        put_wanted(want, 0, micro);
        cr_expect_str_eq(got->text, want->text);
        free(got);
        free(want);
        vd_program_free(&p);
    }
}

Test(repeat, a_program_means_its_unrolled_nodes) {
    static const int64_t micro[] = {2, 3, 4, 5, 7, 8, 12};
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < 7; i++) {
            vd_program p = program_of(kinds[k], micro[i]), q = unrolled(&p);
            cr_expect(p.step.repeat_count == (kinds[k] == VD_MODEL_BERT ? 2 : 1));
            expect_same_nodes(&p, &q, kinds[k]);
            vd_program_free(&p);
            vd_program_free(&q);
        }
}

Test(repeat, more_micro_batches_take_no_more_bytes) {
    for (int k = 0; k < KINDS; k++) {
        vd_program few = program_of(kinds[k], 2), many = program_of(kinds[k], 1024);
        vd_buf a = bytes_of(&few), b = bytes_of(&many);
        vd_program again = decoded(&b);
        vd_buf c = bytes_of(&again);
        cr_expect(a.size == b.size, "kind %d: %zu and %zu", kinds[k], a.size, b.size);
        cr_expect(c.size == b.size && memcmp(b.data, c.data, c.size) == 0);
        cr_expect(many.step.node_count > 400 * few.step.stored_count / 2);
        vd_buf_free(&a);
        vd_buf_free(&b);
        vd_buf_free(&c);
        vd_program_free(&few);
        vd_program_free(&many);
        vd_program_free(&again);
    }
}

/* ---- running ---- */

Test(repeat, fused_or_not_a_run_has_the_state_of_its_unrolled_nodes) {
    uint8_t data[1000];
    ro_ctx *ro;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ro) == RO_OK);
    for (int i = 0; i < 1000; i++)
        data[i] = (uint8_t)(i * i % 11 % 5);
    for (int k = 0; k < KINDS; k++)
        for (int64_t micro = 2; micro <= 7; micro += 1 + micro / 3) {
            vd_program p = program_of(kinds[k], micro), q = unrolled(&p);
            vd_state want = state_after(&q, ro, data, true);
            vd_state fused = state_after(&p, ro, data, false);
            vd_state nodes = state_after(&p, ro, data, true);
            expect_same_state(&p, &want, &fused, kinds[k]);
            expect_same_state(&p, &want, &nodes, kinds[k]);
            vd_state_free(&want);
            vd_state_free(&fused);
            vd_state_free(&nodes);
            vd_program_free(&p);
            vd_program_free(&q);
        }
    ro_ctx_destroy(ro);
}

/* ---- invalid bytes ---- */

Test(repeat, a_changed_byte_is_refused_or_another_program) {
    static const uint8_t changes[] = {0x01, 0x02, 0x10, 0x80, 0xff};
    for (int k = 0; k < KINDS; k += KINDS - 1) {
        vd_program program = program_of(kinds[k], 5);
        vd_buf bytes = bytes_of(&program);
        size_t accepted = 0, tried = 0;
        for (size_t at = 0; at < bytes.size; at += k ? 3 : 1, tried++)
            accepted += changed_is_program(&bytes, at, changes[at % sizeof changes]);
        cr_expect(accepted > tried / 10 && accepted < tried, "%zu of %zu", accepted, tried);
        vd_buf_free(&bytes);
        vd_program_free(&program);
    }
}

typedef void change_fn(vd_graph *g);

static vd_node *moving(vd_graph *g) {
    vd_node *n = g->stored + g->repeat->first;
    while (n->slope == 0)
        n++;
    return n;
}
static uint32_t edge_from(const vd_graph *g, vd_from from) {
    uint32_t i = g->stored[g->repeat->first].first_input;
    while (g->stored_from[i] != from)
        i++;
    return i;
}
static void once(vd_graph *g) {
    g->repeat->count = 1;
}
static void too_often(vd_graph *g) {
    g->repeat->count = VD_UNROLLED_MAX;
}
static void other_attribute(vd_graph *g) {
    moving(g)->moving = RO_READ_BATCH_SEED;
}
static void no_attribute(vd_graph *g) {
    moving(g)->moving = RO_MAX_ATTRS;
}
static void past_the_batch(vd_graph *g) {
    moving(g)->slope++;
}
static void overflows(vd_graph *g) {
    moving(g)->slope = INT64_MAX;
}
static void later_node(vd_graph *g) {
    g->stored_edge[edge_from(g, VD_FROM_NODE)] = g->stored_count - 1;
}
static void plain_node(vd_graph *g) {
    g->stored_edge[edge_from(g, VD_FROM_NODE)] = g->repeat->first + g->repeat->size;
}
static void value_of_its_own(vd_graph *g) {
    g->stored_edge[edge_from(g, VD_FROM_VALUE)] = g->sources + g->repeat->start;
}
static void no_kind(vd_graph *g) {
    g->stored_from[edge_from(g, VD_FROM_VALUE)] = VD_FROM_SHIFTED + 1;
}
static void nothing_carried(vd_graph *g) {
    g->stored_from[edge_from(g, VD_FROM_VALUE)] = VD_FROM_CARRIED;
    g->stored_edge[edge_from(g, VD_FROM_CARRIED)] = g->repeat->carried_count;
}
static void sum_of_another_node(vd_graph *g) {
    g->sum->node = g->repeat->first + g->repeat->size;
}
static void sum_of_integers(vd_graph *g) {
    g->sum->node = g->repeat->first; /* the integer tokens that are read */
    g->sum->add.shape = g->stored[g->repeat->first].shape;
}
static void name_it(vd_graph *g, vd_node *node, const char *name) {
    cr_assert(vd_store_name(g, node, name, strlen(name)));
}
static void last_in_a_body(vd_graph *g) {
    name_it(g, &g->stored[g->repeat->first], (char[]){VD_NAME_LAST, 0});
}
static void unprintable_sum(vd_graph *g) {
    name_it(g, &g->sum->add, "\3");
}
static void marker_outside(vd_graph *g) {
    name_it(g, &g->stored[g->stored_count - 1], (char[]){VD_NAME_ITERATION, 0});
}
static void long_once_numbered(vd_graph *g) {
    char name[VD_NAME_SIZE / 2 + 1] = {0}; /* names get 256 bytes with two digits */
    memset(name, VD_NAME_ITERATION, VD_NAME_SIZE / 2);
    name_it(g, &g->stored[g->repeat->first], name);
}

Test(repeat, wrong_repeats_are_refused) {
    static change_fn *const changes[] = {once,
                                         too_often,
                                         other_attribute,
                                         no_attribute,
                                         past_the_batch,
                                         overflows,
                                         later_node,
                                         plain_node,
                                         value_of_its_own,
                                         no_kind,
                                         nothing_carried,
                                         sum_of_another_node,
                                         sum_of_integers,
                                         last_in_a_body,
                                         unprintable_sum,
                                         marker_outside,
                                         long_once_numbered};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        vd_program p = program_of(VD_MODEL_MLP, 12), q;
        vd_err err = {0};
        changes[i](&p.step);
        vd_buf bytes = bytes_of(&p);
        cr_expect(
            vd_program_decode(bytes.data, bytes.size, &q, &err) ==
                (changes[i] == too_often || changes[i] == no_kind ? VD_ERR_VERSION : VD_ERR_PEER),
            "change %zu", i);
        vd_buf_free(&bytes);
        vd_program_free(&p);
    }
}

/* A program of fill nodes: a repeat, a plain node, and a second repeat. */
static vd_status decode_fills(uint32_t first, uint32_t second) {
    const ro_shape one = {.dtype = RO_F32, .ndim = 1, .dim = {1}};
    vd_node fill[3] = {{.op = RO_OP_FILL, .moving = -1, .shape = one}};
    vd_repeat repeats[2] = {{.count = first, .size = 1}, {.count = second, .first = 2, .size = 1}};
    vd_leaf leaf = {.name = "x", .shape = one};
    uint32_t output[] = {2}; /* a fill of both graphs */
    vd_err err;
    vd_program p = {.leaf = &leaf, .leaf_count = 1, .steps = 1, .checkpoint_interval = 1}, q;
    fill[1] = fill[2] = fill[0];
    p.init = p.step =
        (vd_graph){.stored = fill, .stored_count = 3, .output = output, .loss = UINT32_MAX};
    p.step.repeat = repeats;
    p.step.repeat_count = 2;
    vd_buf bytes = bytes_of(&p);
    const vd_status status = vd_program_decode(bytes.data, bytes.size, &q, &err);
    vd_buf_free(&bytes);
    if (status == VD_OK)
        vd_program_free(&q);
    return status;
}

Test(repeat, a_number_of_nodes_that_wraps_is_refused) {
    cr_expect(decode_fills(VD_UNROLLED_MAX - 3, 2) == VD_OK);
    cr_expect(decode_fills(VD_UNROLLED_MAX - 2, 2) == VD_ERR_VERSION);
    cr_expect(decode_fills(VD_UNROLLED_MAX, UINT32_MAX) == VD_ERR_VERSION, "2^26 in 32 bits");
}

/* Each iteration makes a row of 1,024 copies of one number. */
static vd_status decode_rows(uint32_t count) {
    enum { INPUTS = 1024 };
    const ro_shape one = {.dtype = RO_F32, .ndim = 1, .dim = {1}};
    const ro_shape row = {.dtype = RO_F32, .ndim = 1, .dim = {INPUTS}};
    vd_node fill[3] = {{.op = RO_OP_FILL, .moving = -1, .shape = one}}, step[2];
    uint32_t edge[INPUTS], output[] = {2};
    uint8_t from[INPUTS] = {VD_FROM_VALUE};
    vd_repeat repeat = {.count = count, .first = 1, .size = 1, .start = 1};
    vd_leaf leaf = {.name = "x", .shape = one};
    vd_err err;
    vd_program p = {.leaf = &leaf, .leaf_count = 1, .steps = 1, .checkpoint_interval = 1}, q;
    for (int i = 0; i < INPUTS; i++)
        edge[i] = 2; /* the fill node's value */
    fill[1] = fill[2] = step[0] = fill[0];
    step[1] = (vd_node){.op = RO_OP_CONCAT, .input_count = INPUTS, .moving = -1, .shape = row};
    p.init = (vd_graph){.stored = fill, .stored_count = 3, .output = output, .loss = UINT32_MAX};
    p.step = (vd_graph){.stored = step,
                        .stored_count = 2,
                        .stored_edge = edge,
                        .stored_from = from,
                        .edge_count = INPUTS,
                        .repeat = &repeat,
                        .repeat_count = 1,
                        .output = output,
                        .loss = UINT32_MAX};
    vd_buf bytes = bytes_of(&p);
    const vd_status status = vd_program_decode(bytes.data, bytes.size, &q, &err);
    vd_buf_free(&bytes);
    if (status == VD_OK)
        vd_program_free(&q);
    return status;
}

Test(repeat, inputs_that_a_graph_means_have_a_limit) {
    cr_expect(decode_rows(VD_INPUTS_MEANT_MAX / 1024) == VD_OK);
    cr_expect(decode_rows(VD_INPUTS_MEANT_MAX / 1024 + 1) == VD_ERR_VERSION);
}

static void carries_another_shape(vd_graph *g) {
    g->carried->node = g->repeat->first;
}
static void carries_a_later_value(vd_graph *g) {
    g->carried->before = g->sources + g->repeat->start;
}
static void carries_a_later_node(vd_graph *g) {
    g->carried->node = g->repeat->first + g->repeat->size;
}

Test(repeat, wrong_carried_values_are_refused) {
    static change_fn *const changes[] = {carries_another_shape, carries_a_later_value,
                                         carries_a_later_node};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        vd_program p = program_of(VD_MODEL_RESNET, 3), q;
        vd_err err = {0};
        cr_assert(p.step.carried_count > 0);
        changes[i](&p.step);
        vd_buf bytes = bytes_of(&p);
        cr_expect(vd_program_decode(bytes.data, bytes.size, &q, &err) == VD_ERR_PEER, "change %zu",
                  i);
        vd_buf_free(&bytes);
        vd_program_free(&p);
    }
}
