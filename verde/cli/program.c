/* This file prints the hashes, sizes and ranges of a program. */
#include <string.h>
#include <unistd.h>

#include "verde/cli/cli.h"

void vd_print_ranges(const vd_program *p, const char *label) {
    for (uint32_t i = 0; i < p->data_count; i++) {
        const vd_data *d = &p->data[i];
        if (d->range.stated)
            printf("%s%s is in %lld..%lld\n", label, d->tensor.name, (long long)d->range.least,
                   (long long)d->range.greatest);
    }
}

json_t *vd_ranges_json(const vd_program *p) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->data_count; i++) {
        const vd_data *d = &p->data[i];
        if (d->range.stated)
            json_array_append_new(list, json_pack("{ss sI sI}", "name", d->tensor.name, "least",
                                                  (json_int_t)d->range.least, "greatest",
                                                  (json_int_t)d->range.greatest));
    }
    return list;
}

/* ---- a program's file ---- */

static void print_program(const vd_program *p, const vd_hash *hash, const vd_hash *structure) {
    vd_print_hex("program", hash->b);
    vd_print_hex("structure", structure->b);
    printf("steps        %lld, a checkpoint every %lld\n", (long long)p->steps,
           (long long)p->checkpoint_interval);
    printf("nodes        %u at initialisation, %u per step\n", p->init.node_count,
           p->step.node_count);
    printf("tensors      %u state leaves, %u of data\n", p->leaf_count, p->data_count);
    vd_print_ranges(p, "data         ");
}

static json_t *program_json(const vd_program *p, const vd_hash *hash, const vd_hash *structure) {
    return json_pack("{so so sI sI sI sI sI sI so}", "program", vd_hash_text(hash), "structure",
                     vd_hash_text(structure), "steps", (json_int_t)p->steps, "checkpoint_interval",
                     (json_int_t)p->checkpoint_interval, "init_nodes",
                     (json_int_t)p->init.node_count, "step_nodes", (json_int_t)p->step.node_count,
                     "state_leaves", (json_int_t)p->leaf_count, "data_tensors",
                     (json_int_t)p->data_count, "ranges", vd_ranges_json(p));
}

vd_status vd_show_program(const char *path, bool json, vd_err *err) {
    vd_program p = {0};
    vd_buf bytes = {0};
    vd_err why = {0};
    vd_hash hash, structure;
    vd_status status = vd_read_file(path, VD_PROGRAM_BYTES_MAX, &bytes, err);
    if (status == VD_OK) {
        status = vd_program_decode(bytes.data, bytes.size, &p, &why);
        if (status != VD_OK)
            vd_fail(err, status, "%s: %s", path, why.text);
    }
    if (status == VD_OK)
        status = vd_program_hash(&p, &hash, err);
    if (status == VD_OK)
        status = vd_program_structure(&p, &structure, err);
    if (status == VD_OK && json)
        vd_print_json(program_json(&p, &hash, &structure));
    else if (status == VD_OK)
        print_program(&p, &hash, &structure);
    vd_program_free(&p);
    vd_buf_free(&bytes);
    return status;
}
