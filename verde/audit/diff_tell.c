/* Prints where two runs diverge, and possible causes. */
#include <string.h>

#include "verde/audit/diff_tell.h"
#include "verde/exec/distance.h"

static bool has_node(const vd_telling *t) {
    return t->d->kind == VD_DIVERGE_NODE || t->d->kind == VD_DIVERGE_EMITTED;
}

static const char *operator_of(const vd_telling *t, int side) {
    return ro_op_describe(vd_node_stored(vd_telling_graph(t, side), t->d->node[side])->op)->name;
}

/* ---- text ---- */

static int bits_between(uint32_t a, uint32_t b, int *bit) {
    int count = 0;
    for (int i = 0; i < 32; i++)
        if ((a ^ b) >> i & 1) {
            count++;
            *bit = i;
        }
    return count;
}

static void print_distance(vd_buf *out, const vd_diverged_tensor *e) {
    uint64_t ulp;
    int bit = 0;
    const int bits = bits_between(e->bits[0], e->bits[1], &bit);
    const bool real =
        e->shape.dtype == RO_F32 || e->shape.dtype == RO_BF16 || e->shape.dtype == RO_F16;
    vd_printf(out, "distance     ");
    if (vd_element_distance(e->shape.dtype, e->bits[0], e->bits[1], &ulp))
        vd_printf(out, "%llu%s, ", (unsigned long long)ulp, real ? " ULP" : "");
    else
        vd_printf(out, "none to a NaN, ");
    if (bits == 1)
        vd_printf(out, "in bit %d alone\n", bit);
    else
        vd_printf(out, "in %d bits\n", bits);
}

static void print_reference(vd_buf *out, const vd_diverged_tensor *e) {
    char text[VD_ELEMENT_TEXT];
    vd_element_text(e->shape.dtype, e->reference, text);
    const bool a = e->bits[0] == e->reference, b = e->bits[1] == e->reference;
    vd_printf(out, "reference    %s: %s\n", text, a ? "a's" : b ? "b's" : "neither's");
}

static void print_place(vd_buf *out, const ro_shape *shape, int64_t element) {
    int64_t stride = ro_shape_numel(shape);
    vd_printf(out, "element      %lld, [", (long long)element);
    for (int i = 0; i < shape->ndim; i++) {
        stride /= shape->dim[i];
        vd_printf(out, "%s%lld", i ? "," : "", (long long)(element / stride));
        element %= stride;
    }
    vd_printf(out, "]\n");
}

static void print_tensor(vd_buf *out, const vd_telling *t) {
    const vd_diverged_tensor *e = &t->d->tensor;
    char text[VD_ELEMENT_TEXT], guess[VD_GUESS_TEXT];
    if (!e->known)
        return;
    vd_printf(out, "%s       %s[", t->d->of_leaf ? "tensor" : "output",
              ro_dtype_name(e->shape.dtype));
    for (int i = 0; i < e->shape.ndim; i++)
        vd_printf(out, "%s%lld", i ? "," : "", (long long)e->shape.dim[i]);
    vd_printf(out, "]: %llu of %lld elements differ%s\n", (unsigned long long)e->count,
              (long long)ro_shape_numel(&e->shape), e->count == 1 ? "s" : "");
    print_place(out, &e->shape, e->element);
    for (int side = 0; side < 2; side++) {
        vd_element_text(e->shape.dtype, e->bits[side], text);
        vd_printf(out, "value %c      %s\n", "ab"[side], text);
    }
    print_distance(out, e);
    if (e->has_reference)
        print_reference(out, e);
    if (e->parts > 1)
        vd_printf(out, "parts        %s\n", vd_guess_text(e, guess));
}

static void print_node(vd_buf *out, const vd_telling *t) {
    const vd_divergence *d = t->d;
    const vd_name a = vd_node_name(vd_telling_graph(t, 0), d->node[0]);
    const vd_name b = vd_node_name(vd_telling_graph(t, 1), d->node[1]);
    vd_printf(out, "node         %u, %s (%s)\n", d->node[0], a.text, operator_of(t, 0));
    if (t->programs)
        vd_printf(out, "in b         %u, %s (%s)\n", d->node[1], b.text, operator_of(t, 1));
    if (d->kind == VD_DIVERGE_EMITTED) {
        vd_printf(out, "section      %llu of the step's log\n", (unsigned long long)d->section);
        return;
    }
    if (!d->compares_inputs)
        vd_printf(out, "inputs       not as many in a as in b\n");
    else if (d->inputs_differ == 0)
        vd_printf(out, "inputs       %u, all equal\n", d->inputs);
    else
        vd_printf(out, "inputs       %u, of which %u differ%s, first input %u\n", d->inputs,
                  d->inputs_differ, d->inputs_differ == 1 ? "s" : "", d->first_input);
}

static void print_checkpoints(vd_buf *out, const vd_telling *t) {
    const vd_divergence *d = t->d;
    if (d->kind == VD_DIVERGE_NOT && t->programs && d->tensors == 0)
        vd_printf(out, "states       no tensor of one state is in the other\n");
    else if (d->kind == VD_DIVERGE_NOT && t->programs && d->states == 0)
        vd_printf(out, "states       none compared: %s\n",
                  *d->unread ? "those that both keep are damaged"
                             : "there is no step of which both keep a state");
    else if (d->kind == VD_DIVERGE_NOT && t->programs)
        vd_printf(out, "states       equal wherever both are kept, in %llu tensors of one name\n",
                  (unsigned long long)d->tensors);
    else if (d->kind == VD_DIVERGE_NOT && t->run[0].log.count != t->run[1].log.count)
        vd_printf(out, "checkpoints  equal as far as both have come: a has %u, b has %u\n",
                  t->run[0].log.count, t->run[1].log.count);
    else if (d->kind == VD_DIVERGE_NOT)
        vd_printf(out, "checkpoints  equal\n");
    else if (d->equal_at < 0)
        vd_printf(out, "checkpoints  the first one, of step %lld, differs\n",
                  (long long)d->differs_at);
    else
        vd_printf(out, "checkpoints  equal up to step %lld, and step %lld's differs\n",
                  (long long)d->equal_at, (long long)d->differs_at);
}

static void print_step(vd_buf *out, const vd_telling *t) {
    const vd_divergence *d = t->d;
    const long long steps = t->run[0].loaded.program.steps;
    if (d->has_step && d->step < 0)
        vd_printf(out, "step         initialisation\n");
    else if (d->has_step)
        vd_printf(out, "step         %lld of 0..%lld\n", (long long)d->step, steps - 1);
    else if ((d->kind == VD_DIVERGE_STORED || d->kind == VD_DIVERGE_CHECKPOINT) && d->equal_at >= 0)
        vd_printf(out, "step         one of %lld..%lld\n", (long long)d->equal_at,
                  (long long)d->differs_at - 1);
    if (has_node(t))
        print_node(out, t);
    if (d->of_leaf)
        vd_printf(out, "state        %s\n", t->run[0].loaded.program.leaf[d->leaf[0]].name);
    if (d->of_leaf && d->tensor.has_reference) {
        const vd_name name = vd_node_name(vd_telling_graph(t, 0), d->node[0]);
        vd_printf(out, "made by      %u, %s (%s)\n", d->node[0], name.text, operator_of(t, 0));
    }
    for (int side = 0; side < 2 && d->kind == VD_DIVERGE_NODE; side++)
        if (d->broken[side])
            vd_printf(out,
                      "besides      %c's state after the step is not what its nodes give here\n",
                      "ab"[side]);
}

static void print_run(vd_buf *out, const vd_telling *t, int side) {
    const vd_diff_run *run = &t->run[side];
    if (run->remote) {
        vd_printf(out, "%c            %s, by what this provider states\n", "ab"[side], run -> dir);
        return;
    }
    vd_printf(out, "%c            %s, on backend %s%s%s\n", "ab"[side], run -> dir,
              ro_ctx_backend(run->loaded.ro), run -> log.fault[0] ? ", with fault " : "",
              run->log.fault);
}

static void print_found(vd_buf *out, const vd_telling *t) {
    char text[1024];
    print_checkpoints(out, t);
    print_step(out, t);
    print_tensor(out, t);
    if (vd_fits_text(t, text, sizeof text))
        vd_printf(out, "fits         %s\n", text);
    if (*t->d->unread)
        vd_printf(out, "unread       %s\n", t->d->unread);
}

void vd_divergence_print_place(vd_buf *out, const vd_diff_run run[2], const vd_divergence *found) {
    const vd_telling t = {run, found, NULL};
    print_found(out, &t);
}

void vd_divergence_print(const vd_diff_run run[2], const vd_divergence *found,
                         const vd_program_diff *programs) {
    vd_buf told = {0}, *out = &told;
    const vd_telling t = {run, found, programs};
    print_run(out, &t, 0);
    print_run(out, &t, 1);
    if (programs)
        vd_program_diff_print(out, programs);
    else
        vd_put_hex(out, "program", run[0].log.program.b);
    print_found(out, &t);
    if (found->executed)
        vd_printf(out, "executed     %llu step%s again, of %s\n",
                  (unsigned long long)found->executed, vd_plural(found->executed),
                  run[0].remote   ? "b alone here"
                  : run[1].remote ? "a alone here"
                                  : "both");
    if (found->kind == VD_DIVERGE_NOT && !programs)
        vd_printf(out, "equal        yes, to the bit%s\n",
                  run[0].log.count == run[1].log.count ? "" : ", so far");
    vd_result_text(out);
}

/* ---- JSON ---- */

static json_t *tensor_json(const vd_telling *t) {
    const vd_diverged_tensor *e = &t->d->tensor;
    char text[2][VD_ELEMENT_TEXT], guess[VD_GUESS_TEXT];
    uint64_t ulp;
    json_t *shape = json_array();
    for (int side = 0; side < 2; side++)
        vd_element_text(e->shape.dtype, e->bits[side], text[side]);
    for (int i = 0; i < e->shape.ndim; i++)
        json_array_append_new(shape, json_integer(e->shape.dim[i]));
    json_t *out = json_pack("{ss so sI sI ss ss}", "type", ro_dtype_name(e->shape.dtype), "shape",
                            shape, "elements", (json_int_t)e->count, "element",
                            (json_int_t)e->element, "value_a", text[0], "value_b", text[1]);
    if (vd_element_distance(e->shape.dtype, e->bits[0], e->bits[1], &ulp))
        json_object_set_new(out, "distance", json_integer((json_int_t)ulp));
    if (e->has_reference) {
        vd_element_text(e->shape.dtype, e->reference, text[0]);
        json_object_set_new(out, "reference", json_string(text[0]));
    }
    if (e->parts > 1) {
        json_object_set_new(out, "parts", json_integer((json_int_t)e->parts));
        json_object_set_new(out, "part", json_integer(e->part));
        json_object_set_new(out, "part_fits", json_string(vd_guess_text(e, guess)));
    }
    return out;
}

static json_t *node_json(const vd_telling *t) {
    const vd_divergence *d = t->d;
    const vd_name a = vd_node_name(vd_telling_graph(t, 0), d->node[0]);
    json_t *out = json_pack("{sI sI ss ss}", "node_a", (json_int_t)d->node[0], "node_b",
                            (json_int_t)d->node[1], "name", a.text, "operator", operator_of(t, 0));
    if (d->kind == VD_DIVERGE_NODE && d->compares_inputs) {
        json_object_set_new(out, "inputs", json_integer(d->inputs));
        json_object_set_new(out, "inputs_differ", json_integer(d->inputs_differ));
    }
    return out;
}

json_t *vd_divergence_json(const vd_diff_run run[2], const vd_divergence *found,
                           const vd_program_diff *programs) {
    static const char *const kinds[] = {
        [VD_DIVERGE_NOT] = "none",      [VD_DIVERGE_CHECKPOINT] = "checkpoint",
        [VD_DIVERGE_NODE] = "node",     [VD_DIVERGE_NEXT] = "next state",
        [VD_DIVERGE_STORED] = "stored", [VD_DIVERGE_COMMITMENT] = "commitment",
        [VD_DIVERGE_EMITTED] = "logs",  [VD_DIVERGE_EMITTED_NAMED] = "logs named"};
    const vd_telling t = {run, found, programs};
    char text[1024];
    json_t *out = json_pack(
        "{sb ss ss sI sI sI}", "equal", found->kind == VD_DIVERGE_NOT && !programs, "compared",
        "runs", "differs_in", kinds[found->kind], "equal_at", (json_int_t)found->equal_at,
        "differs_at", (json_int_t)found->differs_at, "executed", (json_int_t)found->executed);
    json_object_set_new(out, "checkpoints_a", json_integer(run[0].log.count));
    json_object_set_new(out, "checkpoints_b", json_integer(run[1].log.count));
    if (programs) {
        json_object_set_new(out, "programs", vd_program_diff_json(programs));
        json_object_set_new(out, "states_compared", json_integer(found->states));
        json_object_set_new(out, "tensors_compared", json_integer((json_int_t)found->tensors));
    }
    if (*found->unread)
        json_object_set_new(out, "unread", json_string(found->unread));
    if (found->has_step)
        json_object_set_new(out, "step", json_integer(found->step));
    if (has_node(&t))
        json_object_set_new(out, "node", node_json(&t));
    if (found->of_leaf)
        json_object_set_new(out, "leaf",
                            json_string(run[0].loaded.program.leaf[found->leaf[0]].name));
    if (found->of_leaf && found->tensor.has_reference)
        json_object_set_new(out, "made_by", json_integer(found->node[0]));
    if (found->tensor.known)
        json_object_set_new(out, "tensor", tensor_json(&t));
    if (vd_fits_text(&t, text, sizeof text))
        json_object_set_new(out, "fits", json_string(text));
    return out;
}
