/* Where two runs part: the first checkpoint, step, node and element that differ. Each side is asked
 * as a referee asks a provider, and executes again what it does not keep. */
#ifndef VD_DIVERGENCE_H
#define VD_DIVERGENCE_H

#include "verde/exec/source.h"
#include "verde/graph/align.h"

typedef enum {
    VD_DIVERGE_NOT,        /* nothing differs that both commit to */
    VD_DIVERGE_CHECKPOINT, /* a checkpoint differs; nothing was executed */
    VD_DIVERGE_NODE,       /* the output of a node of a step */
    VD_DIVERGE_NEXT,       /* all nodes agree, and a state is not what they put out */
    VD_DIVERGE_STORED,     /* a checkpoint is not what its run gives again */
    VD_DIVERGE_COMMITMENT, /* a run commits to another state than the one that it holds and gives */
    VD_DIVERGE_EMITTED,    /* the states agree, and what was emitted does not */
    VD_DIVERGE_EMITTED_NAMED, /* a run commits to other things than it holds, of what it emitted */
} vd_diverge_kind;

/* A value of an element that is no sum of all its parts, but fits what was found. */
typedef enum {
    VD_FOLD_NO_GUESS,
    VD_FOLD_WITHOUT, /* without part `part` */
    VD_FOLD_TWICE,   /* with this part added twice */
    VD_FOLD_ENDED,   /* of the parts before this one alone */
} vd_fold_guess;

/* What differs of two tensors, the first element of it in particular. */
typedef struct {
    bool known; /* both tensors were there, of one shape, and differ */
    ro_shape shape;
    uint64_t count; /* of elements that differ */
    int64_t element;
    uint32_t bits[2];
    bool has_reference; /* what the operator's definition makes of the node's inputs */
    uint32_t reference;
    bool has_bound; /* of a free node instead: whether each value is one of those possible */
    bool possible[2];
    uint64_t parts;      /* of a long fold; 0: it is none */
    int64_t part;        /* the first that differs; -1: none does, or nobody looked */
    vd_fold_guess guess; /* of the value of side `guessed`, by part `part` */
    int guessed;
} vd_diverged_tensor;

typedef struct {
    vd_diverge_kind kind;
    int64_t equal_at;   /* the last checkpoint before which nothing differs; -1: there is none */
    int64_t differs_at; /* the first checkpoint that differs */
    bool has_step;
    int64_t step;         /* -1: initialisation */
    bool broken[2];       /* after the step, this side has another state than its nodes make; or
                             holds other things than it commits to */
    bool skipped[2];      /* broken: the state that it has is the one from before the step */
    uint32_t node[2];     /* NODE, EMITTED: of each side's graph; STORED, with a reference: the node
                             that makes the leaf */
    bool other_node[2];   /* NODE: the side ran another node than its program's */
    bool compares_inputs; /* both have as many */
    uint32_t inputs;      /* how many, */
    uint32_t inputs_differ; /* how many of them differ, */
    uint32_t first_input;   /* and the first one that does */
    bool of_leaf;           /* `tensor` is leaf[], not a node's output */
    uint32_t leaf[2];
    vd_diverged_tensor tensor;
    uint64_t section;  /* EMITTED: the first that differs */
    uint64_t tensors;  /* with a partner, where the programs are different ones, */
    uint32_t states;   /* and at how many steps they were compared: those that both hold */
    char unread[300];  /* a state that is damaged, and whose tensors were not looked at; else "" */
    uint64_t executed; /* steps, filled in by who knows */
} vd_divergence;

typedef struct {
    const vd_program *program;
    vd_hash program_hash;
    vd_source source;
    uint32_t checkpoints; /* that source.run lists: of an unfinished run, those so far */
    /* Is the state of this checkpoint on disk? */
    bool (*holds)(void *user, uint32_t checkpoint);
    const struct vd_backend *backend; /* of the run (backend.h); NULL: in fixed order */
    /* With a backend: is what was emitted up to this checkpoint what the run commits to? */
    vd_status (*emitted_fits)(void *user, uint32_t checkpoint, bool *fits, vd_err *err);
    void *user;
} vd_diverge_side;

/* `executes`: false stops at the checkpoints. `pairs`: of programs that are not the same; only
 * checkpoints of one step that both hold are compared then, tensor by tensor. Errors name `name`,
 * of each side. */
VD_MUST_USE vd_status vd_diverge(const vd_diverge_side side[2], const vd_alignment *pairs,
                                 bool executes, vd_divergence *out, vd_err *err);

#endif
