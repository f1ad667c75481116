/* A training step of GPT-2 that uses repops directly: forward, backward and AdamW, on tokens that
 * the program generates. Read it from top to bottom. It prints losses and a hash of the final
 * weights, which are the same on every machine, with any number of threads and any REPOPS_CPU.
 *
 *   cc examples/gpt2.c $(pkg-config --cflags --libs repops) && ./a.out [THREADS]
 *
 * All tensors lie in memory of the context, so that it runs on REPOPS_CPU=cuda:0 as well. The
 * program itself only computes with integers and constants. */
#include <repops/device.h>
#include <repops/layers.h>
#include <repops/modes.h>
#include <repops/typed.h>

#include <stdio.h>
#include <stdlib.h>

enum {
    BATCH = 4,
    TOKENS = 16,           /* of one sequence */
    ROWS = BATCH * TOKENS, /* one for each token of a batch */
    VOCABULARY = 32,
    WIDTH = 32,
    HEADS = 2,
    LAYERS = 2,
    DATA = 4097, /* tokens of the data */
    STEPS = 150,
    SEED = 1
};
/* The factor of the scores, 1 / sqrt(WIDTH / HEADS), and the standard deviations of the initial
 * weights. As in GPT-2, that of weights that end in the residual stream is smaller by sqrt(2
 * LAYERS). */
#define SCALE         0.25f
#define DEVIATION     0.02f
#define DEVIATION_OUT 0.01f
#define EPS           1e-5f

static ro_ctx *ctx;

static void check(ro_status status) {
    if (status == RO_OK)
        return;
    fprintf(stderr, "gpt2: %s\n", ro_ctx_error(ctx));
    exit(1);
}

/* ---- tensors ---- */

static ro_tensor made[64 + 64 * LAYERS]; /* freed at the end */
static int made_count;

static ro_tensor new_tensor(ro_shape shape) {
    ro_tensor *t = &made[made_count++];
    t->shape = shape;
    check(ro_tensor_alloc(ctx, t));
    return *t;
}

static ro_tensor new_vector(int dtype, int64_t count) {
    return new_tensor((ro_shape){dtype, 1, {count}});
}

static float *new_numbers(int64_t rows, int64_t cols) {
    return new_tensor((ro_shape){RO_F32, 2, {rows, cols}}).data;
}

static ro_tensor matrix(float *data, int64_t rows, int64_t cols) {
    return (ro_tensor){{RO_F32, 2, {rows, cols}}, data};
}

/* a = a + b, in the residual stream's shape. */
static void add(float *a, float *b) {
    ro_tensor to = matrix(a, ROWS, WIDTH), from = matrix(b, ROWS, WIDTH);
    check(ro_op_add(ctx, &to, &from, &to));
}

/* ---- parameters ---- */

typedef struct {
    int64_t rows, cols;
    float *w, *grad, *m, *v; /* weights, their gradient, AdamW's moments */
} parameter;

/* The bias follows the weight of a linear layer, and beta follows the gamma of a norm. */
enum { WTE, WPE, LNF, LNF_BETA, FIRST_LAYER };
enum { LN1, LN1_BETA, QKV, QKV_B, PROJ, PROJ_B, LN2, LN2_BETA, FC, FC_B, OUT, OUT_B, OF_LAYER };
enum { PARAMETERS = FIRST_LAYER + LAYERS * OF_LAYER };

static parameter all[PARAMETERS];

static parameter *of_layer(int layer) {
    return all + FIRST_LAYER + layer * OF_LAYER;
}

static parameter *new_parameter(parameter *p, int64_t rows, int64_t cols) {
    *p = (parameter){rows,
                     cols,
                     new_numbers(rows, cols),
                     new_numbers(rows, cols),
                     new_numbers(rows, cols),
                     new_numbers(rows, cols)};
    return p;
}

/* Allocates and initialises weights. Each parameter has its own stream of random numbers (SPEC
 * 10.1), numbered by its index. */
static void new_weights(parameter *p, int64_t rows, int64_t cols, float deviation) {
    ro_tensor w = matrix(new_parameter(p, rows, cols)->w, rows, cols);
    check(ro_op_normal(ctx, &(ro_op_normal_attrs){SEED, p - all, 0, deviation}, &w));
}

static void new_linear(parameter *p, int64_t in, int64_t out, float deviation) {
    new_weights(p, in, out, deviation);
    new_parameter(p + 1, 1, out);
}

static void new_norm(parameter *p) {
    ro_tensor gamma = matrix(new_parameter(p, 1, WIDTH)->w, 1, WIDTH);
    check(ro_op_fill(ctx, &(ro_op_fill_attrs){1}, &gamma));
    new_parameter(p + 1, 1, WIDTH);
}

static void new_model(void) {
    new_weights(&all[WTE], VOCABULARY, WIDTH, DEVIATION);
    new_weights(&all[WPE], TOKENS, WIDTH, DEVIATION_OUT);
    new_norm(&all[LNF]);
    for (int i = 0; i < LAYERS; i++) {
        parameter *p = of_layer(i);
        new_norm(&p[LN1]);
        new_linear(&p[QKV], WIDTH, 3 * WIDTH, DEVIATION);
        new_linear(&p[PROJ], WIDTH, WIDTH, DEVIATION_OUT);
        new_norm(&p[LN2]);
        new_linear(&p[FC], WIDTH, 4 * WIDTH, DEVIATION);
        new_linear(&p[OUT], 4 * WIDTH, WIDTH, DEVIATION_OUT);
    }
}

/* ---- layers, forward and backward ---- */

typedef struct {
    float *y, *mean, *rstd;
} norm;

static norm new_norm_output(void) {
    return (norm){new_numbers(ROWS, WIDTH), new_numbers(ROWS, 1), new_numbers(ROWS, 1)};
}

static void norm_forward(const parameter *p, const float *x, norm n) {
    check(ro_layer_norm(ctx, ROWS, WIDTH, EPS, x, p[0].w, p[1].w, n.y, n.mean, n.rstd));
}

static void norm_backward(const parameter *p, const float *x, norm n, const float *dy, float *dx) {
    check(ro_layer_norm_backward(ctx, ROWS, WIDTH, x, p[0].w, n.mean, n.rstd, dy, dx, p[0].grad,
                                 p[1].grad));
}

static ro_linear_layer linear(const parameter *p, ro_activation activation) {
    return (ro_linear_layer){.size = sizeof(ro_linear_layer),
                             .activation = activation,
                             .rows = ROWS,
                             .in = p->rows,
                             .out = p->cols};
}

/* z: where to store the activation's input; NULL: no activation. */
static void linear_forward(const parameter *p, const float *x, float *z, float *y) {
    const ro_linear_layer l = linear(p, z ? RO_ACTIVATION_GELU : RO_ACTIVATION_NONE);
    check(ro_linear(ctx, &l, x, p[0].w, p[1].w, z, y));
}

static void linear_backward(const parameter *p, const float *x, const float *z, const float *dy,
                            float *dx) {
    const ro_linear_layer l = linear(p, z ? RO_ACTIVATION_GELU : RO_ACTIVATION_NONE);
    const ro_gradient to_x = {dx, 0}, to_w = {p[0].grad, 0}, to_b = {p[1].grad, 0};
    check(ro_linear_backward(ctx, &l, x, p[0].w, z, dy, to_x, to_w, to_b));
}

/* Queries, keys and values lie side by side in the rows of qkv. */
static const ro_attention attention = {.size = sizeof attention,
                                       .batch = BATCH,
                                       .heads = HEADS,
                                       .kv_heads = HEADS,
                                       .queries = TOKENS,
                                       .keys = TOKENS,
                                       .head_size = WIDTH / HEADS,
                                       .causal = 1,
                                       .scale = SCALE,
                                       .q_row = 3 * WIDTH,
                                       .k_row = 3 * WIDTH,
                                       .v_row = 3 * WIDTH,
                                       .out_row = WIDTH};

/* The token table also computes the logits. */
static const ro_linear_layer unembed = {
    .size = sizeof unembed, .rows = ROWS, .in = WIDTH, .out = VOCABULARY, .transposed = 1};

/* ---- a batch ---- */

static ro_tensor data, now, ids, targets;

/* Each token determines the next one except for one bit, so no model's loss gets below ln 2. */
static void new_data(void) {
    static uint8_t token[DATA];
    uint32_t random = SEED;
    for (int i = 1; i < DATA; i++) {
        random = random * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        token[i] = (uint8_t)((token[i - 1] * 5u + 17u + (random >> 31)) % VOCABULARY);
    }
    const ro_shape batch = {RO_I32, 2, {BATCH, TOKENS}};
    data = new_vector(RO_U8, DATA), now = new_vector(RO_I32, 1);
    ids = new_tensor(batch), targets = new_tensor(batch);
    check(ro_write(ctx, data.data, token, sizeof token));
}

/* Reads windows of the data, shuffled in each epoch; targets are the tokens that follow. */
static void next_batch(int32_t step) {
    ro_op_read_batch_attrs attrs = {.seed = SEED, .batch = BATCH};
    check(ro_write(ctx, now.data, &step, sizeof step));
    check(ro_op_read_batch(ctx, &data, 1, &now, &attrs, &ids));
    attrs.shift = 1;
    check(ro_op_read_batch(ctx, &data, 1, &now, &attrs, &targets));
}

/* ---- forward ---- */

typedef struct {
    float *x, *x2; /* the residual stream before the layer, and between its halves */
    norm ln1, ln2;
    float *qkv, *mixed, *m, *l; /* of attention */
    float *fc, *gelu;
} activations;

static activations act[LAYERS];
static float *top, *branch, *logits, *loss, *dloss; /* top: the stream after the last layer */
static norm lnf;

static void new_activations(void) {
    for (int i = 0; i < LAYERS; i++)
        act[i] = (activations){
            new_numbers(ROWS, WIDTH),    new_numbers(ROWS, WIDTH),     new_norm_output(),
            new_norm_output(),           new_numbers(ROWS, 3 * WIDTH), new_numbers(ROWS, WIDTH),
            new_numbers(ROWS, HEADS),    new_numbers(ROWS, HEADS),     new_numbers(ROWS, 4 * WIDTH),
            new_numbers(ROWS, 4 * WIDTH)};
    top = new_numbers(ROWS, WIDTH), branch = new_numbers(ROWS, WIDTH);
    logits = new_numbers(ROWS, VOCABULARY);
    loss = new_numbers(ROWS, 1), dloss = new_numbers(ROWS, 1);
    lnf = new_norm_output();
    ro_tensor share = matrix(dloss, ROWS, 1);
    check(ro_op_fill(ctx, &(ro_op_fill_attrs){1.0f / ROWS}, &share));
}

static void embed(float *x) {
    ro_tensor out = {{RO_F32, 3, {BATCH, TOKENS, WIDTH}}, x};
    const ro_tensor wte = matrix(all[WTE].w, VOCABULARY, WIDTH);
    const ro_tensor wpe = matrix(all[WPE].w, TOKENS, WIDTH);
    check(ro_op_embedding(ctx, &wte, &ids, &out));
    check(ro_op_add(ctx, &out, &wpe, &out));
}

/* to = a + b */
static void join(float *to, float *a, float *b) {
    check(ro_copy(ctx, to, a, sizeof(float) * ROWS * WIDTH));
    add(to, b);
}

static void layer_forward(const parameter *p, const activations *a, float *next) {
    norm_forward(&p[LN1], a->x, a->ln1);
    linear_forward(&p[QKV], a->ln1.y, NULL, a->qkv);
    check(ro_attention_forward(ctx, &attention, a->qkv, a->qkv + WIDTH, a->qkv + 2 * WIDTH,
                               a->mixed, a->m, a->l));
    linear_forward(&p[PROJ], a->mixed, NULL, branch);
    join(a->x2, a->x, branch);

    norm_forward(&p[LN2], a->x2, a->ln2);
    linear_forward(&p[FC], a->ln2.y, a->fc, a->gelu);
    linear_forward(&p[OUT], a->gelu, NULL, branch);
    join(next, a->x2, branch);
}

/* Leaves the losses in `loss`, and the gradient of the logits in `logits`. */
static void forward(void) {
    embed(act[0].x);
    for (int i = 0; i < LAYERS; i++)
        layer_forward(of_layer(i), &act[i], i + 1 < LAYERS ? act[i + 1].x : top);
    norm_forward(&all[LNF], top, lnf);
    check(ro_linear(ctx, &unembed, lnf.y, all[WTE].w, NULL, NULL, logits));
    check(ro_cross_entropy(ctx, ROWS, VOCABULARY, logits, targets.data, RO_IGNORE_NONE, dloss, loss,
                           NULL, NULL, logits));
}

/* ---- backward ---- */

static float *dx, *dnorm, *dbranch, *dqkv, *dgelu, *dwte; /* dx: gradient of the residual stream */

static void new_gradients(void) {
    dx = new_numbers(ROWS, WIDTH), dnorm = new_numbers(ROWS, WIDTH);
    dbranch = new_numbers(ROWS, WIDTH);
    dqkv = new_numbers(ROWS, 3 * WIDTH), dgelu = new_numbers(ROWS, 4 * WIDTH);
    dwte = new_numbers(VOCABULARY, WIDTH);
}

/* dx is the gradient after the layer, and becomes that before it. */
static void layer_backward(const parameter *p, const activations *a) {
    linear_backward(&p[OUT], a->gelu, NULL, dx, dgelu);
    linear_backward(&p[FC], a->ln2.y, a->fc, dgelu, dnorm);
    norm_backward(&p[LN2], a->x2, a->ln2, dnorm, dbranch);
    add(dx, dbranch);

    linear_backward(&p[PROJ], a->mixed, NULL, dx, dbranch);
    check(ro_attention_backward(ctx, &attention, a->qkv, a->qkv + WIDTH, a->qkv + 2 * WIDTH,
                                a->mixed, a->m, a->l, dbranch, dqkv, dqkv + WIDTH,
                                dqkv + 2 * WIDTH));
    linear_backward(&p[QKV], a->ln1.y, NULL, dqkv, dnorm);
    norm_backward(&p[LN1], a->x, a->ln1, dnorm, dbranch);
    add(dx, dbranch);
}

static void embed_backward(void) {
    const ro_tensor from = {{RO_F32, 3, {BATCH, TOKENS, WIDTH}}, dx};
    ro_tensor rows = matrix(dwte, VOCABULARY, WIDTH);
    ro_tensor sum = matrix(all[WTE].grad, VOCABULARY, WIDTH);
    check(ro_op_embedding_grad(ctx, &from, &ids, &rows));
    check(ro_op_add(ctx, &sum, &rows, &sum)); /* added to the gradient from the logits */
    check(ro_sum_rows(ctx, BATCH, TOKENS * WIDTH, dx, (ro_gradient){all[WPE].grad, 0}));
}

static void backward(void) {
    const ro_gradient to_x = {dnorm, 0}, to_wte = {all[WTE].grad, 0}, none = {NULL, 0};
    check(ro_linear_backward(ctx, &unembed, lnf.y, all[WTE].w, NULL, logits, to_x, to_wte, none));
    norm_backward(&all[LNF], top, lnf, dnorm, dx);
    for (int i = LAYERS - 1; i >= 0; i--)
        layer_backward(of_layer(i), &act[i]);
    embed_backward();
}

/* ---- AdamW ---- */

static const float beta1 = 0.9f, beta2 = 0.99f, decay = 0.1f;
static ro_tensor c1, c2, corrected, rate, one, total, mean;

static void new_scalars(void) {
    ro_tensor *const scalar[] = {&c1, &c2, &corrected, &rate, &one, &total, &mean};
    for (int i = 0; i < 7; i++)
        *scalar[i] = new_vector(RO_F32, 1);
    check(ro_op_fill(ctx, &(ro_op_fill_attrs){1}, &one));
}

/* c = beta c + (1 - beta): the moments are divided by it. */
static void correct_bias(ro_tensor *c, float beta) {
    check(ro_op_bias_correction(ctx, c, &(ro_op_bias_correction_attrs){beta}, &corrected));
    check(ro_copy(ctx, c->data, corrected.data, sizeof(float)));
}

/* Matrices decay; biases and the vectors of norms do not. Gradients are not clipped. */
static void update(void) {
    const ro_op_lr_schedule_attrs cosine = {RO_LR_COSINE, 0.003f, 0.0003f, 10, STEPS};
    ro_adamw_step step[PARAMETERS];
    ro_adamw_parameter of[PARAMETERS];
    check(ro_op_lr_schedule(ctx, &now, &cosine, &rate));
    correct_bias(&c1, beta1), correct_bias(&c2, beta2);
    for (int i = 0; i < PARAMETERS; i++) {
        const parameter *p = &all[i];
        step[i] = (ro_adamw_step){.size = sizeof(ro_adamw_step),
                                  .count = p->rows * p->cols,
                                  .beta1 = beta1,
                                  .beta2 = beta2,
                                  .eps = 1e-8f,
                                  .decay = p->rows > 1 ? decay : 0,
                                  .clip = one.data,
                                  .c1 = c1.data,
                                  .c2 = c2.data,
                                  .rate = rate.data};
        of[i] = (ro_adamw_parameter){.size = sizeof(ro_adamw_parameter),
                                     .step = &step[i],
                                     .w = p->w,
                                     .m = p->m,
                                     .v = p->v,
                                     .gradient = p->grad,
                                     .w_out = p->w,
                                     .m_out = p->m,
                                     .v_out = p->v};
    }
    check(ro_adamw_all(ctx, PARAMETERS, of));
}

/* ---- output ---- */

static float mean_loss(void) {
    float value;
    check(ro_sum(ctx, 1, ROWS, loss, total.data));
    check(ro_op_div_const(ctx, &total, &(ro_op_div_const_attrs){ROWS}, &mean));
    check(ro_read(ctx, &value, mean.data, sizeof value));
    return value;
}

/* FNV-1a over the bits of the weights, word by word. */
static unsigned long long hash_of_weights(void) {
    static uint32_t word[4 * WIDTH * WIDTH];
    unsigned long long hash = 0xcbf29ce484222325ULL;
    for (int i = 0; i < PARAMETERS; i++) {
        const int64_t count = all[i].rows * all[i].cols;
        check(ro_read(ctx, word, all[i].w, (size_t)count * sizeof *word));
        for (int64_t k = 0; k < count; k++)
            hash = (hash ^ word[k]) * 0x100000001b3ULL;
    }
    return hash;
}

int main(int argc, char **argv) {
    (void)ro_modes_set(); /* printf rounds in this thread's mode */
    check(ro_ctx_create(
        &(ro_options){.size = sizeof(ro_options), .threads = argc > 1 ? atoi(argv[1]) : 0}, &ctx));
    new_data();
    new_model();
    new_activations();
    new_gradients();
    new_scalars();
    for (int step = 0; step < STEPS; step++) {
        next_batch(step);
        forward();
        backward();
        update();
        if (step % 25 == 0 || step == STEPS - 1)
            printf("step %d  loss %.9g\n", step + 1, (double)mean_loss());
    }
    printf("weights %016llx\n", hash_of_weights());
    while (made_count > 0)
        ro_tensor_free(ctx, &made[--made_count]);
    ro_ctx_destroy(ctx);
    return 0;
}
