/* Private to repops/ref: how element definitions read their inputs. */
#ifndef RO_REF_PRIVATE_H
#define RO_REF_PRIVATE_H

#include "repops/ref.h"
#include "repops/src/call.h"
#include "repops/src/conv.h"
#include "repops/src/math.h"
#include "repops/src/philox.h"
#include "repops/src/matmul.h"

/* One operator's definition of one element. Without a fold, steps and step are NULL. */
typedef struct {
    uint32_t (*finish)(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in);
    int64_t (*steps)(const ro_call *call);
    void (*step)(const ro_call *call, int64_t e, int64_t step, ro_acc *acc, const ro_access *in);
    int words;                             /* words of state between steps */
    int64_t (*loads)(const ro_call *call); /* how many elements `finish` reads at most; NULL: one of
                                              each input, or none in a fold */
} ro_ref_op;

/* Stands below a definition: the entry of operator `name`, which is its name in operators.def.
 * ref.c needs an entry of every operator, or linking fails. */
#define RO_REFERENCE(name, ...) const ro_ref_op ro_ref_op_##name = {__VA_ARGS__};

/* Defines how many elements `finish` reads at most, for a `call`. */
#define RO_LOADS(name, count)                                                                      \
    static int64_t name(const ro_call *call) {                                                     \
        (void)call;                                                                                \
        return count;                                                                              \
    }

/* Returns an operator's definition, or NULL if there is no such operator. */
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

/* Stores a number of 64 bits in the state of a fold, the low word first. */
RO_INLINE void put64(ro_acc *acc, int at, uint64_t x) {
    acc->word[at] = (uint32_t)x;
    acc->word[at + 1] = (uint32_t)(x >> 32);
}

RO_INLINE uint64_t get64(const ro_acc *acc, int at) {
    return (uint64_t)acc->word[at + 1] << 32 | acc->word[at];
}

/* Returns a NaN for an operator that a definition does not know, so as not to pass for a result. */
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

/* Shared with products of integers, which differ in their steps only. */
int64_t ro_ref_matmul_steps(const ro_call *call);
uint32_t ro_ref_matmul(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in);
int64_t ro_ref_conv2d_steps(const ro_call *call);
uint32_t ro_ref_conv2d(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in);

/* ---- shared by ro_ref_element and ro_ref_bounded: which elements meet ---- */

/* A term of a dot product: the indices of its factors in both inputs. Absent terms have none. */
typedef struct {
    int64_t a, b;
    int present;
} ro_ref_factors;

ro_ref_factors ro_ref_matmul_factors(const ro_matmul *v, int64_t batch, int64_t m, int64_t n,
                                     int64_t k);
/* Finds the k of row m that a step of the fold covers: [*from, *to), empty if *from >= *to. */
void ro_ref_matmul_range(const ro_matmul *v, int64_t m, int64_t step, int64_t *from, int64_t *to);
/* The terms of a convolution in a step of the fold, or the positions that gradients of lookups sum
 * over; and which of `count` of them step `step` covers: [*from, *to). */
enum { RO_REF_TERMS = RO_DOT_CHUNK };
void ro_ref_step_range(int64_t step, int64_t count, int64_t *from, int64_t *to);
/* Returns the number of terms of an element's dot product, including absent ones. */
int64_t ro_ref_conv_terms(const ro_call *call, const ro_conv *v);
ro_ref_factors ro_ref_conv_factors(const ro_call *call, const ro_conv *v, int64_t e, int64_t k);

/* SPEC 3.2: finds the block that output element e reduces: its row, and [from, to) in the row. */
void ro_ref_block(const ro_call *call, int64_t e, int64_t *row, int64_t *from, int64_t *to);
/* SPEC 3.3: finds the rows [from, to) of the group that output element e stands for. */
void ro_ref_group(int64_t e, int64_t cols, int64_t rows, int64_t *from, int64_t *to);
/* SPEC 12.3: returns how many rows entry i stands for. */
int64_t ro_ref_entry_rows(const ro_call *call, int64_t i);

/* SPEC 3.4: element e of a tensor like input 0, but with length n along the axis. start: where its
 * line begins in input 0; at: its place on the line. */
typedef struct {
    ro_axis x;
    int64_t start, at;
} ro_ref_line;
ro_ref_line ro_ref_line_of(const ro_call *call, int64_t e, int64_t n);

/* SPEC 7.2: returns whether label `id` is ignored; only operators with an attribute ignore one. */
int ro_ref_ignored(const ro_call *call, int32_t id);

/* SPEC 8: element e of a [..., T, S] tensor: its query (counted over the batch) and key. */
typedef struct {
    int64_t row, key, blocks;
    int admitted;
} ro_ref_score;
ro_ref_score ro_ref_score_of(const ro_call *call, int64_t e, const ro_access *in);
/* Finds the admitted keys [*from, *to) of block c for query `row`. */
void ro_ref_attn_keys(const ro_call *call, int64_t row, int64_t c, const ro_access *in,
                      int64_t *from, int64_t *to);

/* SPEC 12.2. Return the element of x under tap t of window e; what the window's sum is divided by;
 * and the window that has its tap t at element e of x, with its divisor. -1: none. */
int64_t ro_ref_pool_tap(const ro_pooling *v, int64_t e, int64_t t);
int64_t ro_ref_pool_divisor(const ro_pooling *v, int64_t e);
int64_t ro_ref_pool_window(const ro_pooling *v, int64_t e, int64_t t, int64_t *divisor);

/* SPEC 13: the index of the pair's other element, whether this one is the second, and the turn. */
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
