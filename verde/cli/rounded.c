/* Prints what a run on free kernels rounded, operator by operator. */
#include "verde/cli/cli.h"

static void print_row(const char *name, const vd_rounded_count *c) {
    printf("%-18s %14llu %12llu %10llu %10llu\n", name, (unsigned long long)c->elements,
           (unsigned long long)c->decided, (unsigned long long)c->escapes,
           (unsigned long long)c->corrected);
}

/* Operators of which the log says nothing make one row. */
void vd_print_rounded(const vd_run_result *r) {
    vd_rounded_count quiet = {0};
    uint32_t operators = 0;
    char name[32];
    printf("\n%-18s %14s %12s %10s %10s\n", "operator", "elements", "in the log", "escapes",
           "corrected");
    for (int op = 1; op < RO_OP_END; op++) {
        const vd_rounded_count *c = &r->rounded_of[op];
        if (c->decided || c->escapes || c->corrected) {
            print_row(ro_op_describe(op)->name, c);
        } else if (c->elements) {
            quiet.elements += c->elements;
            operators++;
        }
    }
    snprintf(name, sizeof name, "%u other%s", operators, vd_plural(operators));
    if (operators)
        print_row(name, &quiet);
}

static json_t *count_json(const vd_rounded_count *c) {
    return json_pack("{sI sI sI sI}", "elements", (json_int_t)c->elements, "decided",
                     (json_int_t)c->decided, "escapes", (json_int_t)c->escapes, "corrected",
                     (json_int_t)c->corrected);
}

json_t *vd_rounded_json(const vd_run_result *r) {
    json_t *all = count_json(&r->rounded), *operators = json_object();
    for (int op = 1; op < RO_OP_END; op++)
        if (r->rounded_of[op].elements)
            json_object_set_new(operators, ro_op_describe(op)->name,
                                count_json(&r->rounded_of[op]));
    json_object_set_new(all, "log_bytes", json_integer((json_int_t)r->log_bytes));
    json_object_set_new(all, "operators", operators);
    json_object_set_new(all, "refused", json_integer((json_int_t)r->rounded.refused));
    if (r->difference.found)
        json_object_set_new(all, "contested", json_string(r->difference.text));
    return all;
}
