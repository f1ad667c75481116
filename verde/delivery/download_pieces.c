/* Chooses the next block to fetch, and records which are there. */
#include <stdlib.h>
#include <string.h>

#include "verde/delivery/download_internal.h"

vd_status vd_pieces_plan(vd_download *d, vd_err *err) {
    uint64_t bits = 0;
    d->tensor = calloc((size_t)d->target_count + 1, sizeof *d->tensor);
    if (!d->tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < d->target_count; i++) {
        vd_download_tensor *t = &d->tensor[i];
        const uint32_t leaf = d->target[i].leaf;
        t->shape = &d->proof->program.leaf[leaf].shape;
        t->commitment = &d->proof->tensor[leaf];
        t->blocks = t->left = vd_tensor_blocks(t->shape);
        if (t->blocks > VD_TENSOR_BLOCKS_MAX)
            return vd_fail(err, VD_ERR_USAGE, "tensor %s has more than %d MiB, and is not offered",
                           d->proof->program.leaf[leaf].name, VD_TENSOR_BLOCKS_MAX);
        t->first = bits;
        bits += t->blocks;
        d->progress.total += vd_shape_bytes(t->shape);
    }
    d->there = calloc((size_t)(bits / 8 + 1), 1);
    return d->there ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

void vd_pieces_free(vd_download *d) {
    for (uint32_t i = 0; d->tensor && i < d->target_count; i++)
        free(d->tensor[i].list);
    free(d->tensor);
    free(d->there);
    d->tensor = NULL;
    d->there = NULL;
    d->back_count = d->first_open = d->target_count = 0;
}

bool vd_pieces_done(vd_download *d) {
    while (d->first_open < d->target_count && d->tensor[d->first_open].left == 0)
        d->first_open++;
    return d->first_open == d->target_count;
}

static bool is_there(const vd_download *d, const vd_download_tensor *t, uint64_t block) {
    const uint64_t bit = t->first + block;
    return d->there[bit / 8] >> bit % 8 & 1;
}

static void fill_piece(const vd_download *d, uint32_t target, uint64_t block, vd_piece *out) {
    const vd_download_tensor *t = &d->tensor[target];
    *out = (vd_piece){.target = target, .block = block};
    if (t->list)
        out->expected = t->list[block];
}

/* Takes a block of the first tensor that has one to fetch, or the next tensor's list of hashes. */
static bool take_next(vd_download *d, vd_piece *out) {
    for (uint32_t i = d->first_open; i < d->target_count; i++) {
        vd_download_tensor *t = &d->tensor[i];
        const bool known = t->list || t->blocks == 1;
        if (known && t->next < t->blocks) {
            fill_piece(d, i, t->next++, out);
            return true;
        }
        if (!known && !t->listing && t->left > 0) {
            t->listing = true;
            *out = (vd_piece){.target = i, .list = true};
            return true;
        }
    }
    return false;
}

static bool is_wanted(const vd_download *d, const vd_piece *piece) {
    const vd_download_tensor *t = &d->tensor[piece->target];
    return piece->list ? !t->list && t->left > 0 : !is_there(d, t, piece->block);
}

/* Takes a piece that another provider was asked for some time ago and may not deliver any more. */
static bool take_late(vd_download *d, const vd_connection *c, vd_piece *out) {
    const double before = vd_seconds() - VD_DOWNLOAD_STEAL_S;
    const vd_connection *late = NULL;
    for (uint32_t i = 0; i < d->connection_count; i++) {
        const vd_connection *other = &d->connection[i];
        if (other->busy && other->provider != c->provider && other->since < before &&
            (!late || other->since < late->since) && is_wanted(d, &other->piece))
            late = other;
    }
    if (late)
        *out = late->piece;
    return late != NULL;
}

bool vd_pieces_take(vd_download *d, const vd_connection *c, vd_piece *out) {
    while (d->back_count > 0) {
        *out = d->back[--d->back_count];
        if (out->list || !is_there(d, &d->tensor[out->target], out->block))
            return true;
    }
    return take_next(d, out) || take_late(d, c, out);
}

void vd_pieces_back(vd_download *d, const vd_piece *piece) {
    if (piece->list)
        d->tensor[piece->target].listing = false;
    else if (d->back_count < VD_DOWNLOAD_THREADS_MAX)
        d->back[d->back_count++] = *piece;
}

void vd_pieces_listed(vd_download *d, const vd_piece *piece, vd_hash *list) {
    if (!is_wanted(d, piece)) { /* another connection was faster */
        free(list);
        return;
    }
    d->tensor[piece->target].list = list;
    d->tensor[piece->target].listing = false;
}

bool vd_pieces_there(vd_download *d, const vd_piece *piece, bool found) {
    vd_download_tensor *t = &d->tensor[piece->target];
    const uint64_t bit = t->first + piece->block;
    const uint64_t size = vd_block_size(t->shape, piece->block);
    if (is_there(d, t, piece->block))
        return false;
    d->there[bit / 8] |= (uint8_t)(1 << bit % 8);
    d->progress.done += size;
    d->progress.found += found ? size : 0;
    if (--t->left == 0) {
        free(t->list); /* pieces under way have the hash */
        t->list = NULL;
        t->listing = true;
    }
    return true;
}
