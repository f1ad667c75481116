/* Pages for people: each is a single file that loads nothing and works offline. The outcome comes
 * first. */
#ifndef VD_PAGE_FILES_H
#define VD_PAGE_FILES_H

#include "verde/exec/store.h"
#include "verde/protocol/verdict.h"

/* Makes the page of a verdict, which is decided again meanwhile. `name`: its file's, for people.
 * `verifier`: the text of verify.html, whose verifier the page includes, or NULL. Errors as from
 * vd_verdict_verify; then there is no page. */
VD_MUST_USE vd_status vd_page_of_verdict(const char *name, const void *note, size_t size,
                                         const vd_buf *verifier, vd_buf *out, vd_verdict *verdict,
                                         vd_err *err);

/* The contents of a report's page. All strings are borrowed. */
typedef struct {
    const char *kind, *name;     /* such as "An audit"; its file or folder */
    const char *headline, *mood; /* `mood` is "good", "bad" or "wait" */
    const char *sentence;        /* or NULL */
    const json_t *values;        /* an object with all values */
    const vd_buf *picture;       /* SVG, or NULL */
    const char *picture_title;
} vd_page_report;

VD_MUST_USE vd_status vd_page_of_report(const vd_page_report *report, vd_buf *out, vd_err *err);
/* Makes the page of the run in `dir`. `values`: the output of `verde inspect --json`, whose
 * ownership is taken, or NULL. The last `losses` bytes of its losses are drawn. */
VD_MUST_USE vd_status vd_page_of_run(const char *dir, const vd_program *program,
                                     const vd_run_log *log, json_t *values, uint64_t losses,
                                     vd_buf *out, vd_err *err);
/* Makes the page of a folder with the runs of many prompts (verde/exec/items.h): the first 200 of
 * them, with their results so far. */
VD_MUST_USE vd_status vd_page_of_prompts(const char *dir, vd_buf *out, vd_err *err);
/* Fills in everything but the name for the --json output of `verde audit` and `verde diff`. False:
 * it is neither. */
bool vd_page_known_report(const json_t *values, vd_page_report *report);

#endif
