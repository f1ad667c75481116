/* Shared by the pages. Whatever comes from a peer or a file goes through vd_html_text. */
#ifndef VD_PAGE_PRIVATE_H
#define VD_PAGE_PRIVATE_H

#include "verde/base/html.h"
#include "verde/page/page.h"

enum {
    VD_PAGE_TERMS = 48,     /* terms of an element's sum that are shown */
    VD_PAGE_USERS = 4,      /* nodes that read the one in dispute */
    VD_PAGE_INPUTS = 6,     /* nodes that the one in dispute reads */
    VD_PAGE_PAYLOAD = 4000, /* bytes of a statement that are shown */
    VD_PAGE_ROWS = 200,     /* of a table */
    VD_PAGE_TOKENS = 40,    /* of a prompt, or of what was made of it */
    VD_PAGE_WORD = 80,      /* bytes of a member's name, as far as it is shown */
    VD_PAGE_SCAN = 1 << 18, /* nodes behind it that are looked at for these */
};

/* ---- frame.c ---- */

/* A whole page around `body`. `script`: what runs in it, or NULL. */
VD_MUST_USE vd_status vd_page_frame(const char *title, const vd_buf *body, const char *script,
                                    vd_buf *out, vd_err *err);
const char *vd_page_base_name(const char *path);   /* of a file or folder */
void vd_page_title(vd_buf *out, const char *text); /* begins a section */
void vd_page_count(vd_buf *out, int64_t count);    /* "1,248" */
void vd_page_bytes(vd_buf *out, uint64_t bytes);
void vd_page_hash(vd_buf *out, const vd_hash *hash);
void vd_page_key(vd_buf *out, const vd_public_key *key);

/* ---- verdict.c: what is collected while a verdict is decided ---- */

typedef struct {
    int input;
    int64_t index;
    uint32_t bits;
} vd_page_term;

typedef struct {
    vd_verdict *verdict; /* being decided */
    size_t note_size;
    vd_page_term term[VD_PAGE_TERMS];
    uint64_t terms, statements; /* all of them */
    uint64_t questions[VD_LEVELS], bytes[VD_LEVELS];
    vd_buf evidence, story, where, graph, element; /* sections */
} vd_page_watch;

/* The place that the page shows: of the first hearing of two, or of the last game that has one. */
const vd_place *vd_page_place(const vd_outcome *outcome);
/* The two providers of that place: their numbers. False: it has one, or none. */
bool vd_page_pair(const vd_outcome *outcome, uint32_t provider[2]);

/* ---- words.c ---- */

/* A report's member in words; they are `text`, or static. */
const char *vd_page_word(const char *name, char text[VD_PAGE_WORD]);

/* ---- where.c, graph.c, element.c, evidence.c ---- */

void vd_page_where(vd_page_watch *w, const vd_program *program);
void vd_page_graph(vd_page_watch *w, const vd_program *program);
void vd_page_element(vd_page_watch *w, const vd_program *program);
void vd_page_heard(vd_page_watch *w, const vd_heard *heard);

/* ---- verifier.c ---- */

/* The section with the verdict and the verifier of verify.html; *script gets what runs. */
VD_MUST_USE vd_status vd_page_verifier(const vd_buf *verifier, const char *name, const void *note,
                                       size_t size, vd_buf *body, vd_buf *script, vd_err *err);

#endif
