/* The models that bench/generate.c runs, with random weights. */
#ifndef BENCH_GENERATE_MODEL_H
#define BENCH_GENERATE_MODEL_H

#include "models/models.h"

enum { BENCH_TENSORS_MAX = 400 };

typedef struct {
    const char *name; /* as bench/generate_torch.py has it */
    vd_model model;
} bench_shape;
/* Each ends the process with 2 if there is none of this name. */
const bench_shape *bench_shape_named(const char *name);
ro_dtype bench_dtype_named(const char *name);

/* It lives as long as the process. */
typedef struct {
    vd_training training;
    vd_file_tensor file[BENCH_TENSORS_MAX];
    vd_file_name *names;
    const void *data[BENCH_TENSORS_MAX + 1]; /* of the program: a prompt, and the weights */
    vd_program program;                      /* all prompts are the same length, and share it */
    int64_t weight_bytes;
} bench_model;

/* Weights of this type as a file has them, and a program that goes on with a prompt; fixed_bits: of
 * products, 0: FP32. Ends the process where it fails. */
void bench_model_open(bench_model *m, const bench_shape *shape, ro_dtype dtype, int fixed_bits,
                      int64_t prompt, int64_t tokens);

#endif
