/* Compares two programs: which nodes and attributes differ. */
#include <string.h>

#include "verde/audit/diff.h"
#include "verde/graph/compare.h"

/* ---- collecting ---- */

static json_t *node_json(uint32_t node) {
    return node == VD_UNPAIRED ? json_null() : json_integer(node);
}

static json_t *text_json(const char *text) {
    return text ? json_string(text) : json_null();
}

static void collect(void *user, const vd_program_difference *d) {
    vd_program_diff *diff = user;
    if (diff->count++ >= VD_DIFF_KEPT_MAX)
        return;
    json_array_append_new(
        diff->list, json_pack("{ss ss ss so so so so}", "where", d->where, "name", d->name, "what",
                              d->what, "a", text_json(d->text[0]), "b", text_json(d->text[1]),
                              "node_a", node_json(d->node[0]), "node_b", node_json(d->node[1])));
}

static vd_status hash_both(const vd_program *a, const vd_program *b, vd_program_diff *out,
                           vd_err *err) {
    vd_status status = vd_program_hash(a, &out->hash[0], err);
    if (status == VD_OK)
        status = vd_program_hash(b, &out->hash[1], err);
    if (status == VD_OK)
        status = vd_program_structure(a, &out->structure[0], err);
    return status == VD_OK ? vd_program_structure(b, &out->structure[1], err) : status;
}

vd_status vd_program_diff_make(const vd_program *a, const vd_program *b, vd_program_diff *out,
                               vd_err *err) {
    *out = (vd_program_diff){.list = json_array()};
    vd_status status = hash_both(a, b, out, err);
    if (status != VD_OK || vd_hash_equal(&out->hash[0], &out->hash[1]))
        return status;
    const bool same = vd_hash_equal(&out->structure[0], &out->structure[1]);
    status = vd_align(a, b, same, &out->pairs, err);
    return status == VD_OK ? vd_program_compare(a, b, &out->pairs, collect, out, err) : status;
}

void vd_program_diff_free(vd_program_diff *diff) {
    vd_alignment_free(&diff->pairs);
    json_decref(diff->list);
    json_decref(diff->places[0]);
    json_decref(diff->places[1]);
    *diff = (vd_program_diff){0};
}

/* ---- printing ---- */

static const char *member(const json_t *difference, const char *name) {
    return json_string_value(json_object_get(difference, name));
}

/* Returns the source of a node of the step, or NULL. */
static const char *place_of(const vd_program_diff *diff, const json_t *difference, int side) {
    const json_t *node = json_object_get(difference, side ? "node_b" : "node_a");
    if (strcmp(member(difference, "where"), "step") != 0 || !json_is_integer(node))
        return NULL;
    return json_string_value(json_array_get(json_object_get(diff->places[side], "step"),
                                            (size_t)json_integer_value(node)));
}

static void print_safe(vd_buf *out, const char *text) {
    for (; *text; text++)
        vd_put_u8(out, (uint8_t)(*text >= ' ' && *text <= '~' ? *text : '?'));
}

static void print_side(vd_buf *out, const vd_program_diff *diff, const json_t *difference,
                       int side) {
    const char *text = member(difference, side ? "b" : "a");
    const char *place = place_of(diff, difference, side);
    vd_printf(out, "  %c          %s", "ab"[side], text ? text : "does not have it");
    if (text && place && *place) {
        vd_printf(out, "  # ");
        print_safe(out, place);
    }
    vd_put_u8(out, (uint8_t)('\n'));
}

void vd_program_diff_print(vd_buf *out, const vd_program_diff *diff) {
    const json_t *d;
    size_t i;
    vd_put_hex(out, "program a", diff->hash[0].b);
    vd_put_hex(out, "program b", diff->hash[1].b);
    if (vd_hash_equal(&diff->structure[0], &diff->structure[1]))
        vd_printf(out, "structure    equal: they differ in names alone\n");
    if (diff->count == 0)
        vd_printf(
            out,
            "programs     mean the same nodes, and are spelled in two ways: in what repeats, in "
            "the order of\n             leaves, or in thresholds of rounding\n");
    json_array_foreach(diff->list, i, d) {
        const json_t *node = json_object_get(d, "node_a");
        if (i == VD_DIFF_LINES_MAX)
            break;
        if (!json_is_integer(node))
            node = json_object_get(d, "node_b");
        vd_printf(out, "%-12s ", member(d, "where"));
        if (json_is_integer(node))
            vd_printf(out, "%%%lld ", (long long)json_integer_value(node));
        vd_printf(out, "%s%s%s\n", member(d, "name"), *member(d, "name") ? ": " : "",
                  member(d, "what"));
        print_side(out, diff, d, 0);
        print_side(out, diff, d, 1);
    }
    if (diff->count > VD_DIFF_LINES_MAX)
        vd_printf(out, "and          %llu more differences\n",
                  (unsigned long long)(diff->count - VD_DIFF_LINES_MAX));
}

json_t *vd_program_diff_json(const vd_program_diff *diff) {
    return json_pack("{so so so so sI sO}", "a", vd_hash_text(&diff->hash[0]), "b",
                     vd_hash_text(&diff->hash[1]), "structure_a", vd_hash_text(&diff->structure[0]),
                     "structure_b", vd_hash_text(&diff->structure[1]), "count",
                     (json_int_t)diff->count, "differences", diff->list);
}

bool vd_program_diff_at(const vd_program_diff *diff, bool init, uint32_t node, char *text,
                        size_t size) {
    const json_t *d;
    size_t i;
    json_array_foreach(diff->list, i, d) {
        const json_t *at = json_object_get(d, "node_a");
        const char *a = member(d, "a"), *b = member(d, "b");
        if (strcmp(member(d, "where"), init ? "init" : "step") != 0 || !json_is_integer(at) ||
            json_integer_value(at) != (json_int_t)node || strcmp(member(d, "what"), "name") == 0)
            continue;
        snprintf(text, size, "%s: %s in a, %s in b", member(d, "what"), a ? a : "none",
                 b ? b : "none");
        return true;
    }
    return false;
}

/* ---- comparing two program files ---- */

static vd_status load(const char *path, vd_loaded *out, vd_err *err) {
    vd_buf bytes = {0};
    vd_err why = {0};
    if (!vd_is_program_file(path)) {
        out->bare = true;
        return vd_load_job(path, out, err);
    }
    vd_status status = vd_read_file(path, VD_PROGRAM_BYTES_MAX, &bytes, err);
    if (status == VD_OK) {
        status = vd_program_decode(bytes.data, bytes.size, &out->program, &why);
        if (status != VD_OK)
            vd_fail(err, status, "%s: %s", path, why.text);
    }
    vd_buf_free(&bytes);
    return status;
}

static vd_status load_places(const vd_loaded *loaded, json_t **out, vd_err *err) {
    return loaded->job.program && loaded->start.inserted == 0
               ? vd_load_node_places(loaded, out, err)
               : VD_OK;
}

static void tell(const vd_program_diff *diff, bool equal, bool json) {
    vd_buf told = {0}, *out = &told;
    if (json) {
        json_t *whole = json_pack("{sb ss}", "equal", equal, "compared", "programs");
        json_object_set_new(whole, "programs", vd_program_diff_json(diff));
        vd_result_json(whole);
    } else if (equal) {
        vd_put_hex(out, "program", diff->hash[0].b);
        vd_printf(out, "equal        yes\n");
    } else {
        vd_program_diff_print(out, diff);
    }
    vd_result_text(out);
}

vd_status vd_diff_programs(const vd_diff_options *o, bool *differs, vd_err *err) {
    vd_loaded loaded[2] = {0};
    vd_program_diff diff = {0};
    vd_status status = load(o->path[0], &loaded[0], err);
    if (status == VD_OK)
        status = load(o->path[1], &loaded[1], err);
    if (status == VD_OK)
        status = vd_program_diff_make(&loaded[0].program, &loaded[1].program, &diff, err);
    for (int side = 0; side < 2 && status == VD_OK; side++)
        status = load_places(&loaded[side], &diff.places[side], err);
    if (status == VD_OK) {
        *differs = !vd_hash_equal(&diff.hash[0], &diff.hash[1]);
        tell(&diff, !*differs, o->common.json);
    }
    vd_program_diff_free(&diff);
    vd_loaded_free(&loaded[0]);
    vd_loaded_free(&loaded[1]);
    return status;
}
