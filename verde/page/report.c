/* The page of a report: the --json output of an audit, a comparison or a run, for people. */
#include <string.h>

#include "verde/page/internal.h"

enum { COLUMNS = 12, DEPTH = 5, LISTED = 20 }; /* of a table; of nested objects; of a list */

static void put_name(vd_buf *out, const char *name) {
    char text[VD_PAGE_WORD];
    vd_html_text(out, vd_page_word(name, text));
}

/* Returns true if a number is a name rather than an amount. */
static bool is_label(const char *name) {
    static const char *const labels[] = {"seed", "key", "round"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (strcmp(labels[i], name) == 0)
            return true;
    return false;
}

static bool is_hash(const char *text) {
    const size_t length = strlen(text);
    return length == 2 * VD_HASH_SIZE && strspn(text, "0123456789abcdef") == length;
}

static void put_list(vd_buf *out, const json_t *list);

static void put_value(vd_buf *out, const json_t *value) {
    if (json_is_string(value)) {
        const char *tag = is_hash(json_string_value(value)) ? "code" : "span";
        vd_printf(out, "<%s>", tag);
        vd_html_text(out, json_string_value(value));
        vd_printf(out, "</%s>", tag);
    } else if (json_is_integer(value)) {
        vd_page_count(out, json_integer_value(value));
    } else if (json_is_real(value)) {
        vd_printf(out, "%.6g", json_real_value(value));
    } else if (json_is_array(value)) {
        put_list(out, value);
    } else {
        vd_printf(out, "%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "");
    }
}

static void put_scalar(vd_buf *out, const char *name, const json_t *value) {
    if (json_is_integer(value) && is_label(name))
        vd_printf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value) && strcmp(name, "found") == 0)
        vd_printf(out, "%.4g %%", 100 * json_real_value(value));
    else
        put_value(out, value);
}

/* Writes the elements of a list that are neither objects nor lists. */
static void put_list(vd_buf *out, const json_t *list) {
    const size_t count = json_array_size(list);
    for (size_t i = 0; i < count && i < VD_PAGE_ROWS; i++) {
        const json_t *one = json_array_get(list, i);
        vd_printf(out, "%s", i ? ", " : "");
        if (!json_is_array(one) && !json_is_object(one))
            put_value(out, one);
    }
    if (count > VD_PAGE_ROWS)
        vd_printf(out, " and %zu more", count - VD_PAGE_ROWS);
}

static bool has_rows(const json_t *value) {
    return json_is_array(value) && json_is_object(json_array_get(value, 0));
}

static bool is_section(const json_t *value) {
    return json_is_object(value) || has_rows(value);
}

/* Returns true if no row has a member that needs its own section. */
static bool is_table(const json_t *rows) {
    json_t *row, *value;
    const char *name;
    size_t i;
    json_array_foreach((json_t *)rows, i, row) {
        json_object_foreach(row, name, value) {
            if (is_section(value))
                return false;
        }
    }
    return true;
}

/* Returns true for a value without content: null, "" or []. */
static bool is_empty(const json_t *value) {
    return json_is_null(value) || (json_is_string(value) && !*json_string_value(value)) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

/* Lists the members that have content in any row, each once, in order of appearance. */
static size_t columns_of(const json_t *rows, const char *column[COLUMNS]) {
    size_t count = 0, i;
    json_t *row, *value;
    const char *name;
    json_array_foreach((json_t *)rows, i, row) {
        json_object_foreach(row, name, value) {
            bool there = is_empty(value);
            for (size_t k = 0; k < count; k++)
                there |= strcmp(column[k], name) == 0;
            if (!there && count < COLUMNS)
                column[count++] = name;
        }
    }
    return count;
}

static void put_cell(vd_buf *out, const char *column, const json_t *value) {
    const bool number = json_is_number(value);
    vd_printf(out, "<td data-name=\"");
    put_name(out, column);
    vd_printf(out, "\" class=\"%s\">", number ? "number" : json_is_string(value) ? "wide" : "");
    put_scalar(out, column, value);
    vd_printf(out, "</td>");
}

static void put_table(vd_buf *out, const json_t *rows) {
    const char *column[COLUMNS];
    const size_t columns = columns_of(rows, column), count = json_array_size(rows);
    vd_printf(out, "<div class=\"card\"><table><thead><tr>");
    for (size_t k = 0; k < columns; k++) {
        const bool number = json_is_number(json_object_get(json_array_get(rows, 0), column[k]));
        vd_printf(out, "<th%s>", number ? " class=\"number\"" : "");
        put_name(out, column[k]);
    }
    vd_printf(out, "</thead>\n");
    for (size_t i = 0; i < count && i < VD_PAGE_ROWS; i++) {
        vd_printf(out, "<tr>");
        for (size_t k = 0; k < columns; k++)
            put_cell(out, column[k], json_object_get(json_array_get(rows, i), column[k]));
        vd_printf(out, "</tr>\n");
    }
    vd_printf(out, "</table>");
    if (count > VD_PAGE_ROWS)
        vd_printf(out, "<p class=\"soft\">and %zu more</p>", count - VD_PAGE_ROWS);
    vd_printf(out, "</div>\n");
}

static void put_scalars(vd_buf *out, const json_t *object) {
    const char *name;
    json_t *value;
    bool any = false;
    json_object_foreach((json_t *)object, name, value) {
        if (is_section(value) || is_empty(value))
            continue;
        vd_printf(out, any ? "<dt>" : "<div class=\"card\"><dl><dt>");
        any = true;
        put_name(out, name);
        vd_printf(out, "<dd>");
        put_scalar(out, name, value);
        vd_printf(out, "\n");
    }
    if (any)
        vd_printf(out, "</dl></div>\n");
}

static void put_sections(vd_buf *out, const json_t *object, int depth);

static void put_rows(vd_buf *out, const char *name, const json_t *rows, int depth) {
    const size_t count = json_array_size(rows);
    for (size_t i = 0; i < count && i < LISTED; i++) {
        vd_printf(out, "<h2>");
        put_name(out, name);
        vd_printf(out, ", %zu of %zu</h2>\n", i + 1, count);
        put_sections(out, json_array_get(rows, i), depth);
    }
    if (count > LISTED)
        vd_printf(out, "<p class=\"soft\">and %zu more</p>", count - LISTED);
}

static void put_section(vd_buf *out, const char *name, const json_t *value, int depth) {
    if (has_rows(value) && !is_table(value)) {
        put_rows(out, name, value, depth);
        return;
    }
    vd_printf(out, "<h2>");
    put_name(out, name);
    vd_printf(out, "</h2>\n");
    if (json_is_object(value))
        put_sections(out, value, depth);
    else
        put_table(out, value);
}

static void put_sections(vd_buf *out, const json_t *object, int depth) {
    const char *name;
    json_t *value;
    put_scalars(out, object);
    json_object_foreach((json_t *)object, name, value) {
        if (is_section(value) && depth > 0)
            put_section(out, name, value, depth - 1);
    }
}

vd_status vd_page_of_report(const vd_page_report *r, vd_buf *out, vd_err *err) {
    vd_buf body = {0};
    vd_printf(&body, "<header><h1>%s</h1><p class=\"soft\">", r->kind);
    vd_html_text(&body, r->name);
    vd_printf(&body, "</p></header>\n<main>\n<div class=\"card banner %s\"><p class=\"outcome\">",
              r->mood);
    vd_html_text(&body, r->headline);
    vd_printf(&body, "</p>");
    if (r->sentence) {
        vd_printf(&body, "<p>");
        vd_html_text(&body, r->sentence);
        vd_printf(&body, "</p>");
    }
    vd_printf(&body, "</div>\n");
    if (r->picture && r->picture->size) {
        vd_printf(&body,
                  "<h2>%s</h2>\n<div class=\"card\"><img alt=\"%s\" "
                  "src=\"data:image/svg+xml;base64,",
                  r->picture_title, r->picture_title);
        vd_put_base64(&body, r->picture->data, r->picture->size);
        vd_printf(&body, "\"></div>\n");
    }
    vd_page_title(&body, "In numbers");
    put_sections(&body, r->values, DEPTH);
    vd_printf(&body, "</main>\n");
    vd_status status = vd_page_frame(r->name, &body, NULL, out, err);
    vd_buf_free(&body);
    return status;
}
