/* The referee as a state machine: it names the questions to ask, is fed the answers, and decides.
 * No sockets, no clock, no files. The same machine, fed from a verdict's evidence, verifies it. */
#ifndef VD_REFEREE_H
#define VD_REFEREE_H

#include "verde/commit/record.h"
#include "verde/exec/source.h"
#include "verde/protocol/message.h"
#include "verde/protocol/pace.h"

typedef enum {
    VD_STANDS = 0,
    VD_CONVICTED,
    VD_FORFEITED,
    VD_DISMISSED, /* an auditor that could not show the trainer to be wrong (section 12.5) */
} vd_standing;

/* Grades up to VD_GRADE_CONCEDED are proven by the convicted provider's own signed statements. */
typedef enum {
    VD_GRADE_NONE = 0,
    VD_GRADE_WRONG_OUTPUT,
    VD_GRADE_WRONG_INPUT,
    VD_GRADE_WRONG_GRAPH,
    VD_GRADE_BAD_PROOF,
    VD_GRADE_CONTRADICTION,
    VD_GRADE_LOG_INCOMPLETE,
    VD_GRADE_CONCEDED,
    VD_GRADE_TIMEOUT,   /* attested by the referee alone: forfeits, never convicts */
    VD_GRADE_DISMISSED, /* its claim falls; it is not shown to be wrong */
} vd_grade;

typedef enum {
    VD_RESULT_AGREED = 1,
    VD_RESULT_CONVICTED,
    VD_RESULT_FORFEIT,
    VD_RESULT_INCONCLUSIVE,
    VD_RESULT_DISMISSED,
} vd_result;

const char *vd_standing_name(vd_standing standing);
const char *vd_grade_name(vd_grade grade);
const char *vd_result_name(vd_result result);

/* How a challenge ended (PROTOCOL.md section 5.7). */
typedef enum {
    VD_CHALLENGE_NONE = 0,     /* nobody was asked for one */
    VD_CHALLENGE_DECLINED,     /* the convicted provider gave no second run */
    VD_CHALLENGE_CONFIRMED,    /* its second run has the root of the claim left standing */
    VD_CHALLENGE_FAILED,       /* its second run was shown to be wrong too, or it fell silent */
    VD_CHALLENGE_UPHELD,       /* the claim left standing fell */
    VD_CHALLENGE_INCONCLUSIVE, /* nothing is accepted (sections 5.3 and 5.5) */
} vd_challenge_end;

const char *vd_challenge_name(vd_challenge_end end);

/* How the trainer's log speaks of an element with several possible values. */
typedef enum {
    VD_LOGGED_UNREAD = 0, /* the log was not read */
    VD_LOGGED_RANGE,      /* it leaves the values from logged[0] to logged[1] */
    VD_LOGGED_NOTHING,    /* it owes a record and has none */
    VD_LOGGED_OTHER,      /* it names none of the possible values */
} vd_logged_as;

enum { VD_NO_STEP = -2 };
#define VD_NO_PLACE                                                                                \
    ((vd_place){.item = -1, .step = VD_NO_STEP, .node = -1, .element = -1, .part = -1})

/* How far a descent came. */
typedef struct {
    int64_t item; /* of a job of many programs, where the runs first differ; -1: not reached */
    bool answers; /* the item is a batch of answers, and no prompt */
    int64_t step; /* where the states first differ; -1: initialisation; VD_NO_STEP: not reached */
    int64_t node; /* -1: not reached */
    int64_t element; /* -1: not reached */
    int64_t part;    /* of a long fold; -1: not reached */
    char node_name[VD_NAME_SIZE], operator_name[32];
    int32_t dtype;     /* of the node's output */
    bool computed;     /* the referee computed the element */
    uint32_t expected; /* its bits; for a free operator, the exact value rounded to the nearest */
    bool rounded;      /* the operator is free, in a run with rounding logs */
    uint32_t possible[2];   /* rounded: least and greatest value that a device can have */
    vd_logged_as logged_as; /* rounded: what the log says */
    uint32_t logged[2];     /* VD_LOGGED_RANGE: least and greatest value that it leaves */
    uint32_t value[2];      /* bits that each provider states */
} vd_place;

/* Prints an element at that place for people: decimal, and its bits. */
void vd_place_text(const vd_place *at, uint32_t bits, char text[VD_F32_TEXT]);

/* A game of a tournament (PROTOCOL.md section 5.8): a dispute between two of many providers. */
typedef struct {
    uint32_t provider[2]; /* their numbers in the assignment */
    uint32_t level;       /* games of one level are played at the same time */
    bool second_hearing;
    vd_standing standing[2]; /* after this game */
    bool inconclusive;
    vd_place place;
    uint32_t rounds; /* questions to the busier of the two */
} vd_game_outcome;

/* What one of many convicted providers answered when it was asked for a second run. */
typedef struct {
    uint32_t provider;
    bool claimed;
    vd_hash run_root;
    vd_grade grade; /* of the second run, if it fell too */
    char reason[256];
    uint32_t game; /* in which it fell; 0: in none */
} vd_contest_outcome;

/* The decision. Everything here can be computed again from the evidence. */
typedef struct {
    vd_result result;
    struct vd_party_outcome {
        vd_standing standing;
        vd_grade grade;
        char reason[256];
        bool claimed; /* it revealed a run root */
        vd_hash run_root;
        uint32_t game; /* in which it fell, counted from 1; 0: in none */
    } party[VD_PARTIES_MAX];
    uint32_t party_count;
    bool accepted;    /* a claim stands */
    vd_hash run_root; /* the accepted one */
    vd_place place;
    struct vd_challenge_outcome {
        vd_challenge_end end;
        uint32_t challenger; /* the provider that was asked for it */
        bool claimed;        /* it stated the root of a second run */
        vd_hash run_root;
        vd_grade grade; /* of the second run, if it fell too; VD_GRADE_TIMEOUT: it fell silent */
        char reason[256];
        vd_place place;
    } challenge;
    uint32_t rounds; /* questions to the busiest provider */
    /* Of more than two providers; `place` and all of `challenge` but its end are theirs then. */
    vd_game_outcome *game; /* number 1 first; owned by whoever owns the outcome */
    uint32_t game_count;
    vd_contest_outcome *contest; /* owned likewise */
    uint32_t contest_count;
} vd_outcome;

/* Computes the disputed element. vd_leaf_element, except in tests. */
typedef vd_status (*vd_leaf_fn)(const ro_call *call, int64_t element, vd_load load, void *user,
                                uint32_t *out, vd_err *err);

typedef struct {
    const vd_program *program;       /* NULL: the job is a collection */
    const vd_collection *collection; /* NULL: it is one program */
    const vd_buf *assignment;        /* payload */
    const vd_key *key;               /* signs questions; NULL: a replay, where nothing is signed */
    vd_leaf_fn leaf;
    void (*story)(void *user, const char *line); /* for people; may be NULL */
    /* For people: the disputed element, or part, is computed, maybe once more; and what from.
     * May be NULL, both. */
    void (*computing)(void *reader);
    void (*reading)(void *reader, int input, int64_t index, uint32_t bits);
    void *user, *reader; /* of the story; of these two */
} vd_referee_options;

typedef struct vd_referee vd_referee;

/* Of an assignment to two providers. VD_ERR_USAGE: it names more (tournament.h). */
VD_MUST_USE vd_status vd_referee_create(const vd_referee_options *options, vd_referee **out,
                                        vd_err *err);
void vd_referee_destroy(vd_referee *referee);

/* A question for one provider. Borrowed from the referee until the next call of vd_referee_next. */
typedef struct {
    uint32_t party;
    vd_hash question;   /* hash of the payload */
    const vd_buf *note; /* signed; empty in a replay */
    size_t answer_max;  /* bytes that the note of an answer may have */
    vd_work work;       /* what the answer takes */
    bool whole_run;     /* the answer may take as long as the job */
    char text[96];      /* for people */
} vd_outgoing;

/* Questions to ask now, at most one per provider; 0 when the outcome stands. All must be answered,
 * in any order, before the next call. A failure (memory) is in *err and ends the dispute without an
 * outcome. */
VD_MUST_USE vd_status vd_referee_next(vd_referee *referee, vd_outgoing out[VD_PARTIES_MAX],
                                      size_t *count, vd_err *err);
/* A signed note that is not a statement of this provider on its question counts as no answer. */
void vd_referee_answer(vd_referee *referee, uint32_t party, const void *note, size_t size);
void vd_referee_no_answer(vd_referee *referee, uint32_t party, const char *why);

/* All statements in order, for the verdict. Answers that did not count are not kept. */
typedef struct {
    uint32_t party;
    vd_hash question;
    vd_stated stated; /* its payload is empty: there was no answer */
    char why[128];    /* what the referee saw instead of an answer */
} vd_statement;

/* What was kept of the last answer of this provider, or of its absence: NULL before the first. */
const vd_statement *vd_referee_last(const vd_referee *referee, uint32_t party);
/* What a provider states of its machine in the answer that it has just given. */
void vd_referee_pace(const vd_referee *referee, uint32_t party, vd_pace *out);

/* What a question narrows. */
typedef enum {
    VD_LEVEL_CLAIM, /* commit and reveal */
    VD_LEVEL_ITEM,
    VD_LEVEL_STEP,
    VD_LEVEL_NODE,
    VD_LEVEL_ELEMENT, /* and what it is computed from, if it has no parts */
    VD_LEVEL_PART,
    VD_LEVEL_LOG,
    VD_LEVEL_CHALLENGE,
    VD_LEVELS,
} vd_level;

const char *vd_level_name(vd_level level); /* in a verdict's cost */
/* Of the questions that it asked last. */
vd_level vd_referee_level(const vd_referee *referee);

const vd_outcome *vd_referee_outcome(const vd_referee *referee);
/* The program that the dispute is about: the job's, or that of the item in dispute. NULL: none of
 * the items is, so far. */
const vd_program *vd_referee_program(const vd_referee *referee);
/* NULL: the job is one program. */
const vd_collection *vd_referee_collection(const vd_referee *referee);

/* All statements in order. */
const vd_statement *vd_referee_statements(const vd_referee *referee, size_t *count);

#endif
