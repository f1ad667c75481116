/* Finds where two runs diverge: the first checkpoint, step, node and element that differ. Each side
 * is asked as a referee asks a provider, and executes again what it has not stored. */
#ifndef VD_DIVERGENCE_H
#define VD_DIVERGENCE_H

#include "verde/exec/source.h"
#include "verde/graph/align.h"

typedef enum {
    VD_DIVERGE_NOT,           /* all that both commit to is equal */
    VD_DIVERGE_CHECKPOINT,    /* a checkpoint differs; nothing was executed */
    VD_DIVERGE_NODE,          /* the output of a node differs */
    VD_DIVERGE_NEXT,          /* all nodes agree, but a state is not what they make */
    VD_DIVERGE_STORED,        /* a stored checkpoint is not what executing its run again gives */
    VD_DIVERGE_COMMITMENT,    /* a run commits to another state than it stores and computes */
    VD_DIVERGE_EMITTED,       /* the states agree, but emitted records differ */
    VD_DIVERGE_EMITTED_NAMED, /* a run commits to other emitted records than it stores */
} vd_diverge_kind;

/* A guess how a wrong sum of parts came about; it fits the value that was found. */
typedef enum {
    VD_FOLD_NO_GUESS,
    VD_FOLD_WITHOUT, /* part `part` was left out */
    VD_FOLD_TWICE,   /* part `part` was added twice */
    VD_FOLD_ENDED,   /* part `part` and all later ones were left out */
} vd_fold_guess;

/* How two tensors differ, and the first element that differs. */
typedef struct {
    bool known; /* both tensors were available, have one shape, and differ */
    ro_shape shape;
    uint64_t count; /* number of elements that differ */
    int64_t element;
    uint32_t bits[2];
    bool has_reference; /* the operator's definition gives `reference` from the node's inputs */
    uint32_t reference;
    bool has_bound; /* of a free node, in place of a reference: whether each value is possible */
    bool possible[2];
    uint64_t parts;      /* number of parts of a long fold; 0: it is none */
    int64_t part;        /* first part that differs; -1: none, or not compared */
    vd_fold_guess guess; /* about the value of side `guessed` */
    int guessed;
} vd_diverged_tensor;

typedef struct {
    vd_diverge_kind kind;
    int64_t equal_at;   /* last checkpoint up to which all is equal; -1: none */
    int64_t differs_at; /* first checkpoint that differs */
    bool has_step;
    int64_t step;           /* -1: initialisation */
    bool broken[2];         /* its state is not what its nodes make, or not what it commits to */
    bool skipped[2];        /* if broken: its state is still the one before the step */
    uint32_t node[2];       /* NODE, EMITTED: each side's; STORED with reference: makes the leaf */
    bool other_node[2];     /* NODE: the side ran another node than its program has */
    bool compares_inputs;   /* both have as many inputs */
    uint32_t inputs;        /* number of inputs */
    uint32_t inputs_differ; /* number of inputs that differ */
    uint32_t first_input;   /* first input that differs */
    bool of_leaf;           /* `tensor` is about leaf[], not a node's output */
    uint32_t leaf[2];
    vd_diverged_tensor tensor;
    uint64_t section;  /* EMITTED: first section that differs */
    uint64_t tensors;  /* of two programs: number of tensors with a partner */
    uint32_t states;   /* of two programs: steps at which both stored states, which were compared */
    char unread[300];  /* names a damaged state that was not compared; else "" */
    uint64_t executed; /* steps; set by the caller */
} vd_divergence;

typedef struct {
    const vd_program *program;
    vd_hash program_hash;
    vd_source source;
    uint32_t checkpoints; /* number that source.run lists; of an unfinished run, those so far */
    /* Returns whether the state of a checkpoint is on disk. */
    bool (*holds)(void *user, uint32_t checkpoint);
    const struct vd_backend *backend; /* that the run needs (backend.h); NULL: fixed order */
    /* With a backend: checks what was emitted up to a checkpoint against the run's commitment. */
    vd_status (*emitted_fits)(void *user, uint32_t checkpoint, bool *fits, vd_err *err);
    void *user;
} vd_diverge_side;

/* Compares two runs. Unless `executes`, it stops at the checkpoints. `pairs` is for different
 * programs; then only checkpoints of the same step that both have stored are compared, tensor by
 * tensor. */
VD_MUST_USE vd_status vd_diverge(const vd_diverge_side side[2], const vd_alignment *pairs,
                                 bool executes, vd_divergence *out, vd_err *err);

#endif
