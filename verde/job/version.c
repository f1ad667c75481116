/* This file checks the version of a job file. */
#include <stdlib.h>
#include <string.h>

#include "verde/job/events.h"
#include "verde/job/fields.h"

enum { DEPTH_MAX = 2 }; /* of a job file's mappings; more would take libyaml quadratic time */

/* Skips the value that begins with the current event. */
static vd_status skip_value(vd_events *events) {
    int depth = 0;
    for (;;) {
        const yaml_event_type_t type = events->event.type;
        depth += type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
        depth -= type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
        if (depth > DEPTH_MAX)
            return VD_ERR_USAGE;
        vd_status status = vd_events_next(events);
        if (status != VD_OK || depth == 0)
            return status;
    }
}

static vd_status judge_version(const vd_events *events, vd_err *err) {
    char place[VD_JOB_PATH_SIZE + 16];
    const char *text = vd_events_plain(events);
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    if (digits == 0 || digits > 9 || text[digits] || *text == '0' || strcmp(text, "1") == 0)
        return VD_OK;
    snprintf(place, sizeof place, "%s:%u", events->name, vd_events_line(events));
    return vd_fail_version(err, place, strtol(text, NULL, 10), "a job file", 1, 1);
}

vd_status vd_job_check_version(const void *text, size_t size, const char *name, vd_err *err) {
    vd_err unread = {0};
    vd_events events = {0};
    vd_status found = VD_OK;
    vd_status status = vd_events_open(&events, text, size, name, "a job file", &unread);
    if (status == VD_OK && events.event.type == YAML_MAPPING_START_EVENT)
        status = vd_events_next(&events);
    while (status == VD_OK && found == VD_OK && events.event.type == YAML_SCALAR_EVENT) {
        const char *key = vd_events_plain(&events);
        const bool is_version = key && strcmp(key, "verde") == 0;
        status = vd_events_next(&events);
        if (status == VD_OK && is_version)
            found = judge_version(&events, err);
        if (status == VD_OK)
            status = skip_value(&events);
    }
    vd_events_close(&events);
    return found;
}
