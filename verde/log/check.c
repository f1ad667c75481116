/* This file checks a run's logs against its checkpoints' commitments. */
#include <stdlib.h>

#include "verde/log/emitter.h"
#include "verde/log/program.h"

static vd_status read_sections(vd_log_file *file, const vd_graph *graph, vd_err *err) {
    const uint64_t count = vd_graph_sections(graph, graph->node_count);
    vd_status status = VD_OK;
    vd_buf bytes = {0};
    for (uint64_t i = 0; i < count && status == VD_OK; i++) {
        bytes.size = 0;
        status = vd_log_read_bytes(file, i, &bytes, err);
        if (status == VD_ERR_PEER) /* the trainer may have committed to a wrong section */
            status = VD_OK;
    }
    vd_buf_free(&bytes);
    return status;
}

static vd_status check_step(const vd_check *c, int64_t step, const vd_log_node *node, vd_hash *root,
                            vd_err *err) {
    const vd_program *p = c->exec->program;
    const vd_graph *graph = step < 0 ? &p->init : &p->step;
    const vd_log_run run = vd_rounded_schedule(&vd_log_kept_of(c->log)->rounding, p);
    vd_log_file *file = NULL;
    vd_log_done done;
    vd_status status =
        vd_log_open(c->dir, &run, step, node, vd_free_nodes(graph, NULL), NULL, &file, err);
    if (status != VD_OK)
        return status;
    vd_log_file_done(file, &done);
    *root = done.root;
    status = read_sections(file, graph, err);
    vd_log_close(file);
    return status;
}

static vd_status check_logs(const vd_check *c, uint32_t leaf, const vd_log_node *const node[2],
                            vd_hash *root, vd_err *err) {
    const int64_t first = leaf ? c->log->step[leaf - 1] : -1;
    const uint64_t count = leaf ? (uint64_t)(c->log->step[leaf] - first) : 1;
    const vd_fault *fault = &c->exec->fault;
    vd_tree tree = {0};
    vd_hash found;
    vd_status status = VD_OK;
    for (uint64_t i = 0; i < count && status == VD_OK; i++)
        status = c->stop && atomic_load(c->stop)
                     ? vd_fail(err, VD_ERR_TIMEOUT, "stopped while it read %s/log", c->dir)
                     : check_step(c, first + (int64_t)i, node[leaf != 0], &root[i], err);
    if (status == VD_OK)
        status = vd_tree_of_hashes(&tree, root, count, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, &found, err);
    vd_tree_free(&tree);
    if (status != VD_OK)
        return status;
    if (fault->kind == VD_FAULT_TWO_LOGS && c->log->step[leaf] > fault->step)
        found.b[0] ^= 1;
    if (!vd_hash_equal(&found, &c->log->emitted[leaf]))
        return vd_fail(err, VD_ERR_PEER,
                       "%s/log: the logs up to step %lld are not those of states[%u].logs in "
                       "run.json",
                       c->dir, (long long)c->log->step[leaf], leaf);
    return VD_OK;
}

vd_status vd_log_check_emitted(const vd_check *c, uint32_t first, uint32_t count, vd_err *err) {
    const vd_program *p = c->exec->program;
    vd_log_node *init = calloc(p->init.node_count + 1, sizeof *init);
    vd_log_node *step = calloc(p->step.node_count + 1, sizeof *step);
    vd_hash *root = calloc((size_t)p->checkpoint_interval + 1, sizeof *root);
    vd_status status = init && step && root ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK) {
        vd_free_nodes(&p->init, init);
        vd_free_nodes(&p->step, step);
    }
    const vd_log_node *const node[2] = {init, step};
    for (uint32_t i = first; i < first + count && status == VD_OK; i++)
        status = check_logs(c, i, node, root, err);
    free(init);
    free(step);
    free(root);
    return status == VD_ERR_USAGE ? vd_fail(err, VD_ERR_PEER, "%s", err->text) : status;
}
