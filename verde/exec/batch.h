/* Runs programs of tokens together: programs whose steps are the same graph, each for a sequence of
 * its own, as a generation job has one for each prompt.
 *
 * A row is a token of one program. A pass takes one row of every program that makes tokens, and
 * rows of prompts: what only reads weights runs once for all rows, so that weights are read once,
 * and what reads a program's state runs for each. Prompts need no pass of their own graph: a
 * prompt's token is put into the caches as a step puts it. All states have the bytes that
 * vd_exec_init and vd_exec_step give them, whoever else is in the batch.
 *
 * Programs are as models.h describes those of vd_generation_program: the first data tensor is the
 * prompt, leaf `token` has the token that a step takes in, and a step that finds leaf `stopped` not
 * 0 changes nothing. States are in host memory; a device has copies of them, of what is shared and
 * of rows. */
#ifndef VD_BATCH_H
#define VD_BATCH_H

#include "verde/exec/live.h"

enum {
    VD_BATCH_PROGRAMS_MAX = 1024, /* at a time */
    VD_BATCH_ROWS_MAX = 4096,     /* of a pass */
};

/* A state that a program has reached: borrowed, stands until the call returns. */
typedef struct {
    uint64_t item; /* as it was given to vd_batch_add */
    const vd_program *program;
    const vd_state *state;
    const vd_hash *commitment;
    const vd_live *live;       /* the trees that led to it */
    const vd_written *written; /* what changed since the state before; in S_0, of zeros */
    uint32_t written_count;
    bool last;        /* the program's last one */
    bool void_choice; /* the token that was made does not follow from its logits (choice.h) */
} vd_batch_state;

typedef struct {
    /* Data tensors that programs do not share: they come first, the prompt first of all. */
    uint32_t own_data;
    /* Rows of prompts that a pass takes at most, and all rows of one of vd_batch_answers; 1 to
     * VD_BATCH_ROWS_MAX. */
    int64_t chunk;
    /* Each state of each program, S_0 first. What it returns if that is not VD_OK ends the pass. */
    vd_status (*reached)(void *user, const vd_batch_state *reached, vd_err *err);
    void *user;
    /* The programs are a stranger's: what their initialisation leaves in caches need not be what
     * the step puts there, so each S_0 is computed by that graph itself. */
    bool strange;
} vd_batch_options;

typedef struct vd_batch vd_batch;

/* `exec` has a program like those to come, a context and the data that all share; it is borrowed.
 * VD_ERR_USAGE: steps of this program cannot be taken together. */
VD_MUST_USE vd_status vd_batch_create(const vd_exec *exec, const vd_batch_options *options,
                                      vd_batch **out, vd_err *err);
void vd_batch_destroy(vd_batch *batch); /* accepts NULL */
/* A program joins, from its beginning, or from a state of one of its steps, which is taken over
 * after success (NULL: from the beginning). `data` are its own data tensors. Program and data are
 * borrowed until it has left. VD_ERR_USAGE: its step is not that of the batch's program, or there
 * is no room. */
VD_MUST_USE vd_status vd_batch_add(vd_batch *batch, uint64_t item, const vd_program *program,
                                   const void *const *data, vd_state *from, vd_err *err);
/* VD_ERR_USAGE: vd_batch_add would refuse this program for what it is. */
VD_MUST_USE vd_status vd_batch_takes(const vd_batch *batch, const vd_program *program, vd_err *err);
/* An answer that is there already: tokens that a program is said to have made. */
typedef struct {
    const vd_program *program; /* of vd_generation_program */
    const void *const *data;   /* its own data tensors */
    const int32_t *token;      /* of the answer: `rows - 1` are read, below the vocabulary */
    int64_t rows;              /* steps that are looked at, 1 to program->steps */
} vd_batch_answer;

/* What each of these steps makes of the prompt and the answer before it, whatever the answer has
 * there. Tensors of `state` hold it by rows, in its leaves text, log_probability, best and
 * best_log_probability; its other leaves mean nothing. `stop` is the first of the steps that ends
 * the text, or -1. It stands until the call returns. */
typedef vd_status (*vd_batch_answered)(void *user, uint32_t answer, const vd_state *state,
                                       int64_t stop, vd_err *err);

/* Computes that for all answers by one pass over prompts and answers, or as few as have room:
 * nothing is committed to. The batch must be empty, and stays so. VD_ERR_USAGE: a program is not
 * that of the batch, or its steps follow from each other by more than tokens. VD_ERR_LOCAL: the
 * context is on a device. */
VD_MUST_USE vd_status vd_batch_answers(vd_batch *batch, const vd_batch_answer *answer,
                                       uint32_t count, vd_batch_answered answered, void *user,
                                       vd_err *err);

/* Programs that have not left: each leaves after its last state. */
uint32_t vd_batch_count(const vd_batch *batch);
/* Takes one pass. Harmless without programs. */
VD_MUST_USE vd_status vd_batch_pass(vd_batch *batch, vd_err *err);
/* Seconds in passes so far, and of these in commitments and in `reached`. */
void vd_batch_seconds(const vd_batch *batch, double *passes, double *commitments);

#endif
