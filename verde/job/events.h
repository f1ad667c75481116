/* YAML as a stream of events, without the features of YAML that job files must not use. Private to
 * verde/job. Nothing is built in memory, so a hostile file is refused at its first bad event. */
#ifndef VD_JOB_EVENTS_H
#define VD_JOB_EVENTS_H

#include "verde/base/base.h"

#include <yaml.h>

enum { VD_GOT_SIZE = 128 }; /* a line of sha256sum fits, unless its name is long */

typedef struct {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; owned */
    const char *name;   /* of the file, for errors */
    const char *what;   /* "a job file", for errors */
    const char *text;
    vd_err *err;
} vd_events;

/* Opens text (borrowed) of at most VD_JOB_BYTES_MAX, and goes to the root's first event. */
VD_MUST_USE vd_status vd_events_open(vd_events *events, const void *text, size_t size,
                                     const char *name, const char *what, vd_err *err);
void vd_events_close(vd_events *events); /* may be called after a failed open */

/* Goes to the next event. It refuses anchors, aliases, tags and directives. */
VD_MUST_USE vd_status vd_events_next(vd_events *events);

/* Checks that the file ends after the root's last event. */
VD_MUST_USE vd_status vd_events_finish(vd_events *events);

uint32_t vd_events_line(const vd_events *events); /* of the current event, from 1 */

/* The text of the current event if it is a scalar without control characters, and not a block; else
 * NULL. vd_events_plain also returns NULL if the scalar has quotes. */
const char *vd_events_line_of_text(const vd_events *events);
const char *vd_events_plain(const vd_events *events);

/* Describes the current event for errors, printable and short. */
void vd_events_got(const vd_events *events, char got[VD_GOT_SIZE]);

/* Fails with "FILE:LINE: ...". Returns VD_ERR_USAGE. */
vd_status vd_events_fail(const vd_events *events, uint32_t line, const char *format, ...)
    VD_PRINTF(3, 4);

#endif
