/* Counts for each operator how many elements were rounded, and how. */
#include "bench/determinism/determinism.h"

/* Returns a trainer's counts per step, with the mean of its auditors' corrections. Initialisation
 * rounds nothing in these jobs. */
static operator_count count_of(const benchmark *b, int trainer, int op) {
    const double steps = (double)b->steps;
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

void count_operators(benchmark *b) {
    static const vd_log_encoding encoding[] = {VD_LOG_CALLS, VD_LOG_SYMBOLS};
    for (int k = 0; k < 2; k++) {
        operator_table *table = &b->operators[k];
        table->trainer = first_of(b, LOG_TRAINER, encoding[k]);
        for (int op = 1; op < RO_OP_END && table->trainer >= 0; op++)
            table->of[op] = count_of(b, table->trainer, op);
    }
}

static void print_trainer(const benchmark *b, const operator_table *table, FILE *to) {
    fprintf(to, "\n%s: a step's roundings, by operator\n%-24s %14s %12s %12s %12s\n",
            b->variant[table->trainer].name, "operator", "elements", "logged", "escapes",
            "corrected");
    for (int op = 1; op < RO_OP_END; op++) {
        const operator_count c = table->of[op];
        if (c.elements > 0)
            fprintf(to, "%-24s %14.0f %12.1f %12.2f %12.2f\n", ro_op_describe(op)->name, c.elements,
                    c.decided, c.escapes, c.corrected);
    }
}

void print_operators(const benchmark *b, FILE *to) {
    for (int k = 0; k < 2; k++)
        if (b->operators[k].trainer >= 0)
            print_trainer(b, &b->operators[k], to);
}
