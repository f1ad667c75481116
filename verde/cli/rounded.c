/* This file prints how a run with a rounding log was rounded: counts by operator, and settings. */
#include "verde/cli/rounded.h"

#include "verde/cli/cli.h"

/* ---- a run on disk ---- */

static const char *encoding_name(vd_log_encoding encoding) {
    return encoding == VD_LOG_SYMBOLS ? "symbols" : "calls";
}

json_t *vd_kept_json(const vd_run_log *log) {
    const vd_log_kept *kept = vd_log_kept_of(log);
    if (!kept || !kept->party.role)
        return NULL;
    json_t *out = json_pack("{si ss ss ss}", "bits", (int)kept->rounding.bits, "encoding",
                            encoding_name(kept->rounding.encoding), "role",
                            vd_role_name(kept->party.role), "profile", kept->party.profile.name);
    if (kept->party.difference.found)
        json_object_set_new(out, "contested", json_string(kept->party.difference.text));
    return out;
}

void vd_print_kept(const vd_run_log *log) {
    const vd_log_kept *kept = vd_log_kept_of(log);
    if (!kept || !kept->party.role)
        return;
    printf("rounding     to %d bits, %s; %s on profile %s\n", (int)kept->rounding.bits,
           encoding_name(kept->rounding.encoding), vd_role_name(kept->party.role),
           kept->party.profile.name);
    if (kept->party.difference.found)
        printf("contested    %s\n", kept->party.difference.text);
}

/* ---- a run that has ended ---- */

static void print_row(const char *name, const vd_rounded_count *c) {
    printf("%-18s %14llu %12llu %10llu %10llu\n", name, (unsigned long long)c->elements,
           (unsigned long long)c->decided, (unsigned long long)c->escapes,
           (unsigned long long)c->corrected);
}

/* Operators without entries in the log share the last row. */
static void print_operators(const vd_log_result *r) {
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

json_t *vd_rounded_json(const vd_run_backend *backend) {
    const vd_log_result *r = backend->result;
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

/* Prints what was rounded in this execution; for a resumed run, since it was resumed. */
static void print_counts(const vd_run_rounding *rounding, const vd_log_result *r, bool resumed) {
    const vd_rounded_count *c = &r->rounded;
    char size[32];
    vd_print_size(r->log_bytes, size);
    printf("rounded      %llu elements%s, %llu %s in the log, %llu of them escapes, %s\n",
           (unsigned long long)c->elements, resumed ? " since then" : "",
           (unsigned long long)c->decided,
           r->encoding == VD_LOG_SYMBOLS ? "directions" : "close calls",
           (unsigned long long)c->escapes, size);
    if (rounding->role == VD_AUDITOR)
        printf("corrected    %llu elements, as the log says\n", (unsigned long long)c->corrected);
    if (c->refused)
        printf("refused      %llu corrections that are not possible from the inputs here\n",
               (unsigned long long)c->refused);
}

void vd_print_rounded(const vd_run_backend *backend, const vd_run_result *run) {
    const vd_log_result *r = backend->result;
    const bool executed = run->resumed_at < run->steps;
    if (executed)
        print_counts(backend->options, r, run->resumed_at != 0);
    if (r->difference.found)
        printf("contested    %s\n", r->difference.text);
    if (executed)
        print_operators(r);
}
