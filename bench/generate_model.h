/* The models that bench/generate.c runs, with random weights. */
#ifndef BENCH_GENERATE_MODEL_H
#define BENCH_GENERATE_MODEL_H

#include "models/models.h"

enum { BENCH_TENSORS_MAX = 400 };

typedef struct {
    const char *name; /* as in bench/generate_torch.py */
    vd_model model;
} bench_shape;
/* Each ends the process with exit code 2 if no shape or type has this name. */
const bench_shape *bench_shape_named(const char *name);
ro_dtype bench_dtype_named(const char *name);

/* A model that lives as long as the process. */
typedef struct {
    vd_training training;
    vd_file_tensor file[BENCH_TENSORS_MAX];
    vd_file_name *names;
    const void *data[BENCH_TENSORS_MAX + 1]; /* of the program: a prompt, then the weights */
    vd_program program;                      /* shared by all prompts, which have the same length */
    int64_t weight_bytes;
} bench_model;

/* Makes weights of this type as a file has them, and a program that continues a prompt. fixed_bits:
 * of products, 0: FP32. Ends the process on failure. */
void bench_model_open(bench_model *m, const bench_shape *shape, ro_dtype dtype, int fixed_bits,
                      int64_t prompt, int64_t tokens);

#endif
