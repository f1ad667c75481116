/* Operators of section `movement` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_MOVEMENT_H
#define REPOPS_OP_MOVEMENT_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_FILL = 1,                /* one value */
    RO_OP_NORMAL = 2,              /* normally distributed numbers */
    RO_OP_READ_BATCH = 3,          /* (data u8 or u16 or i32..., step i32): windows of tokens */
    RO_OP_EMBEDDING = 4,           /* (table f32 or bf16 or f16, ids i32): rows of the table */
    RO_OP_EMBEDDING_GRAD = 5,      /* (dy, ids i32): gradient of the table */
    RO_OP_SPLIT_HEADS = 6,         /* (x any): one part of each row, head by head */
    RO_OP_JOIN_HEADS = 7,          /* (x any...): rows of all heads, the inverse of split_heads */
    RO_OP_CONCAT = 8,              /* (x...): all elements in one row */
    RO_OP_IOTA = 9,                /* 0, 1, 2, ... */
    RO_OP_TRANSPOSE = 10,          /* (x any): dimensions in another order */
    RO_OP_SLICE = 11,              /* (x any): every step-th along an axis */
    RO_OP_PAD = 12,                /* (x any): x with a value before, after and between its elements */
    RO_OP_GATHER = 13,             /* (x any, ids i32): x at the places `ids` along an axis */
    RO_OP_CONCAT_AXIS = 14,        /* (x any...): inputs joined along an axis */
    RO_OP_CAST = 15,               /* (x any): x as another type */
    RO_OP_CAST_STOCHASTIC = 226,   /* (x, step i32): x as bf16, rounded up or down at random */
    RO_OP_RESHAPE = 200,           /* (x any): the same elements */
    RO_OP_GATHER_GRAD = 201,       /* (dy, ids i32) */
    RO_OP_UNIFORM = 202,           /* uniformly distributed numbers */
    RO_OP_PUT_ROWS = 215,          /* (x any, rows any, at i32): x with some places along an axis replaced */
    RO_OP_PERMUTATION = 203,       /* (step i32): 0 .. W - 1 in shuffled order */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_FILL_VALUE = 0, /* float */
    RO_NORMAL_SEED = 0,
    RO_NORMAL_STREAM = 1,
    RO_NORMAL_MEAN = 2, /* float */
    RO_NORMAL_STD = 3, /* float */
    RO_READ_BATCH_SEED = 0,
    RO_READ_BATCH_STREAM = 1,
    RO_READ_BATCH_BATCH = 2,
    RO_READ_BATCH_FIRST = 3,
    RO_READ_BATCH_SHIFT = 4,
    RO_SPLIT_HEADS_PARTS = 0,
    RO_SPLIT_HEADS_PART = 1,
    RO_SPLIT_HEADS_HEADS = 2,
    RO_TRANSPOSE_D0 = 0,
    RO_TRANSPOSE_D1 = 1,
    RO_TRANSPOSE_D2 = 2,
    RO_TRANSPOSE_D3 = 3,
    RO_TRANSPOSE_D4 = 4,
    RO_TRANSPOSE_D5 = 5,
    RO_TRANSPOSE_D6 = 6,
    RO_TRANSPOSE_D7 = 7,
    RO_SLICE_AXIS = 0,
    RO_SLICE_START = 1,
    RO_SLICE_LENGTH = 2,
    RO_SLICE_STEP = 3,
    RO_PAD_AXIS = 0,
    RO_PAD_BEFORE = 1,
    RO_PAD_AFTER = 2,
    RO_PAD_STEP = 3,
    RO_PAD_VALUE = 4, /* float */
    RO_GATHER_AXIS = 0,
    RO_CONCAT_AXIS_AXIS = 0,
    RO_CAST_DTYPE = 0,
    RO_CAST_STOCHASTIC_SEED = 0,
    RO_CAST_STOCHASTIC_STREAM = 1,
    RO_GATHER_GRAD_AXIS = 0,
    RO_UNIFORM_SEED = 0,
    RO_UNIFORM_STREAM = 1,
    RO_UNIFORM_LOW = 2, /* float */
    RO_UNIFORM_HIGH = 3, /* float */
    RO_PUT_ROWS_AXIS = 0,
    RO_PERMUTATION_SEED = 0,
    RO_PERMUTATION_STREAM = 1,
    RO_ALONG_AXIS = RO_SLICE_AXIS,
    RO_RANDOM_SEED = RO_NORMAL_SEED,
    RO_RANDOM_STREAM = RO_NORMAL_STREAM,
    RO_READER_SEED = RO_READ_BATCH_SEED,
    RO_READER_STREAM = RO_READ_BATCH_STREAM,
    RO_READER_BATCH = RO_READ_BATCH_BATCH,
    RO_READER_FIRST = RO_READ_BATCH_FIRST,
};

/* clang-format on */

#endif
