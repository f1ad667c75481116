/* This file finds a device profile by its name, or reads it from a file. */
#include "verde/job/profile.h"

#include <stdlib.h>
#include <string.h>

#include "verde/job/events.h"
#include "verde/job/job.h"

static const struct {
    const char *name;
    size_t offset;
} keys[] = {
    {"lanes", offsetof(ro_profile, lanes)},           {"split", offsetof(ro_profile, split)},
    {"pairwise", offsetof(ro_profile, pairwise)},     {"contract", offsetof(ro_profile, contract)},
    {"descending", offsetof(ro_profile, descending)}, {"estrin", offsetof(ro_profile, estrin)}};

enum { KEYS = sizeof keys / sizeof keys[0] };

static int find_key(const char *name) {
    for (int i = 0; name && i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return i;
    return -1;
}

static vd_status read_number(vd_events *events, int key, ro_profile *out) {
    char got[VD_GOT_SIZE], why[128];
    vd_status status = vd_events_next(events);
    if (status != VD_OK)
        return status;
    const char *text = vd_events_plain(events);
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    vd_events_got(events, got);
    if (digits == 0 || digits > 9 || text[digits])
        return vd_events_fail(events, vd_events_line(events),
                              "`%s` must be a whole number of one to nine decimal digits, got %s",
                              keys[key].name, got);
    const int32_t value = (int32_t)strtol(text, NULL, 10);
    memcpy((char *)out + keys[key].offset, &value, sizeof value);
    if (ro_profile_check(out, why, sizeof why) != RO_OK)
        return vd_events_fail(events, vd_events_line(events), "%s, got %s", why, got);
    return VD_OK;
}

static vd_status read_keys(vd_events *events, ro_profile *out) {
    bool seen[KEYS] = {false};
    char got[VD_GOT_SIZE];
    for (;;) {
        vd_status status = vd_events_next(events);
        if (status != VD_OK)
            return status;
        const uint32_t line = vd_events_line(events);
        if (events->event.type == YAML_MAPPING_END_EVENT)
            return vd_events_finish(events);
        const int key = find_key(vd_events_plain(events));
        vd_events_got(events, got);
        if (key < 0)
            return vd_events_fail(events, line,
                                  "a key must be lanes, split, pairwise, contract, descending or "
                                  "estrin, got %s",
                                  got);
        if (seen[key])
            return vd_events_fail(events, line, "`%s` is given twice", keys[key].name);
        seen[key] = true;
        if ((status = read_number(events, key, out)) != VD_OK)
            return status;
    }
}

static void name_after(const char *path, ro_profile *out) {
    const char *slash = strrchr(path, '/');
    snprintf(out->name, sizeof out->name, "%.31s", slash ? slash + 1 : path);
    char *dot = strrchr(out->name, '.');
    if (dot)
        *dot = 0;
}

vd_status vd_profile_parse(const void *text, size_t size, const char *path, ro_profile *out,
                           vd_err *err) {
    vd_events events = {0};
    char got[VD_GOT_SIZE];
    *out = (ro_profile){.size = sizeof(ro_profile), .lanes = 1};
    name_after(path, out);
    vd_status status = vd_events_open(&events, text, size, path, "a profile", err);
    if (status == VD_OK && events.event.type != YAML_MAPPING_START_EVENT) {
        vd_events_got(&events, got);
        status = vd_events_fail(&events, vd_events_line(&events),
                                "a profile must be a mapping of keys to numbers, got %s", got);
    }
    if (status == VD_OK)
        status = read_keys(&events, out);
    vd_events_close(&events);
    return status;
}

static vd_status fail_name(const char *name, vd_err *err) {
    char list[200] = "";
    for (int i = 0; ro_profile_at(i); i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
                 ro_profile_at(i)->name);
    return vd_fail(err, VD_ERR_USAGE, "no profile \"%.40s\": expected %s, cuda, or a .yaml file",
                   name, list);
}

vd_status vd_profile_find(const char *name, ro_profile *out, vd_err *err) {
    const ro_profile *built_in = ro_profile_by_name(name);
    const size_t length = strlen(name);
    if (built_in) {
        *out = *built_in;
        return VD_OK;
    }
    if (length < 6 || strcmp(name + length - 5, ".yaml") != 0)
        return fail_name(name, err);
    vd_buf file = {0};
    vd_status status = vd_read_file(name, VD_JOB_BYTES_MAX, &file, err);
    if (status == VD_OK)
        status = vd_profile_parse(file.data, file.size, name, out, err);
    vd_buf_free(&file);
    return status;
}
