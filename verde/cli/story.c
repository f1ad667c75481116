#include "verde/cli/story.h"

void vd_tell(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "%s  %s\n", vd_is_terminal() ? "\r\033[K" : "", line);
}

void vd_tell_now(const char *text) {
    if (!vd_is_terminal())
        return;
    fprintf(stderr, "\r\033[K  ... %s", text);
    fflush(stderr);
}

vd_exit vd_exit_of(const vd_outcome *outcome) {
    switch (outcome->result) {
    case VD_RESULT_AGREED: return VD_EXIT_OK;
    case VD_RESULT_CONVICTED: return VD_EXIT_CONVICTED;
    case VD_RESULT_FORFEIT: return VD_EXIT_FORFEIT;
    case VD_RESULT_DISMISSED: return VD_EXIT_DISMISSED;
    default: return VD_EXIT_INCONCLUSIVE;
    }
}

/* Standard output gets all of it or none. */
static void print_told(vd_buf *told) {
    if (vd_is_terminal())
        fprintf(stderr, "\r\033[K");
    if (vd_buf_ok(told))
        fwrite(told->data, 1, told->size, stdout);
    else
        fprintf(stderr, "verde: out of memory in telling the outcome\n");
    vd_buf_free(told);
}

void vd_tell_outcome(const vd_outcome *o, const char *const *names, const vd_cost *cost,
                     const char *verdict) {
    vd_buf told = {0};
    vd_outcome_told(o, names, cost, &told);
    if (verdict)
        vd_printf(&told, "verdict      %s\n", verdict);
    print_told(&told);
}

void vd_tell_verdict(const vd_verdict *verdict) {
    vd_buf told = {0};
    vd_verdict_told(verdict, &told);
    print_told(&told);
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
    for (int i = 0; i < 3; i++) /* always there, for machines */
        if (!json_object_get(out, places[i]))
            json_object_set_new(out, places[i], json_null());
    json_object_update(out, more);
    json_decref(more);
    return out;
}
