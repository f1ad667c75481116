/* A training loop that uses repops directly: a perceptron with one hidden layer learns a parity of
 * signs, with AdamW, on data that it generates. Prints losses and a hash of the final weights, the
 * same on every machine, with any number of threads and any REPOPS_CPU.
 *
 *   cc trainer.c $(pkg-config --cflags --libs repops) && ./a.out [THREADS]
 *
 * Everything that is rounded goes through repops. The program itself only compares numbers, so no
 * option of its compiler changes a bit. */
#include <repops/repops.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64, IN = 16, HIDDEN = 512, CLASSES = 4, BLOCK = RO_REDUCE_BLOCK };
enum { STEPS = 1000, SEED = 1 };
enum { STREAM_DATA = 0, STREAM_WEIGHTS = 1000000 }; /* of Philox, SPEC 10.1 */

static ro_ctx *ctx;

static void die(const char *why) {
    fprintf(stderr, "trainer: %s\n", why);
    exit(1);
}

/* ---- tensors and calls ---- */

typedef struct {
    ro_shape shape;
    void *data;
} tensor;

/* A vector if there is one row or one column. */
static tensor new_tensor(int dtype, int64_t rows, int64_t cols) {
    tensor t = {.shape = {dtype, 2, {rows, cols}}};
    if (rows == 1 || cols == 1)
        t.shape = (ro_shape){dtype, 1, {rows * cols}};
    t.data = calloc((size_t)(rows * cols), ro_dtype_size(dtype));
    if (!t.data)
        die("no memory");
    return t;
}

/* out = op(in; attr). Dies with repops's sentence if the call is not one that SPEC.md defines. */
static void apply(int op, tensor *out, const int64_t *attr, int count, tensor *const *in) {
    ro_shape shape[6];
    const void *data[6];
    char why[256];
    ro_call call = {.op = op, .input_count = count, .input = shape, .output = out->shape};
    for (int i = 0; i < ro_op_describe(op)->attr_count; i++)
        call.attr[i] = attr[i];
    for (int i = 0; i < count; i++)
        shape[i] = in[i]->shape, data[i] = in[i]->data;
    if (ro_infer(&call, why, sizeof why) != RO_OK)
        die(why);
    if (ro_run(ctx, &call, data, out->data) != RO_OK)
        die(ro_ctx_error(ctx));
}

#define F(x)      ro_attr_f32(x)
#define ATTR(...) ((const int64_t[]){__VA_ARGS__})
#define APPLY(op, out, attr, ...)                                                                  \
    apply(op, out, attr, (int)(sizeof((tensor *[]){__VA_ARGS__}) / sizeof(tensor *)),              \
          (tensor *[]){__VA_ARGS__})

/* op(a) op(b): trans is 1 for a, 2 for b. */
static void matmul(tensor *out, tensor *a, tensor *b, int trans) {
    APPLY(RO_OP_MATMUL, out, ATTR(0, trans, F(1), RO_DOT_CHUNK, RO_MASK_NONE), a, b);
}

/* ---- parameters and AdamW ---- */

enum { W1, B1, W2, B2, PARAMETERS };

static tensor w[PARAMETERS], grad[PARAMETERS], m[PARAMETERS], v[PARAMETERS], next[PARAMETERS];
static tensor one, now, lr, c1, c2, scratch;

static void new_parameter(int i, int64_t rows, int64_t cols, float deviation) {
    tensor *const all[] = {&w[i], &grad[i], &m[i], &v[i], &next[i]};
    for (int k = 0; k < 5; k++)
        *all[k] = new_tensor(RO_F32, rows, cols);
    apply(RO_OP_NORMAL, &w[i], ATTR(SEED, STREAM_WEIGHTS + i, F(0), F(deviation)), 0, NULL);
}

/* No operator writes over its input: the new value changes places with the old one. */
static void swap(tensor *a, tensor *b) {
    const tensor t = *a;
    *a = *b, *b = t;
}

static void update(int i) {
    APPLY(RO_OP_ADAMW_M, &next[i], ATTR(F(0.9f)), &m[i], &grad[i], &one);
    swap(&m[i], &next[i]);
    APPLY(RO_OP_ADAMW_V, &next[i], ATTR(F(0.99f)), &v[i], &grad[i], &one);
    swap(&v[i], &next[i]);
    APPLY(RO_OP_ADAMW_W, &next[i], ATTR(F(1e-8f), F(0.01f)), &w[i], &m[i], &v[i], &c1, &c2, &lr);
    swap(&w[i], &next[i]);
}

/* c = beta c + (1 - beta): what the moments are divided by. */
static void correct_bias(tensor *c, float beta) {
    APPLY(RO_OP_BIAS_CORRECTION, &scratch, ATTR(F(beta)), c);
    swap(c, &scratch);
}

static void optimize(int step) {
    *(int32_t *)now.data = step;
    APPLY(RO_OP_LR_SCHEDULE, &lr, ATTR(RO_LR_COSINE, F(0.003f), F(0), 0, STEPS), &now);
    correct_bias(&c1, 0.9f), correct_bias(&c2, 0.99f);
    for (int i = 0; i < PARAMETERS; i++)
        update(i);
}

/* ---- one step ---- */

static tensor x, label, h0, h1, h, z0, z, max, sum, loss, total, mean, dloss, dz, dh, dh1;

static void allocate(void) {
    tensor *const hidden[] = {&h0, &h1, &h, &dh, &dh1}, *const logits[] = {&z0, &z, &dz};
    tensor *const rows[] = {&max, &sum, &loss, &dloss};
    tensor *const scalars[] = {&one, &lr, &c1, &c2, &scratch, &total, &mean};
    for (int i = 0; i < 5; i++)
        *hidden[i] = new_tensor(RO_F32, BATCH, HIDDEN);
    for (int i = 0; i < 3; i++)
        *logits[i] = new_tensor(RO_F32, BATCH, CLASSES);
    for (int i = 0; i < 4; i++)
        *rows[i] = new_tensor(RO_F32, BATCH, 1);
    for (int i = 0; i < 7; i++)
        *scalars[i] = new_tensor(RO_F32, 1, 1);
    x = new_tensor(RO_F32, BATCH, IN);
    label = new_tensor(RO_I32, BATCH, 1), now = new_tensor(RO_I32, 1, 1);
}

/* Normal numbers; the class is the parity of the first two signs and that of the next two. */
static void next_batch(int step) {
    apply(RO_OP_NORMAL, &x, ATTR(SEED, STREAM_DATA + step, F(0), F(1)), 0, NULL);
    for (int i = 0; i < BATCH; i++) {
        const float *row = (const float *)x.data + i * IN;
        ((int32_t *)label.data)[i] =
            ((row[0] > 0) ^ (row[1] > 0)) + 2 * ((row[2] > 0) ^ (row[3] > 0));
    }
}

static void forward(void) {
    matmul(&h0, &x, &w[W1], 0);
    APPLY(RO_OP_ADD, &h1, NULL, &h0, &w[B1]);
    APPLY(RO_OP_RELU, &h, NULL, &h1);
    matmul(&z0, &h, &w[W2], 0);
    APPLY(RO_OP_ADD, &z, NULL, &z0, &w[B2]);
    APPLY(RO_OP_REDUCE_MAX, &max, ATTR(CLASSES, BLOCK), &z);
    APPLY(RO_OP_REDUCE_EXPSUM, &sum, ATTR(CLASSES, BLOCK), &z, &max);
    APPLY(RO_OP_XENT, &loss, NULL, &z, &max, &sum, &label);
    APPLY(RO_OP_REDUCE_SUM, &total, ATTR(BATCH, BLOCK), &loss);
    APPLY(RO_OP_DIV_CONST, &mean, ATTR(F(BATCH)), &total);
}

static void backward(void) {
    APPLY(RO_OP_XENT_GRAD, &dz, NULL, &z, &max, &sum, &label, &dloss);
    matmul(&grad[W2], &h, &dz, 1);
    APPLY(RO_OP_SUM_ROWS, &grad[B2], ATTR(CLASSES), &dz);
    matmul(&dh, &dz, &w[W2], 2);
    APPLY(RO_OP_RELU_GRAD, &dh1, NULL, &h1, &dh);
    matmul(&grad[W1], &x, &dh1, 1);
    APPLY(RO_OP_SUM_ROWS, &grad[B1], ATTR(HIDDEN), &dh1);
}

/* FNV-1a over the bits of the weights, word by word. */
static unsigned long long hash_of_weights(void) {
    unsigned long long hash = 0xcbf29ce484222325ULL;
    for (int i = 0; i < PARAMETERS; i++)
        for (int64_t k = 0; k < ro_shape_numel(&w[i].shape); k++)
            hash = (hash ^ ((const uint32_t *)w[i].data)[k]) * 0x100000001b3ULL;
    return hash;
}

int main(int argc, char **argv) {
    const ro_options options = {.threads = argc > 1 ? atoi(argv[1]) : 0};
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        die(ro_ctx_error(NULL));
    allocate();
    new_parameter(W1, IN, HIDDEN, 0.35f);
    new_parameter(B1, 1, HIDDEN, 0);
    new_parameter(W2, HIDDEN, CLASSES, 0.0625f);
    new_parameter(B2, 1, CLASSES, 0);
    apply(RO_OP_FILL, &one, ATTR(F(1)), 0, NULL);
    apply(RO_OP_FILL, &dloss, ATTR(F(1.0f / BATCH)), 0, NULL);
    for (int step = 0; step < STEPS; step++) {
        next_batch(step);
        forward();
        backward();
        optimize(step);
        if (step % 200 == 199)
            printf("step %d  loss %.9g\n", step + 1, (double)*(const float *)mean.data);
    }
    printf("weights %016llx\n", hash_of_weights());
    ro_ctx_destroy(ctx); /* the system takes back the tensors */
    return 0;
}
