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
    VD_NAME_SIZE = 64, /* with the final NUL */
    VD_NODES_MAX = 1 << 20,
    VD_LEAVES_MAX = 1 << 16,
    VD_DATA_MAX = 1 << 16,
    VD_EDGES_MAX = 1 << 22, /* all inputs of all nodes */
    VD_PROGRAM_BYTES_MAX = 64 << 20,
};

typedef enum { VD_SOURCE_STATE = 1, VD_SOURCE_DATA = 2, VD_SOURCE_STEP = 3 } vd_source_kind;

/* A state leaf or a data tensor. */
typedef struct {
    char name[VD_NAME_SIZE]; /* "h.0.attn.weight", "h.0.attn.weight.m" */
    ro_shape shape;
} vd_leaf;

typedef struct {
    char name[VD_NAME_SIZE]; /* for people: "micro0.h.2.attn.scores" */
    int32_t op;
    int32_t input_count;
    int64_t attr[RO_MAX_ATTRS];
    uint32_t first_input; /* index in vd_graph.stored_edge */
    ro_shape shape;       /* of the output */
} vd_node;

typedef struct {
    vd_node *stored; /* read nodes by vd_node_... */
    uint32_t node_count, node_capacity;
    uint32_t *stored_edge; /* value numbers */
    uint32_t edge_count, edge_capacity;
    uint32_t *output; /* the value of each state leaf after this graph; layout order */
    uint32_t loss;    /* value to report, or UINT32_MAX */
} vd_graph;

/* A data tensor: what the run reads besides its state. */
typedef struct {
    vd_leaf tensor;
    uint8_t root[32]; /* tensor commitment */
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

void vd_program_free(vd_program *program);
/* Makes room for `count` data tensors, all zeros, in a program that has none. */
VD_MUST_USE vd_status vd_program_take_data(vd_program *program, uint32_t count, vd_err *err);

/* Values: which is what. `init` says which graph. */
uint32_t vd_source_count(const vd_program *program, const vd_graph *graph);
uint32_t vd_state_sources(const vd_program *program, const vd_graph *graph); /* 0 for init */
const ro_shape *vd_value_shape(const vd_program *program, const vd_graph *graph, uint32_t value);
/* Source of value < vd_source_count: its kind, and its index among that kind. */
vd_source_kind vd_source_of(const vd_program *program, const vd_graph *graph, uint32_t value,
                            uint32_t *index);

/* ---- node `node` of a graph ---- */

/* Its operator, its number of inputs and the shape of its output. */
const vd_node *vd_node_stored(const vd_graph *graph, uint32_t node);
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
/* Every rule: topological edges, ro_infer of each node, outputs that match the layout, limits. */
VD_MUST_USE vd_status vd_program_validate(const vd_program *program, vd_err *err);
/* Canonical bytes of one node: what a record's descriptor hashes. */
void vd_node_encode(const vd_program *program, const vd_graph *graph, uint32_t node, vd_buf *out);

/* For people. */
void vd_graph_text(const vd_program *program, const vd_graph *graph, vd_buf *out);
void vd_graph_dot(const vd_program *program, const vd_graph *graph, vd_buf *out);

/* Number of leaves, and of the last checkpoint: states committed in a run are S_0, S_c, S_2c, ...,
 * S_n. */
uint64_t vd_run_leaves(const vd_program *program);
int64_t vd_run_leaf_step(const vd_program *program, uint64_t leaf);

#endif
