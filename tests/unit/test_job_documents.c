/* The limits in docs/jobs.md are those of the reader, and no other document states them: for each
 * key of a table that has a range, and for everything counted or measured in bytes. Must run in the
 * project's root. */
#include "verde/job/fields.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <regex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define JOBS "docs/jobs.md"

enum { CELLS = 6, KEYS = 4, EXPECTED_SIZE = 192 };

static char *read_text(const char *path) {
    vd_buf text = {0};
    vd_err err = {0};
    cr_assert_eq(vd_read_file(path, 1 << 20, &text, &err), VD_OK, "%s", err.text);
    vd_put_u8(&text, 0);
    cr_assert(vd_buf_ok(&text));
    return (char *)text.data;
}

/* ---- one row ---- */

typedef struct {
    char text[256];    /* the row, with a zero at the end of each cell */
    char *cell[CELLS]; /* cells within `text`, without surrounding spaces */
    int cells;
} row;

static char *trimmed(char *text) {
    text += strspn(text, " ");
    for (size_t size = strlen(text); size && text[size - 1] == ' ';)
        text[--size] = 0;
    return text;
}

static void read_row(const char *line, row *out) {
    *out = (row){0};
    snprintf(out->text, sizeof out->text, "%s", line + 1);
    char *rest = out->text, *end;
    while (out->cells < CELLS && (end = strchr(rest, '|'))) {
        *end = 0;
        out->cell[out->cells++] = trimmed(rest);
        rest = end + 1;
    }
}

static int column(const row *head, const char *name) {
    for (int i = 0; i < head->cells; i++)
        if (strcmp(head->cell[i], name) == 0)
            return i;
    return -1;
}

/* Finds the fields that the first cell names, such as "`file`, `sha256`". `prefix` is the mapping
 * that holds them: "data." */
static int fields_of(const row *r, const char *prefix, const vd_field *field[KEYS]) {
    int count = 0;
    for (const char *at = r->cell[0]; count < KEYS && (at = strchr(at, '`'));) {
        const char *end = strchr(++at, '`');
        char path[VD_FIELD_PATH_SIZE];
        cr_assert(end, "%s", r->cell[0]);
        snprintf(path, sizeof path, "%s%.*s", prefix, (int)(end - at), at);
        const int found = vd_field_find(path);
        cr_expect(found >= 0, JOBS " names the key %s, which the reader does not know", path);
        if (found >= 0)
            field[count++] = &vd_fields[found];
        at = end + 1;
    }
    return count;
}

/* ---- the reader's limits, in the words of the document ---- */

static bool has_range(const vd_field *f) {
    return f->type == VD_FIELD_INTEGER || f->type == VD_FIELD_REAL || vd_field_is_list(f);
}

static void range_of(const vd_field *f, char text[EXPECTED_SIZE]) {
    if (f->type == VD_FIELD_FILES || f->type == VD_FIELD_TARGETS)
        snprintf(text, EXPECTED_SIZE, "1 to %lld", (long long)f->most);
    else if (f->range)
        snprintf(text, EXPECTED_SIZE, "%s", f->range);
    else if (f->min == f->max)
        snprintf(text, EXPECTED_SIZE, "%llu", (unsigned long long)f->min);
    else
        snprintf(text, EXPECTED_SIZE, "%llu..%llu", (unsigned long long)f->min,
                 (unsigned long long)f->max);
}

/* Returns whether `text` holds the range, and not as a part of longer numbers. */
static bool holds(const char *text, const char *range) {
    const size_t size = strlen(range);
    for (const char *at = text; (at = strstr(at, range)); at++)
        if ((at == text || !strchr("0123456789.", at[-1])) && !(at[size] >= '0' && at[size] <= '9'))
            return true;
    return false;
}

/* Returns whether a cell states the field's range, or a narrower one that another key sets, such as
 * "0..`vocab`-2". */
static bool states(const char *cell, const vd_field *f) {
    char range[EXPECTED_SIZE], low[64];
    range_of(f, range);
    snprintf(low, sizeof low, "%.*s..`", (int)strcspn(range, "."), range);
    if (f->type == VD_FIELD_INTEGERS && strstr(cell, " to ")) /* range of their number */
        snprintf(range, sizeof range, "%d to %lld", !f->may_be_empty, (long long)f->most);
    return holds(cell, range) || strncmp(cell, low, strlen(low)) == 0;
}

/* Returns whether a sentence below the table states the range: each of its parts must occur
 * there. */
static bool states_below(const char *document, const vd_field *f) {
    char parts[EXPECTED_SIZE], *rest = parts;
    range_of(f, parts);
    for (char *part; (part = strtok_r(rest, ",", &rest));)
        if (!strstr(document, trimmed(part)))
            return false;
    return true;
}

/* ---- all tables ---- */

/* Returns the mapping whose keys are listed below a heading. */
static const char *prefix_below(const char *heading) {
    static const char *const known[][2] = {
        {"### `model`", "model."},         {"### `data`", "data."},
        {"### `optimizer`", "optimizer."}, {"### `schedule`", "schedule."},
        {"### `rounding`", "rounding."},   {"### `lora`", "lora."},
        {"#### Products", "products."},    {"## A model that", "model."},
        {"## Going on from", "weights."},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(heading, known[i][0], strlen(known[i][0])) == 0)
            return known[i][1];
    return "";
}

typedef struct {
    const char *document; /* without backticks */
    const char *prefix;
    int columns;          /* of the current table */
    int range, otherwise; /* numbers of these columns; -1: the table has none */
    bool is_keys;         /* whether the table lists keys */
    bool stated[VD_FIELD_COUNT];
} reading;

/* Expects that a field's row names each of its choices. */
static void read_choices(const row *line, const vd_field *f) {
    for (const vd_choice *c = f->choice; c && c->name; c++) {
        char name[64];
        bool there = false;
        snprintf(name, sizeof name, "`%s`", c->name);
        for (int i = 0; i < line->cells; i++)
            there |= strstr(line->cell[i], name) != NULL;
        cr_expect(there, "%s: " JOBS " does not say that it may be %s", f->path, c->name);
    }
}

static void read_field(reading *r, const row *line, const vd_field *f) {
    char expected[EXPECTED_SIZE], value[32];
    const char *range = r->range >= 0 ? line->cell[r->range] : "";
    range_of(f, expected);
    snprintf(value, sizeof value, "%llu", (unsigned long long)f->otherwise);
    if (r->otherwise >= 0 && f->otherwise && f->otherwise != UINT64_MAX)
        cr_expect_str_eq(line->cell[r->otherwise], value, "%s: another default in " JOBS, f->path);
    read_choices(line, f);
    if (!has_range(f))
        return;
    bool stated = states(*range ? range : line->cell[1], f) ||
                  (r->range < 0 && line->cells > 2 && states(line->cell[2], f));
    if (strcmp(range, "see below") == 0)
        stated = states_below(r->document, f);
    cr_expect(stated || !*range, "%s: the reader takes %s, " JOBS " says %s", f->path, expected,
              range);
    r->stated[f - vd_fields] |= stated;
}

static void read_line(reading *r, const char *line) {
    const vd_field *field[KEYS];
    if (*line == '#')
        r->prefix = prefix_below(line);
    if (*line != '|') {
        r->is_keys = false;
        return;
    }
    row now;
    read_row(line, &now);
    if (strcmp(now.cell[0], "Key") == 0) {
        r->columns = now.cells;
        r->is_keys = true;
        r->range = column(&now, "Range");
        r->otherwise = column(&now, "Default");
    } else if (r->is_keys && now.cell[0][0] == '`') {
        cr_assert_eq(now.cells, r->columns, JOBS ": a row has other cells than its head: %s", line);
        for (int i = 0, count = fields_of(&now, r->prefix, field); i < count; i++)
            read_field(r, &now, field[i]);
    }
}

static char *without_backticks(const char *text) {
    char *plain = malloc(strlen(text) + 1), *to = plain;
    cr_assert(plain);
    for (; *text; text++)
        if (*text != '`')
            *to++ = *text == '\n' ? ' ' : *text;
    *to = 0;
    return plain;
}

Test(job_documents, every_range_and_default_is_the_readers) {
    char *text = read_text(JOBS), *plain = without_backticks(text), *rest = text;
    reading r = {.document = plain, .prefix = ""};
    for (char *line; (line = strsep(&rest, "\n"));)
        read_line(&r, line);
    for (int i = 0; i < VD_FIELD_COUNT; i++) {
        char expected[EXPECTED_SIZE];
        range_of(&vd_fields[i], expected);
        cr_expect(r.stated[i] || !has_range(&vd_fields[i]), "%s: " JOBS " does not say %s",
                  vd_fields[i].path, expected);
    }
    free(plain);
    free(text);
}

/* Expects that `document` contains the formatted text, apart from backticks. */
VD_PRINTF(2, 3)
static void expect_said(const char *document, const char *format, ...) {
    char *text = read_text(document), *plain = without_backticks(text), sentence[128];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    cr_expect(strstr(plain, sentence), "%s does not say \"%s\"", document, sentence);
    free(plain);
    free(text);
}

Test(job_documents, sizes_of_files_and_lists_are_the_readers) {
    expect_said(JOBS, "files above %d KiB", VD_JOB_BYTES_MAX >> 10);
    expect_said(JOBS, "1 to %d lines of at most %d bytes", VD_PROMPTS_MAX, VD_PROMPT_LINE_MAX);
    expect_said(JOBS, "of at most %d GiB together", (int)(VD_JOINED_BYTES_MAX >> 30));
    expect_said(JOBS, "1..%d of them, each below the model's", VD_TOKENS_MAX);
    expect_said("docs/rounding-logs.md", "a power of two, 1 to %d", RO_PROFILE_LANES_MAX);
}

/* An example that states a range would repeat it, and could become outdated. */
Test(job_documents, examples_state_no_ranges) {
    DIR *dir = opendir("models/jobs");
    regex_t range;
    int files = 0;
    cr_assert(dir);
    cr_assert_eq(regcomp(&range, "[0-9]\\.\\.[0-9]|[0-9] to [0-9]|[0-9] or more", REG_EXTENDED), 0);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[300];
        if (!strstr(entry->d_name, ".yaml"))
            continue;
        snprintf(path, sizeof path, "models/jobs/%s", entry->d_name);
        char *text = read_text(path);
        cr_expect(regexec(&range, text, 0, NULL, 0) != 0, "%s states a range; " JOBS " has them",
                  path);
        free(text);
        files++;
    }
    closedir(dir);
    regfree(&range);
    cr_assert_geq(files, 9);
}
