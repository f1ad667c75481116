/* `verde audit JOB --results DIR`: answers that were delivered, each checked by one pass over its
 * prompt and itself. Private to audit_answers*.c, but for vd_audit_answers. */
#ifndef VD_AUDIT_ANSWERS_H
#define VD_AUDIT_ANSWERS_H

#include "verde/exec/distance.h"
#include "verde/load/load.h"

enum {
    VD_ANSWERS_TOGETHER = 8,       /* prompts of a pass, if nobody says how many */
    VD_ANSWER_PLACE = 64,          /* bytes of "best[12][3][1]", with the final NUL */
    VD_ANSWER_LINE_MAX = 64 << 20, /* bytes of a line of results.jsonl */
};

typedef struct {
    const char *job, *dir;
    const char *beacon; /* the file of the value that draws; NULL: this checker draws */
    const char *source; /* whose it is, and which; for the report */
    long round;
    long count;      /* of answers, drawn among all; 0: all */
    long together;   /* prompts of one pass */
    json_t **report; /* gets it, in place of standard output; or NULL */
    /* With a provider's URL a wrong answer goes on to a dispute. */
    const char *url, *key_dir, *verdict, *work, *ca;
    long patience_s, step_s_max;
    bool force;
    bool accepted; /* the provider has taken the job from this key: a refusal is no mistake */
    vd_common common;
} vd_answers_arguments;

/* ---- audit_answers_lines.c: what results.jsonl says ---- */

typedef struct {
    int64_t key;
    uint64_t at, size; /* bytes of the line, without its end */
    uint32_t number;   /* from 1 */
} vd_answer_line;

typedef struct {
    int64_t key;
    uint32_t line;
} vd_answer_key;

typedef struct {
    char path[1100];
    vd_map file;
    vd_answer_line *line;  /* in the order of the file; owned */
    vd_answer_key *by_key; /* in the order of keys; owned */
    uint32_t count;
} vd_answer_lines;

/* VD_ERR_PEER: a line is none of a result, or two have one key. */
VD_MUST_USE vd_status vd_answer_lines_open(const char *dir, vd_answer_lines *out, vd_err *err);
void vd_answer_lines_free(vd_answer_lines *lines);
/* NULL: no line has this key. */
const vd_answer_line *vd_answer_line_of(const vd_answer_lines *lines, int64_t key);

/* What a line says of a prompt. */
typedef struct {
    json_t *line;
    const json_t *log_probability, *best; /* NULL: not told */
    int32_t *token;                       /* owned */
    int64_t count;
    bool stop; /* "stopped":"stop", else "length" */
} vd_answer_claim;

/* VD_ERR_PEER names what in the line is not of such a job: `how` says what must be told. */
VD_MUST_USE vd_status vd_answer_claim_read(const vd_answer_lines *lines, const vd_answer_line *line,
                                           const vd_generation *how, vd_answer_claim *out,
                                           vd_err *err);
void vd_answer_claim_free(vd_answer_claim *claim);

/* ---- audit_answers_compare.c: where an answer parts from what is right ---- */

typedef struct {
    uint32_t prompt; /* its number in the file, from 0; UINT32_MAX: there is no such prompt */
    int64_t key;
    char place[VD_ANSWER_PLACE]; /* as in the line: "ids[4]" */
    char said[VD_ELEMENT_TEXT + 32], right[VD_ELEMENT_TEXT + 32];
} vd_answer_difference;

/* How many steps are computed to compare a claim: the one after its last token, too, since the text
 * might go on. */
int64_t vd_answer_steps(const vd_answer_claim *claim, int64_t max_tokens, int64_t vocab);
/* The first difference by place; false: there is none. `stop` is the first step that ends the text,
 * of `rows`, or -1. */
bool vd_answer_compare(const vd_answer_claim *claim, const vd_program *program,
                       const vd_state *state, int64_t stop, int64_t rows,
                       vd_answer_difference *out);

/* ---- audit_answers.c ---- */

typedef struct {
    const vd_answers_arguments *a;
    vd_loaded loaded;
    vd_answer_lines lines;
    bool proven; /* by results.proof, which leads from the lines to: */
    vd_hash collection, job_root;
    vd_items items;               /* with the run roots that were delivered, if they are proven */
    uint32_t *drawn, drawn_count; /* prompts, ascending; owned */
    vd_buf beacon;                /* the value that drew, if not all are looked at */
    vd_answer_difference *difference;
    uint32_t differences, capacity;
    uint32_t wrong;   /* prompts that differ */
    uint32_t checked; /* so far */
    int64_t tokens, rows;
    vd_ticker ticker;
    bool disputed;
    vd_exit outcome; /* of the dispute, as `verde arbitrate` */
    vd_err *err;
} vd_answers_check;

/* Adds a difference of which everything but `place` and the texts is known. */
VD_MUST_USE vd_status vd_answers_differ(vd_answers_check *c, const vd_answer_difference *d);

/* ---- audit_answers_run.c: the passes ---- */
VD_MUST_USE vd_status vd_answers_run(vd_answers_check *c);

/* ---- audit_answers_rival.c: a dispute about the first answer that is wrong ---- */

/* Runs its prompt here, into the folder `work`, which serves as the rival: of all other prompts it
 * has the run roots that were delivered, so that the dispute is about this one. */
VD_MUST_USE vd_status vd_answers_dispute(vd_answers_check *c);

/* ---- audit_answers_tell.c ---- */
void vd_answers_tell_progress(vd_answers_check *c);
void vd_answers_print(const vd_answers_check *c);
json_t *vd_answers_json(const vd_answers_check *c);

/* All of it. VD_EXIT_DIFFERS: an answer is wrong. */
vd_exit vd_audit_answers(const vd_answers_arguments *a);

#endif
