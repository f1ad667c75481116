/* This file prints a dispute and its outcome. */
#include "verde/client/story.h"

void vd_tell_outcome(const vd_outcome *o, const char *const *names, const vd_cost *cost,
                     const char *verdict) {
    vd_buf told = {0};
    vd_outcome_told(o, names, cost, &told);
    if (verdict)
        vd_printf(&told, "verdict      %s\n", verdict);
    vd_result_text(&told);
}

void vd_tell_verdict(const vd_verdict *verdict) {
    vd_buf told = {0};
    vd_verdict_told(verdict, &told);
    vd_result_text(&told);
}

static json_t *convicted_keys(const vd_outcome *o, const vd_assignment *assignment) {
    json_t *list = json_array();
    for (uint32_t p = 0; p < o->party_count; p++) {
        char hex[2 * VD_KEY_SIZE + 1];
        if (o->party[p].standing != VD_CONVICTED)
            continue;
        vd_hex(assignment->provider[p].b, VD_KEY_SIZE, hex);
        json_array_append_new(list, json_string(hex));
    }
    return list;
}

static const char *first_grade(const vd_outcome *o) {
    for (int standing = VD_CONVICTED; standing <= VD_DISMISSED; standing++)
        for (uint32_t p = 0; p < o->party_count; p++)
            if ((int)o->party[p].standing == standing)
                return vd_grade_name(o->party[p].grade);
    return vd_grade_name(VD_GRADE_NONE);
}

json_t *vd_dispute_json(const vd_outcome *o, const vd_assignment *assignment, const vd_cost *cost) {
    json_t *out = vd_outcome_json(o, assignment);
    json_t *more =
        json_pack("{ss so sI sI sf sf sI}", "grade", first_grade(o), "convicted",
                  convicted_keys(o, assignment), "bytes_in", (json_int_t)cost->bytes_in,
                  "bytes_out", (json_int_t)cost->bytes_out, "seconds", cost->seconds, "cpu_seconds",
                  cost->cpu_seconds, "peak_bytes", (json_int_t)cost->peak_bytes);
    json_t *levels = vd_level_seconds_json(cost);
    if (levels)
        json_object_set_new(more, "level_seconds", levels);
    static const char *const places[] = {"step", "node", "operator"};
    for (int i = 0; i < 3; i++) /* machines always get these members */
        if (!json_object_get(out, places[i]))
            json_object_set_new(out, places[i], json_null());
    json_object_update(out, more);
    json_decref(more);
    return out;
}
