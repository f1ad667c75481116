/* Recognises the reports of other commands: their headline, and whether it is good news. */
#include <string.h>

#include "verde/page/internal.h"

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* The report of `verde audit JOB --provider URL`. */
static bool audit_of_provider(const json_t *v, vd_page_report *r) {
    const char *result = text_of(v, "result");
    const bool passed = strcmp(result, "passed") == 0, fraud = strcmp(result, "fraud") == 0;
    if (!json_is_object(json_object_get(v, "checked")) ||
        (!passed && !fraud && strcmp(result, "silent") != 0))
        return false;
    r->kind = "An audit of a provider";
    r->mood = passed ? "good" : fraud ? "bad" : "wait";
    r->headline = passed  ? "All that was looked at is right"
                  : fraud ? "Fraud, proven by the provider's own statements"
                          : "Failed, by the checker's word alone";
    r->sentence = json_string_value(json_object_get(v, "reason"));
    return true;
}

/* The report of `verde audit RUN`. */
static bool audit_of_run(const json_t *v, bool equal, vd_page_report *r) {
    const json_t *first = json_array_get(json_object_get(v, "differences"), 0);
    if (!json_is_integer(json_object_get(v, "stretches")))
        return false;
    r->kind = "An audit of a run";
    r->headline =
        equal ? "What was executed again is equal to the bit" : "The run is not what it commits to";
    r->sentence = json_string_value(json_object_get(json_object_get(first, "proven"), "fits"));
    return true;
}

/* The report of `verde audit JOB --results DIR`. */
static bool audit_of_answers(const json_t *v, bool equal, vd_page_report *r) {
    if (!json_is_integer(json_object_get(v, "positions")))
        return false;
    r->kind = "An audit of answers";
    r->headline = equal ? "All answers that were checked are right" : "Answers are wrong";
    r->sentence = json_is_string(json_object_get(v, "job_root"))
                      ? "The lines are those that results.proof proves. The runs' states were not "
                        "looked at."
                      : "There is no results.proof: the lines were checked as they stand. The "
                        "runs' states were not looked at.";
    return true;
}

/* The report of `verde diff A B`. */
static bool comparison(const json_t *v, bool equal, vd_page_report *r) {
    if (!*text_of(v, "compared"))
        return false;
    r->kind = "A comparison";
    r->headline = equal ? "Equal to the bit" : "They differ";
    r->sentence = json_string_value(json_object_get(v, "fits"));
    return true;
}

bool vd_page_known_report(const json_t *values, vd_page_report *r) {
    const json_t *said = json_object_get(values, "equal");
    const bool equal = json_is_true(said);
    r->values = values;
    if (!json_is_boolean(said))
        return audit_of_provider(values, r);
    r->mood = equal ? "good" : "bad";
    return audit_of_run(values, equal, r) || audit_of_answers(values, equal, r) ||
           comparison(values, equal, r);
}
