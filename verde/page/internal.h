/* Declarations shared by the pages. Everything from a peer or a file is written by vd_html_text. */
#ifndef VD_PAGE_PRIVATE_H
#define VD_PAGE_PRIVATE_H

#include "verde/base/html.h"
#include "verde/page/page.h"

enum {
    VD_PAGE_TERMS = 48,     /* terms shown of an element's sum */
    VD_PAGE_USERS = 4,      /* nodes shown that read the one in dispute */
    VD_PAGE_INPUTS = 6,     /* nodes shown that the one in dispute reads */
    VD_PAGE_PAYLOAD = 4000, /* bytes shown of a statement */
    VD_PAGE_ROWS = 200,     /* rows shown of a table */
    VD_PAGE_TOKENS = 40,    /* tokens shown of a prompt, or of its answer */
    VD_PAGE_WORD = 80,      /* bytes shown of a member's name */
    VD_PAGE_SCAN = 1 << 18, /* nodes after it that are searched for its readers */
};

/* ---- frame.c ---- */

/* Writes a whole page around `body`. `script`: the page's script, or NULL. */
VD_MUST_USE vd_status vd_page_frame(const char *title, const vd_buf *body, const char *script,
                                    vd_buf *out, vd_err *err);
const char *vd_page_base_name(const char *path);   /* the last part of a path */
void vd_page_title(vd_buf *out, const char *text); /* begins a section */
void vd_page_count(vd_buf *out, int64_t count);    /* such as "1,248" */
void vd_page_bytes(vd_buf *out, uint64_t bytes);
void vd_page_hash(vd_buf *out, const vd_hash *hash);
void vd_page_key(vd_buf *out, const vd_public_key *key);

/* ---- verdict.c: collected while a verdict is decided again ---- */

typedef struct {
    int input;
    int64_t index;
    uint32_t bits;
} vd_page_term;

typedef struct {
    vd_verdict *verdict; /* still being decided */
    size_t note_size;
    vd_page_term term[VD_PAGE_TERMS];
    uint64_t terms, statements; /* numbers of all, also those that are not shown */
    uint64_t questions[VD_LEVELS], bytes[VD_LEVELS];
    vd_buf evidence, story, where, graph, element; /* sections of the page */
} vd_page_watch;

/* Returns the place shown: of two providers' first hearing, or of the last game that has one. */
const vd_place *vd_page_place(const vd_outcome *outcome);
/* Returns the numbers of the two providers of that place. False: there are not two. */
bool vd_page_pair(const vd_outcome *outcome, uint32_t provider[2]);

/* ---- words.c ---- */

/* Returns a member's name in words, in `text` or in a static string. */
const char *vd_page_word(const char *name, char text[VD_PAGE_WORD]);

/* ---- where.c, graph.c, element.c, evidence.c ---- */

void vd_page_where(vd_page_watch *w, const vd_program *program);
void vd_page_graph(vd_page_watch *w, const vd_program *program);
void vd_page_element(vd_page_watch *w, const vd_program *program);
void vd_page_heard(vd_page_watch *w, const vd_heard *heard);

/* ---- verifier.c ---- */

/* Appends the verdict and the verifier of verify.html as a section; *script becomes its script. */
VD_MUST_USE vd_status vd_page_verifier(const vd_buf *verifier, const char *name, const void *note,
                                       size_t size, vd_buf *body, vd_buf *script, vd_err *err);

#endif
