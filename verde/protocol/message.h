/* Questions and answers: JSON payloads in signed notes. PROTOCOL.md sections 3 and 4. */
#ifndef VD_MESSAGE_H
#define VD_MESSAGE_H

#include "verde/commit/commit.h"
#include "verde/commit/json.h"
#include "verde/graph/graph.h"
#include "verde/protocol/collection.h"
#include "verde/protocol/limits.h"

/* An assignment: who judges whom over which job. Every later statement contains its hash. */
typedef struct {
    vd_hash program;
    uint8_t nonce[32];
    vd_public_key referee;
    vd_public_key provider[VD_PARTIES_MAX];
    uint32_t provider_count;
    bool challenge; /* a convicted provider is asked for a second run (PROTOCOL.md section 5.7) */
    bool rounded;   /* provider 0 is the trainer, all others are auditors of its log (section 12) */
    bool audit;     /* version 2: one provider, which the referee audits (section 13). Only then: */
    char beacon_source[VD_BEACON_SOURCE_MAX + 1];
    int64_t beacon_round;
} vd_assignment;

VD_MUST_USE vd_status vd_assignment_write(const vd_assignment *a, vd_buf *payload, vd_err *err);
/* The same, and also signs it as a note. `key` is the referee's. */
VD_MUST_USE vd_status vd_assignment_sign(const vd_key *key, const vd_assignment *a, vd_buf *payload,
                                         vd_buf *note, vd_err *err);
VD_MUST_USE vd_status vd_assignment_read(const void *payload, size_t size, vd_assignment *out,
                                         vd_err *err);
VD_MUST_USE bool vd_assignment_hash(const void *payload, size_t size, vd_hash *out);

/* The same for version 2, in audit_message.c. */
bool vd_is_audit_assignment(const json_t *root);
json_t *vd_audit_assignment_json(const vd_assignment *a);
VD_MUST_USE vd_status vd_audit_assignment_read(const json_t *root, vd_assignment *out, vd_err *err);
/* Returns true for a valid beacon name: 1 to VD_BEACON_SOURCE_MAX printable ASCII characters. */
bool vd_is_beacon_source(const char *text);

/* The Merkle trees that a question can be about. */
typedef enum {
    VD_TREE_RUN = 1, /* S_0, S_c, ..., S_n */
    VD_TREE_SUBRUN,  /* S_from .. S_to */
    VD_TREE_TRACE,   /* the records of `step` */
    VD_TREE_STATE,   /* the tensor commitments of S_step */
    VD_TREE_TENSOR,  /* the 1 KiB leaves of `value` of `step` */
    VD_TREE_LOG,     /* the sections of the log of `step` */
    VD_TREE_FOLD,    /* the states after each part of `element` of `value` of `step` */
    VD_TREE_ITEMS,   /* of a collection: the run root of each item */
} vd_tree_kind;

typedef struct {
    vd_tree_kind kind;
    int64_t step; /* of SUBRUN the first step */
    int64_t to;   /* SUBRUN: the last step */
    uint32_t value;
    int64_t element; /* FOLD */
} vd_tree_name;

/* Returns the number of leaves, 0 if the program has no such tree. Only a collection has ITEMS. */
uint64_t vd_tree_leaves(const vd_program *program, const vd_tree_name *tree);
/* The same for a job: ITEMS is of `collection`, any other tree of `program`, which is that of the
 * item in question if the job is a collection. Either may be NULL: it has no trees. */
uint64_t vd_job_leaves(const vd_program *program, const vd_collection *collection,
                       const vd_tree_name *tree);
/* Returns the graph of a step; -1 is initialisation. */
const vd_graph *vd_step_graph(const vd_program *program, int64_t step);

typedef enum {
    VD_ASK_COMMIT = 1,
    VD_ASK_REVEAL,
    VD_ASK_CHALLENGE, /* asks for the root of a second run */
    VD_ASK_SUBRUN,
    VD_ASK_TRACE,
    VD_ASK_OPEN,    /* asks for the hashes below a node of a tree */
    VD_ASK_PROVE,   /* asks for leaves with proofs */
    VD_ASK_NOTE,    /* RUN: asks for the note that the trainer signed about its log at a leaf */
    VD_ASK_SECTION, /* LOG: asks for a section, and a proof that it belongs to the run */
} vd_ask_kind;

typedef struct {
    vd_ask_kind kind;
    vd_hash commit[VD_PARTIES_MAX]; /* REVEAL: the commitments of all providers, in order */
    uint32_t commit_count;
    vd_tree_name tree; /* OPEN, PROVE; SUBRUN: only kind, step, to; TRACE: only kind, step */
    uint64_t lo, hi;   /* OPEN */
    int depth;
    uint64_t *leaf; /* PROVE: the leaves; NOTE, SECTION: one leaf. Owned */
    uint32_t leaf_count;
    bool challenged;          /* the question belongs to the second hearing; then: */
    vd_public_key challenger; /* the provider that answers from its second run */
    bool of_item;             /* the question is about an item's run; then: */
    uint64_t item;            /* the item */
    uint32_t game;            /* number of the tournament's game, from 1; 0: in no game */
    bool draws;               /* an audit draws from the statement; then: */
    vd_hash draw;             /* hash of the secret for this draw */
} vd_question;

void vd_question_free(vd_question *question);
/* Appends the canonical payload: JSON with sorted keys and no spaces. */
VD_MUST_USE vd_status vd_question_write(const vd_question *question, const vd_hash *assignment,
                                        vd_buf *payload, vd_err *err);
/* The programs of a job: a single one, or a collection. */
typedef struct {
    const vd_program *program;       /* NULL: a collection */
    const vd_collection *collection; /* NULL: one program */
} vd_job_programs;

/* Reads a question. VD_ERR_PEER: it is not canonical, or does not fit the job. *item becomes the
 * program of the item in question, for the caller to free; NULL if the job is no collection. */
VD_MUST_USE vd_status vd_question_read(const void *payload, size_t size, const vd_job_programs *job,
                                       const vd_hash *assignment, vd_question *out,
                                       vd_program *item, vd_err *err);
void vd_question_print(const vd_question *question, const vd_program *program, char *text,
                       size_t size);

/* Returns the versions supported, for GET /v1/provider (PROTOCOL.md 3.5). The caller frees it. */
json_t *vd_speaks(void);

/* Writes {"verde", "assignment", "key", "question", "answer"}, signed. `body` is borrowed. */
VD_MUST_USE vd_status vd_answer_write(const vd_key *key, const vd_hash *assignment,
                                      const vd_hash *question, json_t *body, vd_buf *note,
                                      vd_err *err);
/* The largest size that an answer may have (PROTOCOL.md section 9): a little more than a valid one
 * needs. */
typedef struct {
    size_t elements; /* brackets, or commas, in the payload */
    size_t payload;  /* bytes */
    size_t note;     /* bytes */
} vd_answer_most;
/* Returns the limits. The question must fit the job, with the item's program if it has an item. */
vd_answer_most vd_answer_most_of(const vd_question *question, const vd_job_programs *job);

/* What a statement is checked against: its signer, its question and the limits. */
typedef struct {
    const vd_public_key *key;
    const vd_hash *assignment, *question;
    vd_answer_most most;
} vd_answer_to;

/* A statement as it is kept: together with the signer's key, these give the signed note. */
typedef struct {
    vd_buf payload;
    uint8_t signature[VD_SIGNATURE_SIZE];
} vd_stated;

/* Reads an answer and checks signature, assignment, question and sizes. VD_ERR_PEER: it is not a
 * valid statement of this key on this question, and *out is empty. The caller frees *body. */
VD_MUST_USE vd_status vd_answer_read(const void *note, size_t size, const vd_answer_to *asked,
                                     vd_stated *out, json_t **body, vd_err *err);
/* Returns the body of a payload that vd_answer_read has accepted. The caller frees *body. */
VD_MUST_USE vd_status vd_answer_body(const vd_buf *payload, size_t elements, json_t **body,
                                     vd_err *err);

/* ---- JSON helpers: they accept only the exact form ---- */

json_t *vd_json_key(const vd_public_key *key);
bool vd_json_to_key(const json_t *value, vd_public_key *out); /* rejects points of low order */
/* Returns true if the object's keys are exactly these. `keys` ends with NULL. */
bool vd_json_has_only(const json_t *object, const char *const *keys);

/* Computes H("verde/commit/1", salt, key, run root), the commitment to a claim. */
VD_MUST_USE bool vd_commitment(const vd_hash *salt, const vd_public_key *key, const vd_hash *root,
                               vd_hash *out);

#endif
