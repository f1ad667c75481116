/* A training job in C without files: program, data, and a context that runs it. For machines that
 * have only a GPU, nvcc and a C compiler. */
#ifndef TESTS_CUDA_JOB_H
#define TESTS_CUDA_JOB_H

#include "models/models.h"
#include "verde/exec/exec.h"

typedef struct {
    void *data;
    vd_program program;
    vd_hash hash;
    int64_t parameters;
} job;

typedef struct {
    /* gpt2-124m, resnet50, or for the shim gpt2-small, resnet-small; then perhaps ",fixed24",
     * ",fixed16" or ",fixed8" for such products, or ",bf16" for such storage. */
    const char *name;
    int64_t batch, sequence, micro_batches;
} job_size;

/* Makes a job of this size, with random data. */
VD_MUST_USE vd_status job_create(const job_size *size, job *out, vd_err *err);
void job_free(job *j);

typedef struct {
    const job *job;
    const void *data[1]; /* the job's data, as `exec` takes them */
    vd_exec exec;
    vd_state state;
} trainer;

/* Initialises a state on `backend` ("cpu", "cuda:0"). threads: 0 for all. */
VD_MUST_USE vd_status trainer_create(const job *j, const char *backend, int threads, trainer *out,
                                     vd_err *err);
void trainer_free(trainer *t);
VD_MUST_USE vd_status trainer_step(trainer *t, float *loss, vd_err *err);
VD_MUST_USE vd_status trainer_root(const trainer *t, vd_hash *out, vd_err *err);

#endif
