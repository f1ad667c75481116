/* Training programs with made-up data, for benchmarks that train. */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "models/models.h"

enum { WORKLOAD_STEPS_MAX = 1000 };

typedef struct {
    vd_program program;
    void *data; /* owned */
} workload;

/* Returns GPT-2 with 50,257 tokens and a context of 1,024. */
vd_model workload_gpt2(int64_t layers, int64_t heads, int64_t channels);
/* Returns a model like SmolLM 135M: 30 layers, 576 channels, 9 query and 3 key heads. */
vd_model workload_llama(void);
/* Returns ResNet-50 for images of CIFAR's size. */
vd_model workload_resnet50(void);

/* Builds a program with `batch` sequences or images in each of `micro_batches`. The data are random
 * tokens, most of which follow from the token before, or random images whose brightness tells their
 * label. Returns false with `err` set on failure. */
bool workload_open(workload *w, const vd_model *model, const vd_optimizer *optimizer, int64_t batch,
                   int64_t sequence, int64_t micro_batches, vd_products products, vd_err *err);
void workload_close(workload *w);

#endif
