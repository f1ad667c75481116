/* Pages for people: one file each, which loads nothing and works without a network. The outcome
 * comes first. */
#ifndef VD_PAGE_FILES_H
#define VD_PAGE_FILES_H

#include "verde/exec/store.h"
#include "verde/protocol/verdict.h"

/* A verdict that is decided again on the way. `name` is its file's, for people. `verifier`: the
 * text of verify.html, whose verifier the page gets too; NULL: it has none. VD_ERR_PEER and
 * VD_ERR_VERSION as vd_verdict_verify, and no page then. */
VD_MUST_USE vd_status vd_page_of_verdict(const char *name, const void *note, size_t size,
                                         const vd_buf *verifier, vd_buf *out, vd_verdict *verdict,
                                         vd_err *err);

/* What a page of a report says; all strings are borrowed. */
typedef struct {
    const char *kind, *name;     /* "An audit"; its file or folder */
    const char *headline, *mood; /* mood: "good", "bad" or "wait" */
    const char *sentence;        /* NULL: none */
    const json_t *values;        /* an object: all that it says */
    const vd_buf *picture;       /* SVG; NULL: none */
    const char *picture_title;
} vd_page_report;

VD_MUST_USE vd_status vd_page_of_report(const vd_page_report *report, vd_buf *out, vd_err *err);
/* Of the run in `dir`. `values`: what `verde inspect --json` says of it, which is taken over; NULL:
 * nothing. Of its losses, the last `losses` bytes are drawn. */
VD_MUST_USE vd_status vd_page_of_run(const char *dir, const vd_program *program,
                                     const vd_run_log *log, json_t *values, uint64_t losses,
                                     vd_buf *out, vd_err *err);
/* Of a folder of runs of many prompts (verde/exec/items.h): the first 200 of them, with what the
 * lines of its results say so far. */
VD_MUST_USE vd_status vd_page_of_prompts(const char *dir, vd_buf *out, vd_err *err);
/* Fills in all but the name for what `verde audit` and `verde diff` write with --json. False: it is
 * neither. */
bool vd_page_known_report(const json_t *values, vd_page_report *report);

#endif
