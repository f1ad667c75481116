/* How far an audit has come: a line of text for each stretch that was executed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/cli/recheck.h"

enum { STATE_BYTES_MAX = 256 << 20, LINE = 128, SAVE_SECONDS = 1 };

static void first_line(const vd_rechecking *a, char line[2 * LINE]) {
    char root[2 * VD_HASH_SIZE + 1];
    vd_hex(a->run_root.b, VD_HASH_SIZE, root);
    snprintf(line, 2 * LINE, "verde audit 1\nrun %s\n", root);
}

static bool take_line(vd_rechecking *a, const char *line) {
    uint32_t stretch, checkpoint;
    char word[16];
    const int fields = sscanf(line, "%" SCNu32 " %15s %" SCNu32, &stretch, word, &checkpoint);
    const bool differs = fields == 3 && strcmp(word, "differs") == 0;
    if (fields < 2 || stretch >= a->stretches || (!differs && strcmp(word, "equal") != 0))
        return false;
    const vd_stretch s = vd_recheck_stretch(&a->run.log, stretch);
    if (differs && (checkpoint < s.first || checkpoint > s.last))
        return false;
    a->result[stretch] = differs ? VD_DIFFERS : VD_EQUAL;
    a->differs[stretch] = differs ? checkpoint : a->run.log.count;
    return true;
}

static vd_status take_lines(vd_rechecking *a, char *text) {
    int number = 3;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, number++) {
        *end = 0;
        if (!take_line(a, line))
            return vd_fail(a->err, VD_ERR_USAGE,
                           "%s:%d: expected a stretch of this run, 0..%u, and `equal` or `differs` "
                           "with a checkpoint of it",
                           a->o->state, number, a->stretches - 1);
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
        status = vd_fail(a->err, VD_ERR_USAGE, "%s: is of an audit of another run than %s",
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
        if (a->result[i] == VD_EQUAL)
            vd_printf(&text, "%u equal\n", i);
        else if (a->result[i] == VD_DIFFERS)
            vd_printf(&text, "%u differs %u\n", i, a->differs[i]);
    vd_status status = vd_buf_ok(&text)
                           ? vd_write_file(a->o->state, text.data, text.size, 0644, a->err)
                           : vd_fail(a->err, VD_ERR_LOCAL, "%s: out of memory", a->o->state);
    vd_buf_free(&text);
    return status;
}
