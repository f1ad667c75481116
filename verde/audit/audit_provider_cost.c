/* Measures what the crumbs of an audit cost the checker, by the operators of their nodes. */
#include <stdlib.h>

#include "verde/audit/audit_provider.h"
#include "verde/load/verdict_file.h"

enum { OF_STATES = -1 }; /* leaves of a state, and the questions that lead to their step */

static int64_t kind_of(const vd_program *program, const vd_crumb *place) {
    return place->node < 0
               ? OF_STATES
               : (int64_t)vd_node_stored(vd_step_graph(program, place->step), (uint32_t)place->node)
                     ->op;
}

static vd_kind_cost *find(vd_kind_costs *costs, int64_t kind) {
    for (uint32_t i = 0; i < costs->count; i++)
        if (costs->list[i].kind == kind)
            return &costs->list[i];
    vd_kind_cost *grown = realloc(costs->list, (costs->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    costs->list = grown;
    grown[costs->count] = (vd_kind_cost){.kind = kind};
    return &grown[costs->count++];
}

void vd_audit_cost_begin(vd_auditing *x) {
    uint64_t in, out;
    vd_post_bytes(x->office, &in, &out);
    x->costs.bytes = in + out;
    x->costs.cpu = vd_cpu_seconds();
}

/* Adds a place's cost. A place that was answered by the journal alone adds nothing. */
void vd_audit_cost_add(vd_auditing *x, const vd_crumb *place) {
    const uint64_t bytes = x->costs.bytes;
    const double cpu = x->costs.cpu;
    vd_audit_cost_begin(x);
    const uint64_t more = x->costs.bytes - bytes;
    const double took = x->costs.cpu - cpu;
    vd_kind_cost *k = more ? find(&x->costs, kind_of(&x->loaded.program, place)) : NULL;
    if (!k)
        return;
    x->costs.crumbs++;
    k->crumbs++;
    k->bytes += more;
    k->cpu += took;
    k->most_bytes = more > k->most_bytes ? more : k->most_bytes;
    k->most_cpu = took > k->most_cpu ? took : k->most_cpu;
}

static const char *name_of(int64_t kind) {
    return kind == OF_STATES ? "state" : ro_op_describe((uint16_t)kind)->name;
}

json_t *vd_audit_costs_json(const vd_auditing *x) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < x->costs.count; i++) {
        const vd_kind_cost *k = &x->costs.list[i];
        json_array_append_new(list, json_pack("{ss sI sI sI sf sf}", "operator", name_of(k->kind),
                                              "crumbs", (json_int_t)k->crumbs, "bytes",
                                              (json_int_t)k->bytes, "most_bytes",
                                              (json_int_t)k->most_bytes, "cpu_seconds", k->cpu,
                                              "most_cpu_seconds", k->most_cpu));
    }
    return list;
}

void vd_audit_costs_tell(vd_buf *out, const vd_auditing *x) {
    const vd_kind_cost *slow = x->costs.list, *large = slow;
    char size[32];
    for (uint32_t i = 1; i < x->costs.count; i++) {
        const vd_kind_cost *k = &x->costs.list[i];
        slow = k->most_cpu > slow->most_cpu ? k : slow;
        large = k->most_bytes > large->most_bytes ? k : large;
    }
    if (!slow)
        return;
    vd_print_size(large->most_bytes, size);
    vd_printf(out, "             at most %.1f ms of CPU, of %s, and %s, of %s, for one\n",
              1e3 * slow->most_cpu, name_of(slow->kind), size, name_of(large->kind));
}
