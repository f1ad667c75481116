/* This file hashes a state's file in blocks, on all threads. */
#include "verde/exec/state_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS_A_THREAD = 32 }; /* per thread, between two calls of `progress` */

/* A block of a tensor, or its shorter last one. */
typedef struct {
    uint64_t at; /* offset in the file */
    uint32_t size;
} state_block;

typedef struct {
    const char *path;
    int fd;
    state_block *block;
    vd_hash *root; /* one per block */
    uint64_t count;
    atomic_bool failed;
    vd_err err; /* first error of a block */
} reading;

uint64_t vd_state_bytes(const vd_program *program) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < program->leaf_count; i++)
        total += vd_shape_bytes(&program->leaf[i].shape);
    return total;
}

static vd_status open_state(const char *path, const vd_program *program, int *fd, vd_err *err) {
    const uint64_t expected = vd_state_bytes(program);
    uint64_t size;
    vd_status status = vd_open_file(path, fd, &size, err);
    if (status == VD_ERR_USAGE) /* a missing or unreadable file is not the run's */
        status = vd_fail(err, VD_ERR_PEER, "expected a state: %s", err->text);
    if (status == VD_OK && size != expected) {
        status = vd_fail(err, VD_ERR_PEER, "%s: expected %llu bytes of a state, found %llu", path,
                         (unsigned long long)expected, (unsigned long long)size);
        close(*fd);
    }
    return status;
}

vd_status vd_state_file_fits(const char *path, const vd_program *program, vd_err *err) {
    int fd;
    vd_status status = open_state(path, program, &fd, err);
    if (status == VD_OK)
        close(fd);
    return status;
}

/* ---- blocks ---- */

uint64_t vd_tensor_blocks(const ro_shape *shape) {
    return (vd_shape_bytes(shape) + VD_BLOCK_BYTES - 1) / VD_BLOCK_BYTES;
}

static vd_status plan(reading *r, const vd_program *program, vd_err *err) {
    uint64_t at = 0, n = 0;
    for (uint32_t i = 0; i < program->leaf_count; i++)
        r->count += vd_tensor_blocks(&program->leaf[i].shape);
    r->block = calloc(r->count, sizeof *r->block);
    r->root = calloc(r->count, sizeof *r->root);
    if (!r->block || !r->root)
        return vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", r->path);
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        uint64_t left = vd_shape_bytes(&program->leaf[i].shape);
        for (uint32_t size; left > 0; left -= size, at += size) {
            size = left < VD_BLOCK_BYTES ? (uint32_t)left : VD_BLOCK_BYTES;
            r->block[n++] = (state_block){at, size};
        }
    }
    return VD_OK;
}

static vd_status read_block(const reading *r, const state_block *b, uint8_t *bytes, vd_err *err) {
    for (uint32_t have = 0; have < b->size;) {
        ssize_t got = pread(r->fd, bytes + have, b->size - have, (off_t)(b->at + have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return vd_fail(err, VD_ERR_LOCAL, "%s: %s", r->path,
                           got ? strerror(errno) : "became shorter while it was read");
        have += (uint32_t)got;
    }
    return VD_OK;
}

static vd_status hash_block(const reading *r, uint64_t i, uint8_t *bytes, vd_err *err) {
    vd_status status = read_block(r, &r->block[i], bytes, err);
    return status == VD_OK ? vd_root_of_bytes(NULL, bytes, r->block[i].size, &r->root[i], err)
                           : status;
}

static void hash_blocks(void *user, int64_t first, int64_t last, int worker) {
    reading *r = user;
    (void)worker;
    vd_err err = {0};
    uint8_t *bytes = malloc(VD_BLOCK_BYTES);
    vd_status status = bytes ? VD_OK : vd_fail(&err, VD_ERR_LOCAL, "%s: out of memory", r->path);
    for (int64_t i = first; i < last && status == VD_OK; i++)
        status = hash_block(r, (uint64_t)i, bytes, &err);
    free(bytes);
    if (status != VD_OK && !atomic_exchange(&r->failed, true))
        r->err = err;
}

typedef struct {
    reading *reading;
    int64_t first;
} piece;

static void hash_piece(void *user, int64_t first, int64_t last, int worker) {
    const piece *p = user;
    hash_blocks(p->reading, p->first + first, p->first + last, worker);
}

static uint64_t bytes_of(const reading *r, int64_t first, int64_t last) {
    const state_block *end = &r->block[last - 1];
    return end->at + end->size - r->block[first].at;
}

static vd_status hash_all(reading *r, vd_hashed *hashed, vd_err *err) {
    ro_ctx *ro = hashed->check->exec->ro;
    const int64_t count = (int64_t)r->count, most = (int64_t)ro_ctx_threads(ro) * BLOCKS_A_THREAD;
    for (int64_t first = 0, last; first < count; first = last) {
        if (hashed->check->stop && atomic_load(hashed->check->stop))
            return vd_fail(err, VD_ERR_TIMEOUT, "stopped while it hashed %s", r->path);
        last = count - first < most ? count : first + most;
        const uint64_t bytes = bytes_of(r, first, last);
        piece p = {r, first};
        ro_parallel_for(ro, last - first, 1, 1e-3 * (double)bytes, hash_piece, &p);
        if (atomic_load(&r->failed))
            return vd_fail(err, r->err.status, "%s", r->err.text);
        hashed->done += bytes;
        if (hashed->check->progress)
            hashed->check->progress(hashed->check->user, hashed->done, hashed->total);
    }
    return VD_OK;
}

/* ---- from blocks to leaves ---- */

/* Computes the commitments. RFC 6962 splits at powers of two, so the tree over a tensor's blocks is
 * the upper part of the tree over its leaves. */
static vd_status join(const vd_program *program, const vd_hash *block, vd_hash *tensor,
                      vd_err *err) {
    vd_hash root;
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < program->leaf_count && status == VD_OK; i++) {
        const ro_shape *shape = &program->leaf[i].shape;
        status = vd_root_of_leaves(block, vd_tensor_blocks(shape), &root, err);
        block += vd_tensor_blocks(shape);
        if (status == VD_OK && !vd_tensor_commit(shape, &root, &tensor[i]))
            status = vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a tensor");
    }
    return status;
}

void vd_state_blocks_free(vd_state_blocks *blocks) {
    free(blocks->tensor);
    free(blocks->block);
    *blocks = (vd_state_blocks){0};
}

vd_status vd_state_file_blocks(const char *path, vd_hashed *hashed, vd_state_blocks *out,
                               vd_err *err) {
    const vd_program *program = hashed->check->exec->program;
    reading r = {.path = path};
    *out = (vd_state_blocks){0};
    vd_status status = open_state(path, program, &r.fd, err);
    if (status != VD_OK)
        return status;
    status = plan(&r, program, err);
    if (status == VD_OK)
        status = hash_all(&r, hashed, err);
    if (status == VD_OK && !(out->tensor = calloc(program->leaf_count, sizeof *out->tensor)))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
    if (status == VD_OK)
        status = join(program, r.root, out->tensor, err);
    close(r.fd);
    free(r.block);
    out->block = r.root;
    out->count = r.count;
    if (status != VD_OK)
        vd_state_blocks_free(out);
    return status;
}

vd_status vd_state_file_root(const char *path, vd_hashed *hashed, vd_hash *root, vd_err *err) {
    vd_state_blocks blocks = {0};
    vd_tree tree = {0};
    vd_status status = vd_state_file_blocks(path, hashed, &blocks, err);
    if (status == VD_OK)
        status =
            vd_tree_of_hashes(&tree, blocks.tensor, hashed->check->exec->program->leaf_count, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, root, err);
    vd_tree_free(&tree);
    vd_state_blocks_free(&blocks);
    return status;
}
