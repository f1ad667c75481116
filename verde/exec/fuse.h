/* Finds nodes of a graph that can run together as a fused function of repops. Private to
 * verde/exec.
 *
 * A fused function gives the same bytes as its nodes, so fusion affects only time and memory. It is
 * not used where someone needs single nodes: for traces, or a fault in one element. */
#ifndef VD_FUSE_H
#define VD_FUSE_H

#include "repops/chain.h"
#include "repops/layers.h"
#include "verde/exec/exec.h"

#define VD_NO_GROUP UINT32_MAX

enum {
    VD_FUSED_MEMBERS = 20,
    VD_FUSED_INPUTS = 9,
    VD_FUSED_OUTPUTS = 3,
    VD_FUSED_BATCH = 256,       /* most parameters whose steps run together */
    VD_TURNED_WEIGHTS = 1 << 21 /* most elements of weights that are kept transposed */
};

typedef enum {
    VD_FUSED_ATTENTION,
    VD_FUSED_ATTENTION_GRAD,
    VD_FUSED_LINEAR, /* a product with bias, activation or both; a fixed one with data as weights */
    VD_FUSED_CROSS_ENTROPY,   /* with the logits' gradient, which may overwrite the logits */
    VD_FUSED_LAYER_NORM,      /* with mean and rstd */
    VD_FUSED_LAYER_NORM_GRAD, /* of x (may overwrite dy), gamma and beta */
    VD_FUSED_RMS_NORM,        /* with rstd */
    VD_FUSED_RMS_NORM_GRAD,   /* of x, as above, and of gamma if it is trained */
    VD_FUSED_ADAMW,           /* of one parameter; new values may overwrite old ones */
    VD_FUSED_ADAMW_BF16,      /* as above, with weights and moments in bf16 */
    VD_FUSED_SGD,             /* as VD_FUSED_ADAMW */
    VD_FUSED_EMBEDDING_GRAD,  /* of a table, added to another gradient, which it may overwrite */
    VD_FUSED_ROTARY,          /* splits rows of tokens into heads, and rotates them by position */
    VD_FUSED_ROTARY_GRAD,     /* the gradient of those rows */
    VD_FUSED_CONV,            /* conv2d with data as weights, or a matrix product as a 1 x 1 one */
    VD_FUSED_ELEMENTS,        /* elementwise; runs at member 0, the last; may overwrite an input */
} vd_fused_kind;
const char *vd_fused_name(vd_fused_kind kind); /* for people */

/* A chain of repops/chain.h. Its first inputs are the group's; numbers follow. */
typedef struct {
    int64_t count;
    uint32_t input_count, step_count;
    ro_chain_input input[RO_CHAIN_INPUTS]; /* data: NULL until it runs, except for numbers */
    float number[RO_CHAIN_INPUTS];         /* value of an input that is a number */
    ro_chain_step step[RO_CHAIN_STEPS];
    uint32_t onto; /* input whose memory the output may take; VD_NO_GROUP: none */
} vd_elements;

/* A convolution whose weights may stay packed. */
typedef struct {
    ro_call call; /* input: NULL until it runs */
    ro_shape shape[2];
    ro_call own; /* the node's own call, for weights that are not packed */
    ro_shape own_shape[2];
    bool turned; /* a product's weights are stored transposed */
} vd_conv;

/* Nodes whose intermediate values are read by no other node. */
typedef struct {
    vd_fused_kind kind;
    uint32_t member[VD_FUSED_MEMBERS], member_count; /* nodes; the group runs at member[0] */
    uint32_t input[VD_FUSED_INPUTS], input_count;    /* values, in the function's order */
    uint32_t output[VD_FUSED_OUTPUTS], output_count; /* values, in the function's order */
    ro_attention attention;                          /* dropout, key_bias: NULL until it runs */
    ro_attention_dropout dropout; /* valid if `drops`; `step` is added to the program's own step */
    int64_t slope;                /* growth of the dropout's stream per iteration */
    bool drops;
    /* If `placed`, the T queries of a step stand at keys step + first_key, ..., and only the first
     * step + first_key + T of the attention.kv_rows keys are read. */
    bool placed;
    int32_t first_key;
    int64_t first[3]; /* first element of q, k and v in their inputs, which may be wider */
    bool joined;      /* their gradients are adjacent columns of one output */
    /* Inputs x, w, perhaps bias; outputs y, and z if read. VD_FUSED_CONV: the product; size 0:
     * none. */
    ro_linear_layer linear;
    ro_dtype weight_dtype; /* of w, which the group converts to f32 */
    bool frozen;           /* w is data, which may stay packed */
    bool turned;           /* w is data, stored transposed, which may be kept the other way round */
    bool transposed_x;     /* of a product that runs by itself */
    int64_t rows, cols;    /* of logits, of normalised rows, or of a table */
    int64_t positions;     /* number of look-ups in a table */
    float eps;             /* of a norm */
    ro_rotary_layer rotary; /* inputs: rows to rotate, positions, rotations */
    float dloss;         /* gradient of each row's loss, unless the third input gives it per row */
    int64_t ignore;      /* label of rows that do not count; RO_IGNORE_NONE */
    ro_adamw_step adamw; /* its pointers are NULL until it runs */
    ro_adamw_rounding rounding; /* of VD_FUSED_ADAMW_BF16; as `adamw` */
    ro_sgd_step sgd;            /* as `adamw` */
    vd_elements *elements;      /* of VD_FUSED_ELEMENTS; the plan owns it */
    vd_conv *conv;              /* of VD_FUSED_CONV; the plan owns it */
} vd_fused;

/* What a node of a folded graph represents: a stored node in the current iteration, a single value,
 * a carried value, or a shifted input. */
typedef enum {
    VD_FOLDED_NODE,
    VD_FOLDED_VALUE,
    VD_FOLDED_CARRIED,
    VD_FOLDED_SHIFTED
} vd_folded_kind;
typedef struct {
    vd_folded_kind kind;
    uint32_t number;
    const vd_repeat *repeat; /* of a carried value */
} vd_folded;

/* A plan. For a graph with repeats, nodes and values in groups, group_of and idle are those of the
 * folded graph, which has each body once. */
typedef struct {
    vd_fused *group;
    uint32_t group_count, group_capacity;
    uint32_t *group_of; /* group of each node; VD_NO_GROUP: runs by itself */
    uint32_t *ran;      /* of each group: iterations in which it ran; set while the plan runs */
    bool *idle;         /* of each node: only groups read it, and they do not need it */
    uint32_t *uses;     /* of each value: reads by what runs, by the next state and the loss */
    /* For graphs with repeats only; else NULL: */
    uint32_t *folded_of; /* of each stored node: its node in the folded graph */
    vd_folded *entry;    /* of each node of the folded graph */
    bool lent; /* all but `ran` and `uses` belongs to another plan, which outlives this one */
} vd_plan;

/* Which groups a plan has: none; layers; or also chains of elementwise nodes, which only a CPU
 * runs, and only in a single process. */
typedef enum { VD_FUSE_NOTHING, VD_FUSE_LAYERS, VD_FUSE_ALL } vd_fuses;

/* Makes a plan for the graph. The caller frees it. */
VD_MUST_USE vd_status vd_plan_create(const vd_program *program, const vd_graph *graph,
                                     vd_fuses fuse, vd_plan *out, vd_err *err);
void vd_plan_free(vd_plan *plan);

/* The plan for one node of the graph itself. */
typedef struct {
    uint32_t group, iteration;
    bool idle;
    bool waits; /* its group runs at a later node */
} vd_planned;
vd_planned vd_plan_of(const vd_plan *plan, const vd_graph *graph, uint32_t node);
/* The graph's value for a group's value in an iteration; the number of iterations of a group. */
uint32_t vd_plan_value(const vd_plan *plan, const vd_graph *graph, uint32_t value,
                       uint32_t iteration);
uint32_t vd_plan_iterations(const vd_plan *plan, const vd_graph *graph, uint32_t group);

/* An operand of fixed products that stays packed from its first to its last read. */
typedef struct {
    uint32_t value; /* the value that is packed; VD_NO_GROUP: none yet */
    uint32_t reads; /* number of reads of each such value */
    uint32_t left;  /* reads left of this one */
    void *packed;   /* NULL: not packed yet, or there was no room */
    size_t size;
} vd_kept_operand;

/* Inputs and outputs of a group, in its order. */
typedef struct {
    const void *in[VD_FUSED_INPUTS];
    void *out[VD_FUSED_OUTPUTS];
    vd_kept_operand *operand[2]; /* of VD_FUSED_LINEAR: x and w; or NULL */
} vd_fused_memory;

typedef struct vd_kept_weights vd_kept_weights;
/* Runs a group. For VD_FUSED_ADAMW, `count` groups run together, at most VD_FUSED_BATCH; none may
 * read or write what another one writes. `kept` may be NULL. */
VD_MUST_USE vd_status vd_fused_run(const vd_fused *group, const vd_fused_memory *at, uint32_t count,
                                   ro_ctx *ro, vd_kept_weights *kept, int32_t step, vd_err *err);
/* The input whose memory output i may take; VD_NO_GROUP: none. */
uint32_t vd_fused_in_place(const vd_fused *group, uint32_t i);

#endif
