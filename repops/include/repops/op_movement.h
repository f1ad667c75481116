/* Operators and their attributes, the part `movement`: `make operators` writes this file from
 * repops/src/operators.def. SPEC.md has their formulas and special values. */
#ifndef REPOPS_OP_MOVEMENT_H
#define REPOPS_OP_MOVEMENT_H

/* clang-format off */

/* The inputs, as SPEC.md names them, and what is computed. The numbers are part of the canonical
 * encoding of graphs: never reuse one. */
enum {
    RO_OP_FILL = 1,                /* one value */
    RO_OP_NORMAL = 2,              /* normally distributed numbers */
    RO_OP_READ_BATCH = 3,          /* (data u8 or u16 or i32..., step i32): windows of tokens */
    RO_OP_EMBEDDING = 4,           /* (table f32 or bf16 or f16, ids i32): rows of the table */
    RO_OP_EMBEDDING_GRAD = 5,      /* (dy, ids i32): of the table */
    RO_OP_SPLIT_HEADS = 6,         /* (x any): one of its parts, by heads */
    RO_OP_JOIN_HEADS = 7,          /* (x any...): the inverse */
    RO_OP_CONCAT = 8,              /* (x...): all elements in one row */
    RO_OP_IOTA = 9,                /* 0, 1, 2, ... */
    RO_OP_TRANSPOSE = 10,          /* (x any): dimensions in another order */
    RO_OP_SLICE = 11,              /* (x any): every step-th along an axis */
    RO_OP_PAD = 12,                /* (x any): a value before, after and in between */
    RO_OP_GATHER = 13,             /* (x any, ids i32): places along an axis */
    RO_OP_CONCAT_AXIS = 14,        /* (x any...): along an axis */
    RO_OP_CAST = 15,               /* (x any): to another type */
    RO_OP_CAST_STOCHASTIC = 226,   /* (x, step i32): to bf16, up or down at random */
    RO_OP_RESHAPE = 200,           /* (x any): the same elements */
    RO_OP_GATHER_GRAD = 201,       /* (dy, ids i32) */
    RO_OP_UNIFORM = 202,           /* uniformly distributed numbers */
    RO_OP_PUT_ROWS = 215,          /* (x any, rows any, at i32): x with some places along an axis replaced */
    RO_OP_PERMUTATION = 203,       /* (step i32): 0 .. W - 1 shuffled */
};

/* Places in ro_call.attr; those of kind f hold the bits of a float (ro_attr_f32), and the last ones
 * are of attributes that all operators of a family have. */
enum {
    RO_FILL_VALUE = 0, /* f */
    RO_NORMAL_SEED = 0,
    RO_NORMAL_STREAM = 1,
    RO_NORMAL_MEAN = 2, /* f */
    RO_NORMAL_STD = 3, /* f */
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
    RO_PAD_VALUE = 4, /* f */
    RO_GATHER_AXIS = 0,
    RO_CONCAT_AXIS_AXIS = 0,
    RO_CAST_DTYPE = 0,
    RO_CAST_STOCHASTIC_SEED = 0,
    RO_CAST_STOCHASTIC_STREAM = 1,
    RO_GATHER_GRAD_AXIS = 0,
    RO_UNIFORM_SEED = 0,
    RO_UNIFORM_STREAM = 1,
    RO_UNIFORM_LOW = 2, /* f */
    RO_UNIFORM_HIGH = 3, /* f */
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
