/* The cases of test_gradients.c: layers over leaves, in both arithmetics. */
#ifndef TESTS_GRADIENT_CASE_H
#define TESTS_GRADIENT_CASE_H

#include "verde/graph/build.h"

enum { LEAVES = 6, IDS = 2, LAYERS = 6, SEED = 77, STREAM = 5 };

typedef enum {
    ADD,
    LINEAR,
    LOGITS,
    FIXED_LOGITS, /* by integers of 24 bits */
    NORM,
    FUNCTION, /* of one element: `op` */
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
    FIXED_CONV, /* likewise */
    MAX_POOL,
    AVG_POOL,
    GLOBAL_AVG_POOL,
    BATCHNORM
} kind;

/* Names a value: leaves by their numbers, and the output of layer j so. */
#define OUT(j) (LEAVES + (j))

typedef struct {
    kind kind;
    int in[3];
    int ids;       /* embedding, xent: which */
    int64_t heads; /* attention; the axis of a reduction, the label that is ignored */
    int64_t kv_heads;
    bool causal, turns, pads; /* attention; pads: where the ids are 0 */
    float rate;               /* dropout, attention; the factor of scale */
    /* conv: stride, pad, dilation, groups; pools: kernel, stride, pad, count; attention: keys. */
    int64_t window[4];
    int op; /* of a function; its attributes are those of tests/support/sample.h */
} layer;

typedef struct {
    const char *name;
    int leaf_count, ids_count, layer_count;
    struct {
        const char *name;
        ro_shape shape;
        double scale; /* 0: not read by the loss */
    } leaf[LEAVES];
    struct {
        ro_shape shape;
        int64_t limit;
    } ids[IDS];
    layer layer[LAYERS]; /* the last one is xent: its rows' losses are summed */
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
gradient_case function_case(int op); /* of an operator whose gradient is one too */

/* One case in both arithmetics. Values: leaves, then outputs of layers. */
typedef struct {
    const gradient_case *c;
    ro_shape shape[LEAVES + LAYERS];
    double *exact[LEAVES + LAYERS];
    float *leaf[LEAVES];
    int32_t *ids[IDS];
    int32_t step;
    vd_program program;
    vd_value loss, gradient[LEAVES];
    void **value; /* of the graph, after running it */
    uint32_t value_count;
} example;

uint32_t mix(uint32_t n); /* scatters bits */
void fill_leaves(example *x);
void build_graph(example *x);
void run_graph(example *x);
double exact_loss(const example *x); /* of the same layers in double precision */

/* The layers whose heads turn have this base; their first row has this position. */
extern const float ROTATION_BASE;
extern const int64_t ROTATION_FIRST;

static inline int64_t last(const ro_shape *s) {
    return s->dim[s->ndim - 1];
}

#endif
