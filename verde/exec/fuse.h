/* Finds nodes of a graph that run together as one fused function of repops. Private to verde/exec.
 *
 * A fused function gives the bytes of the nodes it replaces, so fusion shows in time and memory
 * only. It is left out where somebody looks at single nodes: traces, and a fault in one element. */
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
    VD_FUSED_BATCH = 256,       /* parameters */
    VD_TURNED_WEIGHTS = 1 << 21 /* most numbers of weights that are kept transposed */
};

typedef enum {
    VD_FUSED_ATTENTION,
    VD_FUSED_ATTENTION_GRAD,
    VD_FUSED_LINEAR,          /* a product with its bias, its activation, or both; or a fixed one of
                                 weights that are data */
    VD_FUSED_CROSS_ENTROPY,   /* with the logits' gradient, which may take the logits' place */
    VD_FUSED_LAYER_NORM,      /* with its mean and rstd */
    VD_FUSED_LAYER_NORM_GRAD, /* of x, which may take the place of that of y, gamma and beta */
    VD_FUSED_RMS_NORM,        /* with its rstd */
    VD_FUSED_RMS_NORM_GRAD,   /* of x, as that of layer norm, and of gamma if it is trained */
    VD_FUSED_ADAMW,           /* of one parameter; what is new may take the place of what was */
    VD_FUSED_ADAMW_BF16,      /* the same with weights and moments of bf16 */
    VD_FUSED_SGD,             /* likewise */
    VD_FUSED_EMBEDDING_GRAD,  /* of a table, added to another one of it, whose place it may take */
    VD_FUSED_ROTARY,          /* rows of tokens become heads, turned by their positions */
    VD_FUSED_ROTARY_GRAD,     /* of the rows */
    VD_FUSED_CONV,            /* conv2d of weights that are data, or a product as one by 1 x 1 */
    VD_FUSED_ELEMENTS,        /* operators of elements; it runs at the last member, which is member
                                 0, and may take the place of an input */
} vd_fused_kind;
const char *vd_fused_name(vd_fused_kind kind); /* for people */

/* A chain of repops/chain.h: its inputs are the group's, and numbers behind them. */
typedef struct {
    int64_t count;
    uint32_t input_count, step_count;
    ro_chain_input input[RO_CHAIN_INPUTS]; /* data: NULL until it runs, but those of numbers */
    float number[RO_CHAIN_INPUTS];         /* of an input that is one */
    ro_chain_step step[RO_CHAIN_STEPS];
    uint32_t onto; /* the input that may be the output's memory; VD_NO_GROUP: none */
} vd_elements;

/* A convolution whose weights may stay packed. */
typedef struct {
    ro_call call; /* input: NULL until it runs */
    ro_shape shape[2];
    ro_call own; /* the node's: of weights that are not packed; likewise */
    ro_shape own_shape[2];
    bool turned; /* a product's weights lie along the sums */
} vd_conv;

/* Nodes whose intermediate values nobody else reads. */
typedef struct {
    vd_fused_kind kind;
    uint32_t member[VD_FUSED_MEMBERS], member_count; /* nodes; the group runs at the first */
    uint32_t input[VD_FUSED_INPUTS], input_count;    /* values, in the function's order */
    uint32_t output[VD_FUSED_OUTPUTS], output_count; /* values, likewise */
    ro_attention attention;                          /* dropout, key_bias: NULL until it runs */
    ro_attention_dropout dropout; /* if `drops`; `step`: that is added to the program's own */
    int64_t slope;                /* by which its stream grows with each iteration */
    bool drops;
    /* If `placed`, the T queries of a step have the places of keys step + first_key onwards, and
     * only the first step + first_key + T of the attention.kv_rows keys are read. */
    bool placed;
    int32_t first_key;
    int64_t first[3]; /* of q, k and v: the first element in the input, which may be wider */
    bool joined;      /* their gradients are columns of one output, side by side */
    /* Inputs x, w, bias if there is one; outputs y, z if it is read. Of VD_FUSED_CONV: the product;
     * its size is 0 if it is none. */
    ro_linear_layer linear;
    ro_dtype weight_dtype;  /* of w, which the group makes f32 */
    bool frozen;            /* w are data, which may stay packed */
    bool turned;            /* w are data that lie along the sums, which may be kept transposed */
    bool transposed_x;      /* of a product that runs by itself */
    int64_t rows, cols;     /* of logits, of what is normalised, of a table */
    int64_t positions;      /* of what was looked up in a table */
    float eps;              /* of a norm */
    ro_rotary_layer rotary; /* inputs: what is turned, positions, turns */
    float dloss;            /* of every row; the third input says it of each, if there is one */
    int64_t ignore;         /* the label whose rows do not count; RO_IGNORE_NONE */
    ro_adamw_step adamw;    /* pointers: NULL until it runs */
    ro_adamw_rounding rounding; /* likewise, of VD_FUSED_ADAMW_BF16 */
    ro_sgd_step sgd;            /* likewise */
    vd_elements *elements;      /* of VD_FUSED_ELEMENTS; owned by the plan */
    vd_conv *conv;              /* of VD_FUSED_CONV; likewise */
} vd_fused;

/* What a node of a folded graph stands for: a stored node, in the iteration that runs; one value; a
 * carried one; a shifted one. */
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

/* Where a graph has repeats, the nodes and values of groups, group_of and idle are those of the
 * folded graph, which has each body once. */
typedef struct {
    vd_fused *group;
    uint32_t group_count, group_capacity;
    uint32_t *group_of; /* of each node; VD_NO_GROUP: it runs by itself */
    uint32_t *ran;      /* of each group: in how many iterations; for who runs the plan */
    bool *idle;         /* of each node: only groups read it, and they do without it */
    uint32_t *uses;     /* of each value: reads by what runs, and by the next state and the loss */
    /* Only where there are repeats; else NULL. */
    uint32_t *folded_of; /* of each stored node: that of the folded graph */
    vd_folded *entry;    /* of each node of the folded graph */
    bool lent;           /* all but `ran` and `uses` is another plan's, which outlives this one */
} vd_plan;

/* Which groups a plan has: none; those of layers; and chains of operators of elements, which only a
 * CPU runs, all of whose nodes one process runs. */
typedef enum { VD_FUSE_NOTHING, VD_FUSE_LAYERS, VD_FUSE_ALL } vd_fuses;

/* A plan for the graph, owned by the caller. */
VD_MUST_USE vd_status vd_plan_create(const vd_program *program, const vd_graph *graph,
                                     vd_fuses fuse, vd_plan *out, vd_err *err);
void vd_plan_free(vd_plan *plan);

/* Of node `node` of the graph itself. */
typedef struct {
    uint32_t group, iteration;
    bool idle;
    bool waits; /* its group runs at a later member */
} vd_planned;
vd_planned vd_plan_of(const vd_plan *plan, const vd_graph *graph, uint32_t node);
/* A group's value, in an iteration of its repeat; in how many it runs. */
uint32_t vd_plan_value(const vd_plan *plan, const vd_graph *graph, uint32_t value,
                       uint32_t iteration);
uint32_t vd_plan_iterations(const vd_plan *plan, const vd_graph *graph, uint32_t group);

/* An operand of fixed products that stays packed from its first read to the last one. */
typedef struct {
    uint32_t value; /* of which it is; VD_NO_GROUP: of none yet */
    uint32_t reads; /* of each such value */
    uint32_t left;  /* of this one */
    void *packed;   /* NULL: not yet, or there was no room */
    size_t size;
} vd_kept_operand;

/* A group's inputs and outputs in its order. */
typedef struct {
    const void *in[VD_FUSED_INPUTS];
    void *out[VD_FUSED_OUTPUTS];
    vd_kept_operand *operand[2]; /* of VD_FUSED_LINEAR: of x and of w; or NULL */
} vd_fused_memory;

typedef struct vd_kept_weights vd_kept_weights;
/* Runs a group; of VD_FUSED_ADAMW `count` of them at once, at most VD_FUSED_BATCH, none of which
 * reads or writes what another one writes. `kept` may be NULL. */
VD_MUST_USE vd_status vd_fused_run(const vd_fused *group, const vd_fused_memory *at, uint32_t count,
                                   ro_ctx *ro, vd_kept_weights *kept, int32_t step, vd_err *err);
/* The input that may be the same memory as output i; VD_NO_GROUP: none. */
uint32_t vd_fused_in_place(const vd_fused *group, uint32_t i);

#endif
