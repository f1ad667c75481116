/* Operators that can take many rows in one call: row r of the output depends only on row r of the
 * inputs. All other operators run row by row. */
#include "repops/operators.h"
#include "verde/exec/batch_internal.h"

/* One letter per input: r rows, s shared, b repeated, p positions; the last letter stands for all
 * further inputs. `axis`: attribute of the operator's axis, plus 1; 0: none. */
static const struct {
    int op;
    const char *inputs;
    int axis;
} together[] = {
    {RO_OP_EMBEDDING, "sr", 0},
    {RO_OP_SPLIT_HEADS, "r", 0},
    {RO_OP_JOIN_HEADS, "r", 0},
    {RO_OP_SLICE, "r", RO_SLICE_AXIS + 1},
    {RO_OP_CONCAT_AXIS, "r", RO_CONCAT_AXIS_AXIS + 1},
    {RO_OP_RESHAPE, "r", 0},
    {RO_OP_CAST, "r", 0},
    {RO_OP_ADD, "rb", 0},
    {RO_OP_SUB, "rb", 0},
    {RO_OP_MUL, "rb", 0},
    {RO_OP_DIV, "rb", 0},
    {RO_OP_MAX, "rb", 0},
    {RO_OP_MIN, "rb", 0},
    {RO_OP_COMPARE, "rb", 0},
    {RO_OP_IADD, "rb", 0},
    {RO_OP_WHERE, "r", 0},
    {RO_OP_ABS, "r", 0},
    {RO_OP_SCALE, "r", 0},
    {RO_OP_DIV_CONST, "r", 0},
    {RO_OP_EXP, "r", 0},
    {RO_OP_LOG, "r", 0},
    {RO_OP_SQRT, "r", 0},
    {RO_OP_RSQRT, "r", 0},
    {RO_OP_RELU, "r", 0},
    {RO_OP_GELU, "r", 0},
    {RO_OP_GELU_ERF, "r", 0},
    {RO_OP_SILU, "r", 0},
    {RO_OP_MATMUL, "rs", 0},
    {RO_OP_MATMUL_FIXED, "rs", 0},
    {RO_OP_REDUCE_SUM, "r", 0},
    {RO_OP_REDUCE_MAX, "r", 0},
    {RO_OP_REDUCE_DOT, "rb", 0},
    {RO_OP_REDUCE_SQDEV, "r", 0},
    {RO_OP_REDUCE_EXPSUM, "r", 0},
    {RO_OP_LN_RSTD, "r", 0},
    {RO_OP_LAYERNORM, "rrrs", 0},
    {RO_OP_RMSNORM, "rrs", 0},
    {RO_OP_ROPE, "rps", 0},
    {RO_OP_ARGMAX, "r", RO_ARGMAX_AXIS + 1},
    {RO_OP_XENT, "r", 0},
    {RO_OP_WEIGHT, "r", 0},
    {RO_OP_TOP_K, "r", 0},
    {RO_OP_TOP_P, "r", 0},
    {RO_OP_KEEP_TOP, "r", 0},
    {RO_OP_DRAW, "r", 0},
};

static int line_of(int op) {
    for (int i = 0; i < (int)(sizeof together / sizeof *together); i++)
        if (together[i].op == op)
            return i;
    return -1;
}

vd_batch_input vd_batch_input_of(int op, int i) {
    const int line = line_of(op);
    if (line < 0)
        return VD_INPUT_NONE;
    const char *at = together[line].inputs;
    for (; i > 0 && at[1]; i--)
        at++;
    return *at == 'r'   ? VD_INPUT_ROWS
           : *at == 's' ? VD_INPUT_SHARED
           : *at == 'b' ? VD_INPUT_REPEATED
                        : VD_INPUT_POSITION;
}

int vd_batch_axis_of(int op) {
    const int line = line_of(op);
    return line < 0 ? -1 : together[line].axis - 1;
}
