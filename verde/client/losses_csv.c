/* Converts losses.jsonl to a table. It comes from a provider and is unproven: only numbers in known
 * members are accepted. */
#include <string.h>

#include "verde/client/fetched.h"
#include "verde/commit/json.h"

enum { LINE_BYTES_MAX = 400, LINE_ELEMENTS = 16 };

static const char *const columns[] = {"step",   "loss",    "lr",         "grad_norm", "tokens",
                                      "images", "seconds", "evaluation", "accuracy"};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* Writes a number, or "nan", "inf" or "-inf". */
static bool put_cell(const json_t *value, vd_buf *out) {
    const char *text = json_string_value(value);
    if (json_is_integer(value))
        vd_printf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        vd_printf(out, "%.9g", json_real_value(value));
    else if (text &&
             (strcmp(text, "nan") == 0 || strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0))
        vd_printf(out, "%s", text);
    else
        return value == NULL;
    return true;
}

static vd_status put_row(const char *line, size_t size, vd_buf *out, vd_err *err) {
    json_t *row = NULL;
    if (size > LINE_BYTES_MAX)
        return vd_fail(err, VD_ERR_PEER, "a line of losses has more than %d bytes", LINE_BYTES_MAX);
    vd_status status = vd_json_read(line, size, LINE_ELEMENTS, &row, err);
    bool good = status == VD_OK && json_is_integer(json_object_get(row, "step"));
    for (int i = 0; i < COLUMNS && good; i++) {
        vd_printf(out, "%s", i ? "," : "");
        good = put_cell(json_object_get(row, columns[i]), out);
    }
    vd_put_u8(out, '\n');
    json_decref(row);
    if (status == VD_OK && !good)
        status = vd_fail(err, VD_ERR_PEER, "a line of losses is none: \"%.*s\"",
                         size < 60 ? (int)size : 60, line);
    return status;
}

vd_status vd_losses_csv(const void *text, size_t size, vd_buf *out, vd_err *err) {
    const char *at = text, *end = at + size;
    vd_status status = VD_OK;
    for (int i = 0; i < COLUMNS; i++)
        vd_printf(out, "%s%s", i ? "," : "", columns[i]);
    vd_put_u8(out, '\n');
    while (at < end && status == VD_OK) {
        const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
        at = stop ? stop + 1 : end;
        status = put_row(line, (size_t)((stop ? stop : end) - line), out, err);
    }
    return status == VD_OK && !vd_buf_ok(out) ? vd_fail(err, VD_ERR_LOCAL, "out of memory")
                                              : status;
}
