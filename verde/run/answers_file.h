/* One file of answers, NAME.npy, and answers.safetensors of several. */
#ifndef VD_ANSWERS_FILE_H
#define VD_ANSWERS_FILE_H

#include "verde/run/answers.h"

typedef struct vd_answer_file {
    uint32_t leaf;
    ro_shape shape; /* of a batch */
    char name[VD_ANSWER_NAME_MAX + 1];
    char path[1300];
    int fd; /* of PATH.part that is written, or of PATH; -1: closed */
} vd_answer_file;

/* What numpy calls a type, such as "<f4"; NULL: it has none. */
const char *vd_answer_type(ro_dtype dtype);
VD_MUST_USE vd_status vd_answer_open(vd_answer_file *file, bool checks, vd_err *err);
/* So many rows behind the `first` ones. `data` is as this machine has it. */
VD_MUST_USE vd_status vd_answer_rows(vd_answer_file *file, bool checks, int64_t first, int64_t rows,
                                     const void *data, vd_err *err);
/* The header, when it is known how many rows there are; then the file has its name. */
VD_MUST_USE vd_status vd_answer_end(vd_answer_file *file, bool checks, int64_t rows, vd_err *err);
void vd_answer_close(vd_answer_file *file); /* harmless twice */
/* All of them, which have ended, in one file of safetensors. */
VD_MUST_USE vd_status vd_answers_together(const char *path, const vd_answer_file *file,
                                          uint32_t count, bool checks, int64_t rows, vd_err *err);

#endif
