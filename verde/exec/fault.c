/* Faults on purpose, as a dishonest provider would make them, for tests and demonstrations. */
#include <stdlib.h>
#include <string.h>

#include "repops/operators.h"
#include "verde/exec/exec.h"
#include "verde/exec/fault_field.h"
#include "verde/exec/memory.h"

static const struct {
    const char *name;
    int op; /* operator of the nodes that the fault may hit by default; RO_OP_NONE: needs no node */
} kinds[] = {
    [VD_FAULT_NONE] = {"none", RO_OP_NONE},
    [VD_FAULT_ELEMENT] = {"element", RO_OP_MATMUL},
    [VD_FAULT_LR] = {"lr", RO_OP_LR_SCHEDULE},
    [VD_FAULT_SKIP] = {"skip", RO_OP_NONE},
    [VD_FAULT_POISON] = {"poison", RO_OP_READ_BATCH},
    [VD_FAULT_SEED] = {"seed", RO_OP_READ_BATCH},
    [VD_FAULT_ATTR] = {"attr", RO_OP_DIV_CONST},
    [VD_FAULT_WEIGHTS] = {"weights", RO_OP_NORMAL},
    [VD_FAULT_HISTORY] = {"history", RO_OP_NONE},
    [VD_FAULT_INPUT] = {"input", RO_OP_READ_BATCH},
    [VD_FAULT_FIELD] = {"field", RO_OP_NONE},
    [VD_FAULT_SUM] = {"sum", RO_OP_MATMUL_FIXED},
    [VD_FAULT_STEER] = {"steer", RO_OP_NONE},
    [VD_FAULT_DROP_RECORD] = {"drop-record", RO_OP_NONE},
    [VD_FAULT_FORGE_RECORD] = {"forge-record", RO_OP_NONE},
    [VD_FAULT_FORGE_BOTH] = {"forge-both", RO_OP_NONE},
    [VD_FAULT_TWO_LOGS] = {"two-logs", RO_OP_NONE},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Lists the kinds, for help texts. */
static const char *fault_kinds(void) {
    return "element, lr, skip, poison, seed, attr, weights, history, input, field, sum, steer, "
           "drop-record, forge-record, forge-both, two-logs";
}

bool vd_fault_is_emitted(const vd_fault *fault) {
    return fault->kind >= VD_FAULT_STEER;
}

static const vd_graph *graph_of(const vd_program *program, int64_t step) {
    return step < 0 ? &program->init : &program->step;
}

static bool node_by_name(const vd_graph *graph, const char *name, uint32_t *node) {
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    if (name[0] >= '0' && name[0] <= '9' && *end == 0 && number < graph->node_count) {
        *node = (uint32_t)number;
        return true;
    }
    for (*node = 0; *node < graph->node_count; ++*node)
        if (strcmp(vd_node_name(graph, *node).text, name) == 0)
            return true;
    return false;
}

/* Returns whether a node reads weights from data; read_batch reads tokens, which are data too. */
static bool reads_weights(const vd_program *program, const vd_graph *graph, uint32_t node) {
    const vd_node *n = vd_node_stored(graph, node);
    uint32_t index;
    for (int32_t i = 0; i < n->input_count && n->op != RO_OP_READ_BATCH; i++) {
        const uint32_t value = vd_node_input(graph, node, i);
        if (value < vd_source_count(program, graph) &&
            vd_source_of(program, graph, value, &index) == VD_SOURCE_DATA && index > 0)
            return true;
    }
    return false;
}

static bool fits(const vd_program *program, const vd_graph *graph, uint32_t node,
                 vd_fault_kind kind) {
    const int op = vd_node_stored(graph, node)->op;
    const bool fixed = op == RO_OP_MATMUL_FIXED || op == RO_OP_CONV2D_FIXED;
    return op == kinds[kind].op || (kind == VD_FAULT_ELEMENT && fixed) ||
           (kind == VD_FAULT_WEIGHTS && reads_weights(program, graph, node));
}

/* Finds the middle one of the fitting nodes, or the first, if the fault changes a whole step. */
static bool default_node(const vd_program *program, const vd_graph *graph, vd_fault_kind kind,
                         uint32_t *node) {
    uint32_t fitting = 0, want;
    for (uint32_t i = 0; i < graph->node_count; i++)
        fitting += fits(program, graph, i, kind);
    want = kind == VD_FAULT_ELEMENT || kind == VD_FAULT_ATTR ? fitting / 2 : 0;
    for (uint32_t i = 0; i < graph->node_count && fitting > 0; i++)
        if (fits(program, graph, i, kind) && want-- == 0) {
            *node = i;
            return true;
        }
    return false;
}

static vd_status parse_step(char *text, const vd_program *program, vd_fault *out, vd_err *err) {
    char *end;
    long long step = strtoll(text, &end, 10);
    if (*text == 0 || *end != 0 || step < -1 || step >= program->steps)
        return vd_fail(err, VD_ERR_USAGE, "fault: step must be -1..%lld, got \"%s\"",
                       (long long)program->steps - 1, text);
    out->step = step;
    return VD_OK;
}

static vd_status parse_field(const char *text, const vd_program *program, vd_fault *out,
                             vd_err *err) {
    char *end = NULL;
    const unsigned long long seed = text ? strtoull(text, &end, 10) : 0;
    if (!text || *text < '0' || *text > '9' || *end != 0)
        return vd_fail(err, VD_ERR_USAGE, "fault: field must be field@SEED, a number, got \"%s\"",
                       text ? text : "");
    vd_field_draw(seed, program, out);
    return VD_OK;
}

static vd_status place(const char *node, const vd_program *program, vd_fault *out, vd_err *err) {
    const vd_graph *graph = graph_of(program, out->step);
    if (node && !node_by_name(graph, node, &out->node))
        return vd_fail(err, VD_ERR_USAGE, "fault: no node \"%s\" in the graph of step %lld", node,
                       (long long)out->step);
    if (!node && vd_fault_is_emitted(out))
        out->node = UINT32_MAX;
    if (out->step < 0 && out->kind == VD_FAULT_SEED)
        return node_by_name(graph, "0", &out->node) ? VD_OK : VD_ERR_USAGE;
    if (!node && kinds[out->kind].op != RO_OP_NONE &&
        !default_node(program, graph, out->kind, &out->node))
        return vd_fail(err, VD_ERR_USAGE,
                       "fault: the graph of step %lld has no node for \"%s\"; name one",
                       (long long)out->step, kinds[out->kind].name);
    if (out->kind == VD_FAULT_ATTR &&
        ro_op_describe(vd_node_stored(graph, out->node)->op)->attr_count == 0)
        return vd_fail(err, VD_ERR_USAGE, "fault: node %u (%s) has no attribute", out->node,
                       vd_node_name(graph, out->node).text);
    if (out->kind == VD_FAULT_INPUT && vd_node_stored(graph, out->node)->input_count == 0)
        return vd_fail(err, VD_ERR_USAGE, "fault: node %u (%s) has no input", out->node,
                       vd_node_name(graph, out->node).text);
    return VD_OK;
}

vd_status vd_fault_parse(const char *text, const vd_program *program, vd_fault *out, vd_err *err) {
    char copy[256];
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return vd_fail(err, VD_ERR_USAGE, "fault: longer than %zu characters", sizeof copy - 1);
    char *step = strchr(copy, '@'), *node = NULL;
    if (step) {
        *step++ = 0;
        node = strchr(step, ':');
        if (node)
            *node++ = 0;
    }
    *out = (vd_fault){.step = program->steps / 2, .element = UINT32_MAX / 2, .bit = 12};
    for (int i = 1; i < KINDS; i++)
        if (strcmp(copy, kinds[i].name) == 0)
            out->kind = (vd_fault_kind)i;
    if (out->kind == VD_FAULT_NONE)
        return vd_fail(err, VD_ERR_USAGE, "fault: kind must be one of %s, got \"%s\"",
                       fault_kinds(), copy);
    if (out->kind == VD_FAULT_FIELD)
        return node ? vd_fail(err, VD_ERR_USAGE, "fault: field takes no node, but field@SEED")
                    : parse_field(step, program, out, err);
    if (out->kind == VD_FAULT_WEIGHTS)
        out->step = -1; /* unless a step is named: frozen weights are read by steps */
    if (step) {
        vd_status status = parse_step(step, program, out, err);
        if (status != VD_OK)
            return status;
    }
    return place(node, program, out, err);
}

void vd_fault_print(const vd_fault *fault, const vd_program *program, char *text, size_t size) {
    const bool no_node = vd_fault_is_emitted(fault) ? fault->node == UINT32_MAX
                                                    : kinds[fault->kind].op == RO_OP_NONE;
    if (fault->kind == VD_FAULT_FIELD)
        snprintf(text, size, "field@%llu", (unsigned long long)fault->seed);
    else if (no_node)
        snprintf(text, size, "%s@%lld", kinds[fault->kind].name, (long long)fault->step);
    else
        snprintf(text, size, "%s@%lld:%s", kinds[fault->kind].name, (long long)fault->step,
                 vd_node_name(graph_of(program, fault->step), fault->node).text);
}

/* Changes an attribute to a valid value: doubles a float (0 becomes 1), flips an integer's lowest
 * bit. */
static void change_attr(vd_node *n, int index) {
    const ro_op_info *info = ro_op_describe(n->op);
    float value = ro_attr_to_f32(n->attr[index]);
    if (info->attr[index].kind == 'f')
        n->attr[index] = ro_attr_f32(value == 0 ? 1 : 2 * value);
    else
        n->attr[index] ^= 1;
}

static void change_graph(vd_graph *graph, const vd_fault *fault) {
    if (fault->kind == VD_FAULT_LR)
        change_attr(&graph->stored[fault->node], RO_LR_SCHEDULE_BASE);
    if (fault->kind == VD_FAULT_ATTR)
        change_attr(&graph->stored[fault->node], 0);
    for (uint32_t i = 0; fault->kind == VD_FAULT_SEED && i < graph->node_count; i++) {
        const ro_op_info *info = ro_op_describe(vd_node_stored(graph, i)->op);
        if (info->attr_count > 0 && strcmp(info->attr[RO_RANDOM_SEED].name, "seed") == 0)
            graph->stored[i].attr[RO_RANDOM_SEED] += 1;
    }
}

vd_status vd_fault_program(const vd_exec *exec, int64_t step, vd_program *changed,
                           const vd_program **out, vd_err *err) {
    vd_fault_kind kind = exec->fault.kind;
    bool changes = kind == VD_FAULT_LR || kind == VD_FAULT_SEED || kind == VD_FAULT_ATTR;
    *out = exec->program;
    if (!changes || exec->fault.step != step)
        return VD_OK;
    vd_buf bytes = {0};
    vd_program_encode(exec->program, &bytes);
    vd_status status = vd_buf_ok(&bytes) ? vd_program_decode(bytes.data, bytes.size, changed, err)
                                         : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&bytes);
    if (status != VD_OK)
        return status;
    status = vd_graph_unroll(step < 0 ? &changed->init : &changed->step, err);
    if (status != VD_OK)
        return status;
    change_graph(step < 0 ? &changed->init : &changed->step, &exec->fault);
    *out = changed;
    if (vd_program_validate(changed, NULL) != VD_OK)
        return vd_fail(err, VD_ERR_USAGE, "fault: the altered attribute makes node %u invalid",
                       exec->fault.node);
    return VD_OK;
}

static void flip(void *output, size_t element_size, uint64_t element, uint32_t bit) {
    uint8_t *at = (uint8_t *)output + element * element_size, bytes[8];
    memcpy(bytes, at, element_size);
    vd_from_little(bytes, element_size, element_size);
    bytes[bit / 8 % element_size] ^= (uint8_t)(1u << bit % 8);
    vd_from_little(bytes, element_size, element_size);
    memcpy(at, bytes, element_size);
}

/* Alters a tensor. Integer inputs get their lowest bit flipped, so that most stay valid indices. */
static void alter(const vd_fault *fault, const ro_shape *shape, void *output) {
    uint64_t count = (uint64_t)ro_shape_numel(shape);
    size_t size = ro_dtype_size(shape->dtype);
    const bool all = fault->kind == VD_FAULT_WEIGHTS || fault->kind == VD_FAULT_INPUT;
    const bool integers = fault->kind == VD_FAULT_INPUT && shape->dtype != RO_F32;
    if (fault->kind == VD_FAULT_FIELD)
        vd_field_alter(fault, shape, output);
    if (fault->kind == VD_FAULT_ELEMENT || fault->kind == VD_FAULT_POISON)
        flip(output, size, fault->element % count, fault->kind == VD_FAULT_POISON ? 0 : fault->bit);
    for (uint64_t i = 0; all && i < count; i++)
        flip(output, size, i, integers ? 0 : 22);
}

/* Alters a tensor in the memory of `ro`. */
static vd_status alter_there(const vd_fault *fault, const ro_shape *shape, ro_ctx *ro, void *tensor,
                             vd_err *err) {
    const size_t size = vd_shape_bytes(shape);
    void *host = malloc(size);
    vd_status status = host ? vd_memory_read(ro, host, tensor, size, err)
                            : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK) {
        alter(fault, shape, host);
        status = vd_memory_write(ro, tensor, host, size, err);
    }
    free(host);
    return status;
}

vd_status vd_fault_input(const vd_fault *fault, int64_t step, uint32_t node, const ro_call *call,
                         ro_ctx *ro, const void **input, void **copy, vd_err *err) {
    *copy = NULL;
    if (fault->kind != VD_FAULT_INPUT || fault->step != step || fault->node != node)
        return VD_OK;
    const ro_shape *shape = &call->input[call->input_count - 1];
    const size_t size = vd_shape_bytes(shape);
    *copy = vd_memory_alloc(ro, size);
    vd_status status = *copy ? vd_memory_copy(ro, *copy, *input, size, err)
                             : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = alter_there(fault, shape, ro, *copy, err);
    *input = *copy;
    return status;
}

vd_status vd_fault_output(const vd_fault *fault, int64_t step, uint32_t node, const ro_shape *shape,
                          ro_ctx *ro, void *output, vd_err *err) {
    const bool bits = fault->kind == VD_FAULT_ELEMENT || fault->kind == VD_FAULT_POISON ||
                      fault->kind == VD_FAULT_WEIGHTS || fault->kind == VD_FAULT_FIELD;
    if (!bits || fault->step != step || fault->node != node)
        return VD_OK;
    return alter_there(fault, shape, ro, output, err);
}
