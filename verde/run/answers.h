/* Answers: what programs of batches end with, as files by input. DIR/answers has NAME.npy for each
 * leaf `answer.NAME`, a row for each input, and answers.safetensors with all of them. */
#ifndef VD_RUN_ANSWERS_H
#define VD_RUN_ANSWERS_H

#include "verde/load/load.h"

#define VD_ANSWERS_FOLDER "answers"

enum {
    VD_ANSWER_NAME_MAX = 100, /* bytes of NAME: letters, digits, `_`, `-` and `.` */
    VD_ANSWERS_MAX = 4096,    /* leaves of a program that are answers */
};

/* Empty to begin with. */
typedef struct {
    bool checks; /* files that are there are compared; else they are written */
    char dir[1100];
    uint32_t count; /* files; 0: none was opened yet */
    struct vd_answer_file *file;
    int64_t rows; /* that are in each file */
} vd_answers;

/* Rows of answers in DIR/answers, of batches that come in their order; the first one says what
 * files there are. `loaded` has the batch's program, and its own data: the second tensor of it,
 * with the name `rows`, says how many rows count. VD_ERR_PEER: the program is none of these, or
 * with `checks` a file has other bytes. */
VD_MUST_USE vd_status vd_answers_put(vd_answers *answers, const char *dir, const vd_loaded *loaded,
                                     const vd_state *state, vd_err *err);
/* After the last batch: gives files their names, writes answers.safetensors, or compares what is
 * left. Without a batch it does nothing. */
VD_MUST_USE vd_status vd_answers_finish(vd_answers *answers, vd_err *err);
void vd_answers_free(vd_answers *answers); /* harmless twice */

#endif
