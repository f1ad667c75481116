/* Answers: the last states of programs of batches, as files. DIR/answers has NAME.npy for each leaf
 * `answer.NAME`, with a row for each input, and answers.safetensors with all of them. */
#ifndef VD_RUN_ANSWERS_H
#define VD_RUN_ANSWERS_H

#include "verde/load/load.h"

#define VD_ANSWERS_FOLDER "answers"

enum {
    VD_ANSWER_NAME_MAX = 100, /* bytes of NAME: letters, digits, `_`, `-` and `.` */
    VD_ANSWERS_MAX = 4096,    /* leaves of a program that are answers */
};

/* Starts as all zeros. */
typedef struct {
    bool checks; /* compares existing files, else writes them */
    char dir[1100];
    uint32_t count; /* number of files; 0: no batch came yet */
    struct vd_answer_file *file;
    int64_t rows; /* in each file so far */
} vd_answers;

/* Puts the answers of a batch into DIR/answers. Batches come in order; the first one decides which
 * files there are. `loaded` has the batch's program and its own data, of which the second tensor,
 * named `rows`, is the number of rows that count. VD_ERR_PEER: the program is not one of batches,
 * or, with `checks`, a file differs. */
VD_MUST_USE vd_status vd_answers_put(vd_answers *answers, const char *dir, const vd_loaded *loaded,
                                     const vd_state *state, vd_err *err);
/* Call this after the last batch. It renames the files and writes answers.safetensors, or, with
 * `checks`, compares the rest. Without any batch it does nothing. */
VD_MUST_USE vd_status vd_answers_finish(vd_answers *answers, vd_err *err);
void vd_answers_free(vd_answers *answers); /* may be called twice */

#endif
