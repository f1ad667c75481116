/* `verde audit JOB --results DIR`: checks answers that were delivered, each with one pass over its
 * prompt and itself. Private to audit_answers*.c, except vd_audit_answers. */
#ifndef VD_AUDIT_ANSWERS_H
#define VD_AUDIT_ANSWERS_H

#include "verde/exec/distance.h"
#include "verde/load/load.h"

enum {
    VD_ANSWERS_TOGETHER = 8,       /* prompts in one pass by default */
    VD_ANSWER_PLACE = 64,          /* bytes of "best[12][3][1]" with its NUL */
    VD_ANSWER_LINE_MAX = 64 << 20, /* bytes of a line of results.jsonl */
};

typedef struct {
    const char *job, *dir;
    const char *beacon; /* file of the beacon's value; NULL: drawn by this checker */
    const char *source; /* the beacon's name, for the report */
    long round;
    long count;      /* answers to draw among all; 0: check all */
    long together;   /* prompts in one pass */
    json_t **report; /* receives the report instead of standard output; or NULL */
    /* With a provider's URL, a wrong answer leads to a dispute. */
    const char *url, *key_dir, *verdict, *work, *ca;
    long patience_s, step_s_max;
    bool force;
    bool accepted; /* the provider has taken the job from this key: a refusal is no mistake */
    vd_common common;
} vd_answers_arguments;

/* ---- audit_answers_lines.c: the lines of results.jsonl ---- */

typedef struct {
    int64_t key;
    uint64_t at, size; /* offset, and size without the line's end */
    uint32_t number;   /* from 1 */
} vd_answer_line;

typedef struct {
    int64_t key;
    uint32_t line;
} vd_answer_key;

typedef struct {
    char path[1100];
    vd_map file;
    vd_answer_line *line;  /* in file order; owned */
    vd_answer_key *by_key; /* sorted by key; owned */
    uint32_t count;
} vd_answer_lines;

/* Opens DIR/results.jsonl. VD_ERR_PEER: a line is no result, or two lines have the same key. */
VD_MUST_USE vd_status vd_answer_lines_open(const char *dir, vd_answer_lines *out, vd_err *err);
void vd_answer_lines_free(vd_answer_lines *lines);
/* Returns NULL if no line has this key. */
const vd_answer_line *vd_answer_line_of(const vd_answer_lines *lines, int64_t key);

/* A line's statements about its prompt. */
typedef struct {
    json_t *line;
    const json_t *log_probability, *best; /* NULL: not in the line */
    int32_t *token;                       /* owned */
    int64_t count;
    bool stop; /* true for "stopped":"stop", false for "length" */
} vd_answer_claim;

/* Reads a line, in which `how` requires some members. VD_ERR_PEER: the text names the fault. */
VD_MUST_USE vd_status vd_answer_claim_read(const vd_answer_lines *lines, const vd_answer_line *line,
                                           const vd_generation *how, vd_answer_claim *out,
                                           vd_err *err);
void vd_answer_claim_free(vd_answer_claim *claim);

/* ---- audit_answers_compare.c: where an answer first differs from the correct one ---- */

typedef struct {
    uint32_t prompt; /* index in the file of prompts; UINT32_MAX: no such prompt */
    int64_t key;
    char place[VD_ANSWER_PLACE]; /* such as "ids[4]" in the line */
    char said[VD_ELEMENT_TEXT + 32], right[VD_ELEMENT_TEXT + 32];
} vd_answer_difference;

/* Returns the number of steps to compute for a claim, including the one after its last token, since
 * the text might have gone on. */
int64_t vd_answer_steps(const vd_answer_claim *claim, int64_t max_tokens, int64_t vocab);
/* Finds the first difference in the order of places; false: there is none. `stop`: the first of
 * `rows` steps that ends the text, or -1. */
bool vd_answer_compare(const vd_answer_claim *claim, const vd_program *program,
                       const vd_state *state, int64_t stop, int64_t rows,
                       vd_answer_difference *out);

/* ---- audit_answers.c ---- */

typedef struct {
    const vd_answers_arguments *a;
    vd_loaded loaded;
    vd_answer_lines lines;
    bool proven; /* results.proof leads from the lines to these: */
    vd_hash collection, job_root;
    vd_items items;               /* if `proven`, with the run roots that were delivered */
    uint32_t *drawn, drawn_count; /* prompts to check, ascending; owned */
    vd_buf beacon;                /* the value that drew, unless all are checked */
    vd_answer_difference *difference;
    uint32_t differences, capacity;
    uint32_t wrong;   /* number of prompts with differences */
    uint32_t checked; /* number so far */
    int64_t tokens, rows;
    vd_ticker ticker;
    bool disputed;
    vd_exit outcome; /* of the dispute, as of `verde arbitrate` */
    vd_err *err;
} vd_answers_check;

/* Adds a copy of a difference. */
VD_MUST_USE vd_status vd_answers_differ(vd_answers_check *c, const vd_answer_difference *d);

/* ---- audit_answers_run.c: the passes ---- */
VD_MUST_USE vd_status vd_answers_run(vd_answers_check *c);

/* ---- audit_answers_rival.c: a dispute about the first wrong answer ---- */

/* Runs the wrong answer's prompt in the folder `work` and serves it as the provider's rival, which
 * has the delivered run roots of all other prompts: so the dispute is about this one. */
VD_MUST_USE vd_status vd_answers_dispute(vd_answers_check *c);

/* ---- audit_answers_tell.c ---- */
void vd_answers_tell_progress(vd_answers_check *c);
void vd_answers_print(const vd_answers_check *c);
json_t *vd_answers_json(const vd_answers_check *c);

/* Runs the whole audit. VD_EXIT_DIFFERS: an answer is wrong. */
vd_exit vd_audit_answers(const vd_answers_arguments *a);

#endif
