/* The progress of an audit: a line of text for each executed stretch, with the state that it leads
 * to, which shows that the line belongs to the run. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/audit/recheck.h"

enum { STATE_BYTES_MAX = 256 << 20, LINE = 128, SAVE_SECONDS = 1 };

static void first_line(const vd_rechecking *a, char line[2 * LINE]) {
    char program[2 * VD_HASH_SIZE + 1];
    vd_hex(a->run.log.program.b, VD_HASH_SIZE, program);
    snprintf(line, 2 * LINE, "verde audit 1\nprogram %s\n", program);
}

/* ---- reading ---- */

typedef struct {
    uint32_t from, last, checkpoint; /* `checkpoint`: the one that differs */
    vd_hash state;                   /* at `last` */
    bool differs;
} told;

static bool parse_line(const char *line, told *out) {
    char hex[2 * VD_HASH_SIZE + 1], word[16], end;
    const int fields = sscanf(line, "%" SCNu32 " %" SCNu32 " %64s %15s %" SCNu32 "%c", &out->from,
                              &out->last, hex, word, &out->checkpoint, &end);
    if (fields < 4 || fields > 5)
        return false;
    out->differs = fields == 5 && strcmp(word, "differs") == 0;
    return vd_unhex(hex, out->state.b, VD_HASH_SIZE) &&
           (out->differs || (fields == 4 && strcmp(word, "equal") == 0));
}

/* Takes a line of the file. Its stretch may have changed if the run has grown or dropped states. */
static void take(vd_rechecking *a, const told *t) {
    for (uint32_t i = 0; i < a->stretches; i++) {
        const vd_stretch s = vd_recheck_stretch(&a->run.log, i);
        if (s.from != t->from || s.last != t->last ||
            (t->differs && (t->checkpoint < s.first || t->checkpoint > s.last)))
            continue;
        a->result[i] = t->differs ? VD_DIFFERS : VD_EQUAL;
        a->differs[i] = t->checkpoint;
    }
}

static vd_status take_lines(vd_rechecking *a, char *text) {
    const vd_run_log *log = &a->run.log;
    int number = 3;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, number++) {
        told t = {0};
        *end = 0;
        if (!parse_line(line, &t))
            return vd_fail(a->err, VD_ERR_USAGE,
                           "%s:%d: expected two checkpoints, a state, and `equal` or `differs` "
                           "with a checkpoint",
                           a->o->state, number);
        if (t.last >= log->count || !vd_hash_equal(&t.state, &log->state[t.last]))
            return vd_fail(a->err, VD_ERR_USAGE, "%s:%d: is of an audit of another run than %s",
                           a->o->state, number, a->o->dir);
        take(a, &t);
    }
    return VD_OK;
}

static vd_status read_state(vd_rechecking *a) {
    char first[2 * LINE];
    vd_buf text = {0};
    vd_status status = vd_read_file(a->o->state, STATE_BYTES_MAX, &text, a->err);
    vd_put_u8(&text, 0);
    first_line(a, first);
    if (status == VD_OK && !vd_buf_ok(&text))
        status = vd_fail(a->err, VD_ERR_LOCAL, "%s: out of memory", a->o->state);
    const char *end = status == VD_OK ? strchr((const char *)text.data, '\n') : NULL;
    if (status == VD_OK)
        status = vd_title_read(a->o->state, (const char *)text.data,
                               end ? (size_t)(end - (const char *)text.data) : text.size - 1,
                               "verde audit ", "the state of an audit", a->err);
    if (status == VD_OK && strncmp((const char *)text.data, first, strlen(first)) != 0)
        status =
            vd_fail(a->err, VD_ERR_USAGE, "%s:2: is of an audit of another program than that of %s",
                    a->o->state, a->o->dir);
    if (status == VD_OK)
        status = take_lines(a, (char *)text.data + strlen(first));
    vd_buf_free(&text);
    return status;
}

vd_status vd_recheck_state_open(vd_rechecking *a) {
    char first[2 * LINE];
    if (!a->o->state)
        return VD_OK;
    if (access(a->o->state, F_OK) == 0)
        return read_state(a);
    first_line(a, first);
    return vd_write_file(a->o->state, first, strlen(first), 0644, a->err);
}

/* ---- writing ---- */

static void put_stretch(const vd_rechecking *a, uint32_t i, vd_buf *out) {
    const vd_stretch s = vd_recheck_stretch(&a->run.log, i);
    char state[2 * VD_HASH_SIZE + 1];
    vd_hex(a->run.log.state[s.last].b, VD_HASH_SIZE, state);
    if (a->result[i] == VD_EQUAL)
        vd_printf(out, "%u %u %s equal\n", s.from, s.last, state);
    else if (a->result[i] == VD_DIFFERS)
        vd_printf(out, "%u %u %s differs %u\n", s.from, s.last, state, a->differs[i]);
}

vd_status vd_recheck_state_save(vd_rechecking *a, bool last) {
    vd_buf text = {0};
    char first[2 * LINE];
    const double now = vd_seconds();
    if (!a->o->state || (!last && now - a->saved < SAVE_SECONDS))
        return VD_OK;
    a->saved = now;
    first_line(a, first);
    vd_printf(&text, "%s", first);
    for (uint32_t i = 0; i < a->stretches; i++)
        put_stretch(a, i, &text);
    vd_status status = vd_buf_ok(&text)
                           ? vd_write_file(a->o->state, text.data, text.size, 0644, a->err)
                           : vd_fail(a->err, VD_ERR_LOCAL, "%s: out of memory", a->o->state);
    vd_buf_free(&text);
    return status;
}
