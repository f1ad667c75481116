/* The cases of test_gradients.c: layers over leaves, in both arithmetics (f32 and double). */
#ifndef TESTS_GRADIENT_CASE_H
#define TESTS_GRADIENT_CASE_H

#include "verde/graph/build.h"

enum { LEAVES = 6, IDS = 2, LAYERS = 6, SEED = 77, STREAM = 5 };

typedef enum {
    ADD,
    LINEAR,
    LOGITS,
    FIXED_LOGITS, /* fixed products of 24 bits */
    NORM,
    FUNCTION, /* `op`, of one element */
    LARGER,
    SMALLER,
    CHOSEN, /* the smaller of two values, chosen by `where` */
    EMBEDDING,
    DROPOUT,
    ATTENTION,
    GROUPED,
    XENT,
    SUB,
    MUL,
    DIV,
    SCALE,
    SOFTMAX,
    LOG_SOFTMAX,
    XENT_IGNORE,
    XENT_MEAN,
    RMSNORM,
    SUM_AXIS,
    MEAN_AXIS,
    MAX_AXIS,
    CONV,
    FIXED_CONV, /* fixed products of 24 bits */
    MAX_POOL,
    AVG_POOL,
    GLOBAL_AVG_POOL,
    BATCHNORM
} kind;

/* Names a value: leaves have numbers, the output of layer j is OUT(j). */
#define OUT(j) (LEAVES + (j))

typedef struct {
    kind kind;
    int in[3];
    int ids;       /* for embedding, xent: index of the ids */
    int64_t heads; /* for attention; or a reduction's axis, or the ignored label */
    int64_t kv_heads;
    bool causal, turns, pads; /* for attention; pads: keys whose ids are 0 */
    float rate; /* of dropout; for attention: of its weights; or the factor of scale */
    /* conv: stride, pad, dilation, groups; pools: kernel, stride, pad, count; attention: keys. */
    int64_t window[4];
    int op; /* a function; its attributes are those of tests/support/sample.h */
} layer;

typedef struct {
    const char *name;
    int leaf_count, ids_count, layer_count;
    struct {
        const char *name;
        ro_shape shape;
        double scale; /* 0: the loss does not read it */
    } leaf[LEAVES];
    struct {
        ro_shape shape;
        int64_t limit;
    } ids[IDS];
    layer layer[LAYERS]; /* the last one is xent; its rows' losses are summed */
} gradient_case;

/* clang-format off */
#define F(n, ...) {RO_F32, n, {__VA_ARGS__}}
#define I(n, ...) {RO_I32, n, {__VA_ARGS__}}
/* clang-format on */

typedef struct {
    const gradient_case *cases;
    size_t count;
} gradient_family;
extern const gradient_family elements_family, attention_family, rows_family, images_family;
gradient_case function_case(int op); /* for an operator whose gradient is an operator */

/* A case in both arithmetics. Values: leaves, then the layers' outputs. */
typedef struct {
    const gradient_case *c;
    ro_shape shape[LEAVES + LAYERS];
    double *exact[LEAVES + LAYERS];
    float *leaf[LEAVES];
    int32_t *ids[IDS];
    int32_t step;
    vd_program program;
    vd_value loss, gradient[LEAVES];
    void **value; /* the graph's values, after running it */
    uint32_t value_count;
} example;

uint32_t mix(uint32_t n); /* scatters bits */
void fill_leaves(example *x);
void build_graph(example *x);
void run_graph(example *x);
double exact_loss(const example *x); /* computed in double precision */

/* Base of rotary layers, and the position of their first row. */
extern const float ROTATION_BASE;
extern const int64_t ROTATION_FIRST;

static inline int64_t last(const ro_shape *s) {
    return s->dim[s->ndim - 1];
}

#endif
