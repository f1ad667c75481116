/* The one-element reference against SPEC.md: examples worked by hand for every operator, orders of
 * summation, and calls of any size on any bits. Values of exp, log and other functions come from an
 * evaluation of section 2 in rational arithmetic. */
#include "repops/ref.h"
#include "repops/operators.h"
#include "repops/src/philox.h"
#include "each_operator.h"
#include "nan_rules.h"
#include "random_calls.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

/* ---- examples: a call with its inputs, and the bits of its output ---- */

typedef struct {
    const char *shows;
    int op;
    int64_t attr[RO_MAX_ATTRS];
    int input_count;
    ro_shape input[7];
    const void *data[7];
    ro_shape output;
    const void *want; /* 32 bits per element */
} example;

#define INF     INFINITY
#define PAYLOAD 0xffc12345u /* a NaN other than the canonical one */
#define QNAN    RO_QNAN_BITS
#define HALF    0x3f000000
#define ONE     0x3f800000
#define TWO     0x40000000
#define FOUR    0x40800000
/* Word 3 of the block with seed, stream, step and number 0, as in Random123's vectors. */
#define WORD_3 0x9b00dbd8u

/* clang-format off */
#define F(n, ...) {RO_F32, n, {__VA_ARGS__}}
#define I(n, ...) {RO_I32, n, {__VA_ARGS__}}
#define N(...) ((const float[]){__VA_ARGS__})
#define W(...) ((const uint32_t[]){__VA_ARGS__})
#define IDS(...) ((const int32_t[]){__VA_ARGS__})

static const example movement[] = {
    {"fill keeps the sign of zero", RO_OP_FILL, {0x80000000}, 0, {{0}}, {0}, F(1, 2),
     W(0x80000000, 0x80000000)},
    {"fill keeps payloads", RO_OP_FILL, {PAYLOAD}, 0, {{0}}, {0}, F(1, 1), W(PAYLOAD)},
    {"iota counts", RO_OP_IOTA, {0}, 0, {{0}}, {0}, I(1, 4), W(0, 1, 2, 3)},
    {"normal: cosine then sine of two pairs of words", RO_OP_NORMAL,
     {0, 0, 0x3fc00000, TWO}, 0, {{0}}, {0}, F(2, 3, 2),
     W(0x405edd98, 0xbeb2dacc, 0x3e87917c, 0x3f092e57, 0x3f98ab2c, 0x3fee4a9b)},
    {"normal_at of step 0 is normal", RO_OP_NORMAL_AT, {0, 0, 0x3fc00000, TWO}, 1, {I(1, 1)}, {IDS(0)},
     F(2, 3, 2), W(0x405edd98, 0xbeb2dacc, 0x3e87917c, 0x3f092e57, 0x3f98ab2c, 0x3fee4a9b)},
    {"normal with a deviation that is no number", RO_OP_NORMAL, {0, 0, 0, PAYLOAD}, 0, {{0}}, {0},
     F(1, 1), W(QNAN)},
    {"read_batch: one window, targets shifted by one", RO_OP_READ_BATCH, {9, 9, 2, 0, 1}, 2,
     {{RO_U8, 1, {5}}, I(1, 1)}, {(const uint8_t[]){10, 20, 30, 40, 255}, IDS(-7)}, I(2, 2, 4),
     W(20, 30, 40, 255, 20, 30, 40, 255)},
    {"read_batch reads 16-bit tokens", RO_OP_READ_BATCH, {9, 9, 1, 0, 0}, 2,
     {{RO_U16, 1, {3}}, I(1, 1)}, {(const uint16_t[]){1, 65535, 3}, IDS(0)}, I(2, 1, 2),
     W(1, 65535)},
    {"read_batch reads 32-bit tokens", RO_OP_READ_BATCH, {9, 9, 1, 0, 1}, 2,
     {I(1, 3), I(1, 1)}, {IDS(1, 1048575, -3), IDS(0)}, I(2, 1, 2), W(1048575, 0xfffffffd)},
    {"embedding keeps bits; ids outside give NaN", RO_OP_EMBEDDING, {0}, 2,
     {F(2, 2, 2), I(1, 5)}, {W(1, PAYLOAD, 3, 0x80000000), IDS(1, 0, -1, 2, INT32_MIN)}, {0},
     W(3, 0x80000000, 1, PAYLOAD, QNAN, QNAN, QNAN, QNAN, QNAN, QNAN)},
    {"embedding_grad sums the rows of an id from +0", RO_OP_EMBEDDING_GRAD, {0}, 2,
     {F(2, 6, 1), I(1, 6)}, {N(1, -0.0f, 4, 8, INF, 16), IDS(2, 0, 2, -1, 3, 2)}, F(2, 3, 1),
     N(0, 0, 21)},
    {"embedding_grad is canonical", RO_OP_EMBEDDING_GRAD, {0}, 2, {F(2, 3, 1), I(1, 3)},
     {W(PAYLOAD, 0x7f800000, 0xff800000), IDS(0, 1, 1)}, F(2, 2, 1), W(QNAN, QNAN)},
    {"split_heads takes the columns of a part and head", RO_OP_SPLIT_HEADS, {2, 1, 2}, 1,
     {F(3, 1, 2, 8)}, {W(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, PAYLOAD, 15)}, {0},
     W(4, 5, 12, 13, 6, 7, PAYLOAD, 15)},
    {"join_heads is its inverse", RO_OP_JOIN_HEADS, {0}, 2, {F(4, 1, 2, 2, 2), F(4, 1, 2, 2, 2)},
     {W(0, 1, 8, 9, 2, 3, 10, 11), W(4, 5, 12, 13, 6, 7, PAYLOAD, 15)}, {0},
     W(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, PAYLOAD, 15)},
    {"concat keeps bits", RO_OP_CONCAT, {0}, 3, {F(2, 2, 1), F(1, 1), F(1, 2)},
     {W(1, PAYLOAD), W(3), W(0x80000000, 5)}, {0}, W(1, PAYLOAD, 3, 0x80000000, 5)},
};

static const example axes[] = {
    {"transpose names the input's dimension of each output dimension", RO_OP_TRANSPOSE, {2, 0, 1}, 1,
     {F(3, 2, 1, 3)}, {W(0, 1, 2, PAYLOAD, 4, 5)}, {0}, W(0, PAYLOAD, 1, 4, 2, 5)},
    {"slice along the last axis", RO_OP_SLICE, {1, 1, 2, 2}, 1, {I(2, 2, 4)},
     {IDS(0, 1, 2, 3, 4, 5, 6, 7)}, {0}, W(1, 3, 5, 7)},
    {"slice along the first axis keeps bits", RO_OP_SLICE, {0, 1, 1, 1}, 1, {F(2, 3, 2)},
     {W(0, 1, PAYLOAD, 0x80000000, 4, 5)}, {0}, W(PAYLOAD, 0x80000000)},
    {"pad puts elements `step` apart", RO_OP_PAD, {0, 1, 2, 3, PAYLOAD}, 1, {F(1, 2)}, {N(1, 2)},
     {0}, W(PAYLOAD, ONE, PAYLOAD, PAYLOAD, TWO, PAYLOAD, PAYLOAD)},
    {"pad of rows", RO_OP_PAD, {1, 1, 0, 1, 7}, 1, {I(2, 2, 2)}, {IDS(1, 2, 3, 4)}, {0},
     W(7, 1, 2, 7, 3, 4)},
    {"gather along the last axis; f32 outside is NaN", RO_OP_GATHER, {1}, 2, {F(2, 2, 3), I(1, 3)},
     {W(0, 1, 2, 3, PAYLOAD, 5), IDS(1, 3, -1)}, {0}, W(1, QNAN, QNAN, PAYLOAD, QNAN, QNAN)},
    {"gather of integers; outside is 0", RO_OP_GATHER, {0}, 2, {I(1, 2), I(2, 1, 3)},
     {IDS(8, -9), IDS(1, 0, 2)}, {0}, W(-9, 8, 0)},
    {"gather_grad along the last axis", RO_OP_GATHER_GRAD, {1}, 2, {F(2, 2, 3), I(1, 3)},
     {N(1, 2, 4, 8, 16, 32), IDS(1, 5, 1)}, F(2, 2, 2), N(0, 5, 0, 40)},
    {"gather_grad along the first axis", RO_OP_GATHER_GRAD, {0}, 2, {F(2, 2, 3), I(1, 2)},
     {N(1, 2, 4, 8, 16, -0.0f), IDS(1, 1)}, F(2, 2, 3), N(0, 0, 0, 9, 18, 4)},
    {"concat_axis along the last axis", RO_OP_CONCAT_AXIS, {1}, 2, {F(2, 2, 1), F(2, 2, 2)},
     {W(1, PAYLOAD), W(2, 3, 4, 5)}, {0}, W(1, 2, 3, PAYLOAD, 4, 5)},
    {"concat_axis along the first axis", RO_OP_CONCAT_AXIS, {0}, 2, {I(2, 1, 2), I(2, 2, 2)},
     {IDS(0, 1), IDS(2, 3, 4, 5)}, {0}, W(0, 1, 2, 3, 4, 5)},
    {"put_rows keeps bits", RO_OP_PUT_ROWS, {1}, 3, {F(2, 2, 3), F(2, 2, 1), I(1, 1)},
     {W(1, PAYLOAD, 3, 4, 5, 6), W(PAYLOAD, 0x80000000), IDS(2)}, {0},
     W(1, PAYLOAD, PAYLOAD, 4, 5, 0x80000000)},
    {"put_rows before the first place", RO_OP_PUT_ROWS, {0}, 3, {I(1, 3), I(1, 2), I(1, 1)},
     {IDS(1, 2, 3), IDS(8, 9), IDS(-1)}, {0}, W(9, 2, 3)},
    {"put_rows beyond the last place", RO_OP_PUT_ROWS, {0}, 3, {I(1, 3), I(1, 4), I(1, 1)},
     {IDS(1, 2, 3), IDS(6, 7, 8, 9), IDS(2)}, {0}, W(1, 2, 6)},
    {"put_rows nowhere", RO_OP_PUT_ROWS, {0}, 3, {I(1, 3), I(1, 1), I(1, 1)},
     {IDS(1, 2, 3), IDS(9), IDS(-1)}, {0}, W(1, 2, 3)},
    {"put_rows far away", RO_OP_PUT_ROWS, {0}, 3, {I(1, 2), I(1, 1), I(1, 1)},
     {IDS(1, 2), IDS(9), IDS(INT32_MIN)}, {0}, W(1, 2)},
    {"cast of f32 goes toward zero and stops at the ends", RO_OP_CAST, {RO_I32}, 1, {F(1, 9)},
     {N(1.9f, -1.9f, -0.0f, NAN, INF, -INF, 0x1p31f, -0x1p31f, 0x1.fffffep30f)}, {0},
     W(1, -1, 0, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0x7fffff80)},
    {"cast of i32 rounds to nearest even", RO_OP_CAST, {RO_F32}, 1, {I(1, 5)},
     {IDS(16777217, 16777219, INT32_MAX, INT32_MIN, -3)}, {0},
     N(16777216, 16777220, 0x1p31f, -0x1p31f, -3)},
    {"cast_stochastic: halves of the words 6627e8d5 e169c58d bc57ac4c 9b00dbd8, the lower one first",
     RO_OP_CAST_STOCHASTIC, {0, 0}, 2, {F(1, 8), I(1, 1)},
     {W(0x3f80172a, 0x3f8099d9, 0xbf803a73, 0xbf801e96, 0xff800000, PAYLOAD, 0x7f7f2428, 0x6500), IDS(0)},
     {0}, W(0x3f80, 0x3f81, 0xbf81, 0xbf80, 0xff80, 0x7fc0, 0x7f80, 1)},
    {"cast_stochastic keeps bf16's own numbers", RO_OP_CAST_STOCHASTIC, {0, 0}, 2, {F(1, 5), I(1, 1)},
     {W(0, 0x80000000, 0x10000, 0x7f7f0000, 0xbf810000), IDS(0)}, {0},
     W(0, 0x8000, 1, 0x7f7f, 0xbf81)},
    {"cast of f32 to i8 goes toward zero and stops at the ends", RO_OP_CAST, {RO_I8}, 1, {F(1, 10)},
     {N(-129.5f, -128, -127.9f, -0.9f, NAN, 0.9f, 126.9f, 127.5f, INF, -INF)}, {0},
     W(0x80, 0x80, 0x81, 0, 0, 0, 0x7e, 0x7f, 0x7f, 0x80)},
    {"cast of i32 to i8 stops at the ends", RO_OP_CAST, {RO_I8}, 1, {I(1, 7)},
     {IDS(INT32_MIN, -129, -128, -1, 127, 128, INT32_MAX)}, {0},
     W(0x80, 0x80, 0x80, 0xff, 0x7f, 0x7f, 0x7f)},
    {"cast of u8 to i8 stops at the end", RO_OP_CAST, {RO_I8}, 1, {{RO_U8, 1, {4}}},
     {(const uint8_t[]){0, 127, 128, 255}}, {0}, W(0, 0x7f, 0x7f, 0x7f)},
    {"cast of u16 to i8 stops at the end", RO_OP_CAST, {RO_I8}, 1, {{RO_U16, 1, {4}}},
     {(const uint16_t[]){0, 127, 128, 65535}}, {0}, W(0, 0x7f, 0x7f, 0x7f)},
    {"cast of bf16 to i8 goes by way of f32", RO_OP_CAST, {RO_I8}, 1, {{RO_BF16, 1, {4}}},
     {(const uint16_t[]){0xbfc0, 0xc300, 0x7fc0, 0x7f80}}, {0}, W(0xff, 0x80, 0, 0x7f)},
    {"cast of i8 to f32 has its sign", RO_OP_CAST, {RO_F32}, 1, {{RO_I8, 1, {4}}},
     {(const int8_t[]){-128, -1, 0, 127}}, {0}, N(-128, -1, 0, 127)},
    {"cast of i8 to i32 has its sign", RO_OP_CAST, {RO_I32}, 1, {{RO_I8, 1, {4}}},
     {(const int8_t[]){-128, -1, 0, 127}}, {0}, IDS(-128, -1, 0, 127)},
    {"cast of i8 to u8 stops at 0", RO_OP_CAST, {RO_U8}, 1, {{RO_I8, 1, {4}}},
     {(const int8_t[]){-128, -1, 0, 127}}, {0}, W(0, 0, 0, 127)},
    {"cast of i8 to u16 stops at 0", RO_OP_CAST, {RO_U16}, 1, {{RO_I8, 1, {4}}},
     {(const int8_t[]){-128, -1, 0, 127}}, {0}, W(0, 0, 0, 127)},
    {"cast of i8 to bf16 goes by way of f32", RO_OP_CAST, {RO_BF16}, 1, {{RO_I8, 1, {4}}},
     {(const int8_t[]){-128, -1, 0, 127}}, {0}, W(0xc300, 0xbf80, 0, 0x42fe)},
    {"cast of i8 to f16 goes by way of f32", RO_OP_CAST, {RO_F16}, 1, {{RO_I8, 1, {4}}},
     {(const int8_t[]){-128, -1, 0, 127}}, {0}, W(0xd800, 0xbc00, 0, 0x57f0)},
    {"pad of i8 takes the bits of its value", RO_OP_PAD, {0, 1, 0, 1, 0xff}, 1, {{RO_I8, 1, {2}}},
     {(const int8_t[]){-128, 5}}, {0}, W(0xff, 0x80, 5)},
    {"gather of i8 keeps bits, and gives 0 for an id that is in no table", RO_OP_GATHER, {0}, 2,
     {{RO_I8, 1, {2}}, I(1, 3)}, {(const int8_t[]){-128, -2}, IDS(1, -1, 0)}, {0},
     W(0xfe, 0, 0x80)},
    {"cast to the same type keeps bits", RO_OP_CAST, {RO_F32}, 1, {F(1, 2)},
     {W(PAYLOAD, 0x80000000)}, {0}, W(PAYLOAD, 0x80000000)},
    {"uniform is the upper 24 bits of a word", RO_OP_UNIFORM, {0, 0, 0, ONE}, 0, {{0}}, {0}, F(1, 4),
     W(0x3ecc4fd0, 0x3f6169c5, 0x3f3c57ac, 0x3f1b00db)},
    {"uniform_at of step 0 is uniform", RO_OP_UNIFORM_AT, {0, 0, ONE, 0x40400000}, 1, {I(1, 1)}, {IDS(0)},
     F(1, 4), W(0x3fe627e8, 0x4030b4e2, 0x401e2bd6, 0x400d806e)},
    {"uniform from low to high", RO_OP_UNIFORM, {0, 0, ONE, 0x40400000}, 0, {{0}}, {0}, F(1, 4),
     W(0x3fe627e8, 0x4030b4e2, 0x401e2bd6, 0x400d806e)},
    {"permutation of six in step -2", RO_OP_PERMUTATION, {7, 3}, 1, {I(1, 1)}, {IDS(-2)}, I(1, 6),
     W(2, 5, 1, 3, 0, 4)},
    {"permutation of six in step 0", RO_OP_PERMUTATION, {7, 3}, 1, {I(1, 1)}, {IDS(0)}, I(1, 6),
     W(1, 0, 5, 2, 4, 3)},
    {"rope turns halves of rows", RO_OP_ROPE, {0}, 3, {F(2, 2, 4), I(1, 2), I(2, 2, 2)},
     {N(1, 2, 3, 4, 1, 2, 3, 4), IDS(0, 1), W(0x9391054a, 0x28be60db, 0xc179c52c, 0x684dc4)}, {0},
     W(ONE, TWO, 0x40400000, FOUR, 0xbffdf758, 0x3ffade03, 0x401d9799, 0x4080a233)},
    {"rope turns neighbours back, far away", RO_OP_ROPE, {1, 1}, 3,
     {F(2, 1, 4), I(1, 1), I(2, 2, 2)},
     {N(1, 2, 3, 4), IDS(131071), W(0x9391054a, 0x28be60db, 0x4892a2e1, 0xec033)}, {0},
     W(0xbffbf6b8, 0xbf87c5da, 0xc0422604, 0xc07e5fdb)},
    {"rope is canonical", RO_OP_ROPE, {0}, 3, {F(2, 1, 4), I(1, 1), I(2, 2, 2)},
     {W(PAYLOAD, 0, 0, ONE), IDS(0), W(0, 0, 0, 0)}, {0}, W(QNAN, 0, QNAN, ONE)},
    {"rope turns by a quarter, each sequence by its own", RO_OP_ROPE, {0}, 3,
     {F(3, 2, 1, 2), I(2, 2, 1), I(2, 1, 2)},
     {N(1, 2, 1, 2), IDS(1, -1), W(0, 0x40000000)}, {0},
     (const float[]){-2, 1, 2, -1}},
    {"turns as in Llama 3: kept, and in between", RO_OP_ROPE_TURNS,
     {0x461c4000, RO_ROPE_LLAMA3, 0x41000000, ONE, FOUR, 1000}, 0, {{0}}, {0}, I(2, 2, 2),
     W(0x9391054a, 0x28be60db, 0xa7eab476, 0x1f08b7)},
    {"turns as in Llama 3: kept, and divided", RO_OP_ROPE_TURNS,
     {0x461c4000, RO_ROPE_LLAMA3, 0x41000000, ONE, FOUR, 100}, 0, {{0}}, {0}, I(2, 2, 2),
     W(0x9391054a, 0x28be60db, 0x982f38a5, 0xd09b8)},
    {"reshape keeps bits", RO_OP_RESHAPE, {0}, 1, {F(2, 2, 2)}, {W(0, PAYLOAD, 2, 3)}, F(1, 4),
     W(0, PAYLOAD, 2, 3)},
};

static const example elementwise[] = {
    {"add: zeros, infinities, NaNs, overflow, ties", RO_OP_ADD, {0}, 2, {F(1, 7), F(1, 7)},
     {W(0x80000000, 0x80000000, 0x7f800000, PAYLOAD, 0x7f7fffff, 0x4b800000, 1),
      W(0x80000000, 0, 0xff800000, ONE, 0x7f7fffff, ONE, 1)}, {0},
     W(0x80000000, 0, QNAN, QNAN, 0x7f800000, 0x4b800000, 2)},
    {"add repeats the second operand", RO_OP_ADD, {0}, 2, {F(2, 2, 3), F(1, 3)},
     {N(1, 2, 3, 4, 5, 6), N(10, 20, 30)}, {0}, N(11, 22, 33, 14, 25, 36)},
    {"div_const", RO_OP_DIV_CONST, {0x40400000}, 1, {F(1, 4)},
     {W(ONE, 0x40a00000, 0x80000000, PAYLOAD)}, {0}, W(0x3eaaaaab, 0x3fd55555, 0x80000000, QNAN)},
    {"div_const divides, it does not multiply by a reciprocal", RO_OP_DIV_CONST, {0x42440000}, 1,
     {F(1, 1)}, {N(49)}, {0}, N(1)},
    {"div_const by zero", RO_OP_DIV_CONST, {0}, 1, {F(1, 3)}, {N(1, -1, 0)}, {0},
     W(0x7f800000, 0xff800000, QNAN)},
    {"gelu", RO_OP_GELU, {0}, 1, {F(1, 9)},
     {N(1, -1, -3.5f, 0.3125f, 0, -0.0f, INF, -INF, NAN)}, {0},
     W(0x3f57585c, 0xbe229e90, 0xba218500, 0x3e474056, 0, 0x80000000, 0x7f800000, 0x80000000, QNAN)},
    {"gelu_grad", RO_OP_GELU_GRAD, {0}, 2, {F(1, 8), F(1, 8)},
     {N(1, -1, -3.5f, 0.3125f, 0, -0.0f, INF, 0), N(2, 2, 2, 2, 2, 2, 2, NAN)}, {0},
     W(0x400a9e91, 0xbe29e914, 0xbb9ec1f3, 0x3fbdc9e3, ONE, ONE, TWO, QNAN)},
    {"relu", RO_OP_RELU, {0}, 1, {F(1, 7)},
     {W(ONE, 0xbf800000, 0x80000000, 1, 0x7f800000, 0xff800000, PAYLOAD)}, {0},
     W(ONE, 0, 0, 1, 0x7f800000, 0, QNAN)},
    {"relu_grad passes the bits of dy or gives +0", RO_OP_RELU_GRAD, {0}, 2, {F(1, 5), F(1, 5)},
     {W(ONE, 0xbf800000, 0, PAYLOAD, 1), W(PAYLOAD, PAYLOAD, ONE, ONE, 0x80000000)}, {0},
     W(PAYLOAD, 0, 0, QNAN, 0x80000000)},
    {"max", RO_OP_MAX, {0}, 2, {F(1, 6), F(1, 6)},
     {W(ONE, 0x80000000, 0x80000000, PAYLOAD, ONE, 0xff800000), W(TWO, 0, 0x80000000, ONE, PAYLOAD, ONE)},
     {0}, W(TWO, 0, 0x80000000, QNAN, QNAN, ONE)},
    {"min", RO_OP_MIN, {0}, 2, {F(1, 6), F(1, 6)},
     {W(ONE, 0x80000000, 0, PAYLOAD, ONE, 0xff800000), W(TWO, 0, 0, ONE, PAYLOAD, ONE)},
     {0}, W(ONE, 0x80000000, 0, QNAN, QNAN, 0xff800000)},
    {"max of a row", RO_OP_MAX, {0}, 2, {F(2, 2, 2), F(1, 2)}, {N(1, 2, 3, 4), N(2, 3)}, {0},
     N(2, 3, 3, 4)},
    {"abs", RO_OP_ABS, {0}, 1, {F(1, 4)}, {W(0xbf800000, 0x80000000, 0xff800000, PAYLOAD)}, {0},
     W(ONE, 0, 0x7f800000, QNAN)},
    {"compare <: the zeros are equal, a NaN is nothing", RO_OP_COMPARE, {RO_LESS}, 2,
     {F(1, 5), F(1, 5)}, {N(1, 2, -0.0f, NAN, -INF), N(2, 1, 0, 1, INF)}, {0}, W(1, 0, 0, 0, 1)},
    {"compare not =", RO_OP_COMPARE, {RO_NOT_EQUAL}, 2, {F(1, 4), F(1, 1)}, {N(1, 2, NAN, -INF), N(2)},
     {0}, W(1, 0, 1, 1)},
    {"compare >= of integers", RO_OP_COMPARE, {RO_AT_LEAST}, 2, {I(1, 3), I(1, 3)},
     {IDS(-1, 7, INT32_MIN), IDS(1, 7, INT32_MAX)}, {0}, W(0, 1, 0)},
    {"compare =, <= and >", RO_OP_COMPARE, {RO_EQUAL}, 2, {F(1, 3), F(1, 3)}, {N(1, 2, NAN), N(1, 1, NAN)},
     {0}, W(1, 0, 0)},
    {"compare <=", RO_OP_COMPARE, {RO_AT_MOST}, 2, {F(1, 3), F(1, 1)}, {N(1, 2, NAN), N(1)}, {0},
     W(1, 0, 0)},
    {"compare >", RO_OP_COMPARE, {RO_GREATER}, 2, {F(1, 3), F(1, 1)}, {N(1, 2, NAN), N(1)}, {0},
     W(0, 1, 0)},
    {"where keeps bits", RO_OP_WHERE, {0}, 3, {I(1, 3), F(1, 3), F(1, 3)},
     {IDS(0, -1, 256), W(ONE, PAYLOAD, 0x80000000), W(PAYLOAD, ONE, ONE)}, {0},
     W(PAYLOAD, PAYLOAD, 0x80000000)},
    {"iadd wraps", RO_OP_IADD, {0}, 2, {I(2, 2, 2), I(1, 2)},
     {IDS(1, INT32_MAX, INT32_MIN, -5), IDS(-1, 1)}, {0}, W(0, 0x80000000, INT32_MAX, -4)},
    {"integer: a product wraps", RO_OP_INTEGER, {RO_PRODUCT}, 2, {I(1, 4), I(1, 4)},
     {IDS(65536, INT32_MIN, -3, INT32_MAX), IDS(65536, -1, 7, 2)}, {0},
     W(0, 0x80000000, (uint32_t)-21, (uint32_t)-2)},
    {"integer: a quotient toward zero", RO_OP_INTEGER, {RO_QUOTIENT}, 2, {I(1, 6), I(1, 6)},
     {IDS(7, -7, 7, INT32_MIN, 5, INT32_MIN), IDS(2, 2, -2, -1, 0, 3)}, {0},
     W(3, (uint32_t)-3, (uint32_t)-3, 0x80000000, 0, (uint32_t)-715827882)},
    {"integer: its remainder", RO_OP_INTEGER, {RO_REMAINDER}, 2, {I(1, 5), I(1, 5)},
     {IDS(7, -7, 7, INT32_MIN, -5), IDS(2, 2, -2, -1, 0)}, {0}, W(1, (uint32_t)-1, 1, 0, (uint32_t)-5)},
    {"integer: a quotient rounded down", RO_OP_INTEGER, {RO_FLOOR_QUOTIENT}, 2, {I(1, 6), I(1, 6)},
     {IDS(7, -7, 7, INT32_MIN, 5, -6), IDS(2, 2, -2, -1, 0, 3)}, {0},
     W(3, (uint32_t)-4, (uint32_t)-4, 0x80000000, 0, (uint32_t)-2)},
    {"integer: its remainder has the divisor's sign", RO_OP_INTEGER, {RO_FLOOR_REMAINDER}, 2,
     {I(1, 5), I(1, 5)}, {IDS(7, -7, 7, INT32_MIN, -5), IDS(2, 2, -2, -1, 0)}, {0},
     W(1, 1, (uint32_t)-1, 0, (uint32_t)-5)},
    {"integer: left shifts", RO_OP_INTEGER, {RO_SHIFT_LEFT}, 2, {I(1, 5), I(1, 5)},
     {IDS(1, -1, 3, 1, 1), IDS(31, 4, 31, 32, -1)}, {0}, W(0x80000000, (uint32_t)-16, 0x80000000, 0, 0)},
    {"integer: right shifts keep the sign", RO_OP_INTEGER, {RO_SHIFT_RIGHT}, 2, {I(1, 6), I(1, 6)},
     {IDS(-1, -7, 7, INT32_MIN, 5, -5), IDS(31, 1, 1, 31, 32, -1)}, {0},
     W((uint32_t)-1, (uint32_t)-4, 3, (uint32_t)-1, 0, (uint32_t)-1)},
    {"integer: and", RO_OP_INTEGER, {RO_AND}, 2, {I(2, 1, 2), I(1, 1)}, {IDS(-2, 5), IDS(6)}, {0}, W(6, 4)},
    {"integer: or", RO_OP_INTEGER, {RO_OR}, 2, {I(1, 2), I(1, 1)}, {IDS(-2, 5), IDS(6)}, {0},
     W((uint32_t)-2, 7)},
    {"integer: exclusive or", RO_OP_INTEGER, {RO_XOR}, 2, {I(1, 2), I(1, 1)}, {IDS(-1, 5), IDS(6)}, {0},
     W((uint32_t)-7, 3)},
    {"integer: the smaller one", RO_OP_INTEGER, {RO_SMALLER}, 2, {I(1, 2), I(1, 2)},
     {IDS(INT32_MIN, 5), IDS(INT32_MAX, 4)}, {0}, W(0x80000000, 4)},
    {"integer: the larger one", RO_OP_INTEGER, {RO_LARGER}, 2, {I(1, 2), I(1, 2)},
     {IDS(INT32_MIN, 5), IDS(INT32_MAX, 4)}, {0}, W(INT32_MAX, 5)},
    {"round down", RO_OP_ROUND, {RO_DOWN}, 1, {F(1, 6)}, {N(1.5f, -1.5f, -0.0f, INF, 0x1p24f, NAN)},
     {0}, W(ONE, 0xc0000000, 0x80000000, 0x7f800000, 0x4b800000, QNAN)},
    {"round up", RO_OP_ROUND, {RO_UP}, 1, {F(1, 5)}, {N(1.5f, -0.5f, -0.0f, -INF, 0x1p-149f)}, {0},
     W(TWO, 0x80000000, 0x80000000, 0xff800000, ONE)},
    {"round to nearest, ties to even", RO_OP_ROUND, {RO_NEAREST}, 1, {F(1, 6)},
     {N(0.5f, 1.5f, 2.5f, -0.5f, -0.75f, 8388607.5f)}, {0},
     W(0, TWO, TWO, 0x80000000, 0xbf800000, 0x4b000000)},
    {"round toward zero", RO_OP_ROUND, {RO_TOWARD_ZERO}, 1, {F(1, 5)},
     {W(0x3fc00000, 0xbfc00000, 0xbf000000, PAYLOAD, 0x7f7fffff)}, {0},
     W(ONE, 0xbf800000, 0x80000000, QNAN, 0x7f7fffff)},
    {"take_along: each line by its own places", RO_OP_TAKE_ALONG, {1}, 2, {F(2, 2, 3), I(2, 2, 2)},
     {N(1, 2, 3, 4, 5, 6), IDS(2, 0, 1, 1)}, {0}, N(3, 1, 5, 5)},
    {"take_along beyond the line", RO_OP_TAKE_ALONG, {0}, 2, {F(1, 2), I(1, 3)},
     {W(PAYLOAD, ONE), IDS(-1, 2, 0)}, {0}, W(QNAN, QNAN, PAYLOAD)},
    {"put_along: the last one stays", RO_OP_PUT_ALONG, {0, RO_PUT_LAST}, 3, {F(1, 3), I(1, 4), F(1, 4)},
     {N(1, 2, 3), IDS(1, 1, 3, -1), W(ONE, PAYLOAD, TWO, TWO)}, {0}, W(ONE, PAYLOAD, 0x40400000)},
    {"put_along adds in the order of places", RO_OP_PUT_ALONG, {0, RO_PUT_SUM}, 3,
     {F(1, 2), I(1, 3), F(1, 3)}, {N(0, 5), IDS(0, 0, 0), N(0x1p25f, 1, -0x1p25f)}, {0}, N(0, 5)},
    {"put_along multiplies integers, which wrap", RO_OP_PUT_ALONG, {1, RO_PUT_PRODUCT}, 3,
     {I(2, 2, 2), I(2, 2, 2), I(2, 2, 2)}, {IDS(3, 5, 65536, 7), IDS(0, 1, 0, 0), IDS(2, -1, 65536, 9)},
     {0}, IDS(6, -5, 0, 7)},
    {"put_along: the larger one", RO_OP_PUT_ALONG, {0, RO_PUT_MAX}, 3, {F(1, 2), I(1, 2), F(1, 2)},
     {N(-0.0f, 1), IDS(0, 1), N(0, NAN)}, {0}, W(0, QNAN)},
    {"put_along: the smaller one", RO_OP_PUT_ALONG, {0, RO_PUT_MIN}, 3, {I(1, 2), I(1, 2), I(1, 2)},
     {IDS(4, 4), IDS(0, 1), IDS(INT32_MIN, 9)}, {0}, IDS(INT32_MIN, 4)},
    {"argsort: equal ones as they stand, a NaN last", RO_OP_ARGSORT, {0, 0}, 1, {F(1, 8)},
     {N(2, NAN, -0.0f, 0, -1, INF, 2, -INF)}, {0}, IDS(7, 4, 2, 3, 0, 6, 5, 1)},
    {"argsort from the largest on", RO_OP_ARGSORT, {0, 1}, 1, {F(1, 6)}, {N(2, NAN, 0, -0.0f, 2, -INF)},
     {0}, IDS(1, 0, 4, 2, 3, 5)},
    {"argsort of integers, along the first axis", RO_OP_ARGSORT, {0, 0}, 1, {I(2, 3, 2)},
     {IDS(5, 1, INT32_MIN, 1, INT32_MAX, -1)}, {0}, IDS(1, 2, 0, 0, 2, 1)},
    {"running sums are rounded once", RO_OP_RUNNING, {0, RO_RUNNING_SUM}, 1, {F(1, 4)},
     {N(0x1p25f, 1, 1, -0.0f)}, {0}, N(0x1p25f, 0x1p25f, 33554434, 33554434)},
    {"running sums start at +0", RO_OP_RUNNING, {0, RO_RUNNING_SUM}, 1, {F(1, 3)},
     {N(-0.0f, NAN, 1)}, {0}, W(0, QNAN, QNAN)},
    {"running products", RO_OP_RUNNING, {1, RO_RUNNING_PRODUCT}, 1, {F(2, 1, 4)}, {N(3, -0.5f, 0, INF)},
     {0}, W(0x40400000, 0xbfc00000, 0x80000000, QNAN)},
    {"running sums of exponentials", RO_OP_RUNNING, {0, RO_RUNNING_LOG_SUM}, 1, {F(1, 4)},
     {N(-INF, 0, 0, INF)}, {0}, W(0xff800000, 0, 0x3f317218, 0x7f800000)},
    {"running sums of integers wrap", RO_OP_RUNNING, {0, RO_RUNNING_SUM}, 1, {I(1, 3)},
     {IDS(INT32_MAX, 1, -5)}, {0}, IDS(INT32_MAX, INT32_MIN, 2147483643)},
    {"isum wraps", RO_OP_ISUM, {0}, 1, {I(2, 2, 2)}, {IDS(INT32_MAX, 1, 1, -4)}, {0}, IDS(INT32_MIN, -3)},
    {"leaky_relu", RO_OP_LEAKY_RELU, {TWO}, 1, {F(1, 8)},
     {W(ONE, 0xbf800000, 0x80000000, 0, 1, 0x7f800000, 0xff800000, PAYLOAD)}, {0},
     W(ONE, 0xc0000000, 0x80000000, 0, 1, 0x7f800000, 0xff800000, QNAN)},
    {"leaky_relu of -inf with a slope of 0", RO_OP_LEAKY_RELU, {0}, 1, {F(1, 2)},
     {N(-INF, -1)}, {0}, W(QNAN, 0x80000000)},
    {"leaky_relu_grad is canonical", RO_OP_LEAKY_RELU_GRAD, {TWO}, 2, {F(1, 6), F(1, 6)},
     {W(ONE, 0xbf800000, 0, 0x80000000, PAYLOAD, 1), W(PAYLOAD, PAYLOAD, ONE, ONE, ONE, 0x80000000)},
     {0}, W(QNAN, QNAN, TWO, TWO, QNAN, 0x80000000)},
    {"soft_shrink", RO_OP_SOFT_SHRINK, {ONE}, 1, {F(1, 8)},
     {N(3, -3, 1, -0.5f, 0, INF, -INF, NAN)}, {0},
     W(TWO, 0xc0000000, 0, 0x80000000, 0, 0x7f800000, 0xff800000, QNAN)},
    {"soft_shrink_grad", RO_OP_SOFT_SHRINK_GRAD, {ONE}, 2, {F(1, 6), F(1, 6)},
     {N(3, -3, 1, -1, 0, NAN), W(TWO, PAYLOAD, ONE, ONE, PAYLOAD, 0x80000000)}, {0},
     W(TWO, QNAN, 0, 0, 0, 0x80000000)},
    {"dropout keeps words from the threshold on", RO_OP_DROPOUT, {0, 0, WORD_3, TWO}, 2,
     {F(1, 4), I(1, 1)}, {N(NAN, 3, -0.0f, NAN), IDS(0)}, {0}, W(0, 0x40c00000, 0x80000000, QNAN)},
    {"dropout just above a word drops it", RO_OP_DROPOUT, {0, 0, WORD_3 + 1, TWO}, 2,
     {F(1, 4), I(1, 1)}, {N(1, 1, 1, 1), IDS(0)}, {0}, N(0, 2, 2, 0)},
    {"dropout with threshold 0 keeps everything", RO_OP_DROPOUT, {0, 0, 0, ONE}, 2,
     {F(1, 2), I(1, 1)}, {N(5, INF), IDS(-1)}, {0}, N(5, INF)},
};

/* Arguments of functions: NINE numbers, then five for which some function has a special result. */
#define NINE N(1, -1, -3.5f, 0.3125f, 0, -0.0f, INF, -INF, NAN)
#define FIVE N(0.3125f, -0.75f, -0.0f, 1, NAN)
#define TWOS N(2, 2, 2, 2, 2)

static const example functions[] = {
    {"mul: zeros, infinities, NaNs, overflow, underflow", RO_OP_MUL, {0}, 2, {F(1, 6), F(1, 6)},
     {W(0x80000000, 0, 0x7f800000, PAYLOAD, 0x7f7fffff, 1), W(ONE, 0xff800000, TWO, ONE, TWO, HALF)},
     {0}, W(0x80000000, QNAN, 0x7f800000, QNAN, 0x7f800000, 0)},
    {"mul repeats the second operand", RO_OP_MUL, {0}, 2, {F(2, 2, 3), F(1, 3)},
     {N(1, 2, 3, 4, 5, 6), N(10, 20, 30)}, {0}, N(10, 40, 90, 40, 100, 180)},
    {"sub: zeros, infinities, NaNs", RO_OP_SUB, {0}, 2, {F(1, 5), F(1, 5)},
     {N(0, -0.0f, -0.0f, INF, NAN), N(0, 0, -0.0f, INF, 1)}, {0}, W(0, 0x80000000, 0, QNAN, QNAN)},
    {"sub repeats the second operand", RO_OP_SUB, {0}, 2, {F(2, 2, 2), F(1, 2)},
     {N(1, 2, 3, 4), N(1, 10)}, {0}, N(0, -8, 2, -6)},
    {"div: zeros, infinities, a subnormal divisor", RO_OP_DIV, {0}, 2, {F(1, 6), F(1, 6)},
     {N(1, 5, 0, -1, INF, 1), W(0x42440000, 0x42440000, 0, 0, 0x7f800000, 0x00400000)}, {0},
     W(0x3ca72f05, 0x3dd0fac7, QNAN, 0xff800000, QNAN, 0x7f000000)},
    {"div repeats the second operand", RO_OP_DIV, {0}, 2, {F(2, 2, 2), F(1, 1)},
     {N(1, 2, 3, -0.0f), N(4)}, {0}, N(0.25f, 0.5f, 0.75f, -0.0f)},
    {"scale", RO_OP_SCALE, {HALF}, 1, {F(1, 5)}, {W(0x40400000, 0x80000000, 1, 3, PAYLOAD)}, {0},
     W(0x3fc00000, 0x80000000, 0, 2, QNAN)},
    {"exp", RO_OP_EXP, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x402df854, 0x3ebc5ab2, 0x3cf76081, 0x3faef48c, ONE, ONE, 0x7f800000, 0, QNAN)},
    {"log", RO_OP_LOG, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0, QNAN, QNAN, 0xbf94e220, 0xff800000, 0xff800000, 0x7f800000, QNAN, QNAN)},
    {"sqrt", RO_OP_SQRT, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(ONE, QNAN, QNAN, 0x3f0f1bbd, 0, 0x80000000, 0x7f800000, QNAN, QNAN)},
    {"sin", RO_OP_SIN, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f576aa4, 0xbf576aa4, 0x3eb399dc, 0x3e9d6895, 0, 0x80000000, QNAN, QNAN, QNAN)},
    {"cos", RO_OP_COS, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f0a5140, 0x3f0a5140, 0xbf6fbba0, 0x3f7399f5, ONE, ONE, QNAN, QNAN, QNAN)},
    {"tan", RO_OP_TAN, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3fc75923, 0xbfc75923, 0xbebfc9b0, 0x3ea56b8f, 0, 0x80000000, QNAN, QNAN, QNAN)},
    {"asin", RO_OP_ASIN, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3fc90fdb, 0xbfc90fdb, QNAN, 0x3ea2b9ca, 0, 0x80000000, QNAN, QNAN, QNAN)},
    {"acos", RO_OP_ACOS, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0, 0x40490fdb, QNAN, 0x3fa06168, 0x3fc90fdb, 0x3fc90fdb, QNAN, QNAN, QNAN)},
    {"atan", RO_OP_ATAN, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f490fdb, 0xbf490fdb, 0xbfa57088, 0x3e9b13ba, 0, 0x80000000, 0x3fc90fdb, 0xbfc90fdb, QNAN)},
    {"sinh", RO_OP_SINH, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f966cfe, 0xbf966cfe, 0xc184574d, 0x3ea29dee, 0, 0x80000000, 0x7f800000, 0xff800000, QNAN)},
    {"cosh", RO_OP_COSH, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3fc583ab, 0x3fc583ab, 0x41849525, 0x3f864d10, ONE, ONE, 0x7f800000, 0x7f800000, QNAN)},
    {"asinh", RO_OP_ASINH, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f61a1b3, 0xbf61a1b3, 0xbffb9cba, 0x3e9d8108, 0, 0x80000000, 0x7f800000, 0xff800000, QNAN)},
    {"acosh", RO_OP_ACOSH, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0, QNAN, QNAN, QNAN, QNAN, QNAN, 0x7f800000, QNAN, QNAN)},
    {"atanh", RO_OP_ATANH, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x7f800000, 0xff800000, QNAN, 0x3ea5895c, 0, 0x80000000, QNAN, QNAN, QNAN)},
    {"log1p", RO_OP_LOG1P, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f317218, 0xff800000, QNAN, 0x3e8b3ae5, 0, 0x80000000, 0x7f800000, QNAN, QNAN)},
    {"expm1", RO_OP_EXPM1, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3fdbf0a9, 0xbf21d2a7, 0xbf7844fc, 0x3ebbd22f, 0, 0x80000000, 0x7f800000, 0xbf800000, QNAN)},
    {"log2", RO_OP_LOG2, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0, QNAN, QNAN, 0xbfd6cb0f, 0xff800000, 0xff800000, 0x7f800000, QNAN, QNAN)},
    {"exp2", RO_OP_EXP2, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(TWO, HALF, 0x3db504f3, 0x3f9ef532, ONE, ONE, 0x7f800000, 0, QNAN)},
    {"sin of large numbers and small ones", RO_OP_SIN, {0}, 1, {F(1, 5)},
     {W(0x7f61b1e6, 0x47ffffff, 0x48000000, 0x501502f9, 0x800116c2)}, {0}, W(0x3f5ff9c4, 0xbf7fd979, 0xbf7fc5ec, 0xbef99a64, 0x800116c2)},
    {"cos of large numbers and small ones", RO_OP_COS, {0}, 1, {F(1, 5)},
     {W(0x7f61b1e6, 0x47ffffff, 0x48000000, 0x501502f9, 0x800116c2)}, {0}, W(0xbef7f57c, 0x3d0c6d6a, 0x3d2c676b, 0x3f5f84c5, 0x3f800000)},
    {"tan of large numbers and small ones", RO_OP_TAN, {0}, 1, {F(1, 5)},
     {W(0x7f61b1e6, 0x47ffffff, 0x48000000, 0x501502f9, 0x800116c2)}, {0}, W(0xbfe73d2d, 0xc1e93525, 0xc1bde593, 0xbf0ef000, 0x800116c2)},
    {"atan2", RO_OP_ATAN2, {0}, 2, {F(1, 6), F(1, 6)}, {N(1, -1, 0, -0.0f, INF, NAN), N(2, -2, -1, 1, -INF, 1)}, {0},
     W(0x3eed6338, 0xc02b6374, 0x40490fdb, 0x80000000, 0x4016cbe4, QNAN)},
    {"pow", RO_OP_POW, {0}, 2, {F(1, 8), F(1, 8)},
     {N(2, -2, -2, 0.5f, -0.0f, -0.0f, NAN, 1), N(0.5f, 3, 0.5f, -INF, -3, 2, 0, NAN)}, {0},
     W(0x3fb504f3, 0xc1000000, QNAN, 0x7f800000, 0xff800000, 0, ONE, ONE)},
    {"pow repeats the second operand", RO_OP_POW, {0}, 2, {F(2, 2, 2), F(1, 1)}, {N(1, 2, 3, -4), N(2)}, {0},
     N(1, 4, 9, 16)},
    {"rsqrt", RO_OP_RSQRT, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(ONE, QNAN, QNAN, 0x3fe4f92e, 0x7f800000, 0xff800000, 0, QNAN, QNAN)},
    {"rsqrt at the ends, and of a negative subnormal", RO_OP_RSQRT, {0}, 1, {F(1, 5)},
     {W(1, 0x007fffff, 0x00800000, 0x7f7fffff, 0x80000001)}, {0},
     W(0x64b504f3, 0x5f000001, 0x5f000000, 0x1f800001, QNAN)},
    {"tanh", RO_OP_TANH, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f42f7d6, 0xbf42f7d6, 0xbf7f8896, 0x3e9afcc5, 0, 0x80000000, ONE, 0xbf800000, QNAN)},
    {"erf", RO_OP_ERF, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f57bb3e, 0xbf57bb3e, 0xbf7ffff4, 0x3eaed4fa, 0, 0x80000000, ONE, 0xbf800000, QNAN)},
    {"erf where its formula changes", RO_OP_ERF, {0}, 1, {F(1, 5)},
     {W(1, 0x807fffff, 0x3f5fffff, 0x3f600000, 0x40800000)}, {0},
     W(1, 0x80906eb9, 0x3f48b924, 0x3f48b924, ONE)},
    {"sigmoid", RO_OP_SIGMOID, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f3b26a8, 0x3e89b2b1, 0x3cf02034, 0x3f13d6bc, HALF, HALF, ONE, 0, QNAN)},
    {"sigmoid of large numbers ends in subnormals", RO_OP_SIGMOID, {0}, 1, {F(1, 5)},
     {N(88.75f, -88.75f, -103, -104.5f, 1e-45f)}, {0}, W(ONE, 0x001f247e, 1, 0, HALF)},
    {"silu", RO_OP_SILU, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f3b26a8, 0xbe89b2b1, 0xbdd21c2e, 0x3e38cc6b, 0, 0x80000000, 0x7f800000, 0x80000000, QNAN)},
    {"gelu_erf", RO_OP_GELU_ERF, {0}, 1, {F(1, 9)}, {NINE}, {0},
     W(0x3f57625e, 0xbe227686, 0xba557e19, 0x3e47411a, 0, 0, 0x7f800000, 0, QNAN)},
    {"gelu_erf near its end", RO_OP_GELU_ERF, {0}, 1, {F(1, 5)},
     {N(0.875f, -5.25f, -5.34f, 5.34f, -9)}, {0},
     W(0x3f354384, 0xb4ca810f, 0xb49fc853, 0x40aae147, 0)},
    {"tanh_grad takes the result", RO_OP_TANH_GRAD, {0}, 2, {F(1, 5), F(1, 5)}, {FIVE, TWOS}, {0},
     W(0x3fe70000, 0x3f600000, TWO, 0, QNAN)},
    {"erf_grad", RO_OP_ERF_GRAD, {0}, 2, {F(1, 5), F(1, 5)}, {FIVE, TWOS}, {0},
     W(0x4002fea0, 0x3fa49723, 0x40106ebb, 0x3f5488f9, QNAN)},
    {"sigmoid_grad takes the result", RO_OP_SIGMOID_GRAD, {0}, 2, {F(1, 5), F(1, 5)}, {FIVE, TWOS},
     {0}, W(0x3edc0000, 0xc0280000, 0x80000000, 0, QNAN)},
    {"silu_grad", RO_OP_SILU_GRAD, {0}, 2, {F(1, 5), F(1, 5)}, {FIVE, TWOS}, {0},
     W(0x3fa75bbe, 0x3ea12d7a, ONE, 0x3fed7bd1, QNAN)},
    {"gelu_erf_grad", RO_OP_GELU_ERF_GRAD, {0}, 2, {F(1, 5), F(1, 5)}, {FIVE, TWOS}, {0},
     W(0x3fbdcc43, 0x3acafa00, ONE, 0x400aaa14, QNAN)},
    {"gelu_erf_grad where the slope is 1 or 0", RO_OP_GELU_ERF_GRAD, {0}, 2, {F(1, 4), F(1, 4)},
     {N(9, -9, INF, -INF), N(2, 2, 2, 2)}, {0}, W(TWO, 0, TWO, 0)},
    {"gelu_erf_grad near its end", RO_OP_GELU_ERF_GRAD, {0}, 2, {F(1, 3), F(1, 3)},
     {N(-3.5f, -5.25f, 5.34f), N(2, 2, 2)}, {0}, W(0xbbb8ec00, 0xb6880000, 0x4000000b)},
    {"silu_grad at infinities", RO_OP_SILU_GRAD, {0}, 2, {F(1, 2), F(1, 2)}, {N(INF, -INF), N(2, 2)},
     {0}, W(TWO, 0x80000000)},
    {"an infinite gradient times a slope of 0 is NaN", RO_OP_GELU_GRAD, {0}, 2, {F(1, 2), F(1, 2)},
     {N(-INF, -9), N(INF, INF)}, {0}, W(QNAN, QNAN)},
};

static const example reductions[] = {
    {"softmax takes the row's maximum and sum", RO_OP_SOFTMAX, {0}, 3, {F(2, 2, 2), F(1, 2), F(1, 2)},
     {N(1, 2, 0.3125f, -3.5f), N(2, 2), N(1.75f, 1.75f)}, {0},
     W(0x3e574315, 0x3f124925, 0x3dd87b2a, 0x3b190bcd)},
    {"softmax of a row without a finite number is NaN", RO_OP_SOFTMAX, {0}, 3,
     {F(2, 1, 2), F(1, 1), F(1, 1)}, {N(-INF, -INF), N(-INF), N(NAN)}, {0}, W(QNAN, QNAN)},
    {"softmax_grad", RO_OP_SOFTMAX_GRAD, {0}, 3, {F(2, 2, 2), F(2, 2, 2), F(1, 2)},
     {N(0.5f, 0.25f, 1, NAN), N(3, -1, 0, 1), N(1, 2)}, {0},
     W(ONE, 0xbf000000, 0xc0000000, QNAN)},
    {"log_softmax", RO_OP_LOG_SOFTMAX, {0}, 3, {F(2, 1, 4), F(1, 1), F(1, 1)},
     {N(1, 2, 0.3125f, -3.5f), N(2), N(1.75f)}, {0},
     W(0xbfc7a17e, 0xbf0f42fb, 0xc00fd0bf, 0xc0c1e85f)},
    {"log_softmax_grad takes the result", RO_OP_LOG_SOFTMAX_GRAD, {0}, 3,
     {F(2, 1, 4), F(2, 1, 4), F(1, 1)},
     {N(-0.5f, -1.25f, -3, -0.25f), N(1, -2, 0.5f, 0), N(-0.5f)}, {0},
     W(0x3fa6d166, 0xbfeda9e8, 0x3f065f6c, 0x3ec75f7d)},
    {"xent_ignore: +0 where the label is ignored, whatever else is there", RO_OP_XENT_IGNORE, {-100},
     4, {F(2, 3, 2), F(1, 3), F(1, 3), I(1, 3)},
     {N(1, 2, NAN, NAN, 1, 2), N(2, NAN, 2), N(1, NAN, 1), IDS(0, -100, 2)}, {0}, W(ONE, 0, QNAN)},
    {"xent_ignore of an id of the vocabulary", RO_OP_XENT_IGNORE, {1}, 4,
     {F(2, 2, 2), F(1, 2), F(1, 2), I(1, 2)}, {N(1, 2, 1, 2), N(2, 2), N(1, 1), IDS(1, 0)}, {0},
     N(0, 1)},
    {"xent_ignore_grad: +0 where the label is ignored", RO_OP_XENT_IGNORE_GRAD, {-1}, 5,
     {F(2, 3, 2), F(1, 3), F(1, 3), I(1, 3), F(1, 3)},
     {N(0, 0, NAN, INF, 0, 0), N(0, 0, 0), N(2, 2, 2), IDS(0, -1, 5), N(2, NAN, 1)}, {0},
     N(-1, 1, 0, 0, 0.5f, 0.5f)},
    {"kept", RO_OP_KEPT, {-1}, 1, {I(2, 2, 2)}, {IDS(-1, 0, 7, INT32_MIN)}, {0}, N(0, 1, 1, 1)},
    {"sum_axis starts from +0", RO_OP_SUM_AXIS, {1}, 1, {F(3, 2, 3, 2)},
     {N(1, -0.0f, 2, -0.0f, 3, -0.0f, 10, NAN, 20, 1, 30, 1)}, {0}, W(0x40c00000, 0, 0x42700000, QNAN)},
    {"sum_axis over the last axis", RO_OP_SUM_AXIS, {1}, 1, {F(2, 2, 3)}, {N(1, 2, 4, 8, 16, 32)}, {0},
     N(7, 56)},
    {"max_axis", RO_OP_MAX_AXIS, {1}, 1, {F(3, 2, 3, 2)},
     {W(ONE, 0x80000000, 0, 0, TWO, 0x80000000, ONE, 0x80000000, PAYLOAD, 0x80000000, FOUR, 0x80000000)},
     {0}, W(TWO, 0, QNAN, 0x80000000)},
    {"argmax: the lowest place of the largest; zeros are equal", RO_OP_ARGMAX, {1}, 1, {F(2, 4, 4)},
     {N(1, 3, 3, 2, -0.0f, 0, -1, 0, -INF, -INF, -INF, -INF, 5, 4, 3, 2)}, {0}, IDS(1, 0, 0, 0)},
    {"argmax: the first NaN is the largest", RO_OP_ARGMAX, {0}, 1, {F(2, 3, 2)},
     {N(1, INF, NAN, NAN, NAN, 2)}, {0}, IDS(1, 1)},
    {"max_grad gives the bits of dy to one place; a place outside gets nothing", RO_OP_MAX_GRAD, {1, 3},
     2, {I(2, 3, 1), F(2, 3, 1)}, {IDS(2, 0, 3), W(PAYLOAD, 0x80000000, ONE)}, {0},
     W(0, 0, PAYLOAD, 0x80000000, 0, 0, 0, 0, 0)},
    {"expand keeps bits", RO_OP_EXPAND, {1, 2}, 1, {F(3, 2, 1, 2)}, {W(PAYLOAD, ONE, TWO, FOUR)}, {0},
     W(PAYLOAD, ONE, PAYLOAD, ONE, TWO, FOUR, TWO, FOUR)},
    {"rmsnorm", RO_OP_RMSNORM, {0}, 3, {F(2, 2, 2), F(1, 2), F(1, 2)},
     {N(3, -4, -0.0f, NAN), N(0.5f, 2), N(2, 3)}, {0}, W(0x40400000, 0xc0c00000, 0x80000000, QNAN)},
    {"rms_dx", RO_OP_RMS_DX, {0}, 5, {F(2, 1, 2), F(1, 2), F(2, 1, 2), F(1, 1), F(1, 1)},
     {N(1, 2), N(2, 4), N(3, -1), N(0.5f), N(4)}, {0}, N(-0.5f, 4.5f)},
    {"reduce_rms_gx", RO_OP_REDUCE_RMS_GX, {2, 2}, 4, {F(2, 2, 2), F(1, 2), F(2, 2, 2), F(1, 2)},
     {N(1, 2, 3, 4), N(2, 4), N(3, -1, 1, 1), N(0.5f, 2)}, F(1, 2), N(-1, 44)},
    {"rms_dgamma", RO_OP_RMS_DGAMMA, {2}, 3, {F(2, 2, 2), F(2, 2, 2), F(1, 2)},
     {N(1, 2, 3, 4), N(3, -1, 1, 1), N(0.5f, 2)}, F(1, 2), N(7.5f, 7)},
};

static const example products[] = {
    {"matmul", RO_OP_MATMUL, {0, 0, ONE, 256, 0}, 2, {F(2, 2, 3), F(2, 3, 2)},
     {N(1, 2, 3, 4, 5, 6), N(1, 10, 2, 20, 3, 30)}, {0}, N(14, 140, 32, 320)},
    {"matmul, first transposed", RO_OP_MATMUL, {0, 1, ONE, 256, 0}, 2, {F(2, 3, 2), F(2, 3, 2)},
     {N(1, 4, 2, 5, 3, 6), N(1, 10, 2, 20, 3, 30)}, {0}, N(14, 140, 32, 320)},
    {"matmul, second transposed", RO_OP_MATMUL, {0, 2, ONE, 256, 0}, 2, {F(2, 2, 3), F(2, 2, 3)},
     {N(1, 2, 3, 4, 5, 6), N(1, 2, 3, 10, 20, 30)}, {0}, N(14, 140, 32, 320)},
    {"matmul, both transposed, scaled", RO_OP_MATMUL, {0, 3, HALF, 128, 0}, 2,
     {F(2, 3, 2), F(2, 2, 3)}, {N(1, 4, 2, 5, 3, 6), N(1, 2, 3, 10, 20, 30)}, {0},
     N(7, 70, 16, 160)},
    {"matmul of a batch", RO_OP_MATMUL, {1, 0, ONE, 256, 0}, 2, {F(3, 2, 1, 2), F(3, 2, 2, 1)},
     {N(1, 2, 3, 4), N(1, 10, 100, 1000)}, {0}, N(21, 4300)},
    {"matmul is fused: 2^-24 of a square survives", RO_OP_MATMUL, {0, 0, ONE, 256, 0}, 2,
     {F(2, 1, 2), F(2, 2, 1)}, {W(ONE, 0x3f800800), W(0xbf800000, 0x3f800800)}, {0}, W(0x3a000400)},
    {"matmul up to the row: what comes after it does not count", RO_OP_MATMUL,
     {0, 0, ONE, 256, RO_MASK_UPTO_ROW}, 2, {F(2, 3, 3), F(2, 3, 1)},
     {N(1, NAN, INF, 1, 2, NAN, 1, 2, 3), N(1, 10, 100)}, {0}, N(1, 21, 321)},
    {"matmul from the row", RO_OP_MATMUL, {0, 0, ONE, 256, RO_MASK_FROM_ROW}, 2,
     {F(2, 3, 3), F(2, 3, 1)}, {N(1, 2, 3, NAN, 2, 3, NAN, INF, 3), N(1, 10, 100)}, {0},
     N(321, 320, 300)},
    {"matmul: 0 * inf is NaN; only the scaled result may be -0", RO_OP_MATMUL,
     {0, 0, 0xbf800000, 256, 0}, 2, {F(2, 2, 1), F(2, 1, 2)}, {N(0, -0.0f), N(INF, 1)}, {0},
     W(QNAN, 0x80000000, QNAN, 0x80000000)},
    {"matmul_fixed", RO_OP_MATMUL_FIXED, {0, 0, ONE, 24}, 2, {F(2, 2, 3), F(2, 3, 2)},
     {N(1, 2, 3, 4, 5, 6), N(1, 10, 2, 20, 3, 30)}, {0}, N(14, 140, 32, 320)},
    {"matmul_fixed, both transposed, scaled, of 16 bits", RO_OP_MATMUL_FIXED, {0, 3, HALF, 16}, 2,
     {F(2, 3, 2), F(2, 2, 3)}, {N(1, 4, 2, 5, 3, 6), N(1, 2, 3, 10, 20, 30)}, {0},
     N(7, 70, 16, 160)},
    {"matmul_fixed of a batch", RO_OP_MATMUL_FIXED, {1, 0, ONE, 16}, 2,
     {F(3, 2, 1, 2), F(3, 2, 2, 1)}, {N(1, 2, 3, 4), N(1, 10, 100, 1000)}, {0}, N(21, 4300)},
    {"matmul_fixed: half of the last bit goes to the even integer", RO_OP_MATMUL_FIXED,
     {0, 0, ONE, 16}, 2, {F(2, 3, 2), F(2, 2, 1)},
     {N(1, 0x1p-15f, 1, 0x1.8p-14f, 1, 0x1.000002p-15f), N(0, 1)}, {0}, N(0, 0x1p-13f, 0x1p-14f)},
    {"matmul_fixed: up to 127/128 of a power of two it is the power", RO_OP_MATMUL_FIXED,
     {0, 0, ONE, 16}, 2, {F(2, 2, 2), F(2, 2, 1)},
     {N(0x1.fcp0f, 0x1p-14f, 0x1.fc0002p0f, 0x1p-14f), N(0, 1)}, {0}, N(0x1p-14f, 0)},
    {"matmul_fixed: the sum is exact, and rounded once", RO_OP_MATMUL_FIXED, {0, 0, ONE, 24}, 2,
     {F(2, 1, 4), F(2, 4, 1)}, {N(1, 0x1p-22f, 1, -1), N(1, 0x1p-22f, 0x1p-1f, 0x1p-1f)}, {0},
     N(1)},
    {"matmul_fixed: an infinity makes the chunk NaN; -0 is +0; -0 by alpha alone",
     RO_OP_MATMUL_FIXED, {0, 0, 0xbf800000, 24}, 2, {F(2, 2, 1), F(2, 1, 2)}, {N(1, -0.0f), N(INF, 1)},
     {0}, W(QNAN, 0xbf800000, QNAN, 0x80000000)},
    {"matmul_fixed: subnormal numbers, and a product below them", RO_OP_MATMUL_FIXED,
     {0, 0, ONE, 24}, 2, {F(2, 2, 1), F(2, 1, 2)}, {N(0x1p-148f, -0x1p-140f), N(0x1p30f, 0x1p-20f)},
     {0}, N(0x1p-118f, 0, -0x1p-110f, 0)},
    {"matmul_fixed: above the largest number", RO_OP_MATMUL_FIXED, {0, 0, ONE, 24}, 2,
     {F(2, 1, 1), F(2, 1, 2)}, {N(0x1p127f), N(2, -2)}, {0}, N(INF, -INF)},
    {"reduce_sum cuts rows into blocks", RO_OP_REDUCE_SUM, {3, 2}, 1, {F(2, 2, 3)},
     {N(1, 2, 4, 8, 16, 32)}, F(2, 2, 2), N(3, 4, 24, 32)},
    {"reduce_sum starts from +0 and is canonical", RO_OP_REDUCE_SUM, {1, 1}, 1, {F(1, 2)},
     {W(0x80000000, PAYLOAD)}, F(1, 2), W(0, QNAN)},
    {"reduce_max", RO_OP_REDUCE_MAX, {2, 2}, 1, {F(2, 5, 2)},
     {W(0x80000000, 0, 0x80000000, 0x80000000, ONE, PAYLOAD, 0xff800000, 0xff800000, 0xbf800000, 1)},
     F(1, 5), W(0, 0x80000000, QNAN, 0xff800000, 1)},
    {"reduce_max of one element is canonical", RO_OP_REDUCE_MAX, {1, 1}, 1, {F(1, 1)}, {W(PAYLOAD)},
     F(1, 1), W(QNAN)},
    {"reduce_dot repeats the second operand", RO_OP_REDUCE_DOT, {2, 2}, 2, {F(2, 2, 2), F(1, 2)},
     {N(1, 2, 3, 4), N(10, 100)}, F(1, 2), N(210, 430)},
    {"reduce_sqdev", RO_OP_REDUCE_SQDEV, {3, 2}, 2, {F(2, 2, 3), F(1, 2)},
     {N(1, 2, 5, -1, 0, 1), N(2, -1)}, F(2, 2, 2), N(1, 9, 1, 4)},
    {"reduce_expsum", RO_OP_REDUCE_EXPSUM, {2, 2}, 2, {F(2, 3, 2), F(1, 3)},
     {N(3, 2, -INF, 1, INF, 0), N(3, 1, INF)}, F(1, 3), W(0x3faf16ac, ONE, QNAN)},
    {"reduce_ln_gx", RO_OP_REDUCE_LN_GX, {2, 2}, 5,
     {F(2, 2, 2), F(1, 2), F(2, 2, 2), F(1, 2), F(1, 2)},
     {N(1, 2, 3, 4), N(10, 1), N(3, 5, 7, 9), N(1, 5), N(0.5f, 2)}, F(1, 2), N(14, 152)},
    {"sum_rows starts from +0", RO_OP_SUM_ROWS, {2}, 1, {F(2, 3, 2)},
     {N(1, -0.0f, 2, -0.0f, 4, -0.0f)}, F(1, 2), N(7, 0)},
    {"ln_dgamma", RO_OP_LN_DGAMMA, {2}, 4, {F(2, 2, 2), F(2, 2, 2), F(1, 2), F(1, 2)},
     {N(1, 2, 3, 4), N(3, 5, 7, 9), N(1, 5), N(0.5f, 2)}, F(1, 2), N(13, 36)},
};

static const example norms[] = {
    {"ln_rstd", RO_OP_LN_RSTD, {2, 0}, 1, {F(1, 5)}, {N(8, 0, -1, INF, NAN)}, {0},
     W(HALF, 0x7f800000, QNAN, QNAN, QNAN)},
    {"ln_rstd adds eps to the variance", RO_OP_LN_RSTD, {4, 0x40400000}, 1, {F(1, 1)}, {N(4)}, {0},
     N(0.5f)},
    {"layernorm", RO_OP_LAYERNORM, {0}, 5, {F(2, 2, 2), F(1, 2), F(1, 2), F(1, 2), F(1, 2)},
     {N(3, 5, 7, 9), N(1, 5), N(0.5f, INF), N(2, 0), N(1, -1)}, {0}, N(3, -1, INF, NAN)},
    {"ln_dx", RO_OP_LN_DX, {0}, 7,
     {F(2, 1, 2), F(1, 2), F(2, 1, 2), F(1, 1), F(1, 1), F(1, 1), F(1, 1)},
     {N(1, 3), N(2, 1), N(3, 5), N(1), N(0.5f), N(4), N(2)}, {0}, N(-0.5f, -0.5f)},
    {"xent: ids outside give NaN", RO_OP_XENT, {0}, 4, {F(2, 5, 2), F(1, 5), F(1, 5), I(1, 5)},
     {N(0, 3, 0, 3, 0, 3, 0, 3, 0, 3), N(3, 3, 3, 3, 3), N(1, 1, 1, 1, 3), IDS(0, 1, 2, -1, 1)},
     {0}, W(0x40400000, 0, QNAN, QNAN, 0x3f8c9f54)},
    {"xent_grad: ids outside have no target", RO_OP_XENT_GRAD, {0}, 5,
     {F(2, 3, 2), F(1, 3), F(1, 3), I(1, 3), F(1, 3)},
     {N(3, -INF, 3, -INF, 3, -INF), N(3, 3, 3), N(2, 2, 2), IDS(0, 1, 2), N(4, 4, 4)}, {0},
     N(-2, 0, 2, -4, 2, 0)},
};

static const example sampling[] = {
    {"weight: from nothing to all", RO_OP_WEIGHT, {0}, 2, {F(2, 1, 7), F(1, 1)},
     {N(2, 1, -INF, INF, NAN, 3, -104), N(2)}, {0},
     W(INT32_MAX, 0x2f16ac80, 0, INT32_MAX, 0, INT32_MAX, 0)},
    {"weight of a row of nothing but -inf, and of one without a maximum", RO_OP_WEIGHT, {0}, 2,
     {F(2, 2, 2), F(1, 2)}, {N(-INF, -INF, 1, 2), N(-INF, NAN)}, {0}, W(0, 0, 0, 0)},
    {"top_k: of equals the first ones", RO_OP_TOP_K, {3}, 1, {I(2, 2, 5)},
     {IDS(4, 7, 4, 9, 4, 0, -3, 0, -9, -1)}, {0}, W(4, 1, 0, 3)},
    {"top_k of all and more", RO_OP_TOP_K, {2}, 1, {I(2, 1, 2)}, {IDS(5, 6)}, {0}, W(0, 2)},
    {"top_k: the largest number", RO_OP_TOP_K, {1}, 1, {I(1, 3)},
     {IDS(0, INT32_MAX, INT32_MAX)}, {0}, W(INT32_MAX, 2)},
    {"top_p of a half", RO_OP_TOP_P, {1 << 23}, 1, {I(2, 2, 4)},
     {IDS(1, 4, 2, 1, 1, 4, 2, 2)}, {0}, W(4, 2, 2, 3)},
    {"top_p of all: what weighs nothing is not kept", RO_OP_TOP_P, {1 << 24}, 1, {I(1, 5)},
     {IDS(3, 0, 1, -7, 1)}, {0}, W(1, 5)},
    {"top_p of next to nothing", RO_OP_TOP_P, {1}, 1, {I(1, 3)}, {IDS(3, 5, 5)}, {0}, W(5, 2)},
    {"top_p of nothing", RO_OP_TOP_P, {5}, 1, {I(1, 3)}, {IDS(0, -1, 0)}, {0}, W(0, 3)},
    {"top_p of the largest sum", RO_OP_TOP_P, {(1 << 24) - 1}, 1, {I(1, 3)},
     {IDS(INT32_MAX, INT32_MAX, INT32_MAX)}, {0}, W(INT32_MAX, 3)},
    {"keep_top", RO_OP_KEEP_TOP, {0}, 2, {I(2, 2, 5), I(2, 2, 2)},
     {IDS(4, 7, 4, 9, -4, 4, 7, 4, 9, -4), IDS(4, 1, 0, 5)}, {0}, W(4, 7, 0, 9, 0, 4, 7, 4, 9, 0)},
    {"keep_top with any cut", RO_OP_KEEP_TOP, {0}, 2, {I(2, 3, 2), I(2, 3, 2)},
     {IDS(4, INT32_MAX, 4, 5, 4, 5), IDS(INT32_MAX, 1, -1, -1, 5, INT32_MIN)}, {0},
     W(0, 0, 4, 5, 0, 0)},
    {"random_words: Random123's vector of zeros", RO_OP_RANDOM_WORDS, {0, 0}, 2,
     {I(2, 1, 2), I(1, 1)}, {IDS(0, 0), IDS(0)}, {0}, W(0x6627e8d5, 0xe169c58d)},
    {"random_words: Random123's vector of ones", RO_OP_RANDOM_WORDS, {-1, UINT32_MAX}, 2,
     {I(1, 2), I(1, 1)}, {IDS(-1, -1), IDS(-1)}, {0}, W(0x408f276d, 0x41c83b0e)},
    {"draw: the lowest, the highest and what lies between", RO_OP_DRAW, {0}, 2,
     {I(2, 4, 4), I(2, 4, 2)},
     {IDS(0, 1, -5, 1, 0, 1, -5, 1, 0, 1, -5, 1, 0, 1, -5, 1),
      IDS(0, 0, -1, -1, -1, INT32_MAX, 0, INT32_MIN)}, {0}, W(1, 3, 1, 3)},
    {"draw from nothing", RO_OP_DRAW, {0}, 2, {I(1, 3), I(1, 2)}, {IDS(0, -1, 0), IDS(-1, -1)}, {0},
     W(0)},
    {"draw from the largest weights", RO_OP_DRAW, {0}, 2, {I(1, 4), I(1, 2)},
     {IDS(INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX), IDS(0, INT32_MIN / 2)}, {0}, W(3)},
};

static const example attention[] = {
    {"attn_max leaves later keys out", RO_OP_ATTN_MAX, {1}, 1, {F(2, 3, 3)},
     {N(-INF, NAN, INF, -0.0f, 0, NAN, 1, NAN, 3)}, {0}, W(0xff800000, 0, QNAN)},
    {"attn_max of all keys", RO_OP_ATTN_MAX, {0}, 1, {F(2, 1, 3)}, {N(1, 3, 2)}, {0}, N(3)},
    {"attn_exp: excluded keys and empty blocks give +0", RO_OP_ATTN_EXP, {1}, 2,
     {F(2, 3, 3), F(2, 3, 1)}, {N(5, NAN, NAN, 1, 2, NAN, NAN, 1, 2), N(5, 2, -INF)}, {0},
     W(ONE, 0, 0, 0x3ebc5ab2, ONE, 0, 0, 0, 0)},
    {"attn_exp of what is not a number", RO_OP_ATTN_EXP, {0}, 2, {F(2, 2, 2), F(2, 2, 1)},
     {N(-INF, NAN, 1, INF), N(0, NAN)}, {0}, W(0, QNAN, QNAN, QNAN)},
    {"attn_av weighs admitted values", RO_OP_ATTN_AV, {1}, 2, {F(2, 2, 2), F(2, 2, 3)},
     {N(2, NAN, 3, 4), N(1, -0.0f, 0, 10, -0.0f, INF)}, {0},
     W(TWO, 0, 0, 0x422c0000, 0, 0x7f800000)},
    {"attn_max_at: two queries from key 1 on", RO_OP_ATTN_MAX_AT, {0}, 2, {F(2, 2, 3), I(1, 1)},
     {N(1, 2, NAN, 5, 4, -0.0f), IDS(1)}, {0}, N(2, 5)},
    {"attn_max_at with a window, behind all keys", RO_OP_ATTN_MAX_AT, {2}, 2, {F(2, 2, 3), I(1, 1)},
     {N(9, 8, 7, 9, 8, 7), IDS(3)}, {0}, N(7, -INF)},
    {"attn_max_at before all keys", RO_OP_ATTN_MAX_AT, {0}, 2, {F(2, 2, 2), I(1, 1)},
     {N(1, 2, 3, 4), IDS(-1)}, {0}, N(-INF, 3)},
    {"attn_max_at far away", RO_OP_ATTN_MAX_AT, {0}, 2, {F(2, 1, 2), I(1, 1)},
     {N(1, 2), IDS(INT32_MAX)}, {0}, N(2)},
    {"attn_exp_at", RO_OP_ATTN_EXP_AT, {0}, 3, {F(2, 2, 3), F(2, 2, 1), I(1, 1)},
     {N(1, 2, NAN, 1, 1, 2), N(2, -INF), IDS(1)}, {0}, W(0x3ebc5ab2, ONE, 0, 0, 0, 0)},
    {"attn_av_at", RO_OP_ATTN_AV_AT, {1}, 3, {F(2, 2, 3), F(2, 3, 1), I(1, 1)},
     {N(NAN, 2, INF, 1, NAN, 3), N(1, 10, -0.0f), IDS(1)}, {0}, W(0x41a00000, 0)},
    {"attn_l skips empty blocks", RO_OP_ATTN_L, {0}, 2, {F(2, 4, 3), F(2, 4, 3)},
     {N(-INF, 2, 2, -INF, -INF, -INF, 1, 2, 0.5f, NAN, 1, 1),
      N(5, 1, 3, 5, NAN, 7, 3, 4, 5, 1, 1, 1)}, {0}, W(FOUR, 0, 0x40c7046a, QNAN)},
    {"attn_l keeps what a single block gives", RO_OP_ATTN_L, {0}, 2, {F(2, 2, 1), F(2, 2, 1)},
     {N(INF, 0), W(PAYLOAD, 0x80000000)}, {0}, W(QNAN, 0x80000000)},
    {"attn_out divides by l at the end", RO_OP_ATTN_OUT, {0}, 3,
     {F(2, 3, 3), F(3, 3, 3, 1), F(1, 3)},
     {N(-INF, 2, 2, -INF, -INF, -INF, 1, 2, 0.5f), N(9, 8, 4, 1, 1, 1, -1, 2, 7), N(4, 0, 3)}, {0},
     W(0x40400000, 0, 0x3f884758)},
    {"attn_prob", RO_OP_ATTN_PROB, {1}, 3, {F(2, 2, 2), F(2, 2, 1), F(2, 2, 1)},
     {N(1, NAN, 2, 1), N(-INF, 2), N(0, 4)}, {0}, W(0, 0, 0x3e800000, 0x3dbc5ab2)},
    {"attn_dscore", RO_OP_ATTN_DSCORE, {1}, 3, {F(2, 2, 2), F(2, 2, 2), F(2, 2, 1)},
     {N(2, NAN, 3, 0), N(5, NAN, 1, INF), N(1, 3)}, {0}, W(0x41000000, 0, 0xc0c00000, QNAN)},
    {"repeat_heads keeps bits", RO_OP_REPEAT_HEADS, {2}, 1, {F(4, 1, 2, 1, 2)},
     {W(PAYLOAD, 0x80000000, 1, TWO)}, {0},
     W(PAYLOAD, 0x80000000, PAYLOAD, 0x80000000, 1, TWO, 1, TWO)},
    {"repeat_heads_grad adds heads from +0, in their order", RO_OP_REPEAT_HEADS_GRAD, {3}, 1,
     {F(4, 1, 6, 1, 1)}, {N(1, 0x1p25f, -0x1p25f, -0.0f, -0.0f, -0.0f)}, {0}, W(0, 0)},
    {"repeat_heads_grad makes NaN canonical", RO_OP_REPEAT_HEADS_GRAD, {1}, 1, {F(4, 1, 1, 1, 1)},
     {W(PAYLOAD)}, {0}, W(QNAN)},
};

#define LR(shows, kind, base, low, warmup, total, step, want) \
    {shows, RO_OP_LR_SCHEDULE, {kind, base, low, warmup, total}, 1, {I(1, 1)}, {IDS(step)}, {0}, W(want)}

static const example optimizer[] = {
    LR("a constant rate", 0, ONE, QNAN, 0, 0, INT32_MAX, ONE),
    LR("steps before the first", 0, ONE, QNAN, 0, 0, -1, 0),
    LR("steps long before the first", 2, ONE, QNAN, 0, 7, INT32_MIN, 0),
    LR("warm-up starts above 0", 0, TWO, QNAN, 4, 0, 0, HALF),
    LR("warm-up reaches the base before it ends", 0, TWO, QNAN, 4, 0, 3, TWO),
    LR("linear", 1, ONE, 0, 0, 4, 1, 0x3f400000),
    LR("linear starts with the base after warm-up", 1, ONE, 0, 2, 4, 2, ONE),
    LR("the end", 1, ONE, HALF, 2, 4, 4, HALF),
    LR("long after the end", 2, ONE, HALF, 2, 4, INT32_MAX, HALF),
    LR("cosine starts with the base after warm-up", 2, 0x3a83126f, 0x38d1b717, 3, 10, 3, 0x3a83126f),
    LR("cosine", 2, 0x3a83126f, 0x38d1b717, 3, 10, 4, 0x3a7a763b),
    LR("cosine, later", 2, 0x3a83126f, 0x38d1b717, 3, 10, 9, 0x3917961d),
    LR("cosine, half way", 2, ONE, 0, 0, 4, 2, HALF),
    LR("a rate that is no number", 0, PAYLOAD, 0, 0, 0, 5, QNAN),
    {"bias_correction", RO_OP_BIAS_CORRECTION, {HALF}, 1, {F(1, 1)}, {N(0.5f)}, {0}, N(0.75f)},
    {"clip_scale above the limit", RO_OP_CLIP_SCALE, {TWO}, 1, {F(1, 1)}, {N(16)}, {0}, N(0.5f)},
    {"clip_scale at the limit", RO_OP_CLIP_SCALE, {FOUR}, 1, {F(1, 1)}, {N(16)}, {0}, N(1)},
    {"clip_scale of NaN", RO_OP_CLIP_SCALE, {TWO}, 1, {F(1, 1)}, {W(PAYLOAD)}, {0}, N(1)},
    {"clip_scale of infinity", RO_OP_CLIP_SCALE, {TWO}, 1, {F(1, 1)}, {N(INF)}, {0}, N(NAN)},
    {"clip_scale without a limit", RO_OP_CLIP_SCALE, {0x7f800000}, 1, {F(1, 1)}, {N(INF)}, {0}, N(1)},
    {"adamw_m", RO_OP_ADAMW_M, {HALF}, 3, {F(1, 2), F(1, 2), F(1, 1)},
     {N(4, NAN), N(2, 1), N(0.5f)}, {0}, N(2.5f, NAN)},
    {"adamw_v", RO_OP_ADAMW_V, {HALF}, 3, {F(1, 2), F(1, 2), F(1, 1)},
     {N(4, 0), N(4, INF), N(0.5f)}, {0}, N(4, INF)},
    {"adamw_w", RO_OP_ADAMW_W, {0, HALF}, 6,
     {F(1, 2), F(1, 2), F(1, 2), F(1, 1), F(1, 1), F(1, 1)},
     {N(1, 1), N(0.5f, 0.5f), N(0.25f, -1), N(0.5f), N(0.25f), N(0.5f)}, {0}, N(0.25f, NAN)},
    {"sgd_m clips, decays, accumulates", RO_OP_SGD_M, {HALF, TWO}, 4,
     {F(1, 3), F(1, 3), F(1, 3), F(1, 1)}, {N(4, 0, 1), N(3, NAN, 0), N(1, 0, INF), N(0.5f)}, {0},
     N(5.5f, NAN, INF)},
    {"sgd_w", RO_OP_SGD_W, {0}, 3, {F(1, 3), F(1, 3), F(1, 1)},
     {N(10, -0.0f, 1), N(4, 0, NAN), N(0.5f)}, {0}, N(8, -0.0f, NAN)},
    {"sgd_nesterov looks ahead", RO_OP_SGD_NESTEROV, {HALF, TWO}, 5,
     {F(1, 2), F(1, 2), F(1, 2), F(1, 1), F(1, 1)},
     {N(1, 1), N(4, INF), N(3, 0), N(0.5f), N(2)}, {0}, N(-10, -INF)},
    {"adamw_w where v overflowed", RO_OP_ADAMW_W, {0, 0}, 6,
     {F(1, 2), F(1, 2), F(1, 2), F(1, 1), F(1, 1), F(1, 1)},
     {N(1, 1), N(0.5f, 0.5f), N(INF, 0x1p127f), N(1), N(0.25f), N(1)}, {0}, N(NAN, NAN)},
    {"adamw_w adds eps to the root", RO_OP_ADAMW_W, {ONE, 0}, 6,
     {F(1, 1), F(1, 1), F(1, 1), F(1, 1), F(1, 1), F(1, 1)},
     {N(1), N(2), N(1), N(1), N(1), N(0.5f)}, {0}, N(0.5f)},
    {"adamw_w multiplies by reciprocals", RO_OP_ADAMW_W, {0, 0}, 6,
     {F(1, 1), F(1, 1), F(1, 1), F(1, 1), F(1, 1), F(1, 1)},
     {N(0), N(0.57f), N(0.45f), N(0.54f), N(0.13f), N(1)}, {0}, W(0xbf113d76)},
};
/* clang-format on */

static const struct {
    const example *list;
    size_t count;
} all_examples[] = {
    {movement, sizeof movement / sizeof movement[0]},
    {axes, sizeof axes / sizeof axes[0]},
    {elementwise, sizeof elementwise / sizeof elementwise[0]},
    {functions, sizeof functions / sizeof functions[0]},
    {reductions, sizeof reductions / sizeof reductions[0]},
    {products, sizeof products / sizeof products[0]},
    {norms, sizeof norms / sizeof norms[0]},
    {attention, sizeof attention / sizeof attention[0]},
    {sampling, sizeof sampling / sizeof sampling[0]},
    {optimizer, sizeof optimizer / sizeof optimizer[0]},
};
enum { LISTS = sizeof all_examples / sizeof all_examples[0], LARGEST = 16 };

static const char *name_of(const ro_call *call) {
    return ro_op_describe(call->op)->name;
}

static ro_call call_of(const example *x) {
    ro_call call = {x->op, x->input_count, {0}, x->input, x->output};
    char why[200];
    memcpy(call.attr, x->attr, sizeof call.attr);
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s: %s", x->shows, why);
    return call;
}

static void expect_example(const example *x) {
    const ro_call call = call_of(x);
    ro_ref_memory memory = {&call, x->data};
    const ro_access in = {ro_ref_load_memory, &memory};
    for (int64_t e = 0; e < ro_shape_numel(&call.output); e++) {
        const uint32_t got = ro_ref_element(&call, e, &in), want = ((const uint32_t *)x->want)[e];
        cr_expect(got == want, "%s (%s), element %lld: %08x, expected %08x", x->shows,
                  name_of(&call), (long long)e, got, want);
    }
}

/* Returns whether op is an operator of op_image.h. test_ref_image.c has their examples. */
static bool on_images(int op) {
    bool image = false;
#define RO_SECTION(section) image = strcmp(#section, "image") == 0;
#define RO_OPERATOR(number, ...)                                                                   \
    if (op == (number))                                                                            \
        return image;
#include "repops/src/operators.def"
    return image;
}

Test(examples, the_reference_gives_what_was_worked_by_hand) {
    bool seen[RO_OP_END] = {false};
    for (int k = 0; k < LISTS; k++)
        for (size_t i = 0; i < all_examples[k].count; i++) {
            expect_example(&all_examples[k].list[i]);
            seen[all_examples[k].list[i].op] = true;
        }
    for (int op = next_operator(0); op; op = next_operator(op))
        cr_expect(seen[op] || on_images(op), "no example of %s", ro_op_describe(op)->name);
}

Test(examples, kernels_give_the_same) {
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) ==
              RO_OK);
    for (int k = 0; k < LISTS; k++)
        for (size_t i = 0; i < all_examples[k].count; i++) {
            const example *x = &all_examples[k].list[i];
            const ro_call call = call_of(x);
            uint32_t out[LARGEST];
            const size_t count = (size_t)ro_shape_numel(&call.output);
            cr_assert(count <= LARGEST);
            cr_assert(ro_run(ctx, &call, x->data, out) == RO_OK, "%s", ro_ctx_error(ctx));
            const size_t size = ro_dtype_size(call.output.dtype);
            for (size_t e = 0; e < count; e++) /* an element is in the low bytes */
                cr_expect(memcmp((char *)out + e * size, (const uint32_t *)x->want + e, size) == 0,
                          "%s, element %zu", x->shows, e);
        }
    ro_ctx_destroy(ctx);
}

/* ---- orders: 2^24 swallows a 1 that meets it alone, but not a 2 ---- */

enum { TERMS = 5000 };

static const float big = 0x1p24f;

static float element(ro_call *call, const void *const *data, int64_t e) {
    char why[200];
    cr_assert(ro_infer(call, why, sizeof why) == RO_OK, "%s", why);
    ro_ref_memory memory = {call, data};
    const ro_access in = {ro_ref_load_memory, &memory};
    const uint32_t bits = ro_ref_element(call, e, &in);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

typedef struct {
    const char *shows;
    int op;
    int64_t attr[RO_MAX_ATTRS];
    ro_shape in;
    int64_t i, j; /* the terms that are 1; term 0 is 2^24, all others are 0 */
    float above;  /* the result minus 2^24 */
} order;

static float sum_of(const order *o) {
    static float x[TERMS], ones[TERMS];
    static const int32_t ids[TERMS];
    memset(x, 0, sizeof x);
    for (int k = 0; k < TERMS; k++)
        ones[k] = 1;
    x[0] = big, x[o->i] = 1, x[o->j] = 1;
    const int64_t count = ro_shape_numel(&o->in);
    const bool gather = o->op == RO_OP_EMBEDDING_GRAD;
    const bool dot = o->op == RO_OP_REDUCE_DOT, product = o->op == RO_OP_MATMUL || dot;
    const ro_shape column = F(2, count, 1), positions = I(1, count);
    const ro_shape shapes[] = {o->in, gather ? positions : dot ? o->in : column};
    const void *const data[] = {x, gather ? (const void *)ids : ones};
    ro_call call = {o->op, gather || product ? 2 : 1, {0}, shapes, {0}};
    memcpy(call.attr, o->attr, sizeof call.attr);
    if (ro_op_describe(o->op)->declared_shape)
        call.output = gather ? (ro_shape)F(2, 1, 1) : (ro_shape)F(1, 1);
    return element(&call, data, 0);
}

static const order orders[] = {
    {"one chunk", RO_OP_MATMUL, {0, 0, ONE, 256, 0}, F(2, 1, 600), 254, 255, 0},
    {"another chunk is a sum of its own",
     RO_OP_MATMUL,
     {0, 0, ONE, 256},
     F(2, 1, 600),
     256,
     511,
     2},
    {"chunks are added one by one", RO_OP_MATMUL, {0, 0, ONE, 256}, F(2, 1, 600), 511, 512, 0},
    {"a chunk of 128", RO_OP_MATMUL, {0, 0, ONE, 128}, F(2, 1, 600), 126, 127, 0},
    {"the second chunk of 128", RO_OP_MATMUL, {0, 0, ONE, 128}, F(2, 1, 600), 128, 255, 2},
    {"one lane", RO_OP_REDUCE_SUM, {600, 1024}, F(1, 600), 128, 512, 0},
    {"two lanes that meet first", RO_OP_REDUCE_SUM, {600, 1024}, F(1, 600), 1, 3, 2},
    {"two lanes that meet lane 0 apart", RO_OP_REDUCE_SUM, {600, 1024}, F(1, 600), 1, 2, 0},
    {"another lane, in two rounds", RO_OP_REDUCE_SUM, {600, 1024}, F(1, 600), 5, 133, 2},
    {"lanes 64 apart", RO_OP_REDUCE_SUM, {600, 1024}, F(1, 600), 65, 1, 2},
    {"another lane of a dot product", RO_OP_REDUCE_DOT, {600, 1024}, F(1, 600), 5, 133, 2},
    {"one lane of a dot product", RO_OP_REDUCE_DOT, {600, 1024}, F(1, 600), 256, 384, 0},
    {"a column goes row by row", RO_OP_SUM_ROWS, {1}, F(2, 64, 1), 62, 63, 0},
    {"positions of one group", RO_OP_EMBEDDING_GRAD, {0}, F(2, 600, 1), 62, 63, 0},
    {"positions of another group", RO_OP_EMBEDDING_GRAD, {0}, F(2, 600, 1), 64, 127, 2},
    {"groups are added one by one", RO_OP_EMBEDDING_GRAD, {0}, F(2, 600, 1), 127, 128, 0},
    {"an unfinished group", RO_OP_EMBEDDING_GRAD, {0}, F(2, 66, 1), 64, 65, 2},
    {"groups of one second level", RO_OP_EMBEDDING_GRAD, {0}, F(2, 4096, 1), 64, 128, 0},
    {"groups of another second level", RO_OP_EMBEDDING_GRAD, {0}, F(2, 5000, 1), 4096, 4160, 2},
    {"levels join from the lowest up", RO_OP_EMBEDDING_GRAD, {0}, F(2, 4161, 1), 4096, 4160, 2},
};

Test(orders, sums_follow_the_specification) {
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++) {
        const float got = sum_of(&orders[k]);
        cr_expect(got == big + orders[k].above, "%s (%s): 2^24 + %g", orders[k].shows,
                  ro_op_describe(orders[k].op)->name, (double)(got - big));
    }
}

/* SPEC.md section 3.1: chunks start at multiples of 256, even in a row that begins at 199. */
Test(orders, a_mask_does_not_move_chunks) {
    enum { ROWS = 200, K = 300 };
    static float a[ROWS * K], b[K];
    for (int i = 0; i < K; i++)
        b[i] = 1;
    float *row = a + (ROWS - 1) * K;
    row[0] = NAN, row[200] = big, row[255] = 1, row[256] = 1, row[299] = 1;
    const ro_shape in[] = {F(2, ROWS, K), F(2, K, 1)};
    ro_call call = {RO_OP_MATMUL, 2, {0, 0, ONE, 256, RO_MASK_FROM_ROW}, in, {0}};
    cr_expect(element(&call, (const void *[]){a, b}, ROWS - 1) == big + 2);
}

/* ---- read_batch: windows in the order of the permutation, epoch after epoch ---- */

enum { WINDOWS = 13, SEQUENCE = 7, BATCH = 5, ROWS_READ = 4 };

static void expect_row(const ro_call *call, const ro_access *in, int32_t step, int64_t row) {
    const uint64_t slot = (uint64_t)(uint32_t)step * BATCH + 1 + (uint64_t)row;
    const uint64_t window = ro_permute(3, 4, slot / WINDOWS, WINDOWS, slot % WINDOWS);
    for (int64_t t = 0; t < SEQUENCE; t++)
        cr_expect(ro_ref_element(call, row * SEQUENCE + t, in) == window * SEQUENCE + (uint64_t)t);
}

Test(read_batch, windows_come_in_the_order_of_the_permutation) {
    enum { TOKENS = WINDOWS * SEQUENCE + SEQUENCE - 1 }; /* the rest makes no window */
    uint16_t data[TOKENS];
    const int32_t steps[] = {0, 1, 2, 3, 1000, INT32_MAX, -1, INT32_MIN};
    for (uint16_t i = 0; i < TOKENS; i++)
        data[i] = i;
    const ro_shape in[] = {{RO_U16, 1, {TOKENS}}, I(1, 1)};
    const ro_call call = {RO_OP_READ_BATCH, 2, {3, 4, BATCH, 1, 0}, in, I(2, ROWS_READ, SEQUENCE)};
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        ro_ref_memory memory = {&call, (const void *[]){data, &steps[k]}};
        const ro_access access = {ro_ref_load_memory, &memory};
        for (int64_t row = 0; row < ROWS_READ; row++)
            expect_row(&call, &access, steps[k], row);
    }
}

/* ---- folds: the state that a provider commits to after a step is all that the next one needs
 * ---- */

static void expect_resumable(const ro_call *call, const void *const *data) {
    ro_ref_memory memory = {call, data};
    const ro_access in = {ro_ref_load_memory, &memory};
    ro_acc acc;
    ro_ref_begin(call, 0, &acc);
    for (int64_t j = 0; j < ro_ref_steps(call); j++) {
        ro_acc copy;
        memset(&copy, 0xee, sizeof copy);
        memcpy(&copy, &acc, ro_ref_state_size(call));
        ro_ref_step(call, 0, j, &copy, &in);
        acc = copy;
    }
    cr_expect(ro_ref_finish(call, 0, &acc, &in) == ro_ref_element(call, 0, &in));
}

Test(folds, they_resume_from_their_state_alone) {
    enum { MANY = 4500 };
    static float x[MANY], y[MANY];
    static int32_t ids[MANY];
    uint64_t state = 1;
    for (int i = 0; i < MANY; i++) {
        x[i] = (float)(int32_t)random_word(&state) * 0x1p-20f;
        y[i] = (float)(int32_t)random_word(&state) * 0x1p-40f;
        ids[i] = random_word(&state) % 8 == 0;
    }
    const ro_shape product[] = {F(2, 1, MANY), F(2, MANY, 1)};
    const ro_shape gather[] = {F(2, MANY, 1), I(1, MANY)};
    const ro_call dot = {RO_OP_MATMUL, 2, {0, 0, ONE, 256, 0}, product, F(2, 1, 1)};
    const ro_call grad = {RO_OP_EMBEDDING_GRAD, 2, {0}, gather, F(2, 2, 1)};
    cr_expect(ro_ref_steps(&dot) == 18 && ro_ref_state_size(&dot) == 4);
    cr_expect(ro_ref_steps(&grad) == 18 && ro_ref_state_size(&grad) == 32);
    expect_resumable(&dot, (const void *[]){x, y});
    expect_resumable(&grad, (const void *[]){x, ids});
}

/* ---- any size, any bits: the accessor computes elements by a formula, without tensors ---- */

enum { SLOTS = 16384 };

typedef struct {
    const ro_call *call;
    uint64_t seed;
    uint64_t slot[SLOTS]; /* hash table of all reads since the last reset */
    int64_t distinct;
} witness;

static uint32_t hostile_bits(uint64_t h, int dtype) {
    static const uint32_t list[] = {
        0,          0x80000000, 0x7f800000, 0xff800000, QNAN, PAYLOAD,    0x7f800001, 1,
        0x807fffff, 0x7f7fffff, ONE,        2,          3,    0x7fffffff, 0x80000001, 0xffffffff,
    };
    const uint32_t bits = h % 3 ? list[(h >> 8) % 16] : (uint32_t)(h >> 16);
    const size_t size = ro_dtype_size(dtype);
    return size == 1 ? bits & 0xff : size == 2 ? bits & 0xffff : bits;
}

static void note(witness *w, uint64_t number) {
    uint64_t at = number * UINT64_C(0x9e3779b97f4a7c15) % SLOTS;
    while (w->slot[at] != 0 && w->slot[at] != number)
        at = (at + 1) % SLOTS;
    w->distinct += w->slot[at] == 0;
    w->slot[at] = number;
    cr_assert(w->distinct < SLOTS / 2, "%s reads without end", name_of(w->call));
}

static uint32_t watch(void *user, int input, int64_t index) {
    witness *w = user;
    cr_assert(input >= 0 && input < w->call->input_count, "%s: input %d", name_of(w->call), input);
    cr_assert(index >= 0 && index < ro_shape_numel(&w->call->input[input]), "%s: element %lld",
              name_of(w->call), (long long)index);
    note(w, ((uint64_t)input << 41 | (uint64_t)index) + 1);
    uint64_t state = w->seed ^ (uint64_t)input << 52 ^ (uint64_t)index;
    return hostile_bits(random_word(&state), w->call->input[input].dtype);
}

static void expect_reads(witness *w, int64_t most, const char *part) {
    cr_assert(w->distinct <= most, "%s, %s: %lld reads, at most %lld promised", name_of(w->call),
              part, (long long)w->distinct, (long long)most);
    if (w->distinct > 0)
        memset(w->slot, 0, sizeof w->slot);
    w->distinct = 0;
}

/* Runs a fold's first, middle and last step, from states that anybody could have made up. */
static uint32_t watched_element(witness *w, int64_t e, uint64_t *state) {
    const ro_access in = {watch, w};
    const int64_t steps = ro_ref_steps(w->call), at[] = {0, steps / 2, steps - 1};
    ro_acc acc;
    ro_ref_begin(w->call, e, &acc);
    if (random_word(state) % 2)
        for (int i = 0; i < 256; i++)
            acc.word[i] = hostile_bits(random_word(state), RO_F32);
    for (int i = 0; i < 3 && steps > 0; i++) {
        ro_ref_step(w->call, e, at[i], &acc, &in);
        expect_reads(w, ro_ref_step_loads(w->call), "a step");
    }
    const uint32_t out = ro_ref_finish(w->call, e, &acc, &in);
    expect_reads(w, ro_ref_finish_loads(w->call), "finish");
    return out;
}

static void expect_total(witness *w, uint64_t *state) {
    const int64_t numel = ro_shape_numel(&w->call->output);
    if (numel == 0)
        return;
    const int64_t e[] = {0, numel - 1, (int64_t)(random_word(state) % (uint64_t)numel)};
    for (int i = 0; i < 3; i++) {
        uint64_t again = *state;
        const uint32_t out = watched_element(w, e[i], state);
        cr_assert(watched_element(w, e[i], &again) == out, "%s: another result from the same bits",
                  name_of(w->call));
        cr_assert(w->call->output.dtype != RO_F32 || keeps_nans(w->call->op) ||
                      (out & 0x7fffffff) <= 0x7f800000 || out == QNAN,
                  "%s stores a NaN that is not canonical", name_of(w->call));
    }
}

/* Tensors of up to 2^40 elements. */
Test(hostile, any_valid_call_reads_in_range_and_within_its_promise) {
    static any_call c;
    static witness w;
    uint64_t state = 5;
    for (int op = next_operator(0); op; op = next_operator(op)) {
        int tried = 0;
        for (int i = 0; i < 500; i++) {
            random_call(&c, op, &state);
            if (ro_infer(&c.call, NULL, 0) != RO_OK)
                continue;
            w.call = &c.call;
            w.seed = random_word(&state);
            expect_total(&w, &state);
            tried += c.call.op == op;
        }
        cr_expect(tried > 100, "%s: only %d calls", ro_op_describe(op)->name, tried);
    }
}
