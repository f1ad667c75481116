/* Operators of section `attention` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_ATTENTION_H
#define REPOPS_OP_ATTENTION_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_ATTN_MAX = 72,           /* (s): the largest score of each key block */
    RO_OP_ATTN_EXP = 73,           /* (s, mc): exp(s - mc) */
    RO_OP_ATTN_AV = 74,            /* (ex, v): weighted sums of values, by key block */
    RO_OP_ATTN_L = 75,             /* (mc, lc): sums of exp over all key blocks */
    RO_OP_ATTN_OUT = 76,           /* (mc, ac, l): output of attention */
    RO_OP_ATTN_PROB = 77,          /* (s, m, l): softmax of scores */
    RO_OP_ATTN_DSCORE = 78,        /* (p, dp, delta): gradient of the scores */
    RO_OP_REPEAT_HEADS = 79,       /* (x any): each head repeated `times` times */
    RO_OP_REPEAT_HEADS_GRAD = 80,  /* (dy) */
    RO_OP_ATTN_MAX_AT = 216,       /* (s, first i32): attn_max of queries from position `first` on */
    RO_OP_ATTN_EXP_AT = 217,       /* (s, mc, first i32): attn_exp of queries from position `first` on */
    RO_OP_ATTN_AV_AT = 218,        /* (ex, v, first i32): attn_av of queries from position `first` on */
    RO_OP_ROPE_TURNS = 205,        /* turns of each pair per position */
    RO_OP_ROPE = 206,              /* (x, position i32, turns i32): x rotated by its positions */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_ATTN_MAX_CAUSAL = 0,
    RO_ATTN_MAX_WINDOW = 1,
    RO_ATTN_EXP_CAUSAL = 0,
    RO_ATTN_EXP_WINDOW = 1,
    RO_ATTN_AV_CAUSAL = 0,
    RO_ATTN_AV_WINDOW = 1,
    RO_ATTN_PROB_CAUSAL = 0,
    RO_ATTN_PROB_WINDOW = 1,
    RO_ATTN_DSCORE_CAUSAL = 0,
    RO_ATTN_DSCORE_WINDOW = 1,
    RO_REPEAT_HEADS_TIMES = 0,
    RO_REPEAT_HEADS_GRAD_TIMES = 0,
    RO_ATTN_MAX_AT_WINDOW = 0,
    RO_ATTN_EXP_AT_WINDOW = 0,
    RO_ATTN_AV_AT_WINDOW = 0,
    RO_ROPE_TURNS_BASE = 0, /* float */
    RO_ROPE_TURNS_KIND = 1,
    RO_ROPE_TURNS_FACTOR = 2, /* float */
    RO_ROPE_TURNS_LOW = 3, /* float */
    RO_ROPE_TURNS_HIGH = 4, /* float */
    RO_ROPE_TURNS_ORIGINAL = 5,
    RO_ROPE_PAIRS = 0,
    RO_ROPE_INVERSE = 1,
    RO_MASKED_CAUSAL = RO_ATTN_MAX_CAUSAL,
    RO_MASKED_WINDOW = RO_ATTN_MAX_WINDOW,
    RO_PLACED_WINDOW = RO_ATTN_MAX_AT_WINDOW,
    RO_REPEAT_TIMES = RO_REPEAT_HEADS_TIMES,
};

/* clang-format on */

#endif
