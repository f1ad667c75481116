/* What was rounded how, operator by operator. */
#include "bench/determinism/determinism.h"

typedef struct {
    double elements, decided, escapes, corrected; /* a step; corrected: the mean of the auditors */
} operator_count;

/* Of a trainer and of those who follow it. */
static operator_count count_of(const benchmark *b, int trainer, int op) {
    const double steps = (double)b->steps; /* initialisation rounds nothing, in these jobs */
    const vd_rounded_count *t = &b->variant[trainer].of[op];
    operator_count c = {(double)t->elements / steps, (double)t->decided / steps,
                        (double)t->escapes / steps, 0};
    int auditors = 0;
    for (int i = 0; i < b->variants; i++) {
        const variant *v = &b->variant[i];
        if (v->kind != LOG_AUDITOR || v->trainer != trainer || v->error)
            continue;
        c.corrected += (double)v->of[op].corrected / steps;
        auditors++;
    }
    c.corrected /= auditors ? auditors : 1;
    return c;
}

static void print_trainer(const benchmark *b, int trainer, FILE *to) {
    fprintf(to, "\n%s: a step's roundings, by operator\n%-24s %14s %12s %12s %12s\n",
            b->variant[trainer].name, "operator", "elements", "logged", "escapes", "corrected");
    for (int op = 1; op < RO_OP_END; op++) {
        const operator_count c = count_of(b, trainer, op);
        if (c.elements > 0)
            fprintf(to, "%-24s %14.0f %12.1f %12.2f %12.2f\n", ro_op_describe(op)->name, c.elements,
                    c.decided, c.escapes, c.corrected);
    }
}

void print_operators(const benchmark *b, FILE *to) {
    const int calls = first_of(b, LOG_TRAINER, VD_LOG_CALLS);
    const int symbols = first_of(b, LOG_TRAINER, VD_LOG_SYMBOLS);
    if (calls >= 0)
        print_trainer(b, calls, to);
    if (symbols >= 0)
        print_trainer(b, symbols, to);
}
