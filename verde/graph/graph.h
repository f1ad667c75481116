/* Programs: an initialisation graph, a step graph, the layout of the state, the data. PROTOCOL.md
 * section 1.
 *
 * A graph is in SSA form. Its values are numbered: first its sources (state leaves in layout order,
 * then data tensors, then the step number), then one value per node, in topological order. */
#ifndef VD_GRAPH_H
#define VD_GRAPH_H

#include "repops/repops.h"
#include "verde/base/base.h"

enum {
    VD_ENCODING_VERSION = 1,
    VD_NAME_SIZE = 256,        /* with the final NUL */
    VD_NODES_MAX = 1 << 20,    /* as they are stored: those of a repeat's body once */
    VD_UNROLLED_MAX = 1 << 26, /* that a graph means */
    VD_REPEATS_MAX = 64,
    VD_SUMS_MAX = 1 << 16,    /* of a repeat, and so many carried values */
    VD_SHIFTED_MAX = 1 << 20, /* values that shifted inputs of a graph take, one an iteration */
    VD_LEAVES_MAX = 1 << 18,
    VD_DATA_MAX = 1 << 17,
    VD_EDGES_MAX = 1 << 22,        /* all inputs of all nodes that are listed */
    VD_INPUTS_MEANT_MAX = 1 << 28, /* of all nodes that a graph means */
    VD_PROGRAM_BYTES_MAX = 64 << 20,
};

typedef enum { VD_SOURCE_STATE = 1, VD_SOURCE_DATA = 2, VD_SOURCE_STEP = 3 } vd_source_kind;

/* A state leaf or a data tensor. */
typedef struct {
    char name[VD_NAME_SIZE]; /* "h.0.attn.weight", "h.0.attn.weight.m" */
    ro_shape shape;
} vd_leaf;

typedef struct {
    uint32_t name; /* for people, "micro0.h.2.attn.scores": where it begins in vd_graph.names */
    int32_t op;
    int32_t input_count;
    int64_t attr[RO_MAX_ATTRS];
    uint32_t first_input; /* index in vd_graph.stored_edge */
    ro_shape shape;       /* of the output */
    int32_t moving;       /* in a repeat's body: the attribute that grows by `slope` each time */
    int64_t slope;        /* 0: none does */
} vd_node;

/* What an edge of a repeat's body says, PROTOCOL.md section 1.5: a value of before the repeat; the
 * stored node that makes it in the same iteration, of this body or that of an earlier repeat; a
 * carried value; a shifted one. */
typedef enum { VD_FROM_VALUE, VD_FROM_NODE, VD_FROM_CARRIED, VD_FROM_SHIFTED } vd_from;

/* Iteration 0 reads `before`, each later one what the one before it made of stored node `node`. */
typedef struct {
    uint32_t before, node;
} vd_carried;

/* Of `count` iterations, iteration m reads value `first` + m * slope, of before the repeat. */
typedef struct {
    uint32_t first, count;
    int64_t slope;
} vd_shifted;

/* The sum over all iterations of what stored node `node` makes. */
typedef struct {
    uint32_t node;
    vd_node add; /* as each of its additions is, but for the numbers in the name */
} vd_sum;

enum {
    VD_NAME_ITERATION = 1, /* in names of bodies: its number; of additions: the first one's */
    VD_NAME_LAST = 2,      /* in names of additions: the last one's */
};

/* A body of stored nodes that stands for `count` iterations of it, and sums over them: PROTOCOL.md
 * section 1.5. */
typedef struct {
    uint32_t count;                  /* iterations */
    uint32_t first, size;            /* of the stored nodes that are the body */
    uint32_t start;                  /* the number of the first node that it means */
    uint32_t carried, carried_count; /* in vd_graph.carried */
    uint32_t sum, sum_count;         /* in vd_graph.sum */
} vd_repeat;

typedef struct {
    uint32_t node_count; /* that the graph means: each iteration's */
    vd_node *stored;     /* read nodes by vd_node_... */
    uint32_t stored_count, node_capacity;
    uint32_t *stored_edge; /* value numbers, but in bodies of repeats */
    uint8_t *stored_from;  /* vd_from of each; NULL: all are value numbers */
    uint32_t edge_count, edge_capacity;
    vd_repeat *repeat;
    uint32_t repeat_count;
    vd_carried *carried;
    uint32_t carried_count;
    vd_shifted *shifted; /* one for each edge of this kind, whose number it is */
    uint32_t shifted_count;
    vd_sum *sum;
    uint32_t sum_count;
    char *names; /* of stored nodes and sums, each with its NUL */
    size_t names_size, names_capacity;
    uint32_t sources; /* number of them; set where there is a repeat */
    uint32_t *output; /* the value of each state leaf after this graph; layout order */
    uint32_t loss;    /* value to report, or UINT32_MAX */
} vd_graph;

/* A program may state a range of all elements of a data tensor: whoever loads them compares. */
typedef struct {
    bool stated;
    int64_t least, greatest;
} vd_range;

/* A data tensor: what the run reads besides its state. */
typedef struct {
    vd_leaf tensor;
    uint8_t root[32]; /* tensor commitment */
    vd_range range;   /* of integers only */
} vd_data;

/* How free nodes are rounded, and logged, in a run that is not in fixed order (SPEC 14). */
typedef struct {
    int32_t bits;                /* 16..32; 0: the program is run in fixed order */
    int32_t encoding;            /* of its logs: 1 close calls, 2 symbols */
    double threshold[RO_OP_END]; /* symbols: of each operator; 0: every inexact rounding is told */
} vd_program_rounding;

typedef struct {
    vd_leaf *leaf; /* the state's layout */
    uint32_t leaf_count;
    vd_data *data;
    uint32_t data_count;
    vd_graph init; /* its values: sources without state (data, step), then nodes */
    vd_graph step;
    uint64_t seed;
    int64_t steps;               /* n */
    int64_t checkpoint_interval; /* c */
    vd_program_rounding rounding;
} vd_program;

/* Do the program's steps report a loss? */
static inline bool vd_has_loss(const vd_program *program) {
    return program->step.loss != UINT32_MAX;
}
void vd_program_free(vd_program *program);
/* Makes room for `count` data tensors, all zeros, in a program that has none. */
VD_MUST_USE vd_status vd_program_take_data(vd_program *program, uint32_t count, vd_err *err);

/* States that every element of a tensor of integers lies in least..greatest, which must be a number
 * of its type at least. What is the whole of the type is not stated: it would say nothing. */
void vd_state_range(vd_data *data, int64_t least, int64_t greatest);
bool vd_range_equal(const vd_range *a, const vd_range *b);
/* Compares all elements, as this machine has them, with what is stated of them. VD_ERR_PEER names
 * the tensor, the first element that lies outside, its value and the range. */
VD_MUST_USE vd_status vd_check_range(const vd_data *data, const void *elements, vd_err *err);

/* What a value is. Values are numbered by state leaves, data tensors, the step's number, and nodes.
 */
const char *vd_graph_name(const vd_program *program, const vd_graph *graph); /* "init", "step" */
uint32_t vd_source_count(const vd_program *program, const vd_graph *graph);
uint32_t vd_state_sources(const vd_program *program, const vd_graph *graph); /* 0 for init */
const ro_shape *vd_value_shape(const vd_program *program, const vd_graph *graph, uint32_t value);
/* Source of value < vd_source_count: its kind, and its index among that kind. */
vd_source_kind vd_source_of(const vd_program *program, const vd_graph *graph, uint32_t value,
                            uint32_t *index);

/* ---- node `node` of a graph ---- */

/* Which stored node, or addition of a sum, a node of the graph is. */
typedef struct {
    const vd_repeat *repeat; /* NULL: it is in none */
    uint32_t stored;         /* VD_SPOT_SUM: it is an addition */
    uint32_t iteration; /* iteration of the repeat; of an addition: the iteration that it follows */
    uint32_t sum, merge; /* of an addition: of which sum, and which one after its iteration */
} vd_spot;
#define VD_SPOT_SUM UINT32_MAX
vd_spot vd_node_spot(const vd_graph *graph, uint32_t node);
/* Returns the number of the node that stored node `stored` stands for in this iteration of its
 * repeat. */
uint32_t vd_node_number(const vd_graph *graph, uint32_t stored, uint32_t iteration);
/* The repeat whose body has stored node `stored`; NULL: none. */
const vd_repeat *vd_repeat_of(const vd_graph *graph, uint32_t stored);
/* Nodes that a repeat means; the value of sum `sum`. */
/* Inputs of all nodes that the graph means, together. */
uint64_t vd_inputs_meant(const vd_graph *graph);
uint64_t vd_repeat_nodes(const vd_repeat *repeat);
uint32_t vd_repeat_sum_value(const vd_graph *graph, const vd_repeat *repeat, uint32_t sum);
/* What a shifted input reads in an iteration. */
uint32_t vd_shifted_value(const vd_shifted *shifted, uint32_t iteration);
/* The value of a stored edge of the body of `repeat` (NULL: of a node in none). */
uint32_t vd_edge_value(const vd_graph *graph, const vd_repeat *repeat, uint32_t edge,
                       uint32_t iteration);

/* Its operator, its number of inputs and the shape of its output. */
const vd_node *vd_node_stored(const vd_graph *graph, uint32_t node);
/* The name of a stored node, or of a sum's additions, with the markers of a repeat in it. */
const char *vd_stored_name(const vd_graph *graph, const vd_node *node);
/* Gives it `length` bytes of `name`, without a NUL among them. false: out of memory. */
VD_MUST_USE bool vd_store_name(vd_graph *graph, vd_node *node, const char *name, size_t length);
typedef struct {
    char text[VD_NAME_SIZE];
} vd_name;
vd_name vd_node_name(const vd_graph *graph, uint32_t node);
int64_t vd_node_attr(const vd_graph *graph, uint32_t node, int attr);
/* The value that is input i. */
uint32_t vd_node_input(const vd_graph *graph, uint32_t node, int32_t i);
/* Fills `call` and `shapes` (room for input_count) for ro_infer, ro_run, ro_ref_*. */
void vd_node_call(const vd_program *program, const vd_graph *graph, uint32_t node, ro_call *call,
                  ro_shape *shapes);

/* Canonical bytes of the whole program, and back; decode validates everything. */
void vd_program_encode(const vd_program *program, vd_buf *out);
VD_MUST_USE vd_status vd_program_decode(const void *bytes, size_t size, vd_program *out,
                                        vd_err *err);
/* The same bytes in pieces; with all names empty if they are not `named`, which nothing decodes.
 * False: out of memory, and not all was taken. */
typedef void (*vd_take_bytes)(void *user, const void *bytes, size_t size);
VD_MUST_USE bool vd_program_pieces(const vd_program *program, bool named, vd_take_bytes take,
                                   void *user);
/* Every rule: topological edges, ro_infer of each node, outputs that match the layout, limits. */
VD_MUST_USE vd_status vd_program_validate(const vd_program *program, vd_err *err);
/* Only builds with RO_EXPERIMENTAL can decode a program with experimental numbers, for themselves.
 * Whoever judges for others, or computes for them, refuses it in every build. VD_ERR_PEER. */
VD_MUST_USE vd_status vd_refuse_experimental(const vd_program *program, vd_err *err);
/* Replaces the graph's repeats by all nodes that they stand for, each stored by itself. */
VD_MUST_USE vd_status vd_graph_unroll(vd_graph *graph, vd_err *err);
/* Canonical bytes of one node: what a record's descriptor hashes. */
void vd_node_encode(const vd_program *program, const vd_graph *graph, uint32_t node, vd_buf *out);

/* For people. */
void vd_graph_text(const vd_program *program, const vd_graph *graph, vd_buf *out);
void vd_graph_dot(const vd_program *program, const vd_graph *graph, vd_buf *out);

/* Number of leaves, and of the last checkpoint: states committed in a run are S_0, S_c, S_2c, ...,
 * S_n. */
uint64_t vd_run_leaves(const vd_program *program);
int64_t vd_run_leaf_step(const vd_program *program, uint64_t leaf);
bool vd_is_committed(const vd_program *program, int64_t step);

#endif
