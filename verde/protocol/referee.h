/* The referee as a state machine: it names questions, takes answers, and decides. It uses no
 * sockets, clock or files. Fed from a verdict's evidence, the same machine verifies it. */
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
    VD_DISMISSED, /* of an auditor that could not show the trainer to be wrong (section 12.5) */
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
    VD_GRADE_TIMEOUT,   /* known only from the referee: forfeits, never convicts */
    VD_GRADE_DISMISSED, /* the claim falls, but is not shown to be wrong */
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
    VD_CHALLENGE_NONE = 0,     /* nobody was asked for a second run */
    VD_CHALLENGE_DECLINED,     /* the convicted provider gave no second run */
    VD_CHALLENGE_CONFIRMED,    /* its second run has the root of the claim left standing */
    VD_CHALLENGE_FAILED,       /* the second run was shown to be wrong, or went silent */
    VD_CHALLENGE_UPHELD,       /* the claim left standing fell */
    VD_CHALLENGE_INCONCLUSIVE, /* nothing is accepted (sections 5.3 and 5.5) */
} vd_challenge_end;

const char *vd_challenge_name(vd_challenge_end end);

/* What the trainer's log says of an element that can round to several values. */
typedef enum {
    VD_LOGGED_UNREAD = 0, /* the log was not read */
    VD_LOGGED_RANGE,      /* the log allows the values from logged[0] to logged[1] */
    VD_LOGGED_NOTHING,    /* the log lacks a record that it must have */
    VD_LOGGED_OTHER,      /* the log names none of the possible values */
} vd_logged_as;

enum { VD_NO_STEP = -2 };
#define VD_NO_PLACE                                                                                \
    ((vd_place){.item = -1, .step = VD_NO_STEP, .node = -1, .element = -1, .part = -1})

/* The place that a dispute has narrowed down to, as far as it came. */
typedef struct {
    int64_t item;    /* of a collection: the first item whose runs differ; -1: not reached */
    bool answers;    /* the item is a batch of answers, not a prompt */
    int64_t step;    /* first whose states differ; -1: initialisation; VD_NO_STEP: not reached */
    int64_t node;    /* -1: not reached */
    int64_t element; /* -1: not reached */
    int64_t part;    /* of a long fold; -1: not reached */
    char node_name[VD_NAME_SIZE], operator_name[32];
    int32_t dtype;          /* element type of the node's output */
    bool computed;          /* `expected` is set */
    uint32_t expected;      /* bits by the reference; of a free operator, rounded to nearest */
    bool rounded;           /* the operator is free, and the run has rounding logs */
    uint32_t possible[2];   /* rounded: least and greatest value that a device can round to */
    vd_logged_as logged_as; /* rounded: what the log says */
    uint32_t logged[2];     /* VD_LOGGED_RANGE: least and greatest value that the log allows */
    uint32_t value[2];      /* bits of the element as each provider states it */
} vd_place;

/* Writes an element of that place for people: in decimal, and its bits. */
void vd_place_text(const vd_place *at, uint32_t bits, char text[VD_F32_TEXT]);

/* A game of a tournament (PROTOCOL.md section 5.8), between two of its providers. */
typedef struct {
    uint32_t provider[2]; /* their numbers in the assignment */
    uint32_t level;       /* games of one level are played at the same time */
    bool second_hearing;
    vd_standing standing[2]; /* after this game */
    bool inconclusive;
    vd_place place;
    uint32_t rounds; /* number of questions to the busier of the two */
} vd_game_outcome;

/* The answer of one of many convicted providers to the request for a second run. */
typedef struct {
    uint32_t provider;
    bool claimed;
    vd_hash run_root;
    vd_grade grade; /* why the second run fell, if it did */
    char reason[256];
    uint32_t game; /* number of the game in which it fell; 0: in none */
} vd_contest_outcome;

/* The decision. Verifiers compute all of it from the evidence. */
typedef struct {
    vd_result result;
    struct vd_party_outcome {
        vd_standing standing;
        vd_grade grade;
        char reason[256];
        bool claimed; /* it revealed a run root */
        vd_hash run_root;
        uint32_t game; /* number, from 1, of the game in which it fell; 0: in none */
    } party[VD_PARTIES_MAX];
    uint32_t party_count;
    bool accepted;    /* a claim is accepted */
    vd_hash run_root; /* the accepted claim */
    vd_place place;
    struct vd_challenge_outcome {
        vd_challenge_end end;
        uint32_t challenger; /* the provider that was asked for a second run */
        bool claimed;        /* it stated the root of a second run */
        vd_hash run_root;
        vd_grade grade; /* why the second run fell; VD_GRADE_TIMEOUT: silence */
        char reason[256];
        vd_place place;
    } challenge;
    uint32_t rounds; /* number of questions to the busiest provider */
    /* Only with more than two providers. They replace `place`, and `challenge` except its end. */
    vd_game_outcome *game; /* game number 1 first; owned by the owner of the outcome */
    uint32_t game_count;
    vd_contest_outcome *contest; /* owned by the owner of the outcome */
    uint32_t contest_count;
} vd_outcome;

/* Computes the disputed element. It is vd_leaf_element except in tests. */
typedef vd_status (*vd_leaf_fn)(const ro_call *call, int64_t element, vd_load load, void *user,
                                uint32_t *out, vd_err *err);

typedef struct {
    const vd_program *program;       /* NULL: the job is a collection */
    const vd_collection *collection; /* NULL: it is one program */
    const vd_buf *assignment;        /* payload */
    const vd_key *key;               /* signs questions; NULL: a replay, which signs nothing */
    vd_leaf_fn leaf;
    void (*story)(void *user, const char *line); /* a line for people; may be NULL */
    /* For people; both may be NULL. `computing`: the reference begins to compute the disputed
     * element or part, possibly again. `reading`: it reads this element of an input. */
    void (*computing)(void *reader);
    void (*reading)(void *reader, int input, int64_t index, uint32_t bits);
    void *user, *reader; /* of `story`; of `computing` and `reading` */
} vd_referee_options;

typedef struct vd_referee vd_referee;

/* Creates a referee for two providers. VD_ERR_USAGE: there are more (tournament.h). */
VD_MUST_USE vd_status vd_referee_create(const vd_referee_options *options, vd_referee **out,
                                        vd_err *err);
void vd_referee_destroy(vd_referee *referee);

/* A question to one provider. It is borrowed until the next call of vd_referee_next. */
typedef struct {
    uint32_t party;
    vd_hash question;   /* hash of the payload */
    const vd_buf *note; /* signed; empty in a replay */
    size_t answer_max;  /* largest size of an answer's note, in bytes */
    vd_work work;       /* the work that the answer needs */
    bool whole_run;     /* asks for a second run: the answer may take as long as the job */
    char text[96];      /* for people */
} vd_outgoing;

/* Returns the questions to ask now, at most one per provider; none: the outcome is decided. Each
 * must be given an answer, or its absence, before the next call, in any order. An error (out of
 * memory) ends the dispute without an outcome. */
VD_MUST_USE vd_status vd_referee_next(vd_referee *referee, vd_outgoing out[VD_PARTIES_MAX],
                                      size_t *count, vd_err *err);
/* Takes an answer. A note that is no valid statement on this question counts as no answer. */
void vd_referee_answer(vd_referee *referee, uint32_t party, const void *note, size_t size);
void vd_referee_no_answer(vd_referee *referee, uint32_t party, const char *why);

/* A statement kept for the verdict, or its absence. Answers that did not count are not kept. */
typedef struct {
    uint32_t party;
    vd_hash question;
    vd_stated stated; /* the payload is empty if there was no answer */
    char why[128];    /* what the referee saw instead of an answer */
} vd_statement;

/* Returns what was kept of this provider's last answer or absence; NULL before the first. */
const vd_statement *vd_referee_last(const vd_referee *referee, uint32_t party);
/* Returns the pace that a provider states in the answer that it has just given. */
void vd_referee_pace(const vd_referee *referee, uint32_t party, vd_pace *out);

/* What a round of questions narrows. */
typedef enum {
    VD_LEVEL_CLAIM, /* commit and reveal */
    VD_LEVEL_ITEM,
    VD_LEVEL_STEP,
    VD_LEVEL_NODE,
    VD_LEVEL_ELEMENT, /* the element, and its inputs unless it is a long fold */
    VD_LEVEL_PART,
    VD_LEVEL_LOG,
    VD_LEVEL_CHALLENGE,
    VD_LEVELS,
} vd_level;

const char *vd_level_name(vd_level level); /* the name in a verdict's cost */
/* Returns the level of the last questions. */
vd_level vd_referee_level(const vd_referee *referee);

const vd_outcome *vd_referee_outcome(const vd_referee *referee);
/* Returns the program in dispute: the job's, or of a collection the item's. NULL: the item is not
 * found yet. */
const vd_program *vd_referee_program(const vd_referee *referee);
/* Returns NULL if the job is a single program. */
const vd_collection *vd_referee_collection(const vd_referee *referee);

/* Returns all statements in the order of the evidence. */
const vd_statement *vd_referee_statements(const vd_referee *referee, size_t *count);

#endif
