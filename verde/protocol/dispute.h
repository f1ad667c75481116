/* The referee's internal declarations. Private to verde/protocol. */
#ifndef VD_DISPUTE_H
#define VD_DISPUTE_H

#include "verde/exec/source.h"
#include "verde/log/program.h"
#include "verde/protocol/crumb.h"
#include "verde/protocol/referee.h"
#include "verde/protocol/said.h"

/* The phases of PROTOCOL.md section 5, in order. */
typedef enum {
    VD_PHASE_COMMIT,
    VD_PHASE_REVEAL,
    VD_PHASE_ITEMS_OPEN, /* of a collection: finds the first item whose run differs */
    VD_PHASE_ITEMS_PROVE,
    VD_PHASE_RUN_OPEN, /* finds the first checkpoint that differs */
    VD_PHASE_RUN_PROVE,
    VD_PHASE_SUBRUN, /* the states between two checkpoints */
    VD_PHASE_SUBRUN_OPEN,
    VD_PHASE_SUBRUN_PROVE,
    VD_PHASE_TRACE,     /* the records of the step */
    VD_PHASE_NEXT_OPEN, /* of equal traces: the first leaf of the next state that differs */
    VD_PHASE_NEXT_LEAF,
    VD_PHASE_NEXT_RECORD, /* and the record that made this leaf */
    VD_PHASE_TRACE_OPEN,  /* finds the first record that differs */
    VD_PHASE_RECORD,
    VD_PHASE_PRODUCERS, /* the records that its inputs come from */
    VD_PHASE_STATE,
    VD_PHASE_TENSOR_OPEN, /* finds the first leaf of its output that differs */
    VD_PHASE_LEAF,
    VD_PHASE_FOLD, /* of a long fold: the state after its last part */
    VD_PHASE_FOLD_OPEN,
    VD_PHASE_FOLD_PROVE,   /* finds the first part that differs */
    VD_PHASE_INPUTS,       /* fetches inputs and computes the element, or the part */
    VD_PHASE_SEAM_LEAVES,  /* of a single provider: leaves of the state after the step, */
    VD_PHASE_SEAM_RECORDS, /* and the records that must have made them */
    VD_PHASE_NOTE,         /* the logs differ: which one the trainer has signed */
    VD_PHASE_SECTION,      /* the element can round to several values: which one the log names */
    VD_PHASE_CHALLENGE,    /* the convicted provider may contest the claim left standing */
    VD_PHASE_CONTEST,      /* the same with more than two providers: all convicted at once */
    VD_PHASE_DONE,
} vd_phase;

/* The part of a dispute that a referee conducts. */
typedef enum {
    VD_SCOPE_TWO,     /* a whole dispute, between two providers */
    VD_SCOPE_OPENING, /* of more than two providers: commit and reveal */
    VD_SCOPE_GAME,    /* of more than two providers: one game, from two claims on */
    VD_SCOPE_CONTEST, /* of more than two providers: asks the convicted for second runs */
    VD_SCOPE_CRUMB,   /* of one provider: from its commitment to one place of its run */
} vd_scope;

typedef struct {
    vd_scope scope;
    uint32_t game;        /* GAME: its number, from 1 */
    uint32_t provider[2]; /* GAME: numbers of the two parties in the assignment */
    vd_hash root[2], run_name[2];
    bool again[2];          /* GAME: the party answers from its second run */
    vd_said *said[2];       /* GAME: statements that the party has made so far; borrowed */
    const bool *challenger; /* CONTEST: for each provider, whether it is asked; borrowed */
    const vd_crumb *crumb;  /* CRUMB: the place; borrowed */
} vd_part;

typedef struct {
    vd_public_key key;
    bool asked, answered; /* in this round */
    vd_hash question;
    vd_hash plain; /* GAME: hash of the question without the game: the key in `said` */
    bool again;    /* the party answers from its second run */
    vd_said *said; /* GAME: statements made in earlier games */
    size_t bytes;  /* GAME: size of the payloads of its answers in this game so far */
    vd_answer_most most;
    vd_buf payload, note;
    json_t *body; /* body of the answer; NULL: there is none */
    char why[128];
    uint32_t questions;
    bool out; /* the party was judged in this hearing and is asked no more */
    /* what the party has claimed: */
    vd_hash item_root; /* run root of the item in dispute */
    vd_hash commit, root, subrun_root, trace_root, fold_root;
    vd_hash before, after; /* states S at both ends of the interval in dispute */
    vd_hash run_name;      /* with rounding logs: the run name in its log */
    vd_hash logs;          /* with rounding logs: L at the first leaf of the run that differs */
    vd_hash node;          /* during a descent: its hash of the current tree node */
    vd_hash next;          /* the first leaf that differs in the state after the step */
    vd_node_record *record;
    uint8_t leaf[VD_LEAF_SIZE];
    size_t leaf_size;
    uint8_t part[2][VD_PART_BYTES]; /* states before and after the disputed part */
} vd_party;

/* A descent to the first leaf that differs; [lo, hi) is the current tree node. */
typedef struct {
    vd_tree_name tree;
    uint64_t count, lo, hi;
    vd_phase next;
} vd_descent;

/* A leaf of an input that is needed to compute the disputed element or part. */
typedef struct {
    int input;
    uint64_t leaf;
    bool have;
    uint8_t data[VD_LEAF_SIZE];
    size_t size;
} vd_input_leaf;

struct vd_referee {
    vd_referee_options options;
    const vd_program *program; /* NULL until the item in dispute is found */
    vd_program item_program;   /* the item in dispute; `program` then points here */
    vd_hash program_hash, assignment;
    vd_scope scope;
    uint32_t game;
    vd_phase phase;
    bool waiting;
    vd_party party[VD_PARTIES_MAX];
    uint32_t parties;
    vd_outcome outcome;
    vd_place *place;            /* points into the outcome, to the place of this hearing */
    bool may_challenge;         /* the assignment allows a challenge */
    bool rounded;               /* the runs have rounding logs; party 0 is the trainer */
    const vd_party *challenger; /* from the request for a second run on; else NULL */
    vd_descent descent;
    uint64_t *wanted; /* in the PROVE phases: the leaves that every provider is asked for */
    uint32_t wanted_count;
    int64_t from, to; /* the steps before and after the first state that differs */
    int64_t step;     /* the disputed step */
    const vd_graph *graph;
    uint32_t record;    /* number of the disputed node */
    uint32_t producers; /* number of proven records, of those that make its inputs */
    uint64_t leaf;      /* the disputed leaf of its output */
    int64_t element;
    vd_fold fold;                /* the element's fold, if it is a long fold */
    uint8_t part[VD_PART_BYTES]; /* state after the disputed part, as computed by the referee */
    vd_input_leaf **input;       /* leaves of inputs, each owned; sorted by (input, leaf) */
    size_t inputs, inputs_capacity;
    vd_crumb crumb;                   /* CRUMB: the place */
    vd_hash seam[VD_SEAM_LEAVES_MAX]; /* CRUMB: the seam's leaves of the state after the step */
    uint32_t source;                  /* number of the provider that is asked for inputs */
    uint64_t log_leaf;                /* first leaf of the run that differs */
    ro_bounded bounded;               /* bounds of a free operator's exact element */
    vd_possible possible;             /* the values that a device may round it to */
    bool gave_none[VD_PARTIES_MAX];
    int asked_input; /* index of the input whose leaves are asked for */
    vd_statement *statement;
    size_t statements, statements_capacity;
    size_t round_start; /* index of this round's first statement */
    vd_status failed;   /* local trouble: the dispute ends without an outcome */
    vd_err err;
};

/* The two functions of a phase. `ask` fills in the question to provider p (the caller frees its
 * leaf list), and returns false if p is asked nothing in this phase. */
typedef struct {
    bool (*ask)(vd_referee *r, uint32_t p, vd_question *question);
    void (*take)(vd_referee *r); /* called with all answers in; sets the next phase */
} vd_phase_rule;

extern const vd_phase_rule vd_phase_rules[VD_PHASE_DONE];

/* ---- life ---- */

/* Creates a referee of the scope part->scope. */
VD_MUST_USE vd_status vd_referee_open(const vd_referee_options *options, const vd_part *part,
                                      vd_referee **out, vd_err *err);

/* ---- judgements ---- */

void vd_convict(vd_referee *r, uint32_t p, vd_grade grade, const char *format, ...) VD_PRINTF(4, 5);
void vd_forfeit(vd_referee *r, uint32_t p, const char *why);
void vd_dismiss(vd_referee *r, uint32_t p, const char *why);
void vd_story(vd_referee *r, const char *format, ...) VD_PRINTF(2, 3);
void vd_trouble(vd_referee *r, const char *what); /* local trouble: the dispute has no outcome */
void vd_inconclusive(vd_referee *r, const char *why);
bool vd_all_stand(const vd_referee *r); /* returns true if nobody was judged in this hearing */

/* ---- statement.c ---- */

/* Answers the question put to p with a statement that p made in an earlier game. False: there is
 * none, and p must be asked. */
bool vd_recall(vd_referee *r, uint32_t p);

/* ---- reading answers; each convicts p of bad-proof if the answer is not valid ---- */

/* Finds the root under which an answer's proofs must hold: the one known already, or the one stated
 * in the answer, which must lead to `expected` (the commitment of the tensor or state). */
bool vd_take_root(vd_referee *r, uint32_t p, const vd_tree_name *tree, const vd_hash *expected,
                  vd_hash *root);
/* Reads an entry of a `prove` answer: verifies leaf `index` of `count` under `root` and appends its
 * bytes to *data. `logged`: the bytes are S || L, and the tree has the hash of both. */
bool vd_take_leaf(vd_referee *r, uint32_t p, const json_t *entry, const vd_hash *root,
                  uint64_t index, uint64_t count, bool logged, vd_buf *data);
bool vd_take_path(const json_t *path, vd_proof *proof);
bool vd_is_logged(const vd_referee *r, const vd_tree_name *tree);
/* Reads all leaves of a `prove` answer in order and passes the bytes of each to `each`. */
typedef bool (*vd_each_leaf)(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data);
bool vd_take_leaves(vd_referee *r, uint32_t p, const vd_tree_name *tree, const vd_hash *expected,
                    const uint64_t *leaf, uint32_t count, vd_each_leaf each);

/* ---- descent ---- */

void vd_descend(vd_referee *r, vd_tree_name tree, vd_phase open, vd_phase next);
bool vd_descent_ask(vd_referee *r, uint32_t p, vd_question *question);
void vd_descent_take(vd_referee *r);

bool vd_want(vd_referee *r, const uint64_t *leaf,
             uint32_t count); /* sorts the list and removes duplicates */
bool vd_ask_wanted(vd_referee *r, const vd_tree_name *tree, vd_question *question);

/* ---- crumb.c: replaces the descents when there is only one provider ---- */

bool vd_is_crumb(const vd_referee *);
void vd_crumb_draw(const vd_referee *, vd_question *question);
void vd_crumb_run(vd_referee *);
void vd_crumb_subrun(vd_referee *, vd_tree_name tree);
void vd_crumb_trace(vd_referee *);
void vd_crumb_output(vd_referee *, vd_tree_name tree);
void vd_crumb_element(vd_referee *);
void vd_crumb_part(vd_referee *, vd_tree_name tree);
bool vd_crumb_next_element(vd_referee *); /* false: the last one was judged, or the provider fell */
bool vd_seam_leaves_ask(vd_referee *, uint32_t, vd_question *);
void vd_seam_leaves_take(vd_referee *);
bool vd_seam_records_ask(vd_referee *, uint32_t, vd_question *);
void vd_seam_records_take(vd_referee *);

/* ---- phases, by file ---- */

bool vd_commit_ask(vd_referee *, uint32_t, vd_question *);
void vd_commit_take(vd_referee *);
bool vd_reveal_ask(vd_referee *, uint32_t, vd_question *);
void vd_reveal_take(vd_referee *);
bool vd_items_ask(vd_referee *, uint32_t, vd_question *);
void vd_items_take(vd_referee *);
bool vd_ends_ask(vd_referee *, uint32_t, vd_question *);
void vd_ends_take(vd_referee *);
bool vd_subrun_ask(vd_referee *, uint32_t, vd_question *);
void vd_subrun_take(vd_referee *);
bool vd_trace_ask(vd_referee *, uint32_t, vd_question *);
void vd_trace_take(vd_referee *);

void vd_dispute_next(vd_referee *); /* of equal traces: descends the states after the step */
void vd_next_leaf_take(vd_referee *);
bool vd_next_record_ask(vd_referee *, uint32_t, vd_question *);
void vd_next_record_take(vd_referee *);
bool vd_take_record(vd_referee *, uint32_t p, uint64_t index, const vd_buf *data);
bool vd_record_ask(vd_referee *, uint32_t, vd_question *);
void vd_record_take(vd_referee *);
bool vd_producers_ask(vd_referee *, uint32_t, vd_question *);
void vd_producers_take(vd_referee *);
bool vd_state_ask(vd_referee *, uint32_t, vd_question *);
void vd_state_take(vd_referee *);

bool vd_leaf_ask(vd_referee *, uint32_t, vd_question *);
void vd_leaf_take(vd_referee *);
bool vd_fold_ask(vd_referee *, uint32_t, vd_question *);
void vd_fold_take(vd_referee *);
void vd_parts_take(vd_referee *);

size_t vd_piece_size(const ro_shape *, uint64_t leaf); /* bytes in leaf number `leaf` of a tensor */
uint32_t vd_element_bits(const uint8_t *bytes, size_t size);
bool vd_inputs_ask(vd_referee *, uint32_t, vd_question *);
void vd_judge_element(vd_referee *); /* compares the stated elements with place->expected */
void vd_judge_part(vd_referee *);    /* compares the stated parts with r->part */
void vd_inputs_take(vd_referee *);
void vd_inputs_forget(vd_referee *);

/* Sets the next phase and returns true if the providers' L differ. */
bool vd_dispute_logs(vd_referee *);
bool vd_note_ask(vd_referee *, uint32_t, vd_question *);
void vd_note_take(vd_referee *);
bool vd_is_free(const vd_referee *); /* the disputed node is free, in a run with rounding logs */
bool vd_judge_possible(vd_referee *, uint32_t p, const vd_possible *possible);
void vd_judge_rounding(vd_referee *);
bool vd_section_ask(vd_referee *, uint32_t, vd_question *);
void vd_section_take(vd_referee *);
/* Asks the next provider for data on which both agree. If no provider is left, all forfeit. */
void vd_ask_the_other(vd_referee *, const char *what);

bool vd_challenge_ask(vd_referee *, uint32_t, vd_question *);
void vd_challenge_take(vd_referee *);
bool vd_challenge_due(const vd_referee *);
void vd_challenge_conclude(vd_referee *);
bool vd_contest_ask(vd_referee *, uint32_t, vd_question *);
void vd_contest_take(vd_referee *);

void vd_dispute_runs(vd_referee *); /* starts the descent from two different run roots */

#endif
