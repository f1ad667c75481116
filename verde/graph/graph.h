/* Programs: an initialisation graph, a step graph, the layout of the state, the data. PROTOCOL.md
 * section 1.
 *
 * A graph is in SSA form. Its values are numbered: first its sources (state leaves in layout order,
 * then data tensors, then the step number), then one value per node, in topological order. A graph
 * stores the nodes of a repeat's body once, and means them once per iteration: node numbers count
 * the nodes that are meant. */
#ifndef VD_GRAPH_H
#define VD_GRAPH_H

#include "repops/repops.h"
#include "verde/base/base.h"

enum {
    VD_ENCODING_VERSION = 1,
    VD_NAME_SIZE = 256,        /* with the final NUL */
    VD_STEPS_MAX = INT32_MAX,  /* the step's number is an i32 */
    VD_NODES_MAX = 1 << 20,    /* stored ones: the nodes of a repeat's body count once */
    VD_UNROLLED_MAX = 1 << 26, /* nodes that a graph means */
    VD_REPEATS_MAX = 64,
    VD_SUMS_MAX = 1 << 16,    /* of a repeat; also the limit of its carried values */
    VD_SHIFTED_MAX = 1 << 20, /* values that all shifted inputs of a graph read */
    VD_LEAVES_MAX = 1 << 18,
    VD_DATA_MAX = 1 << 17,
    VD_EDGES_MAX = 1 << 22,        /* inputs of all stored nodes */
    VD_INPUTS_MEANT_MAX = 1 << 28, /* inputs of all nodes that a graph means */
    VD_PROGRAM_BYTES_MAX = 64 << 20,
};

typedef enum { VD_SOURCE_STATE = 1, VD_SOURCE_DATA = 2, VD_SOURCE_STEP = 3 } vd_source_kind;

/* A state leaf or a data tensor. */
typedef struct {
    char name[VD_NAME_SIZE]; /* "h.0.attn.weight", "h.0.attn.weight.m" */
    ro_shape shape;
} vd_leaf;

typedef struct {
    uint32_t name; /* offset of the name in vd_graph.names; for people: "micro0.h.2.attn.scores" */
    int32_t op;
    int32_t input_count;
    int64_t attr[RO_MAX_ATTRS];
    uint32_t first_input; /* index in vd_graph.stored_edge */
    ro_shape shape;       /* of the output */
    int32_t moving;       /* in a body: the attribute that `slope` is added to per iteration */
    int64_t slope;        /* 0: no attribute grows */
} vd_node;

/* Where an edge of a repeat's body gets its value from, PROTOCOL.md section 1.5: a value from
 * before the repeat; a stored node in the same iteration, of this body or of an earlier repeat's; a
 * carried value; a shifted input. */
typedef enum { VD_FROM_VALUE, VD_FROM_NODE, VD_FROM_CARRIED, VD_FROM_SHIFTED } vd_from;

/* A carried value: iteration 0 reads `before`; others read stored node `node` of the one before. */
typedef struct {
    uint32_t before, node;
} vd_carried;

/* A shifted input: iteration m of `count` reads value `first` + m * slope, which is from before the
 * repeat. */
typedef struct {
    uint32_t first, count;
    int64_t slope;
} vd_shifted;

/* The sum over all iterations of the values that stored node `node` makes. */
typedef struct {
    uint32_t node;
    vd_node add; /* template of its additions; the numbers in their names vary */
} vd_sum;

enum {
    VD_NAME_ITERATION = 1, /* placeholder for an iteration; of additions: the first */
    VD_NAME_LAST = 2,      /* placeholder for the last iteration of an addition */
};

/* A body of stored nodes that is repeated `count` times, and sums over the iterations. PROTOCOL.md
 * section 1.5. */
typedef struct {
    uint32_t count;                  /* iterations */
    uint32_t first, size;            /* range of stored nodes that are the body */
    uint32_t start;                  /* number of the first node that the repeat means */
    uint32_t carried, carried_count; /* range in vd_graph.carried */
    uint32_t sum, sum_count;         /* range in vd_graph.sum */
} vd_repeat;

typedef struct {
    uint32_t node_count; /* nodes that the graph means: a repeat's once per iteration */
    vd_node *stored;     /* read nodes through vd_node_... functions */
    uint32_t stored_count, node_capacity;
    uint32_t *stored_edge; /* value numbers, except in bodies of repeats: see stored_from */
    uint8_t *stored_from;  /* vd_from of each edge; NULL: all edges are value numbers */
    uint32_t edge_count, edge_capacity;
    vd_repeat *repeat;
    uint32_t repeat_count;
    vd_carried *carried;
    uint32_t carried_count;
    vd_shifted *shifted; /* one for each VD_FROM_SHIFTED edge, whose number is its index here */
    uint32_t shifted_count;
    vd_sum *sum;
    uint32_t sum_count;
    char *names; /* names of stored nodes and sums, each with its NUL */
    size_t names_size, names_capacity;
    uint32_t sources; /* number of sources; set only if there is a repeat */
    uint32_t *output; /* the value that each state leaf has after this graph, in layout order */
    uint32_t loss;    /* value to report, or UINT32_MAX */
} vd_graph;

/* The range of a data tensor's integers, if the program states one: whoever loads it checks it. */
typedef struct {
    bool stated;
    int64_t least, greatest;
} vd_range;

/* A data tensor: what the run reads besides its state. */
typedef struct {
    vd_leaf tensor;
    uint8_t root[32]; /* tensor commitment */
    vd_range range;   /* for integers only */
} vd_data;

/* How free nodes are rounded, and logged, in a run that is not in fixed order (SPEC 14). */
typedef struct {
    int32_t bits;                /* 16..32; 0: the run is in fixed order */
    int32_t encoding;            /* encoding of the logs: 1 close calls, 2 symbols */
    double threshold[RO_OP_END]; /* one per operator, for symbols; 0: logs all inexact roundings */
} vd_program_rounding;

typedef struct {
    vd_leaf *leaf; /* the state's layout */
    uint32_t leaf_count;
    vd_data *data;
    uint32_t data_count;
    vd_graph init; /* has no state sources: its values are data, step, then nodes */
    vd_graph step;
    uint64_t seed;
    int64_t steps;               /* n in PROTOCOL.md */
    int64_t checkpoint_interval; /* c in PROTOCOL.md */
    vd_program_rounding rounding;
} vd_program;

/* Do the program's steps report a loss? */
static inline bool vd_has_loss(const vd_program *program) {
    return program->step.loss != UINT32_MAX;
}
void vd_program_free(vd_program *program);
/* Allocates `count` zeroed data tensors in a program that has none. */
VD_MUST_USE vd_status vd_program_take_data(vd_program *program, uint32_t count, vd_err *err);

/* States that all elements of an integer tensor lie in least..greatest, which must include a number
 * of its type; what exceeds the type is cut off. The full range of the type is not recorded, since
 * it says nothing. */
void vd_state_range(vd_data *data, int64_t least, int64_t greatest);
bool vd_range_equal(const vd_range *a, const vd_range *b);
/* Compares all elements, in this machine's byte order, with the stated range. VD_ERR_PEER names the
 * tensor, the first element outside, its value and the range. */
VD_MUST_USE vd_status vd_check_range(const vd_data *data, const void *elements, vd_err *err);

/* ---- values ---- */
const char *vd_graph_name(const vd_program *program, const vd_graph *graph); /* "init" or "step" */
uint32_t vd_source_count(const vd_program *program, const vd_graph *graph);
uint32_t vd_state_sources(const vd_program *program, const vd_graph *graph); /* 0 for init */
const ro_shape *vd_value_shape(const vd_program *program, const vd_graph *graph, uint32_t value);
/* Returns the kind of a value below vd_source_count; *index is its index among its kind. */
vd_source_kind vd_source_of(const vd_program *program, const vd_graph *graph, uint32_t value,
                            uint32_t *index);

/* ---- node `node` of a graph ---- */

/* Where a node of a graph comes from: a stored node in an iteration, or an addition of a sum. */
typedef struct {
    const vd_repeat *repeat; /* NULL: the node is in no repeat */
    uint32_t stored;         /* index of the stored node; VD_SPOT_SUM: the node is an addition */
    uint32_t iteration;      /* that has the node, or that the addition follows */
    uint32_t sum, merge;     /* of an addition: its sum; its rank after `iteration`, from 1 */
} vd_spot;
#define VD_SPOT_SUM UINT32_MAX
vd_spot vd_node_spot(const vd_graph *graph, uint32_t node);
/* Returns the number of the node that stored node `stored` stands for in this iteration of its
 * repeat. */
uint32_t vd_node_number(const vd_graph *graph, uint32_t stored, uint32_t iteration);
/* The repeat whose body contains stored node `stored`, or NULL. */
const vd_repeat *vd_repeat_of(const vd_graph *graph, uint32_t stored);
/* The number of inputs of all nodes that the graph means. */
uint64_t vd_inputs_meant(const vd_graph *graph);
/* The number of nodes that a repeat means; the value of its sum `sum`. */
uint64_t vd_repeat_nodes(const vd_repeat *repeat);
uint32_t vd_repeat_sum_value(const vd_graph *graph, const vd_repeat *repeat, uint32_t sum);
/* The value that a shifted input reads in an iteration. */
uint32_t vd_shifted_value(const vd_shifted *shifted, uint32_t iteration);
/* The value that a stored edge reads in an iteration of `repeat` (NULL: it is in no repeat). */
uint32_t vd_edge_value(const vd_graph *graph, const vd_repeat *repeat, uint32_t edge,
                       uint32_t iteration);

/* The stored node of a node: it has the operator, the number of inputs and the output's shape. */
const vd_node *vd_node_stored(const vd_graph *graph, uint32_t node);
/* The name of a stored node or of a sum's additions, with the placeholders of a repeat. */
const char *vd_stored_name(const vd_graph *graph, const vd_node *node);
/* Sets a node's name to `length` bytes of `name`, none of them NUL. Returns false without
 * memory. */
VD_MUST_USE bool vd_store_name(vd_graph *graph, vd_node *node, const char *name, size_t length);
typedef struct {
    char text[VD_NAME_SIZE];
} vd_name;
vd_name vd_node_name(const vd_graph *graph, uint32_t node);
int64_t vd_node_attr(const vd_graph *graph, uint32_t node, int attr);
/* The value that is input i of a node. */
uint32_t vd_node_input(const vd_graph *graph, uint32_t node, int32_t i);
/* Fills `call` and `shapes` (room for input_count) for ro_infer, ro_run, ro_ref_*. */
void vd_node_call(const vd_program *program, const vd_graph *graph, uint32_t node, ro_call *call,
                  ro_shape *shapes);

/* Canonical bytes of a program. Decoding validates the whole program. */
void vd_program_encode(const vd_program *program, vd_buf *out);
VD_MUST_USE vd_status vd_program_decode(const void *bytes, size_t size, vd_program *out,
                                        vd_err *err);
/* Passes the same bytes to `take` in pieces. Unless `named` is set, all names are empty; such bytes
 * cannot be decoded. Returns false without memory; then some bytes were not passed on. */
typedef void (*vd_take_bytes)(void *user, const void *bytes, size_t size);
VD_MUST_USE bool vd_program_pieces(const vd_program *program, bool named, vd_take_bytes take,
                                   void *user);
/* Checks all rules: topological edges, ro_infer of each node, outputs as the layout, limits. */
VD_MUST_USE vd_status vd_program_validate(const vd_program *program, vd_err *err);
/* Refuses a program with experimental numbers. Builds with RO_EXPERIMENTAL decode such programs for
 * their own use, but no build may judge or compute them for others. VD_ERR_PEER. */
VD_MUST_USE vd_status vd_refuse_experimental(const vd_program *program, vd_err *err);
/* Replaces the graph's repeats by all nodes that they mean, each stored by itself. */
VD_MUST_USE vd_status vd_graph_unroll(vd_graph *graph, vd_err *err);
/* Canonical bytes of one node: what a record's descriptor hashes. */
void vd_node_encode(const vd_program *program, const vd_graph *graph, uint32_t node, vd_buf *out);

/* Text for people, and Graphviz. */
void vd_graph_text(const vd_program *program, const vd_graph *graph, vd_buf *out);
void vd_graph_dot(const vd_program *program, const vd_graph *graph, vd_buf *out);

/* The committed states of a run are S_0, S_c, S_2c, ..., S_n, one leaf of the run's tree each: the
 * number of leaves, and the step of a leaf. */
uint64_t vd_run_leaves(const vd_program *program);
int64_t vd_run_leaf_step(const vd_program *program, uint64_t leaf);
bool vd_is_committed(const vd_program *program, int64_t step);

#endif
