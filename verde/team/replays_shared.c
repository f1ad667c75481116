/* This file runs the parts of a replay that all ranks share. In a trace each rank hashes its own
 * nodes' outputs, and rank 0 collects the commitments in the order of the nodes. */
#include <stdlib.h>

#include "verde/exec/memory.h"
#include "verde/exec/tracing.h"
#include "verde/team/replays_internal.h"

enum { PIECE = 1 << 15 }; /* commitments per message: 1 MiB */

vd_status vd_shared_init(vd_member *m, const vd_exec *exec, vd_state *out, vd_err *err) {
    const vd_status status = vd_exec_init(exec, NULL, out, err);
    if (status == VD_OK)
        vd_member_thin(m, out);
    return status;
}

/* ---- traces ---- */

/* Lists up to PIECE nodes of a rank from *node on, and returns their number. */
static uint32_t list_piece(const vd_team_plan *plan, uint32_t rank, uint32_t *node,
                           uint32_t *list) {
    const uint32_t nodes = plan->program->step.node_count;
    uint32_t count = 0;
    for (; *node < nodes && count < PIECE; (*node)++)
        if (vd_team_owner(plan, *node) == rank)
            list[count++] = *node;
    return count;
}

static vd_status move_piece(const vd_member *m, vd_tracing *t, uint32_t rank, const uint32_t *list,
                            uint32_t count, vd_hash *piece, vd_err *err) {
    const vd_transport *to = &m->transport;
    const size_t size = count * sizeof *piece;
    vd_hash *output = t->value + t->sources;
    if (to->rank == 0) {
        const vd_status status = to->receive(to->user, rank, VD_TEAM_TRACED, piece, size, err);
        for (uint32_t i = 0; status == VD_OK && i < count; i++)
            output[list[i]] = piece[i];
        return status;
    }
    for (uint32_t i = 0; i < count; i++)
        piece[i] = output[list[i]];
    return to->send(to->user, 0, VD_TEAM_TRACED, piece, size, err);
}

/* Moves commitments of all outputs of `rank` to rank 0. */
static vd_status move_outputs(const vd_member *m, vd_tracing *t, uint32_t rank, vd_err *err) {
    uint32_t node = 0, *list = malloc(PIECE * sizeof *list);
    vd_hash *piece = malloc(PIECE * sizeof *piece);
    vd_status status = list && piece ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "trace: out of memory");
    while (status == VD_OK && node < m->plan->program->step.node_count) {
        const uint32_t count = list_piece(m->plan, rank, &node, list);
        if (count > 0)
            status = move_piece(m, t, rank, list, count, piece, err);
    }
    free(list);
    free(piece);
    return status;
}

static vd_status gather_outputs(const vd_member *m, vd_tracing *t, vd_err *err) {
    vd_status status = VD_OK;
    if (m->transport.rank != 0)
        return move_outputs(m, t, m->transport.rank, err);
    for (uint32_t rank = 1; status == VD_OK && rank < m->transport.ranks; rank++)
        status = move_outputs(m, t, rank, err);
    return status;
}

vd_status vd_shared_trace(vd_member *m, const vd_exec *exec, const vd_hash *program_hash,
                          const vd_state *before, vd_records *out, vd_err *err) {
    vd_tracing t = {0};
    vd_hash state;
    vd_status status = vd_tracing_open(&t, exec, before, err);
    if (status == VD_OK) /* leaves are the first values */
        status = vd_member_hash(m, exec->ro, program_hash, before, t.value, &state, err);
    if (status == VD_OK)
        status = vd_tracing_run(&t, err);
    if (status == VD_OK)
        status = gather_outputs(m, &t, err);
    if (status == VD_OK && out)
        status = vd_tracing_records(&t, out, err);
    vd_tracing_close(&t);
    return status;
}

/* ---- one node ---- */

typedef struct {
    vd_member *member;
    const vd_exec *exec;
    const vd_observer *observer; /* of rank 0; NULL at others */
    uint32_t node, sources;
    vd_status status;
    vd_err *err;
} watch;

static size_t value_bytes(const watch *w, uint32_t value) {
    const vd_program *p = w->exec->program;
    return vd_shape_bytes(vd_value_shape(p, &p->step, value));
}

static void send_value(watch *w, uint32_t value, const void *data) {
    const vd_transport *t = &w->member->transport;
    void *copy = NULL;
    const void *host = vd_memory_in_host(w->exec->ro, data, value_bytes(w, value), &copy, w->err);
    w->status = host ? t->send(t->user, 0, VD_TEAM_CAPTURED, host, value_bytes(w, value), w->err)
                     : VD_ERR_LOCAL;
    free(copy);
}

/* Handles an executed node: shows it to the observer, or sends its values to rank 0. */
static bool see(void *user, uint32_t node, const void *const *input, const void *output) {
    watch *w = user;
    const vd_graph *g = &w->exec->program->step;
    if (node != w->node || w->status != VD_OK)
        return true;
    if (w->observer) {
        (void)w->observer->node(w->observer->user, node, input,
                                output); /* all ranks run to the end */
        return true;
    }
    if (w->member->transport.rank == 0 || vd_team_owner(w->member->plan, node) == VD_TEAM_ALL)
        return true;
    send_value(w, w->sources + node, output);
    for (int32_t i = 0; w->status == VD_OK && i < vd_node_stored(g, node)->input_count; i++)
        if (vd_node_input(g, node, i) >= w->sources)
            send_value(w, vd_node_input(g, node, i), input[i]);
    return true;
}

/* Receives a value from rank `from` into the memory where this process computes. */
static vd_status take_value(watch *w, uint32_t from, uint32_t value, void **out) {
    const vd_transport *t = &w->member->transport;
    ro_ctx *memory = vd_exec_memory(w->exec);
    const size_t size = value_bytes(w, value);
    void *host = malloc(size);
    *out = vd_memory_alloc(memory, size);
    vd_status status = host && *out
                           ? t->receive(t->user, from, VD_TEAM_CAPTURED, host, size, w->err)
                           : vd_fail(w->err, VD_ERR_LOCAL, "out of memory for a tensor");
    if (status == VD_OK)
        status = vd_memory_write(memory, *out, host, size, w->err);
    free(host);
    return status;
}

/* At rank 0, shows the observer a node that rank `from` runs. */
static vd_status show_taken(watch *w, uint32_t from, const vd_observer *observer) {
    const vd_graph *g = &w->exec->program->step;
    const int32_t inputs = vd_node_stored(g, w->node)->input_count;
    void *output, **input = calloc((size_t)inputs + 1, sizeof *input);
    if (!input)
        return vd_fail(w->err, VD_ERR_LOCAL, "out of memory");
    vd_status status = take_value(w, from, w->sources + w->node, &output);
    for (int32_t i = 0; status == VD_OK && i < inputs; i++)
        if (vd_node_input(g, w->node, i) >= w->sources)
            status = take_value(w, from, vd_node_input(g, w->node, i), &input[i]);
    if (status == VD_OK)
        (void)observer->node(observer->user, w->node, (const void *const *)input, output);
    for (int32_t i = 0; i < inputs; i++)
        vd_memory_free(vd_exec_memory(w->exec), input[i]);
    vd_memory_free(vd_exec_memory(w->exec), output);
    free(input);
    return status;
}

vd_status vd_shared_observe(vd_member *m, const vd_exec *exec, const vd_state *before,
                            uint32_t node, const vd_observer *observer, vd_err *err) {
    const vd_program *p = exec->program;
    const uint32_t owner = vd_team_owner(m->plan, node);
    watch w = {m, exec, observer, node, vd_source_count(p, &p->step), VD_OK, err};
    vd_status status = vd_exec_observe(exec, &(vd_observer){see, &w}, before, err);
    if (status == VD_OK)
        status = w.status;
    if (status == VD_OK && observer && owner != VD_TEAM_ALL && owner != 0)
        status = show_taken(&w, owner, observer);
    return status;
}
