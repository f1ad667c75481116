/* Operators of section `number` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_NUMBER_H
#define REPOPS_OP_NUMBER_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_INTEGER = 232,           /* (a i32, b i32): arithmetic of integers; b repeats */
    RO_OP_ROUND = 233,             /* (x): x rounded to a whole number */
    RO_OP_SIN = 234,               /* (x): sine */
    RO_OP_COS = 235,               /* (x): cosine */
    RO_OP_TAN = 236,               /* (x): tangent */
    RO_OP_ASIN = 237,              /* (x): inverse of sin */
    RO_OP_ACOS = 238,              /* (x): inverse of cos */
    RO_OP_ATAN = 239,              /* (x): inverse of tan */
    RO_OP_SINH = 240,              /* (x): hyperbolic sine */
    RO_OP_COSH = 241,              /* (x): hyperbolic cosine */
    RO_OP_ASINH = 242,             /* (x): inverse of sinh */
    RO_OP_ACOSH = 243,             /* (x): inverse of cosh */
    RO_OP_ATANH = 244,             /* (x): inverse of tanh */
    RO_OP_LOG1P = 245,             /* (x): log(1 + x) */
    RO_OP_EXPM1 = 246,             /* (x): exp(x) - 1 */
    RO_OP_LOG2 = 247,              /* (x): logarithm to base 2 */
    RO_OP_EXP2 = 248,              /* (x): 2 to the power of x */
    RO_OP_ATAN2 = 249,             /* (y, x): the angle of (x, y); x repeats */
    RO_OP_POW = 250,               /* (x, y): x to the power of y; y repeats */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_INTEGER_KIND = 0,
    RO_ROUND_KIND = 0,
};

/* clang-format on */

#endif
