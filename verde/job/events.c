/* This file reads a YAML file event by event, and refuses features that job files do not have. */
#include "verde/job/events.h"
#include "verde/job/job.h"

#include <stdarg.h>
#include <string.h>

vd_status vd_events_fail(const vd_events *events, uint32_t line, const char *format, ...) {
    char sentence[sizeof((vd_err *)0)->text];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return vd_fail(events->err, VD_ERR_USAGE, "%s:%u: %s", events->name, line, sentence);
}

uint32_t vd_events_line(const vd_events *events) {
    return (uint32_t)events->event.start_mark.line + 1;
}

/* Reports a syntax error by its line; for a wrong byte libyaml gives the offset instead. */
static vd_status fail_syntax(const vd_events *events) {
    const yaml_parser_t *parser = &events->parser;
    uint32_t line = (uint32_t)parser->problem_mark.line + 1;
    if (parser->error == YAML_MEMORY_ERROR)
        return vd_fail(events->err, VD_ERR_LOCAL, "%s: out of memory", events->name);
    if (parser->error == YAML_READER_ERROR) {
        line = 1;
        for (size_t i = 0; i < parser->problem_offset; i++)
            line += events->text[i] == '\n';
    }
    return vd_events_fail(events, line, "not valid YAML: %s%s%s",
                          parser->context ? parser->context : "", parser->context ? ", " : "",
                          parser->problem ? parser->problem : "unknown error");
}

/* The name of a feature of YAML that job files must not use, or NULL. */
static const char *forbidden_feature(const yaml_event_t *event) {
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_ALIAS_EVENT: return "aliases";
    case YAML_DOCUMENT_START_EVENT:
        return event->data.document_start.version_directive ||
                       event->data.document_start.tag_directives.start !=
                           event->data.document_start.tag_directives.end
                   ? "directives"
                   : NULL;
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    default: break;
    }
    return anchor ? "anchors" : tag ? "tags" : NULL;
}

vd_status vd_events_next(vd_events *events) {
    yaml_event_delete(&events->event);
    if (!yaml_parser_parse(&events->parser, &events->event))
        return fail_syntax(events);
    const char *feature = forbidden_feature(&events->event);
    if (feature)
        return vd_events_fail(events, vd_events_line(events), "%s are not allowed in %s", feature,
                              events->what);
    return VD_OK;
}

/* Refuses bytes that libyaml would decode or skip, but another reader may not. */
static vd_status check_bytes(const vd_events *events, size_t size) {
    const char *text = events->text;
    if (size == 0)
        return vd_events_fail(events, 1, "%s must be a mapping, got an empty file", events->what);
    if (size > VD_JOB_BYTES_MAX)
        return vd_events_fail(events, 1, "%s must be at most %d bytes, got %zu", events->what,
                              VD_JOB_BYTES_MAX, size);
    if (size >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2)))
        return vd_events_fail(events, 1, "%s must be UTF-8, got UTF-16", events->what);
    if (memmem(text, size, "\xef\xbb\xbf", 3))
        return vd_events_fail(events, 1, "%s must have no byte order mark", events->what);
    return VD_OK;
}

vd_status vd_events_open(vd_events *events, const void *text, size_t size, const char *name,
                         const char *what, vd_err *err) {
    *events = (vd_events){.name = name, .what = what, .text = text, .err = err};
    vd_status status = check_bytes(events, size);
    if (status)
        return status;
    if (!yaml_parser_initialize(&events->parser))
        return vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", name);
    yaml_parser_set_encoding(&events->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&events->parser, text, size);
    do
        status = vd_events_next(events);
    while (!status && (events->event.type == YAML_STREAM_START_EVENT ||
                       events->event.type == YAML_DOCUMENT_START_EVENT));
    return status;
}

void vd_events_close(vd_events *events) {
    yaml_event_delete(&events->event);
    yaml_parser_delete(&events->parser);
}

vd_status vd_events_finish(vd_events *events) {
    vd_status status = vd_events_next(events);
    if (!status && events->event.type == YAML_DOCUMENT_END_EVENT)
        status = vd_events_next(events);
    if (!status && events->event.type != YAML_STREAM_END_EVENT)
        status = vd_events_fail(events, vd_events_line(events),
                                "%s must hold one document, got a second one", events->what);
    return status;
}

const char *vd_events_line_of_text(const vd_events *events) {
    const yaml_event_t *event = &events->event;
    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ||
        event->data.scalar.style == YAML_FOLDED_SCALAR_STYLE)
        return NULL;
    const char *text = (const char *)event->data.scalar.value;
    for (size_t i = 0; i < event->data.scalar.length; i++)
        if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
            return NULL;
    return text;
}

const char *vd_events_plain(const vd_events *events) {
    const yaml_event_t *event = &events->event;
    bool plain =
        event->type == YAML_SCALAR_EVENT && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return plain ? vd_events_line_of_text(events) : NULL;
}

/* Describes a scalar by its start, in quotes if it had them; characters that are not printed are
 * ?. */
static void got_scalar(const yaml_event_t *event, char got[VD_GOT_SIZE]) {
    enum { SHOWN = 100 };
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE, cut = length > SHOWN;
    char shown[SHOWN + 1] = "";
    for (size_t i = 0; i < (cut ? SHOWN : length); i++)
        shown[i] = text[i] < 0x20 || text[i] > 0x7e ? '?' : text[i];
    if (plain && length == 0)
        snprintf(got, VD_GOT_SIZE, "nothing");
    else
        snprintf(got, VD_GOT_SIZE, "%s%s%s%s", plain ? "" : "\"", shown, cut ? "..." : "",
                 plain ? "" : "\" in quotes");
}

void vd_events_got(const vd_events *events, char got[VD_GOT_SIZE]) {
    switch (events->event.type) {
    case YAML_SCALAR_EVENT: got_scalar(&events->event, got); break;
    case YAML_SEQUENCE_START_EVENT: snprintf(got, VD_GOT_SIZE, "a list"); break;
    case YAML_MAPPING_START_EVENT: snprintf(got, VD_GOT_SIZE, "a mapping"); break;
    default: snprintf(got, VD_GOT_SIZE, "nothing"); break;
    }
}
