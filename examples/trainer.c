/* A training loop that uses repops directly: a perceptron with one hidden layer learns a parity of
 * signs, with AdamW, on data that it generates. It prints losses and a hash of the final weights,
 * which are the same on every machine, with any number of threads and any REPOPS_CPU.
 *
 *   cc examples/trainer.c $(pkg-config --cflags --libs repops) && ./a.out [THREADS]
 *
 * All rounding happens in repops. The program itself only compares numbers, so no option of its
 * compiler changes a bit. */
#include <repops/layers.h>
#include <repops/modes.h>
#include <repops/typed.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64, IN = 16, HIDDEN = 512, CLASSES = 4, STEPS = 1000, SEED = 1 };
enum { STREAM_DATA = 0, STREAM_WEIGHTS = 1000000 }; /* Philox streams, SPEC 10.1 */

static ro_ctx *ctx;

static void check(ro_status status) {
    if (status == RO_OK)
        return;
    fprintf(stderr, "trainer: %s\n", ro_ctx_error(ctx));
    exit(1);
}

/* ---- parameters and AdamW ---- */

typedef struct {
    ro_tensor w, m, v, grad;
} parameter;

enum { W1, B1, W2, B2, PARAMETERS };
static parameter of[PARAMETERS];

static void new_parameter(int i, int64_t rows, int64_t cols, float deviation) {
    ro_tensor *const all[] = {&of[i].w, &of[i].m, &of[i].v, &of[i].grad};
    for (int k = 0; k < 4; k++) {
        all[k]->shape = (ro_shape){RO_F32, 2, {rows, cols}};
        check(ro_tensor_alloc(ctx, all[k]));
    }
    const ro_op_normal_attrs normal = {SEED, STREAM_WEIGHTS + i, 0, deviation};
    check(ro_op_normal(ctx, &normal, &of[i].w));
}

/* c = beta c + (1 - beta): the moments are divided by it. */
static void correct_bias(float *c, float beta) {
    float next;
    const ro_tensor from = {{RO_F32, 1, {1}}, c};
    ro_tensor to = {{RO_F32, 1, {1}}, &next};
    check(ro_op_bias_correction(ctx, &from, &(ro_op_bias_correction_attrs){beta}, &to));
    *c = next;
}

static void optimize(int32_t step) {
    static float c1, c2, rate, one = 1;
    const ro_op_lr_schedule_attrs cosine = {RO_LR_COSINE, 0.003f, 0, 0, STEPS};
    const ro_tensor now = {{RO_I32, 1, {1}}, &step};
    ro_tensor lr = {{RO_F32, 1, {1}}, &rate};
    check(ro_op_lr_schedule(ctx, &now, &cosine, &lr));
    correct_bias(&c1, 0.9f), correct_bias(&c2, 0.99f);
    for (int i = 0; i < PARAMETERS; i++) {
        float *w = of[i].w.data, *m = of[i].m.data, *v = of[i].v.data;
        const ro_adamw_step adamw = {.size = sizeof adamw,
                                     .count = ro_shape_numel(&of[i].w.shape),
                                     .beta1 = 0.9f,
                                     .beta2 = 0.99f,
                                     .eps = 1e-8f,
                                     .decay = 0.01f,
                                     .clip = &one,
                                     .c1 = &c1,
                                     .c2 = &c2,
                                     .rate = &rate};
        check(ro_adamw(ctx, &adamw, w, m, v, of[i].grad.data, w, m, v));
    }
}

/* ---- one step ---- */

static const ro_linear_layer first = {
    .size = sizeof first, .activation = RO_ACTIVATION_RELU, .rows = BATCH, .in = IN, .out = HIDDEN};
static const ro_linear_layer second = {
    .size = sizeof second, .rows = BATCH, .in = HIDDEN, .out = CLASSES};

static float x[BATCH * IN], z[BATCH * HIDDEN], h[BATCH * HIDDEN], dh[BATCH * HIDDEN];
static float logits[BATCH * CLASSES], dlogits[BATCH * CLASSES], loss[BATCH], dloss[BATCH];
static int32_t label[BATCH];

/* Makes a batch; its classes are the parity of the first two signs and that of the next two. */
static void next_batch(int step) {
    ro_tensor t = {{RO_F32, 2, {BATCH, IN}}, x};
    check(ro_op_normal(ctx, &(ro_op_normal_attrs){SEED, STREAM_DATA + step, 0, 1}, &t));
    for (int i = 0; i < BATCH; i++) {
        const float *row = x + i * IN;
        label[i] = ((row[0] > 0) ^ (row[1] > 0)) + 2 * ((row[2] > 0) ^ (row[3] > 0));
    }
}

static void forward_and_backward(void) {
    const ro_gradient none = {NULL, 0}, dw1 = {of[W1].grad.data, 0}, db1 = {of[B1].grad.data, 0};
    const ro_gradient to_h = {dh, 0}, dw2 = {of[W2].grad.data, 0}, db2 = {of[B2].grad.data, 0};
    check(ro_linear(ctx, &first, x, of[W1].w.data, of[B1].w.data, z, h));
    check(ro_linear(ctx, &second, h, of[W2].w.data, of[B2].w.data, NULL, logits));
    check(ro_cross_entropy(ctx, BATCH, CLASSES, logits, label, RO_IGNORE_NONE, dloss, loss, NULL,
                           NULL, dlogits));
    check(ro_linear_backward(ctx, &second, h, of[W2].w.data, NULL, dlogits, to_h, dw2, db2));
    check(ro_linear_backward(ctx, &first, x, of[W1].w.data, z, dh, none, dw1, db1));
}

static float mean_loss(void) {
    float sum, mean;
    check(ro_sum(ctx, 1, BATCH, loss, &sum));
    const ro_tensor total = {{RO_F32, 1, {1}}, &sum};
    ro_tensor out = {{RO_F32, 1, {1}}, &mean};
    check(ro_op_div_const(ctx, &total, &(ro_op_div_const_attrs){BATCH}, &out));
    return mean;
}

/* FNV-1a over the bits of the weights, word by word. */
static unsigned long long hash_of_weights(void) {
    unsigned long long hash = 0xcbf29ce484222325ULL;
    for (int i = 0; i < PARAMETERS; i++)
        for (int64_t k = 0; k < ro_shape_numel(&of[i].w.shape); k++)
            hash = (hash ^ ((const uint32_t *)of[i].w.data)[k]) * 0x100000001b3ULL;
    return hash;
}

int main(int argc, char **argv) {
    (void)ro_modes_set(); /* printf rounds in this thread's mode */
    check(ro_ctx_create(
        &(ro_options){.size = sizeof(ro_options), .threads = argc > 1 ? atoi(argv[1]) : 0}, &ctx));
    new_parameter(W1, IN, HIDDEN, 0.35f);
    new_parameter(B1, 1, HIDDEN, 0);
    new_parameter(W2, HIDDEN, CLASSES, 0.0625f);
    new_parameter(B2, 1, CLASSES, 0);
    for (int i = 0; i < BATCH; i++)
        dloss[i] = 1.0f / BATCH;
    for (int step = 0; step < STEPS; step++) {
        next_batch(step);
        forward_and_backward();
        optimize(step);
        if (step % 200 == 199)
            printf("step %d  loss %.9g\n", step + 1, (double)mean_loss());
    }
    printf("weights %016llx\n", hash_of_weights());
    ro_ctx_destroy(ctx); /* the operating system frees the tensors */
    return 0;
}
