/* This file prints a step's trace, or the proof of a leaf, for which the step is executed again. */
#include "verde/cli/inspect_step.h"

#include <stdio.h>
#include <stdlib.h>

#include "verde/cli/cli.h"
#include "verde/protocol/message.h"

/* ---- a trace ---- */

static json_t *record_json(const vd_graph *graph, uint32_t i, const vd_hash *output) {
    return json_pack("{sI ss ss so}", "node", (json_int_t)i, "name", vd_node_name(graph, i).text,
                     "operator", ro_op_describe(vd_node_stored(graph, i)->op)->name, "output",
                     vd_hash_text(output));
}

static void print_record(const vd_graph *graph, uint32_t i, const vd_hash *output) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(output->b, VD_HASH_SIZE, hex);
    printf("%6u  %-36s %-16s %s\n", i, vd_node_name(graph, i).text,
           ro_op_describe(vd_node_stored(graph, i)->op)->name, hex);
}

vd_status vd_print_trace(int64_t step, const vd_loaded *loaded, const vd_source *source, bool json,
                         vd_err *err) {
    const vd_records *records;
    vd_node_record *record = malloc(sizeof *record);
    const vd_graph *graph = vd_step_graph(&loaded->program, step);
    json_t *list = json ? json_array() : NULL;
    vd_status status = record ? source->trace(source->user, step, &records, err)
                              : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint64_t i = 0; status == VD_OK && i < records->count; i++) {
        size_t size;
        const uint8_t *bytes = vd_records_at(records, i, &size);
        if (!vd_record_decode(bytes, size, record))
            status = vd_fail(err, VD_ERR_LOCAL, "record %llu is malformed", (unsigned long long)i);
        else if (list)
            json_array_append_new(list, record_json(graph, i, &record->output));
        else
            print_record(graph, i, &record->output);
    }
    if (list && status == VD_OK)
        vd_print_json(json_pack("{sI sO}", "step", (json_int_t)step, "records", list));
    json_decref(list);
    free(record);
    return status;
}

/* ---- a proof: STEP:VALUE:LEAF ---- */

static vd_status parse_proof(const char *text, const vd_program *p, int64_t *step, uint32_t *value,
                             uint64_t *leaf, vd_err *err) {
    long long s, v, l;
    char end;
    if (sscanf(text, "%lld:%lld:%lld%c", &s, &v, &l, &end) != 3 || v < 0)
        return vd_fail(err, VD_ERR_USAGE, "--proof must be STEP:VALUE:LEAF, got \"%s\"", text);
    if (s < -1 || s >= p->steps)
        return vd_fail(err, VD_ERR_USAGE, "--proof: STEP must be -1..%lld, got %lld",
                       (long long)p->steps - 1, s);
    vd_tree_name tree = {.kind = VD_TREE_TENSOR, .step = s, .value = (uint32_t)v};
    uint64_t count = v > UINT32_MAX ? 0 : vd_tree_leaves(p, &tree);
    if (l < 0 || (uint64_t)l >= count)
        return vd_fail(err, VD_ERR_USAGE, "--proof: value %lld of step %lld has %llu leaves", v, s,
                       (unsigned long long)count);
    *step = s;
    *value = (uint32_t)v;
    *leaf = (uint64_t)l;
    return VD_OK;
}

typedef struct {
    uint64_t leaf;
    const vd_tree *tree;      /* borrowed from the source */
    vd_hash root, commitment; /* of the tensor's bytes, of the tensor */
    vd_proof proof;
} proven;

static vd_status prove(const char *name, const vd_program *p, const vd_source *source, proven *out,
                       vd_err *err) {
    int64_t step = 0;
    uint32_t value = 0;
    const void *data;
    vd_status status = parse_proof(name, p, &step, &value, &out->leaf, err);
    if (status == VD_OK)
        status = source->tensor(source->user, step, value, &data, err);
    if (status == VD_OK)
        status = source->tree(source->user, step, value, data, &out->tree, err);
    if (status == VD_OK)
        status = vd_tree_root(out->tree, &out->root, err);
    if (status == VD_OK && !vd_tensor_commit(vd_value_shape(p, vd_step_graph(p, step), value),
                                             &out->root, &out->commitment))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a tensor");
    if (status == VD_OK)
        status = vd_tree_prove(out->tree, out->leaf, &out->proof, err);
    if (status == VD_OK && !vd_proof_check(&out->proof, out->leaf, out->tree->count,
                                           &out->tree->leaf[out->leaf], &out->root))
        status = vd_fail(err, VD_ERR_LOCAL, "the proof does not hold");
    return status;
}

static json_t *proof_json(const proven *p) {
    json_t *path = json_array();
    for (uint32_t i = 0; i < p->proof.length; i++)
        json_array_append_new(path, vd_hash_text(&p->proof.path[i]));
    return json_pack("{so so sI sI so so}", "tensor", vd_hash_text(&p->commitment), "byte_root",
                     vd_hash_text(&p->root), "leaf", (json_int_t)p->leaf, "leaves",
                     (json_int_t)p->tree->count, "leaf_hash", vd_hash_text(&p->tree->leaf[p->leaf]),
                     "path", path);
}

static void print_path(const proven *p) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(p->commitment.b, VD_HASH_SIZE, hex);
    printf("tensor       %s\n", hex);
    vd_hex(p->root.b, VD_HASH_SIZE, hex);
    printf("byte root    %s\n", hex);
    vd_hex(p->tree->leaf[p->leaf].b, VD_HASH_SIZE, hex);
    printf("leaf %-7llu %s\n", (unsigned long long)p->leaf, hex);
    for (uint32_t i = 0; i < p->proof.length; i++) {
        vd_hex(p->proof.path[i].b, VD_HASH_SIZE, hex);
        printf("path %-7u %s\n", i, hex);
    }
    printf("holds        leaf %llu of %llu\n", (unsigned long long)p->leaf,
           (unsigned long long)p->tree->count);
}

vd_status vd_print_proof(const char *name, const vd_loaded *loaded, const vd_source *source,
                         bool json, vd_err *err) {
    proven p = {0};
    vd_status status = prove(name, &loaded->program, source, &p, err);
    if (status == VD_OK && json)
        vd_print_json(proof_json(&p));
    else if (status == VD_OK)
        print_path(&p);
    return status;
}
