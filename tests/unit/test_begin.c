/* A program that begins with another state: every step means the same except for its number, with
 * or without repeats, and data that only the old initialisation read is gone. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "repops/op_movement.h"
#include "tests/unit/small_models.h"
#include "verde/graph/begin.h"

/* Returns a program as if read from a file, with repeats stored or unrolled. */
static vd_program given(vd_model_kind kind, bool unroll) {
    vd_program made = program_of(kind, 4), p;
    vd_buf bytes = {0};
    vd_err err = {0};
    vd_program_encode(&made, &bytes);
    cr_assert(vd_program_decode(bytes.data, bytes.size, &p, &err) == VD_OK, "%s", err.text);
    cr_assert(!unroll || vd_graph_unroll(&p.step, &err) == VD_OK, "%s", err.text);
    vd_buf_free(&bytes);
    vd_program_free(&made);
    return p;
}

/* Makes every leaf begin with a tensor of its own shape, f32 or bf16, except each `skipped`th (0:
 * none). */
static void begin(vd_program *p, uint32_t skipped, bool narrow, int64_t first, uint32_t *from) {
    vd_data *tensor = calloc(p->leaf_count, sizeof *tensor);
    uint32_t *leaf = calloc(p->leaf_count, sizeof *leaf), count = 0;
    vd_err err = {0};
    for (uint32_t i = 0; i < p->leaf_count; i++) {
        if (skipped && i % skipped == 0)
            continue;
        tensor[count].tensor = p->leaf[i];
        tensor[count].root[0] = (uint8_t)(count + 1);
        if (narrow && p->leaf[i].shape.dtype == RO_F32)
            tensor[count].tensor.shape.dtype = RO_BF16;
        leaf[count++] = i;
    }
    const vd_beginning how = {tensor, leaf, count, first};
    cr_assert(vd_program_begin(p, &how, from, &err) == VD_OK, "%s", err.text);
    free(tensor);
    free(leaf);
}

static uint32_t sources(const vd_program *p) {
    return vd_source_count(p, &p->step);
}

/* Expects that node i of `p` is node i + inserted of `q`, with the same inputs in the new
 * numbering. */
static void expect_same_step(const vd_program *p, const vd_program *q, const uint32_t *from,
                             uint32_t inserted) {
    cr_assert(q->step.node_count == p->step.node_count + inserted);
    for (uint32_t i = 0; i < p->step.node_count; i++) {
        const vd_node *a = vd_node_stored(&p->step, i), *b = vd_node_stored(&q->step, i + inserted);
        cr_assert(a->op == b->op && a->input_count == b->input_count &&
                  ro_shape_equal(&a->shape, &b->shape));
        cr_assert_str_eq(vd_node_name(&p->step, i).text, vd_node_name(&q->step, i + inserted).text);
        for (int32_t k = 0; k < a->input_count; k++) {
            const uint32_t was = vd_node_input(&p->step, i, k),
                           is = vd_node_input(&q->step, i + inserted, k);
            const uint32_t step = sources(p) - 1, leaves = p->leaf_count;
            const uint32_t data = is < leaves ? UINT32_MAX : is - leaves;
            if (was > step)
                cr_assert(is - sources(q) == was - sources(p) + inserted, "node %u, input %d", i,
                          k);
            else if (was == step)
                cr_assert(is == (inserted ? sources(q) + inserted - 1 : sources(q) - 1));
            else if (was < leaves)
                cr_assert(is == was);
            else
                cr_assert(data < q->data_count && from[data] == was - leaves);
        }
    }
    for (uint32_t i = 0; i < p->leaf_count; i++)
        cr_assert(q->step.output[i] - sources(q) == p->step.output[i] - sources(p) + inserted);
    cr_assert(q->step.loss - sources(q) == p->step.loss - sources(p) + inserted);
}

Test(begin, steps_are_the_same_but_for_their_number) {
    for (int k = 0; k < KINDS; k++)
        for (int unroll = 0; unroll < 2; unroll++)
            for (int64_t first = 0; first < 2; first++) {
                vd_program p = given(kinds[k], unroll), q = given(kinds[k], unroll);
                uint32_t *from = calloc(p.data_count + p.leaf_count + 1, sizeof *from);
                begin(&q, 0, false, first, from);
                cr_assert(q.steps == p.steps - first && q.checkpoint_interval == 1);
                cr_assert(q.step.repeat_count == p.step.repeat_count &&
                          q.data_count == p.data_count + p.leaf_count);
                expect_same_step(&p, &q, from, first ? 4 : 0);
                cr_assert(q.init.node_count == p.leaf_count, "what the leaves began with is gone");
                free(from);
                vd_program_free(&p);
                vd_program_free(&q);
            }
}

Test(begin, what_is_not_given_begins_as_it_did) {
    vd_program p = given(VD_MODEL_GPT2, false), q = given(VD_MODEL_GPT2, false);
    uint32_t *from = calloc(p.data_count + p.leaf_count + 1, sizeof *from), given_of = 0;
    begin(&q, 3, true, 0, from);
    for (uint32_t i = 0; i < q.leaf_count; i++) {
        const uint32_t own = q.init.output[i] - vd_source_count(&q, &q.init);
        const vd_node *node = vd_node_stored(&q.init, own);
        if (i % 3 == 0)
            cr_expect(node->op ==
                      vd_node_stored(&p.init, p.init.output[i] - vd_source_count(&p, &p.init))->op);
        else
            cr_expect(vd_node_input(&q.init, own, 0) == p.data_count + given_of++,
                      "a cast of its tensor");
    }
    free(from);
    vd_program_free(&p);
    vd_program_free(&q);
}

Test(begin, data_that_nobody_reads_any_more_goes) {
    vd_program p = given(VD_MODEL_MLP, false), q;
    const uint32_t data = p.data_count, leaves = p.leaf_count;
    uint32_t *from = calloc(data + 2 * leaves + 1, sizeof *from);
    begin(&p, 0, false, 0, from);
    vd_buf bytes = {0};
    vd_program_encode(&p, &bytes);
    cr_assert(vd_program_decode(bytes.data, bytes.size, &q, NULL) == VD_OK);
    begin(&q, 0, false, 0, from);
    cr_assert(q.data_count == data + leaves, "the first state's tensors are no data any more");
    for (uint32_t i = 0; i < leaves; i++)
        cr_expect(from[data + i] == data + leaves + i);
    vd_buf again = {0};
    vd_program_encode(&q, &again);
    cr_expect(again.size == bytes.size && memcmp(again.data, bytes.data, bytes.size) == 0,
              "the same program twice");
    vd_buf_free(&bytes);
    vd_buf_free(&again);
    free(from);
    vd_program_free(&p);
    vd_program_free(&q);
}
