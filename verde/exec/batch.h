/* Runs token-making programs together, if their steps have the same graph. Each has a sequence of
 * its own, such as the prompts of a generation job.
 *
 * A row is a token of one program. A pass takes one row of each program that makes tokens, and rows
 * of prompts. Nodes that read only weights run once for all rows, so that weights are read once;
 * nodes that read a program's state run for each row. Prompts need no other graph: a prompt's token
 * is put into the caches as a step does it. All states have the same bytes as by vd_exec_init and
 * vd_exec_step, whatever else is in the batch.
 *
 * Programs have the form of vd_generation_program (models.h): data tensor 0 is the prompt, leaf
 * `token` is the token that a step reads, and a step does nothing if leaf `stopped` is not 0.
 * States are in host memory; a device has copies of states, shared data and rows. */
#ifndef VD_BATCH_H
#define VD_BATCH_H

#include "verde/exec/live.h"

enum {
    VD_BATCH_PROGRAMS_MAX = 1024, /* at a time */
    VD_BATCH_ROWS_MAX = 4096,     /* of a pass */
};

/* A state that a program has reached. All is borrowed, and valid during the call. */
typedef struct {
    uint64_t item; /* as given to vd_batch_add */
    const vd_program *program;
    const vd_state *state;
    const vd_hash *commitment;
    const vd_live *live;       /* trees of the state */
    const vd_written *written; /* changes since the state before; for S_0, since zeros */
    uint32_t written_count;
    bool last;        /* the program's last state */
    bool void_choice; /* its token does not follow from the logits (choice.h) */
} vd_batch_state;

typedef struct {
    /* Number of data tensors that are not shared. They come first; tensor 0 is the prompt. */
    uint32_t own_data;
    /* Limit of the prompts' rows in a pass, and of all rows in a pass of vd_batch_answers; 1 to
     * VD_BATCH_ROWS_MAX. */
    int64_t chunk;
    /* Called for each state of each program, S_0 first. An error that it returns ends the pass. */
    vd_status (*reached)(void *user, const vd_batch_state *reached, vd_err *err);
    void *user;
    /* The programs come from strangers, so their initialisation may fill caches differently from
     * their steps: each S_0 is computed by its own graph. */
    bool strange;
} vd_batch_options;

typedef struct vd_batch vd_batch;

/* `exec` has a program like those to come, a context, and the shared data; it is borrowed.
 * VD_ERR_USAGE: steps of this program cannot run together. */
VD_MUST_USE vd_status vd_batch_create(const vd_exec *exec, const vd_batch_options *options,
                                      vd_batch **out, vd_err *err);
void vd_batch_destroy(vd_batch *batch); /* accepts NULL */
/* Adds a program, from its beginning, or from a state of one of its steps, which the batch owns
 * after success (NULL: from the beginning). `data` are its own data tensors. Program and data are
 * borrowed until the program has left. VD_ERR_USAGE: its step is not that of the batch, or the
 * batch is full. */
VD_MUST_USE vd_status vd_batch_add(vd_batch *batch, uint64_t item, const vd_program *program,
                                   const void *const *data, vd_state *from, vd_err *err);
/* Checks that vd_batch_add would accept such a program. VD_ERR_USAGE: it would not. */
VD_MUST_USE vd_status vd_batch_takes(const vd_batch *batch, const vd_program *program, vd_err *err);
/* An existing answer to check: tokens that a program is said to have made. */
typedef struct {
    const vd_program *program; /* of vd_generation_program */
    const void *const *data;   /* its own data tensors */
    const int32_t *token;      /* the answer's tokens, below the vocabulary; `rows - 1` are read */
    int64_t rows;              /* number of steps to check, 1 to program->steps */
} vd_batch_answer;

/* Receives what each step makes of the prompt and the answer before it, whatever token the answer
 * has there. `state` has rows of results in its leaves text, log_probability, best and
 * best_log_probability; other leaves are undefined. `stop` is the first step that ends the text, or
 * -1. `state` is valid during the call. */
typedef vd_status (*vd_batch_answered)(void *user, uint32_t answer, const vd_state *state,
                                       int64_t stop, vd_err *err);

/* Computes this for all answers, in as few passes over prompts and answers as their rows allow.
 * Nothing is committed to. The batch must be empty, and stays empty. VD_ERR_USAGE: a program is not
 * that of the batch, or its steps depend on each other by more than tokens. VD_ERR_LOCAL: the
 * context is on a device. */
VD_MUST_USE vd_status vd_batch_answers(vd_batch *batch, const vd_batch_answer *answer,
                                       uint32_t count, vd_batch_answered answered, void *user,
                                       vd_err *err);

/* Number of programs in the batch; a program leaves after its last state. */
uint32_t vd_batch_count(const vd_batch *batch);
/* Runs one pass. Does nothing without programs. */
VD_MUST_USE vd_status vd_batch_pass(vd_batch *batch, vd_err *err);
/* Seconds spent in passes so far, and the part of these in commitments and in `reached`. */
void vd_batch_seconds(const vd_batch *batch, double *passes, double *commitments);

#endif
