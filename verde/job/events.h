/* YAML as a stream of events, without the parts of YAML that job files must not use. Private to
 * verde/job. Nothing is built in memory, so that a hostile file is cut off at its first offence. */
#ifndef VD_JOB_EVENTS_H
#define VD_JOB_EVENTS_H

#include "verde/base/base.h"

#include <yaml.h>

enum { VD_GOT_SIZE = 128 }; /* room for a line of sha256sum, but for a long name */

typedef struct {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; owned */
    const char *name;   /* of the file, for errors */
    const char *what;   /* "a job file", likewise */
    const char *text;
    vd_err *err;
} vd_events;

/* Opens text (borrowed) of at most VD_JOB_BYTES_MAX and stands at the root's first event. */
VD_MUST_USE vd_status vd_events_open(vd_events *events, const void *text, size_t size,
                                     const char *name, const char *what, vd_err *err);
void vd_events_close(vd_events *events); /* also after open failed */

/* Goes to the next event. Anchors, aliases, tags and directives are errors. */
VD_MUST_USE vd_status vd_events_next(vd_events *events);

/* After the root's last event: the file must end here. */
VD_MUST_USE vd_status vd_events_finish(vd_events *events);

uint32_t vd_events_line(const vd_events *events); /* of the current event, from 1 */

/* The current event's text if it is a scalar without control characters, NUL among them, and not a
 * block of lines; else NULL. vd_events_plain: only if it stood without quotes. */
const char *vd_events_line_of_text(const vd_events *events);
const char *vd_events_plain(const vd_events *events);

/* The current event in words, for errors: printable and short. */
void vd_events_got(const vd_events *events, char got[VD_GOT_SIZE]);

/* Fails with "FILE:LINE: ...". Returns VD_ERR_USAGE. */
vd_status vd_events_fail(const vd_events *events, uint32_t line, const char *format, ...)
    VD_PRINTF(3, 4);

#endif
