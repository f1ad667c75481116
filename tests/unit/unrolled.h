/* A program with repeats, and the same one with all nodes written out. */
#ifndef TEST_UNROLLED_H
#define TEST_UNROLLED_H

#include <criterion/criterion.h>
#include <string.h>

#include "verde/exec/exec.h"
#include "verde/exec/source.h"
#include "verde/graph/graph.h"

static inline vd_buf bytes_of(const vd_program *program) {
    vd_buf out = {0};
    vd_program_encode(program, &out);
    cr_assert(vd_buf_ok(&out));
    return out;
}

static inline vd_program decoded(const vd_buf *bytes) {
    vd_program program;
    vd_err err = {0};
    cr_assert(vd_program_decode(bytes->data, bytes->size, &program, &err) == VD_OK, "%s", err.text);
    return program;
}

static inline vd_program unrolled(const vd_program *p) {
    vd_buf bytes = bytes_of(p);
    vd_program out = decoded(&bytes);
    vd_err err = {0};
    cr_assert(vd_graph_unroll(&out.step, &err) == VD_OK, "%s", err.text);
    cr_assert(out.step.repeat_count == 0 && out.step.stored_count == p->step.node_count);
    vd_buf_free(&bytes);
    return out;
}

static inline void expect_same_nodes(const vd_program *p, const vd_program *q, int number) {
    cr_assert(p->step.node_count == q->step.node_count);
    for (uint32_t i = 0; i < p->step.node_count; i++) {
        vd_buf a = {0}, b = {0};
        vd_node_encode(p, &p->step, i, &a);
        vd_node_encode(q, &q->step, i, &b);
        cr_assert(a.size == b.size && memcmp(a.data, b.data, a.size) == 0, "program %d, node %u",
                  number, i);
        vd_buf_free(&a);
        vd_buf_free(&b);
    }
    cr_assert(vd_program_validate(q, NULL) == VD_OK, "what it means is a program");
}

static inline vd_state state_after(const vd_program *p, ro_ctx *ro, const void *data,
                                   bool unfused) {
    const vd_exec exec = {.program = p, .ro = ro, .data = &data, .unfused = unfused};
    vd_state state;
    vd_err err = {0};
    cr_assert(vd_exec_init(&exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    for (int64_t i = 0; i < p->steps; i++)
        cr_assert(vd_exec_step(&exec, NULL, &state, NULL, &err) == VD_OK, "%s", err.text);
    return state;
}

static inline void expect_same_state(const vd_program *p, const vd_state *a, const vd_state *b,
                                     int number) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        cr_assert(memcmp(a->tensor[i], b->tensor[i], vd_shape_bytes(&p->leaf[i].shape)) == 0,
                  "program %d: %s", number, p->leaf[i].name);
}

/* Changes one byte of a program and returns whether the result decodes. If so, it must encode to
 * exactly these bytes. */
static inline bool changed_is_program(vd_buf *bytes, size_t at, uint8_t change) {
    vd_program program;
    vd_err err;
    bytes->data[at] ^= change;
    const vd_status status = vd_program_decode(bytes->data, bytes->size, &program, &err);
    cr_assert(status == VD_OK || status == VD_ERR_PEER || status == VD_ERR_VERSION, "byte %zu: %s",
              at, err.text);
    if (status == VD_OK) {
        vd_buf again = bytes_of(&program);
        cr_assert(again.size == bytes->size && memcmp(again.data, bytes->data, again.size) == 0,
                  "byte %zu ^ %02x decodes, to another encoding", at, change);
        vd_buf_free(&again);
        vd_program_free(&program);
    }
    bytes->data[at] ^= change;
    return status == VD_OK;
}

#endif
