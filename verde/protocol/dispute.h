/* The inside of the referee. Private to verde/protocol. */
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
    VD_PHASE_ITEMS_OPEN, /* of a job of many programs: the first item whose run differs */
    VD_PHASE_ITEMS_PROVE,
    VD_PHASE_RUN_OPEN, /* first checkpoint that differs */
    VD_PHASE_RUN_PROVE,
    VD_PHASE_SUBRUN, /* states between two checkpoints */
    VD_PHASE_SUBRUN_OPEN,
    VD_PHASE_SUBRUN_PROVE,
    VD_PHASE_TRACE,     /* records of the step */
    VD_PHASE_NEXT_OPEN, /* equal traces: first leaf of the state after the step that differs */
    VD_PHASE_NEXT_LEAF,
    VD_PHASE_NEXT_RECORD, /* and what made it */
    VD_PHASE_TRACE_OPEN,  /* first record that differs */
    VD_PHASE_RECORD,
    VD_PHASE_PRODUCERS, /* where its inputs come from */
    VD_PHASE_STATE,
    VD_PHASE_TENSOR_OPEN, /* first leaf that differs */
    VD_PHASE_LEAF,
    VD_PHASE_FOLD, /* a long fold: what its last part leaves */
    VD_PHASE_FOLD_OPEN,
    VD_PHASE_FOLD_PROVE,   /* the first part that differs */
    VD_PHASE_INPUTS,       /* the element, or the part, computed */
    VD_PHASE_SEAM_LEAVES,  /* of one provider: leaves of the state after the step, */
    VD_PHASE_SEAM_RECORDS, /* and the records that must make them */
    VD_PHASE_NOTE,         /* different logs: which one the trainer has signed */
    VD_PHASE_SECTION,      /* an element with several possible values: what the log says */
    VD_PHASE_CHALLENGE,    /* whoever is convicted may contest the claim left standing */
    VD_PHASE_CONTEST,      /* the same of many, all at once */
    VD_PHASE_DONE,
} vd_phase;

/* Which part of a dispute a referee conducts. */
typedef enum {
    VD_SCOPE_TWO,     /* all of it, between two */
    VD_SCOPE_OPENING, /* among many providers: commit and reveal */
    VD_SCOPE_GAME,    /* among many providers: from two claims that differ to the end */
    VD_SCOPE_CONTEST, /* among many providers: the convicted are asked for second runs */
    VD_SCOPE_CRUMB,   /* with one provider: from its commitment to one place of its run */
} vd_scope;

typedef struct {
    vd_scope scope;
    uint32_t game;        /* GAME: its number, from 1 on */
    uint32_t provider[2]; /* GAME: in the assignment */
    vd_hash root[2], run_name[2];
    bool again[2];          /* GAME: answers from its second run */
    vd_said *said[2];       /* GAME: what it has answered so far; borrowed */
    const bool *challenger; /* CONTEST: of each provider, whether it is asked; borrowed */
    const vd_crumb *crumb;  /* CRUMB: that place */
} vd_part;

typedef struct {
    vd_public_key key;
    bool asked, answered; /* in this round */
    vd_hash question;
    vd_hash plain; /* GAME: of the question without the game's number */
    bool again;    /* it answers from its second run */
    vd_said *said; /* GAME */
    size_t bytes;  /* GAME: of the payloads of its answers so far */
    vd_answer_most most;
    vd_buf payload, note;
    json_t *body; /* the answer; NULL: none */
    char why[128];
    uint32_t questions;
    bool out; /* it was judged in this hearing and takes no further part */
    /* claims */
    vd_hash item_root; /* of the run of the item in dispute */
    vd_hash commit, root, subrun_root, trace_root, fold_root;
    vd_hash before, after; /* S around the disputed interval */
    vd_hash run_name;      /* with rounding logs: the run name in the log */
    vd_hash logs;          /* with rounding logs: L at the first leaf that differs */
    vd_hash node;          /* during a descent: the tree node under examination */
    vd_hash next;          /* of the state after the step: the first leaf that differs */
    vd_node_record *record;
    uint8_t leaf[VD_LEAF_SIZE];
    size_t leaf_size;
    uint8_t part[2][VD_PART_BYTES]; /* what the parts before and at the disputed one leave */
} vd_party;

/* A descent to the first leaf that differs. */
typedef struct {
    vd_tree_name tree;
    uint64_t count, lo, hi;
    vd_phase next;
} vd_descent;

/* A leaf of an input that is needed to compute the element or part. */
typedef struct {
    int input;
    uint64_t leaf;
    bool have;
    uint8_t data[VD_LEAF_SIZE];
    size_t size;
} vd_input_leaf;

struct vd_referee {
    vd_referee_options options;
    const vd_program *program; /* NULL: that of an item which is not found yet */
    vd_program item_program;   /* of the item in dispute; `program` is this one then */
    vd_hash program_hash, assignment;
    vd_scope scope;
    uint32_t game;
    vd_phase phase;
    bool waiting;
    vd_party party[VD_PARTIES_MAX];
    uint32_t parties;
    vd_outcome outcome;
    vd_place *place;            /* of this hearing, in the outcome */
    bool may_challenge;         /* the assignment provides for it */
    bool rounded;               /* runs with rounding logs; party 0 is the trainer */
    const vd_party *challenger; /* in the second hearing, and while it is asked for */
    vd_descent descent;
    uint64_t *wanted; /* in the PROVE phases: leaves that every provider is asked for */
    uint32_t wanted_count;
    int64_t from, to; /* steps around the first difference */
    int64_t step;     /* the disputed step */
    const vd_graph *graph;
    uint32_t record;    /* the disputed node */
    uint32_t producers; /* so many records of those that feed it are proven */
    uint64_t leaf;      /* the disputed leaf of its output */
    int64_t element;
    vd_fold fold;                /* the element's fold, if it is a long one */
    uint8_t part[VD_PART_BYTES]; /* what the disputed part leaves, computed */
    vd_input_leaf **input;       /* leaves of inputs, each owned; sorted by (input, leaf) */
    size_t inputs, inputs_capacity;
    vd_crumb crumb;                   /* CRUMB */
    vd_hash seam[VD_SEAM_LEAVES_MAX]; /* CRUMB: those leaves of the state after the step */
    uint32_t source;                  /* the provider asked for inputs */
    uint64_t log_leaf;                /* the first leaf of the run that differs */
    ro_bounded bounded;               /* the element of a free operator */
    vd_possible possible;             /* what devices can round it to */
    bool gave_none[VD_PARTIES_MAX];
    int asked_input; /* the input whose leaves are asked for */
    vd_statement *statement;
    size_t statements, statements_capacity;
    size_t round_start; /* the first statement of this round */
    vd_status failed;   /* local trouble */
    vd_err err;
};

/* The rules of a phase. ask fills in the question to provider p, whose leaf list the caller frees;
 * false: p is asked nothing. */
typedef struct {
    bool (*ask)(vd_referee *r, uint32_t p, vd_question *question);
    void (*take)(vd_referee *r); /* all answers are in: sets the next phase */
} vd_phase_rule;

extern const vd_phase_rule vd_phase_rules[VD_PHASE_DONE];

/* ---- life ---- */

/* A part of a dispute between many, or between two if that is its scope. */
VD_MUST_USE vd_status vd_referee_open(const vd_referee_options *options, const vd_part *part,
                                      vd_referee **out, vd_err *err);

/* ---- judgements ---- */

void vd_convict(vd_referee *r, uint32_t p, vd_grade grade, const char *format, ...) VD_PRINTF(4, 5);
void vd_forfeit(vd_referee *r, uint32_t p, const char *why);
void vd_dismiss(vd_referee *r, uint32_t p, const char *why);
void vd_story(vd_referee *r, const char *format, ...) VD_PRINTF(2, 3);
void vd_trouble(vd_referee *r, const char *what); /* local trouble: ends without an outcome */
void vd_inconclusive(vd_referee *r, const char *why);
bool vd_all_stand(const vd_referee *r); /* nobody was judged in this hearing */

/* ---- statement.c ---- */

/* Answers the question that p is asked by what it has said before. False: it has said nothing to
 * it, and must be asked. */
bool vd_recall(vd_referee *r, uint32_t p);

/* ---- reading answers; each convicts of bad-proof where an answer deserves it ---- */

/* Finds the root that a tree's answer must carry: it is known, or derived from what was committed.
 * `expected` is the commitment of the tensor or state. */
bool vd_take_root(vd_referee *r, uint32_t p, const vd_tree_name *tree, const vd_hash *expected,
                  vd_hash *root);
/* Reads one entry of a prove answer: the bytes of leaf `index`, proven under `root`. `logged`: the
 * bytes are S || L, whose hash is the leaf's data. */
bool vd_take_leaf(vd_referee *r, uint32_t p, const json_t *entry, const vd_hash *root,
                  uint64_t index, uint64_t count, bool logged, vd_buf *data);
bool vd_take_path(const json_t *path, vd_proof *proof);
bool vd_is_logged(const vd_referee *r, const vd_tree_name *tree);
/* Reads all leaves of a prove answer in order, and hands their bytes to `each`. */
typedef bool (*vd_each_leaf)(vd_referee *r, uint32_t p, uint64_t index, const vd_buf *data);
bool vd_take_leaves(vd_referee *r, uint32_t p, const vd_tree_name *tree, const vd_hash *expected,
                    const uint64_t *leaf, uint32_t count, vd_each_leaf each);

/* ---- descent ---- */

void vd_descend(vd_referee *r, vd_tree_name tree, vd_phase open, vd_phase next);
bool vd_descent_ask(vd_referee *r, uint32_t p, vd_question *question);
void vd_descent_take(vd_referee *r);

bool vd_want(vd_referee *r, const uint64_t *leaf,
             uint32_t count); /* sorted and unique afterwards */
bool vd_ask_wanted(vd_referee *r, const vd_tree_name *tree, vd_question *question);

/* ---- crumb.c: in place of descents, what comes next of one provider alone ---- */

bool vd_is_crumb(const vd_referee *);
void vd_crumb_draw(const vd_referee *, vd_question *question);
void vd_crumb_run(vd_referee *);
void vd_crumb_subrun(vd_referee *, vd_tree_name tree);
void vd_crumb_trace(vd_referee *);
void vd_crumb_output(vd_referee *, vd_tree_name tree);
void vd_crumb_element(vd_referee *);
void vd_crumb_part(vd_referee *, vd_tree_name tree);
bool vd_crumb_next_element(vd_referee *); /* false: the last one was judged, or it fell */
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

void vd_dispute_next(vd_referee *); /* equal traces: starts the descent of the states after */
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

size_t vd_piece_size(const ro_shape *, uint64_t leaf); /* bytes of a tensor's leaf */
uint32_t vd_element_bits(const uint8_t *bytes, size_t size);
bool vd_inputs_ask(vd_referee *, uint32_t, vd_question *);
void vd_judge_element(vd_referee *); /* compares with place->expected */
void vd_judge_part(vd_referee *);    /* with part */
void vd_inputs_take(vd_referee *);
void vd_inputs_forget(vd_referee *);

/* If the providers' L differ, sets the next phase and returns true. */
bool vd_dispute_logs(vd_referee *);
bool vd_note_ask(vd_referee *, uint32_t, vd_question *);
void vd_note_take(vd_referee *);
bool vd_is_free(const vd_referee *); /* the disputed node is free, in a run with rounding logs */
bool vd_judge_possible(vd_referee *, uint32_t p, const vd_possible *possible);
void vd_judge_rounding(vd_referee *);
bool vd_section_ask(vd_referee *, uint32_t, vd_question *);
void vd_section_take(vd_referee *);
/* Asks the next provider that may give what is agreed. If none is left, all forfeit. */
void vd_ask_the_other(vd_referee *, const char *what);

bool vd_challenge_ask(vd_referee *, uint32_t, vd_question *);
void vd_challenge_take(vd_referee *);
bool vd_challenge_due(const vd_referee *);
void vd_challenge_conclude(vd_referee *);
bool vd_contest_ask(vd_referee *, uint32_t, vd_question *);
void vd_contest_take(vd_referee *);

void vd_dispute_runs(vd_referee *); /* starts the descent from two different roots */

#endif
