/* Questions and answers: JSON payloads in signed notes. PROTOCOL.md sections 3 and 4. */
#ifndef VD_MESSAGE_H
#define VD_MESSAGE_H

#include "verde/commit/commit.h"
#include "verde/commit/json.h"
#include "verde/graph/graph.h"
#include "verde/protocol/collection.h"
#include "verde/protocol/limits.h"

/* Who judges whom over what. Its hash stands in every later statement. */
typedef struct {
    vd_hash program;
    uint8_t nonce[32];
    vd_public_key referee;
    vd_public_key provider[VD_PARTIES_MAX];
    uint32_t provider_count;
    bool challenge; /* whoever is convicted is asked for a second run (PROTOCOL.md section 5.7) */
    bool rounded;   /* provider 0 is the trainer, all others its auditors (section 12) */
    bool audit;     /* version 2: one provider, whom the referee checks alone (section 13); then: */
    char beacon_source[VD_BEACON_SOURCE_MAX + 1];
    int64_t beacon_round;
} vd_assignment;

VD_MUST_USE vd_status vd_assignment_write(const vd_assignment *a, vd_buf *payload, vd_err *err);
/* The same, and the note that the referee, whose key it is, signs of it. */
VD_MUST_USE vd_status vd_assignment_sign(const vd_key *key, const vd_assignment *a, vd_buf *payload,
                                         vd_buf *note, vd_err *err);
VD_MUST_USE vd_status vd_assignment_read(const void *payload, size_t size, vd_assignment *out,
                                         vd_err *err);
VD_MUST_USE bool vd_assignment_hash(const void *payload, size_t size, vd_hash *out);

/* audit_message.c: the same of version 2. */
bool vd_is_audit_assignment(const json_t *root);
json_t *vd_audit_assignment_json(const vd_assignment *a);
VD_MUST_USE vd_status vd_audit_assignment_read(const json_t *root, vd_assignment *out, vd_err *err);
/* Names of beacons: 1 to VD_BEACON_SOURCE_MAX printable ASCII characters. */
bool vd_is_beacon_source(const char *text);

/* A Merkle tree that a question is about. */
typedef enum {
    VD_TREE_RUN = 1, /* S_0, S_c, ..., S_n */
    VD_TREE_SUBRUN,  /* S_from .. S_to */
    VD_TREE_TRACE,   /* records of `step` */
    VD_TREE_STATE,   /* tensor commitments of S_step */
    VD_TREE_TENSOR,  /* 1 KiB leaves of `value` of `step` */
    VD_TREE_LOG,     /* sections of the log of `step` */
    VD_TREE_FOLD,    /* what the parts of `element` of `value` of `step` leave */
    VD_TREE_ITEMS,   /* the run root of each item, of a job of many programs */
} vd_tree_kind;

typedef struct {
    vd_tree_kind kind;
    int64_t step; /* SUBRUN: from */
    int64_t to;   /* SUBRUN */
    uint32_t value;
    int64_t element; /* FOLD */
} vd_tree_name;

/* Number of leaves by the program; 0 if there is no such tree. ITEMS is none of a program. */
uint64_t vd_tree_leaves(const vd_program *program, const vd_tree_name *tree);
/* The same of a job, which is a program or a collection, and of an item's program. */
uint64_t vd_job_leaves(const vd_program *program, const vd_collection *collection,
                       const vd_tree_name *tree);
/* The graph of a step: init for -1. */
const vd_graph *vd_step_graph(const vd_program *program, int64_t step);

typedef enum {
    VD_ASK_COMMIT = 1,
    VD_ASK_REVEAL,
    VD_ASK_CHALLENGE, /* the root of a second run */
    VD_ASK_SUBRUN,
    VD_ASK_TRACE,
    VD_ASK_OPEN,    /* hashes below a node of a tree */
    VD_ASK_PROVE,   /* leaves with proofs */
    VD_ASK_NOTE,    /* RUN: what the trainer signed of its log at a leaf */
    VD_ASK_SECTION, /* LOG: a section, and how it leads to the run */
} vd_ask_kind;

typedef struct {
    vd_ask_kind kind;
    vd_hash commit[VD_PARTIES_MAX]; /* REVEAL: what all have committed to, in order */
    uint32_t commit_count;
    vd_tree_name tree; /* OPEN, PROVE; SUBRUN: kind, step, to; TRACE: kind, step */
    uint64_t lo, hi;   /* OPEN */
    int depth;
    uint64_t *leaf; /* PROVE; NOTE, SECTION: one; owned by whoever read or made the question */
    uint32_t leaf_count;
    bool challenged;          /* in the second hearing; then: */
    vd_public_key challenger; /* who answers from its second run */
    bool of_item;             /* about the run of an item; then: */
    uint64_t item;            /* which */
    uint32_t game;            /* of a tournament, from 1 on; 0: of none */
    bool draws;               /* of an audit: what it states is drawn from; then: */
    vd_hash draw;             /* hash of the secret that draws */
} vd_question;

void vd_question_free(vd_question *question);
/* Canonical payload: sorted keys, no spaces. */
VD_MUST_USE vd_status vd_question_write(const vd_question *question, const vd_hash *assignment,
                                        vd_buf *payload, vd_err *err);
/* What a job runs: one program, or a collection of them. */
typedef struct {
    const vd_program *program;       /* NULL: a collection */
    const vd_collection *collection; /* NULL: one program */
} vd_job_programs;

/* Refuses what is not canonical or does not fit the job. *item receives the program of the item
 * that the question is about, for the caller to free; NULL if the job is no collection. */
VD_MUST_USE vd_status vd_question_read(const void *payload, size_t size, const vd_job_programs *job,
                                       const vd_hash *assignment, vd_question *out,
                                       vd_program *item, vd_err *err);
void vd_question_print(const vd_question *question, const vd_program *program, char *text,
                       size_t size);

/* What a party speaks, for members of GET /v1/provider (PROTOCOL.md 3.5). The caller frees it. */
json_t *vd_speaks(void);

/* Answers: {"verde", "assignment", "key", "question", "answer"}. `body` is borrowed. */
VD_MUST_USE vd_status vd_answer_write(const vd_key *key, const vd_hash *assignment,
                                      const vd_hash *question, json_t *body, vd_buf *note,
                                      vd_err *err);
/* The most that an answer to a question may have (PROTOCOL.md section 9): little more than one that
 * fits has, whatever its signer adds to it. */
typedef struct {
    size_t elements; /* brackets, and as many commas, of its payload */
    size_t payload;  /* bytes */
    size_t note;     /* bytes */
} vd_answer_most;
/* The question must fit the job; `program` of which is that of the item that it is about. */
vd_answer_most vd_answer_most_of(const vd_question *question, const vd_job_programs *job);

/* What an answer must be an answer to. */
typedef struct {
    const vd_public_key *key;
    const vd_hash *assignment, *question;
    vd_answer_most most;
} vd_answer_to;

/* A statement as it is kept: with the key, the note that was signed. */
typedef struct {
    vd_buf payload;
    uint8_t signature[VD_SIGNATURE_SIZE];
} vd_stated;

/* Checks signature, assignment, question and sizes. VD_ERR_PEER: not a statement of this key on
 * this question, and *out is empty. *body is the caller's. */
VD_MUST_USE vd_status vd_answer_read(const void *note, size_t size, const vd_answer_to *asked,
                                     vd_stated *out, json_t **body, vd_err *err);
/* The body of a payload that vd_answer_read has taken. */
VD_MUST_USE vd_status vd_answer_body(const vd_buf *payload, size_t elements, json_t **body,
                                     vd_err *err);

/* ---- JSON helpers, all strict ---- */

json_t *vd_json_key(const vd_public_key *key);
bool vd_json_to_key(const json_t *value, vd_public_key *out); /* refuses low-order points */
/* Exactly these keys, no others. Ends with NULL. */
bool vd_json_has_only(const json_t *object, const char *const *keys);

/* Commit = H("verde/commit/1", salt, key, run root): what is said before anybody reveals. */
VD_MUST_USE bool vd_commitment(const vd_hash *salt, const vd_public_key *key, const vd_hash *root,
                               vd_hash *out);

#endif
