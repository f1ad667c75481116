/* Private to repops/ref: how element definitions read their inputs. */
#ifndef RO_REF_PRIVATE_H
#define RO_REF_PRIVATE_H

#include "repops/ref.h"
#include "repops/src/call.h"
#include "repops/src/conv.h"
#include "repops/src/math.h"
#include "repops/src/philox.h"
#include "repops/src/matmul.h"

/* One operator's definition of one element; fold parts are NULL for short operators. */
typedef struct {
    uint32_t (*finish)(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in);
    int64_t (*steps)(const ro_call *call);
    void (*step)(const ro_call *call, int64_t e, int64_t step, ro_acc *acc, const ro_access *in);
    int words;                             /* of the state between steps */
    int64_t (*loads)(const ro_call *call); /* how many elements finish reads; NULL: one of each
                                              input, in a fold none */
} ro_ref_op;

/* Below a definition: the row of operator `name`, by its name in operators.def. ref.c lists all
 * operators: without one of them nothing links. */
#define RO_REFERENCE(name, ...) const ro_ref_op ro_ref_op_##name = {__VA_ARGS__};

/* The most elements that a finish reads, by `call`. */
#define RO_LOADS(name, count)                                                                      \
    static int64_t name(const ro_call *call) {                                                     \
        (void)call;                                                                                \
        return count;                                                                              \
    }

/* NULL: there is no such operator. */
const ro_ref_op *ro_ref_row(int op);

RO_INLINE uint32_t load(const ro_access *in, int input, int64_t index) {
    return in->load(in->user, input, index);
}

RO_INLINE float loadf(const ro_access *in, int input, int64_t index) {
    return ro_from_bits(load(in, input, index));
}

RO_INLINE uint32_t result(float value) {
    return ro_to_bits(ro_canon(value));
}

/* A number of 64 bits in the state of a fold, the low word first. */
RO_INLINE void put64(ro_acc *acc, int at, uint64_t x) {
    acc->word[at] = (uint32_t)x;
    acc->word[at + 1] = (uint32_t)(x >> 32);
}

RO_INLINE uint64_t get64(const ro_acc *acc, int at) {
    return (uint64_t)acc->word[at + 1] << 32 | acc->word[at];
}

/* The value of an operator that a definition does not know: it must not pass for a result. */
RO_INLINE float no_such_operator(void) {
    return ro_from_bits(RO_QNAN_BITS);
}

RO_INLINE float attrf(const ro_call *call, int index) {
    return ro_attr_to_f32(call->attr[index]);
}

RO_INLINE int64_t last_dim(const ro_shape *shape) {
    return shape->dim[shape->ndim - 1];
}

RO_INLINE int64_t numel(const ro_call *call, int input) {
    return ro_shape_numel(&call->input[input]);
}

/* Products of integers differ from the others in their steps alone. */
int64_t ro_ref_matmul_steps(const ro_call *call);
uint32_t ro_ref_matmul(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in);
int64_t ro_ref_conv2d_steps(const ro_call *call);
uint32_t ro_ref_conv2d(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in);

/* ---- what ro_ref_element and ro_ref_bounded share: which elements meet ---- */

/* A term of a dot product: where its factors lie in both inputs. Absent terms have none. */
typedef struct {
    int64_t a, b;
    int present;
} ro_ref_factors;

ro_ref_factors ro_ref_matmul_factors(const ro_matmul *v, int64_t batch, int64_t m, int64_t n,
                                     int64_t k);
/* The k of row m that a step of the fold covers: [from, to), none if from >= to. */
void ro_ref_matmul_range(const ro_matmul *v, int64_t m, int64_t step, int64_t *from, int64_t *to);
/* Terms of a convolution, or positions that gradients of lookups sum over, of a step of the fold;
 * and which of `count` step `step` covers: [*from, *to). */
enum { RO_REF_TERMS = RO_DOT_CHUNK };
void ro_ref_step_range(int64_t step, int64_t count, int64_t *from, int64_t *to);
/* Number of terms of an element's dot product, absent ones counted. */
int64_t ro_ref_conv_terms(const ro_call *call, const ro_conv *v);
ro_ref_factors ro_ref_conv_factors(const ro_call *call, const ro_conv *v, int64_t e, int64_t k);

/* SPEC 3.2: the block that output element e reduces: its row, and [from, to) in the row. */
void ro_ref_block(const ro_call *call, int64_t e, int64_t *row, int64_t *from, int64_t *to);
/* SPEC 3.3: the rows [from, to) of the group that element e of the output stands for. */
void ro_ref_group(int64_t e, int64_t cols, int64_t rows, int64_t *from, int64_t *to);
/* SPEC 12.3: how many of the rows entry i stands for. */
int64_t ro_ref_entry_rows(const ro_call *call, int64_t i);

/* SPEC 3.4: element e of a tensor like input 0 but of length n along the axis: where its line
 * starts in input 0, and its place on the line. */
typedef struct {
    ro_axis x;
    int64_t start, at;
} ro_ref_line;
ro_ref_line ro_ref_line_of(const ro_call *call, int64_t e, int64_t n);

/* SPEC 7.2: of the operators with an attribute: the label that it names does not count. */
int ro_ref_ignored(const ro_call *call, int32_t id);

/* SPEC 8: element e of a [..., T, S] tensor: its query (flattened with the batch) and key. */
typedef struct {
    int64_t row, key, blocks;
    int admitted;
} ro_ref_score;
ro_ref_score ro_ref_score_of(const ro_call *call, int64_t e, const ro_access *in);
/* Admitted keys [from, to) of block c for query `row`. */
void ro_ref_attn_keys(const ro_call *call, int64_t row, int64_t c, const ro_access *in,
                      int64_t *from, int64_t *to);

/* SPEC 12.2: the element of x under tap t of window e, and by what the window's sum is divided; the
 * window that has its tap t at element e of x, and by what it was divided. -1: none. */
int64_t ro_ref_pool_tap(const ro_pooling *v, int64_t e, int64_t t);
int64_t ro_ref_pool_divisor(const ro_pooling *v, int64_t e);
int64_t ro_ref_pool_window(const ro_pooling *v, int64_t e, int64_t t, int64_t *divisor);

/* SPEC 13: where the other element of the pair is, whether this one is the second, and the turn. */
typedef struct {
    int64_t other;
    int second;
    float cosine, sine;
} ro_ref_turn;
ro_ref_turn ro_ref_turn_of(const ro_call *call, int64_t e, const ro_access *in);

RO_INLINE int is_minus_infinity(float x) {
    return ro_to_bits(x) == RO_MINUS_INFINITY_BITS;
}

#endif
