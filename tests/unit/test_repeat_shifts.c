/* Repeats with inputs shifted by a slope (kind 3 of PROTOCOL.md 1.5): layers that read their own
 * weights, and backward passes that read them in reverse. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "tests/support/shifted.h"
#include "tests/unit/small_models.h"
#include "tests/unit/unrolled.h"
#include "verde/graph/begin.h"
#include "verde/graph/build.h"
#include "verde/team/team.h"

enum { TIMES = 5 };

static vd_program shifted(uint32_t times, bool biased) {
    vd_program p;
    test_shifted_program(&p, 3, times, biased);
    return p;
}

/* Returns the value that this node reads, as a node number. */
static uint32_t node_read(const vd_program *p, const char *name, int32_t input) {
    const vd_graph *g = &p->step;
    for (uint32_t i = 0; i < g->node_count; i++)
        if (strcmp(vd_node_name(g, i).text, name) == 0)
            return vd_node_input(g, i, input);
    cr_assert_fail("no node %s", name);
    return 0;
}

static uint32_t value_of(const vd_program *p, const char *name) {
    const vd_graph *g = &p->step;
    uint32_t i = 0;
    while (i < g->node_count && strcmp(vd_node_name(g, i).text, name) != 0)
        i++;
    cr_assert(i < g->node_count, "no node %s", name);
    return g->sources + i;
}

Test(repeat_shifts, each_iteration_reads_its_own_and_backward_passes_read_in_reverse) {
    char reader[32], made[32];
    vd_program p = shifted(TIMES, true);
    for (uint32_t m = 0; m < TIMES; m++) {
        snprintf(reader, sizeof reader, "m%u.before", m);
        cr_expect(node_read(&p, reader, 1) == 1 + m, "its weight");
        snprintf(reader, sizeof reader, "m%u.biased", m);
        cr_expect(node_read(&p, reader, 1) == p.leaf_count + 2 * m, "its bias");
        snprintf(reader, sizeof reader, "m%u.slope", m);
        snprintf(made, sizeof made, "m%u.sum", TIMES - 1 - m);
        cr_expect(node_read(&p, reader, 0) == value_of(&p, made), "what time %s made", made);
        snprintf(reader, sizeof reader, "m%u.change", m);
        snprintf(made, sizeof made, "m%u.result", TIMES - 1 - m);
        cr_expect(node_read(&p, reader, 0) == value_of(&p, made), "what time %s made", made);
        snprintf(reader, sizeof reader, "m%u.now", m);
        const uint32_t now = value_of(&p, reader) - p.step.sources;
        cr_expect(vd_node_attr(&p.step, now, RO_SLICE_START) == m, "its row");
    }
    vd_program_free(&p);
}

Test(repeat_shifts, a_program_means_its_unrolled_nodes) {
    for (uint32_t times = 2; times <= 12; times++)
        for (int biased = 0; biased < 2; biased++) {
            vd_program p = shifted(times, biased), q = unrolled(&p);
            cr_expect(p.step.repeat_count == 2 && q.step.shifted_count == 0);
            expect_same_nodes(&p, &q, (int)times);
            vd_program_free(&p);
            vd_program_free(&q);
        }
}

Test(repeat_shifts, fused_or_not_a_run_has_the_state_of_its_unrolled_nodes) {
    ro_ctx *ro;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ro) == RO_OK);
    for (uint32_t times = 2; times <= 9; times++) {
        vd_program p = shifted(times, false), q = unrolled(&p);
        vd_state want = state_after(&q, ro, NULL, true);
        vd_state fused = state_after(&p, ro, NULL, false);
        vd_state nodes = state_after(&p, ro, NULL, true);
        expect_same_state(&p, &want, &fused, (int)times);
        expect_same_state(&p, &want, &nodes, (int)times);
        vd_state_free(&want);
        vd_state_free(&fused);
        vd_state_free(&nodes);
        vd_program_free(&p);
        vd_program_free(&q);
    }
    ro_ctx_destroy(ro);
}

/* Programs without shifted inputs keep the bytes they had before these existed. */
Test(repeat_shifts, other_programs_keep_their_hash) {
    static const struct {
        const char *name, *hash;
    } known[] = {
        {"tests/graphs/corpus/gpt2-micro.program",
         "bff208fec66b8b3c2591e87cfe8012370c3e098b54303cc6be98841fb87f584b"},
        {"tests/graphs/corpus/gru.program",
         "07c107612995d032deb0a731ef01261df6dcdfda8bef7b9bef56d7507e39563f"},
        {"tests/captured/rnn/program",
         "e56e315e2516da70a43bbbc7dc631aca21acfc7185665085e2299c6d849c6903"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        FILE *file = fopen(known[i].name, "rb");
        vd_buf bytes = {0};
        vd_hash hash;
        char hex[2 * VD_HASH_SIZE + 1];
        cr_assert(file, "%s", known[i].name);
        for (int c; (c = getc(file)) != EOF;)
            vd_put_u8(&bytes, (uint8_t)c);
        fclose(file);
        vd_program p = decoded(&bytes);
        vd_buf again = bytes_of(&p);
        cr_expect(again.size == bytes.size && memcmp(again.data, bytes.data, again.size) == 0);
        cr_assert(vd_program_hash(&p, &hash, NULL) == VD_OK);
        vd_hex(hash.b, VD_HASH_SIZE, hex);
        cr_expect_str_eq(hex, known[i].hash);
        vd_buf_free(&bytes);
        vd_buf_free(&again);
        vd_program_free(&p);
    }
}

/* ---- invalid bytes ---- */

Test(repeat_shifts, a_changed_byte_is_refused_or_another_program) {
    static const uint8_t changes[] = {0x01, 0x02, 0x10, 0x80, 0xff};
    vd_program program = shifted(TIMES, true);
    vd_buf bytes = bytes_of(&program);
    size_t accepted = 0;
    for (size_t at = 0; at < bytes.size; at++)
        for (size_t i = 0; i < sizeof changes; i++)
            accepted += changed_is_program(&bytes, at, changes[i]);
    cr_expect(accepted > bytes.size / 2 && accepted < sizeof changes * bytes.size, "%zu of %zu",
              accepted, bytes.size);
    vd_buf_free(&bytes);
    vd_program_free(&program);
}

/* Indices of the program's shifted inputs, in order. Two more read weights. */
enum { WEIGHT, BIAS, SUM, RESULT, SHIFTED = 6 };

typedef void change_fn(vd_program *p);

static vd_shifted *of(vd_program *p, uint32_t number) {
    return &p->step.shifted[number];
}
static void no_slope(vd_program *p) {
    of(p, WEIGHT)->slope = 0;
}
static void beyond_the_weights(vd_program *p) {
    of(p, WEIGHT)->first = 2; /* the last iteration reads `row`, which has another shape */
}
static void below_the_first_value(vd_program *p) {
    of(p, WEIGHT)->slope = -1;
}
static void a_slope_that_overflows(vd_program *p) {
    of(p, WEIGHT)->slope = INT64_MAX;
}
static void a_slope_that_overflows_below(vd_program *p) {
    of(p, WEIGHT)->slope = INT64_MIN;
}
static void a_slope_that_wraps_in_32_bits(vd_program *p) {
    of(p, WEIGHT)->slope = (INT64_C(1) << 32) + 1;
}
static void from_a_leaf_to_data(vd_program *p) {
    *of(p, BIAS) = (vd_shifted){p->leaf_count - 1, TIMES, 1}; /* all of them have shape [1, 4] */
}
static void its_own_body(vd_program *p) {
    const uint32_t first = value_of(p, "m0.slope");
    *of(p, SUM) = (vd_shifted){first, TIMES, 1};
}
static void behind_its_repeat(vd_program *p) {
    *of(p, SUM) = (vd_shifted){value_of(p, "end"), TIMES, 4};
}
static void of_the_step_number(vd_program *p) {
    *of(p, BIAS) = (vd_shifted){p->step.sources - 1, TIMES, -2};
}
static void beyond_all_values(vd_program *p) {
    of(p, WEIGHT)->first = UINT32_MAX;
}
static void no_kind(vd_program *p) {
    for (uint32_t i = 0; i < p->step.edge_count; i++)
        if (p->step.stored_from[i] == VD_FROM_SHIFTED)
            p->step.stored_from[i] = VD_FROM_SHIFTED + 1;
}
static vd_node *slice_of(vd_program *p) {
    return &p->step.stored[vd_node_spot(&p->step, value_of(p, "m0.now") - p->step.sources).stored];
}
static void rows_beyond_the_last(vd_program *p) {
    slice_of(p)->slope = 2;
}
static void rows_before_the_first(vd_program *p) {
    slice_of(p)->slope = -1;
}
static void a_length_that_grows(vd_program *p) {
    slice_of(p)->moving = RO_SLICE_LENGTH;
}
static void more_times(vd_program *p) { /* the last iteration reads beyond the values that exist */
    p->step.repeat[1].count++;
}

static const struct {
    change_fn *change;
    vd_status status;
    const char *said; /* a part of the message */
} wrong[] = {
    {no_slope, VD_ERR_PEER, "malformed"},
    {beyond_the_weights, VD_ERR_PEER, ".before): input 1 is not in each iteration a value"},
    {below_the_first_value, VD_ERR_PEER, "input 1 is not in each iteration a value"},
    {a_slope_that_overflows, VD_ERR_PEER, "input 1 is not in each iteration a value"},
    {a_slope_that_overflows_below, VD_ERR_PEER, "input 1 is not in each iteration a value"},
    {a_slope_that_wraps_in_32_bits, VD_ERR_PEER, "input 1 is not in each iteration a value"},
    {from_a_leaf_to_data, VD_ERR_PEER, "of one kind and one shape"},
    {its_own_body, VD_ERR_PEER, "from before the repeat"},
    {behind_its_repeat, VD_ERR_PEER, "from before the repeat"},
    {of_the_step_number, VD_ERR_PEER, "of one kind and one shape"},
    {beyond_all_values, VD_ERR_PEER, "from before the repeat"},
    {no_kind, VD_ERR_VERSION, "kind 4 of an input"},
    {rows_beyond_the_last, VD_ERR_PEER, "m4.now"},
    {rows_before_the_first, VD_ERR_PEER, "m4.now"},
    {a_length_that_grows, VD_ERR_PEER, "an attribute that may not grow"},
    {more_times, VD_ERR_PEER, "is not in each iteration a value"},
};

Test(repeat_shifts, wrong_slopes_are_refused_in_one_line) {
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        vd_program p = shifted(TIMES, true), q;
        vd_err err = {0};
        cr_assert(p.step.shifted_count == SHIFTED);
        wrong[i].change(&p);
        vd_buf bytes = bytes_of(&p);
        cr_expect(vd_program_decode(bytes.data, bytes.size, &q, &err) == wrong[i].status,
                  "change %zu: %s", i, err.text);
        cr_expect(strstr(err.text, wrong[i].said) && !strchr(err.text, '\n'), "change %zu: %s", i,
                  err.text);
        vd_buf_free(&bytes);
        vd_program_free(&p);
    }
}

/* Decodes a program with `inputs` shifted inputs in each of `count` iterations, which read fills of
 * an earlier repeat. */
static vd_status decode_many(uint32_t count, int32_t inputs) {
    const ro_shape one = {.dtype = RO_F32, .ndim = 1, .dim = {1}};
    vd_node step[] = {{.op = RO_OP_FILL, .moving = -1, .shape = one},
                      {.op = RO_OP_ADD, .input_count = 2, .moving = -1, .shape = one}};
    vd_repeat repeat[] = {{.count = count, .size = 1},
                          {.count = count, .first = 1, .size = 1, .start = count}};
    vd_shifted shift[] = {{2, count, 1}, {2, count, 1}};
    uint32_t edge[] = {inputs > 0 ? 0 : 2, inputs > 1 ? 1 : 2}, output[] = {2};
    uint8_t from[] = {inputs > 0 ? VD_FROM_SHIFTED : VD_FROM_VALUE,
                      inputs > 1 ? VD_FROM_SHIFTED : VD_FROM_VALUE};
    vd_leaf leaf = {.name = "x", .shape = one};
    vd_program p = {.leaf = &leaf, .leaf_count = 1, .steps = 1, .checkpoint_interval = 1}, q;
    vd_err err;
    p.init = (vd_graph){.stored = step,
                        .node_count = 1,
                        .stored_count = 1,
                        .output = (uint32_t[]){1},
                        .loss = UINT32_MAX};
    p.step = (vd_graph){.stored = step,
                        .stored_count = 2,
                        .stored_edge = edge,
                        .stored_from = from,
                        .edge_count = 2,
                        .repeat = repeat,
                        .repeat_count = 2,
                        .shifted = shift,
                        .shifted_count = 2,
                        .output = output,
                        .loss = UINT32_MAX};
    vd_buf bytes = bytes_of(&p);
    const vd_status status = vd_program_decode(bytes.data, bytes.size, &q, &err);
    vd_buf_free(&bytes);
    if (status == VD_OK)
        vd_program_free(&q);
    return status;
}

Test(repeat_shifts, values_that_shifted_inputs_read_have_a_limit) {
    cr_expect(decode_many(VD_SHIFTED_MAX, 0) == VD_OK);
    cr_expect(decode_many(VD_SHIFTED_MAX, 1) == VD_OK);
    cr_expect(decode_many(VD_SHIFTED_MAX / 2, 2) == VD_OK);
    cr_expect(decode_many(VD_SHIFTED_MAX + 1, 1) == VD_ERR_VERSION);
    cr_expect(decode_many(VD_SHIFTED_MAX / 2 + 1, 2) == VD_ERR_VERSION);
}

/* ---- programs that go on, and teams ---- */

/* Names a value by its source or node, since its number differs in a continued program. */
static vd_name named(const vd_program *p, uint32_t value) {
    uint32_t index = 0;
    vd_name name = {"step"};
    if (value >= p->step.sources)
        return vd_node_name(&p->step, value - p->step.sources);
    const vd_source_kind kind = vd_source_of(p, &p->step, value, &index);
    if (kind != VD_SOURCE_STEP)
        snprintf(name.text, sizeof name.text, "%s",
                 kind == VD_SOURCE_STATE ? p->leaf[index].name : p->data[index].tensor.name);
    return name;
}

/* Every leaf starts from a tensor of its own, at another step. Data for the first state are
 * dropped, except those between data that are read a slope apart. */
Test(repeat_shifts, a_program_that_goes_on_reads_what_it_read) {
    vd_program p = shifted(TIMES, true), q = shifted(TIMES, true);
    vd_data *tensor = calloc(p.leaf_count, sizeof *tensor);
    uint32_t *leaf = calloc(p.leaf_count, sizeof *leaf);
    uint32_t *from = calloc(p.data_count + p.leaf_count, sizeof *from);
    const vd_beginning how = {tensor, leaf, p.leaf_count, 1};
    vd_err err = {0};
    for (uint32_t i = 0; i < p.leaf_count; i++)
        tensor[i].tensor = p.leaf[leaf[i] = i];
    cr_assert(vd_program_begin(&q, &how, from, &err) == VD_OK, "%s", err.text);
    cr_expect(q.data_count == p.data_count - 1 + p.leaf_count,
              "the last bias is the first state's");
    const uint32_t inserted = q.step.node_count - p.step.node_count;
    for (uint32_t i = 0; i < p.step.node_count; i++)
        for (int32_t k = 0; k < vd_node_stored(&p.step, i)->input_count; k++) {
            const vd_name was = named(&p, vd_node_input(&p.step, i, k));
            const vd_name is = named(&q, vd_node_input(&q.step, i + inserted, k));
            cr_assert_str_eq(is.text, was.text);
        }
    free(tensor);
    free(leaf);
    free(from);
    vd_program_free(&p);
    vd_program_free(&q);
}

Test(repeat_shifts, one_process_takes_all_of_a_step) {
    vd_program p = shifted(TIMES, false);
    vd_team_plan plan;
    vd_err err = {0};
    cr_expect(vd_team_plan_create(&p, 1, &plan, &err) == VD_OK, "%s", err.text);
    vd_team_plan_free(&plan);
    cr_expect(vd_team_plan_create(&p, 2, &plan, &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, "a team of 2 processes: expected 1") != NULL, "%s", err.text);
    vd_program_free(&p);
}

/* ---- disputes ---- */

/* One element of a node in the middle of the backward pass is wrong, in either provider's run. */
Test(repeat_shifts, a_fault_in_an_iteration_convicts_at_its_node) {
    static const char *const nodes[] = {"m2.slope", "m3.change", "m4.next", "m0.back", "m3.result"};
    test_job job;
    test_provider honest, liar;
    test_dispute d;
    test_job_open_shifted(&job, 4, TIMES);
    test_provider_open(&honest, &job, 1, NULL);
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        const uint32_t node = value_of(&job.program, nodes[i]) - job.program.step.sources;
        const vd_fault fault = {VD_FAULT_ELEMENT, 2, node, 3, 20};
        test_provider_open(&liar, &job, 2, &fault);
        for (uint32_t place = 0; place < 2; place++) {
            test_duel(&d, &job, &honest.side, &liar.side, place);
            test_expect_convicted(&d, place, VD_GRADE_WRONG_OUTPUT, nodes[i]);
            test_expect_place(&d, 2, node, nodes[i]);
            test_dispute_close(&d);
        }
        test_provider_close(&liar);
    }
    test_provider_close(&honest);
    test_job_close(&job);
}
