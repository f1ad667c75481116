/* Lies about the parts of a long fold, inserted between a provider's run and its answers. */
#ifndef FORGED_PARTS_H
#define FORGED_PARTS_H

#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "repops/op_reduce.h"
#include "repops/op_sampling.h"
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    HONEST_PARTS,
    FROM_ONE_ON,  /* parts from `at` on are wrong, and the element follows from the last one */
    ONE_AND_LAST, /* only part `at` and the last one are wrong; the element follows from the last */
    CONSISTENT,   /* part `at` is wrong; later parts and the element follow from it by the rules */
    ANY_PARTS,    /* parts from `at` on repeat one byte */
    WIDE_PARTS,   /* each part has one byte too many */
    ONE_PART_MORE, /* one part more than the program says */
    ONE_PART_LESS,
} forgery;

/* A source that wraps the real one. */
typedef struct {
    vd_source real;
    vd_emitted_source served;
    const test_job *job;
    uint32_t value; /* output of the disputed node */
    forgery what;
    uint64_t at;
    uint8_t byte; /* for ANY_PARTS */
    vd_buf input[VD_FOLD_INPUTS];
} forger;

static inline vd_status pass_run(void *user, vd_hash *state, vd_err *err) {
    const forger *f = user;
    return f->real.run(f->real.user, state, err);
}

static inline vd_status pass_states(void *user, int64_t from, int64_t to, vd_hash *state,
                                    vd_err *err) {
    const forger *f = user;
    return f->real.states(f->real.user, from, to, state, err);
}

static inline vd_status pass_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    const forger *f = user;
    return f->real.trace(f->real.user, step, out, err);
}

static inline vd_status pass_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    const forger *f = user;
    return f->real.leaves(f->real.user, step, tensor, err);
}

static inline vd_status pass_tensor(void *user, int64_t step, uint32_t value, const void **data,
                                    vd_err *err) {
    const forger *f = user;
    return f->real.tensor(f->real.user, step, value, data, err);
}

static inline vd_status pass_logs(void *user, vd_hash *run, vd_hash *logs, vd_err *err) {
    const forger *f = user;
    return f->real.served->logs(f->real.served->user, run, logs, err);
}

static inline vd_status pass_section(void *user, int64_t step, uint64_t index,
                                     vd_section_proof *out, vd_err *err) {
    const forger *f = user;
    return f->real.served->section(f->real.served->user, step, index, out, err);
}

static inline vd_status pass_note(void *user, uint64_t leaf, const vd_public_key *trainer,
                                  vd_buf *out, vd_err *err) {
    const forger *f = user;
    return f->real.served->note(f->real.served->user, leaf, trainer, out, err);
}

static inline uint32_t word_at(const void *bytes, int64_t index) {
    uint32_t word;
    memcpy(&word, (const uint8_t *)bytes + 4 * index, sizeof word);
    return word;
}

static inline uint32_t committed(const forger *f, int64_t step, int64_t element) {
    const void *data;
    cr_assert(f->real.tensor(f->real.user, step, f->value, &data, NULL) == VD_OK);
    return word_at(data, element);
}

static inline void put_word(uint8_t *part, int at, uint32_t word) {
    for (int i = 0; i < 4; i++)
        part[4 * at + i] = (uint8_t)(word >> 8 * i);
}

static inline float as_float(uint32_t word) {
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

static inline uint32_t as_word(float x) {
    return word_at(&x, 0);
}

/* Writes those words of a state that make the element; `sum` for operators that sum. */
static inline void put_result(const vd_fold *fold, uint32_t element, uint32_t sum, uint8_t *part) {
    switch (fold->call.op) {
    case RO_OP_ARGMAX: put_word(part, 1, element); break;
    case RO_OP_DRAW: put_word(part, 4, element); break;
    case RO_OP_TOP_K:
    case RO_OP_TOP_P:
        put_word(part, (int)(fold->element % 2), element);
        put_word(part, 4, 1); /* the goal */
        break;
    default: put_word(part, fold->call.op == RO_OP_EMBEDDING_GRAD, sum); break;
    }
}

/* Writes a last part from which the element follows, with no doubt for a free operator. */
static inline void give(const vd_fold *fold, uint32_t element, uint8_t *part) {
    const float x = as_float(element) * (fold->call.op == RO_OP_MATMUL ? 2 : 1);
    const double sum = x;
    memset(part, 0, fold->size);
    if (fold->bounded) {
        put_word(part, 0, word_at(&sum, 0));
        put_word(part, 1, word_at(&sum, 1));
    } else {
        put_result(fold, element, as_word(x), part);
    }
    if (fold->bounded) {
        const ro_bounded got = vd_fold_bounded(fold, part);
        cr_assert(got.value == as_float(element) && got.bound < 1e-9);
    } else {
        cr_assert(vd_fold_element(fold, part) == element);
    }
}

static inline uint32_t load(void *user, int input, int64_t index) {
    const forger *f = user;
    return word_at(f->input[input].data, index);
}

static inline void keep_inputs(forger *f, int64_t step) {
    const vd_graph *graph = vd_step_graph(&f->job->program, step);
    const uint32_t node = f->value - vd_source_count(&f->job->program, graph);
    const vd_node *n = vd_node_stored(graph, node);
    for (int32_t i = 0; i < n->input_count; i++) {
        const uint32_t value = vd_node_input(graph, node, i);
        const void *data;
        vd_buf_free(&f->input[i]);
        f->input[i] = (vd_buf){0};
        cr_assert(f->real.tensor(f->real.user, step, value, &data, NULL) == VD_OK);
        vd_put(&f->input[i], data, vd_shape_bytes(vd_value_shape(&f->job->program, graph, value)));
    }
}

/* Continues a sum by the rules from part `at`, which is x. */
static inline uint32_t go_on(forger *f, const vd_fold *fold, uint8_t *parts, float x) {
    uint8_t *part = parts + f->at * fold->size;
    put_word(part, 0, as_word(x));
    for (uint64_t i = f->at + 1; i < fold->parts; i++, part += fold->size)
        vd_fold_part(fold, i, part, load, f, part + fold->size);
    return vd_fold_element(fold, part);
}

/* Tries numbers for part `at` until the sum that continues from it gives the element. */
static inline void forge_consistently(forger *f, const vd_fold *fold, int64_t step,
                                      uint32_t element, uint8_t *parts) {
    keep_inputs(f, step);
    const float honest = as_float(word_at(parts + f->at * fold->size, 0));
    const float was = as_float(go_on(f, fold, parts, honest));
    const float scale = fold->call.op == RO_OP_MATMUL ? 2 : 1;
    uint32_t near = as_word(honest + scale * (as_float(element) - was)) - 4096;
    for (int i = 0; i < 8192; i++, near++)
        if (go_on(f, fold, parts, as_float(near)) == element)
            return;
    cr_assert_fail("no part leads to the element");
}

static inline void forge(forger *f, const vd_fold *fold, int64_t step, uint32_t element,
                         uint8_t *parts) {
    uint8_t *last = parts + (fold->parts - 1) * fold->size;
    switch (f->what) {
    case FROM_ONE_ON:
        for (uint64_t i = f->at; i < fold->parts; i++)
            give(fold, element, parts + i * fold->size);
        break;
    case ONE_AND_LAST:
        parts[f->at * fold->size] ^= 1;
        give(fold, element, last);
        break;
    case ANY_PARTS:
        memset(parts + f->at * fold->size, f->byte, (fold->parts - f->at) * fold->size);
        break;
    case CONSISTENT: forge_consistently(f, fold, step, element, parts); break;
    default: break;
    }
}

static inline vd_status forge_fold(void *user, int64_t step, uint32_t node, int64_t element,
                                   vd_records *out, vd_err *err) {
    static const uint8_t more[VD_PART_BYTES];
    forger *f = user;
    vd_records real = {0};
    vd_fold fold;
    cr_assert(vd_fold_open(&fold, &f->job->program, vd_step_graph(&f->job->program, step), node,
                           element));
    cr_assert(f->real.fold(f->real.user, step, node, element, &real, err) == VD_OK);
    cr_assert(real.count == fold.parts && real.bytes.size == fold.parts * fold.size);
    forge(f, &fold, step, committed(f, step, element), real.bytes.data);
    const uint64_t count = real.count - (f->what == ONE_PART_LESS);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t part[VD_PART_BYTES + 1] = {0};
        memcpy(part, real.bytes.data + i * fold.size, fold.size);
        cr_assert(vd_records_add(out, part, fold.size + (f->what == WIDE_PARTS)));
    }
    cr_assert(f->what != ONE_PART_MORE || vd_records_add(out, more, fold.size));
    vd_records_free(&real);
    return VD_OK;
}

static inline vd_source source_of(forger *f) {
    if (f->real.served)
        f->served =
            (vd_emitted_source){f, f->real.served->role, pass_logs, pass_section, pass_note};
    return (vd_source){.user = f,
                       .run = pass_run,
                       .states = pass_states,
                       .trace = pass_trace,
                       .leaves = pass_leaves,
                       .tensor = pass_tensor,
                       .fold = forge_fold,
                       .dishonest = true,
                       .served = f->real.served ? &f->served : NULL};
}

/* Inserts a forger of this node's parts between the provider's run and its answers. */
static inline void parts_forge(forger *f, test_provider *p, const test_job *job, uint32_t node) {
    *f = (forger){.real = p->side.source, .job = job};
    f->value = vd_source_count(&job->program, &job->program.step) + node;
    p->side.source = source_of(f);
}

static inline void parts_forget(forger *f) {
    for (int i = 0; i < VD_FOLD_INPUTS; i++)
        vd_buf_free(&f->input[i]);
}

#endif
