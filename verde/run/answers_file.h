/* One file of answers, NAME.npy, and answers.safetensors, which joins several. */
#ifndef VD_ANSWERS_FILE_H
#define VD_ANSWERS_FILE_H

#include "verde/run/answers.h"

typedef struct vd_answer_file {
    uint32_t leaf;
    ro_shape shape; /* of a batch */
    char name[VD_ANSWER_NAME_MAX + 1];
    char path[1300];
    int fd; /* of PATH.part while writing, else of PATH; -1: closed */
} vd_answer_file;

/* The name of a type in numpy, such as "<f4"; NULL: numpy has no such type. */
const char *vd_answer_type(ro_dtype dtype);
VD_MUST_USE vd_status vd_answer_open(vd_answer_file *file, bool checks, vd_err *err);
/* Puts rows after the `first` existing ones. `data` is in this machine's byte order. */
VD_MUST_USE vd_status vd_answer_rows(vd_answer_file *file, bool checks, int64_t first, int64_t rows,
                                     const void *data, vd_err *err);
/* Completes the file with its header, once the number of rows is known, and renames it. */
VD_MUST_USE vd_status vd_answer_end(vd_answer_file *file, bool checks, int64_t rows, vd_err *err);
void vd_answer_close(vd_answer_file *file); /* may be called twice */
/* Joins the files, which are complete, into one safetensors file. */
VD_MUST_USE vd_status vd_answers_together(const char *path, const vd_answer_file *file,
                                          uint32_t count, bool checks, int64_t rows, vd_err *err);

#endif
