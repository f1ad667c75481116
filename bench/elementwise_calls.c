/* The calls of one work of bench/elementwise.c: shapes, attributes, and levels of reductions. */
#include "repops/op_movement.h"
#include "repops/op_reduce.h"
#include "bench/elementwise.h"

static ro_shape shape_of(char letter, int64_t rows, int64_t cols) {
    switch (letter) {
    case 'r': return (ro_shape){RO_F32, 1, {rows}};
    case 'c': return (ro_shape){RO_F32, 1, {cols}};
    case 'R': return (ro_shape){RO_F32, 2, {rows, 1}};
    case 'C': return (ro_shape){RO_F32, 2, {1, cols}};
    case 's': return (ro_shape){RO_F32, 1, {1}};
    case 'z': return (ro_shape){RO_I32, 1, {1}};
    case 'i': return (ro_shape){RO_I32, 1, {rows}};
    case 'p': return (ro_shape){RO_I32, 1, {64}};
    case 'q': return (ro_shape){RO_I32, 2, {32, 2}};
    case 'u': return (ro_shape){RO_U8, 2, {rows, cols}};
    case 'x': return (ro_shape){RO_F32, 3, {rows / 64, 64, cols}};
    case 'h': return (ro_shape){RO_F32, 4, {rows / 64, cols / 64, 64, 64}};
    case 't': return (ro_shape){RO_F32, 4, {rows / 64, 64, cols / 64, 64}};
    default: return (ro_shape){RO_F32, 2, {rows, cols}};
    }
}

static const void *data_of(char letter, int index, const memory *m) {
    return letter == 'i' || letter == 'p' || letter == 'q' ? m->ids
           : letter == 'z'                                 ? m->zero
           : letter == 'u'                                 ? m->u8
                                                           : (void *)m->f[index];
}

static double bytes_of(const ro_shape *s) {
    return (double)ro_shape_numel(s) * (double)ro_dtype_size(s->dtype);
}

static void finish_call(job *j, call *c) {
    char why[160];
    c->call.input = c->in;
    if (ro_infer(&c->call, why, sizeof why) != RO_OK) {
        fprintf(stderr, "bench: %s: %s\n", ro_op_describe(c->call.op)->name, why);
        exit(1);
    }
    for (int i = 0; i < c->call.input_count; i++)
        j->bytes += bytes_of(&c->in[i]);
    j->bytes += bytes_of(&c->call.output);
    j->calls++;
}

/* Sets the attributes that depend on the shape. */
static void set_attributes(const step *s, job *j, call *c) {
    memcpy(c->call.attr, s->attr, sizeof s->attr);
    if (s->output == 'r' || s->output == 'C')
        c->call.attr[RO_ROWS_COLS] = j->cols;
    switch (s->op) {
    case RO_OP_SPLIT_HEADS: c->call.attr[RO_SPLIT_HEADS_HEADS] = j->cols / 64; break;
    case RO_OP_SLICE: c->call.attr[RO_SLICE_LENGTH] = j->cols / 2; break;
    case RO_OP_EXPAND:
        c->call.attr[RO_EXPAND_COUNT] = s->inputs[0] == 'R' ? j->cols : j->rows;
        break;
    default: break;
    }
}

/* Adds further levels of a reduction after one that leaves `left` numbers of each row (or rows),
 * until one is left. */
static void add_levels(const step *s, job *j, call *c, const memory *m) {
    const int64_t unit = s->output == 'r' ? RO_REDUCE_BLOCK : RO_COLUMN_GROUP;
    const bool rows = s->output == 'r';
    int64_t left = rows ? j->cols : j->rows;
    if (rows)
        c->call.attr[RO_ROWS_BLOCK] = unit;
    for (;;) {
        left = (left + unit - 1) / unit;
        c->call.output =
            rows ? (ro_shape){RO_F32, 2, {j->rows, left}} : (ro_shape){RO_F32, 2, {left, j->cols}};
        finish_call(j, c);
        if (left == 1)
            return;
        c = &j->call[j->calls];
        *c = (call){{.op = rows                      ? RO_OP_REDUCE_SUM
                           : s->op == RO_OP_MAX_AXIS ? RO_OP_MAX_AXIS
                           : s->op == RO_OP_SUM_AXIS ? RO_OP_SUM_AXIS
                                                     : RO_OP_SUM_ROWS,
                     .input_count = 1}};
        c->in[0] = j->call[j->calls - 1].call.output;
        c->data[0] = m->out;
        c->call.attr[RO_ROWS_COLS] = rows ? left : c->call.op == RO_OP_SUM_ROWS ? j->cols : 0;
        c->call.attr[RO_ROWS_BLOCK] = rows ? unit : 0;
    }
}

static void add_step(const step *s, job *j, const memory *m) {
    call *c = &j->call[j->calls];
    *c = (call){{.op = s->op}};
    for (const char *l = s->inputs; *l; l++) {
        const int i = c->call.input_count++;
        c->in[i] = shape_of(*l, j->rows, j->cols);
        c->data[i] = data_of(*l, i, m);
    }
    set_attributes(s, j, c);
    if (s->output == 'r' || s->output == 'C' || s->op == RO_OP_SUM_AXIS ||
        s->op == RO_OP_MAX_AXIS) {
        add_levels(s, j, c, m);
        return;
    }
    if (s->output)
        c->call.output = shape_of(s->output, j->rows, j->cols);
    finish_call(j, c);
}

void describe(const work *w, const size *s, const memory *m, job *j) {
    *j = (job){.rows = s->rows, .cols = s->cols};
    if (w->wide) { /* GPT-2's logits, with as many rows as fit */
        j->cols = 50257;
        j->rows = s->rows * s->cols / j->cols > 0 ? s->rows * s->cols / j->cols : 1;
    }
    for (int i = 0; i < STEPS && w->step[i].inputs && w->step[0].op < RO_OP_END; i++)
        add_step(&w->step[i], j, m);
    if (w->passes > 0)
        j->bytes = 4 * w->passes * (double)(j->rows * j->cols);
}
