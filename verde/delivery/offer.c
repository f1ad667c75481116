/* This file keeps the proof of a finished run's last state, and answers downloads. */
#include "verde/delivery/offer.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/commit/json.h"
#include "verde/delivery/delivery.h"
#include "verde/exec/state_proof.h"

/* A tensor of the state. */
typedef struct {
    uint64_t bytes;
    uint64_t at;    /* offset in the file */
    uint64_t first; /* index of its first block in `block` */
} offered;

struct vd_offer {
    vd_hash run_root, state; /* the state's hash names its file */
    vd_buf proof;            /* text of proof.json */
    offered *tensor;
    uint32_t count;
    vd_hash *block;
    uint64_t block_count;
    int fd; /* the state's file */
    char losses[1100];
};

/* ---- making ---- */

static uint64_t blocks_of(const offered *t) {
    return (t->bytes + VD_BLOCK_BYTES - 1) / VD_BLOCK_BYTES;
}

/* Computes the offsets of tensors and blocks from the sizes of those before. */
static void place_tensors(vd_offer *o) {
    uint64_t at = 0;
    o->block_count = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        o->tensor[i].at = at;
        o->tensor[i].first = o->block_count;
        at += o->tensor[i].bytes;
        o->block_count += blocks_of(&o->tensor[i]);
    }
}

static vd_status offer_tensors(vd_offer *o, const vd_program *program, vd_err *err) {
    o->count = program->leaf_count;
    o->tensor = calloc(o->count, sizeof *o->tensor);
    if (!o->tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < o->count; i++) {
        const ro_shape *shape = &program->leaf[i].shape;
        if (vd_tensor_blocks(shape) > VD_TENSOR_BLOCKS_MAX)
            return vd_fail(err, VD_ERR_USAGE, "tensor %s has more than %d MiB, and is not offered",
                           program->leaf[i].name, VD_TENSOR_BLOCKS_MAX);
        o->tensor[i].bytes = vd_shape_bytes(shape);
    }
    place_tensors(o);
    return VD_OK;
}

static vd_status offer_proof(vd_offer *o, const vd_check *run, const vd_hash *tensor, vd_err *err) {
    vd_state_proof proof = {0};
    vd_status status =
        vd_state_proof_make(run->exec, run->log, run->log->count - 1, tensor, &proof, err);
    if (status != VD_OK)
        return status;
    o->run_root = proof.run_root;
    status = vd_state_proof_put(&proof, &o->proof, err);
    if (status == VD_OK && o->proof.size > VD_STATE_PROOF_BYTES_MAX)
        status = vd_fail(err, VD_ERR_USAGE, "a proof of %zu bytes; more than %d are not offered",
                         o->proof.size, VD_STATE_PROOF_BYTES_MAX);
    vd_state_proof_free(&proof);
    return status;
}

static vd_status offer_state(vd_offer *o, const vd_check *run, vd_err *err) {
    char path[1024];
    uint64_t size;
    vd_hashed hashed = {.check = run, .total = vd_state_bytes(run->exec->program)};
    vd_state_blocks blocks = {0};
    if (run->log->count != vd_run_leaves(run->exec->program))
        return vd_fail(err, VD_ERR_USAGE, "%s: the run is not finished", run->dir);
    o->state = run->log->state[run->log->count - 1];
    vd_store_state_path(path, run->dir, &o->state);
    vd_status status = vd_open_file(path, &o->fd, &size, err);
    if (status == VD_OK)
        status = vd_state_file_blocks(path, &hashed, &blocks, err);
    if (status == VD_OK)
        status = offer_proof(o, run, blocks.tensor, err);
    o->block = blocks.block;
    blocks.block = NULL;
    vd_state_blocks_free(&blocks);
    return status;
}

static vd_offer *new_offer(const char *dir, vd_err *err) {
    vd_offer *o = calloc(1, sizeof *o);
    if (!o) {
        vd_fail(err, VD_ERR_LOCAL, "out of memory");
        return NULL;
    }
    o->fd = -1;
    snprintf(o->losses, sizeof o->losses, "%.1000s/losses.jsonl", dir);
    return o;
}

vd_status vd_offer_create(const vd_check *run, vd_offer **out, vd_err *err) {
    *out = NULL;
    vd_offer *o = new_offer(run->dir, err);
    if (!o)
        return VD_ERR_LOCAL;
    vd_status status = offer_tensors(o, run->exec->program, err);
    if (status == VD_OK)
        status = offer_state(o, run, err);
    if (status == VD_OK)
        *out = o;
    else
        vd_offer_destroy(o);
    return status;
}

void vd_offer_destroy(vd_offer *o) {
    if (!o)
        return;
    if (o->fd >= 0)
        close(o->fd);
    vd_buf_free(&o->proof);
    free(o->tensor);
    free(o->block);
    free(o);
}

const vd_hash *vd_offer_run_root(const vd_offer *o) {
    return &o->run_root;
}

/* ---- files ---- */

static const char magic[] = "verde offer 1";

vd_status vd_offer_save(const vd_offer *o, const char *path, vd_err *err) {
    vd_buf out = {0};
    vd_put(&out, magic, sizeof magic);
    vd_put(&out, o->run_root.b, VD_HASH_SIZE);
    vd_put(&out, o->state.b, VD_HASH_SIZE);
    vd_put_u32(&out, o->count);
    for (uint32_t i = 0; i < o->count; i++)
        vd_put_u64(&out, o->tensor[i].bytes);
    vd_put_u32(&out, (uint32_t)o->proof.size);
    vd_put(&out, o->proof.data, o->proof.size);
    vd_put(&out, o->block, (size_t)o->block_count * VD_HASH_SIZE);
    vd_status status =
        !vd_buf_ok(&out) ? vd_fail(err, VD_ERR_LOCAL, "out of memory")
        : out.size > VD_OFFER_BYTES_MAX
            ? vd_fail(err, VD_ERR_USAGE, "a state of too many tensors is not offered")
            : vd_write_file(path, out.data, out.size, 0600, err);
    vd_buf_free(&out);
    return status;
}

static bool read_tensors(vd_offer *o, vd_cursor *c) {
    o->count = vd_get_u32(c);
    if (c->failed || o->count > (c->size - c->at) / 8)
        return false;
    o->tensor = calloc((size_t)o->count + 1, sizeof *o->tensor);
    for (uint32_t i = 0; o->tensor && i < o->count; i++) {
        o->tensor[i].bytes = vd_get_u64(c);
        if (o->tensor[i].bytes > (uint64_t)VD_TENSOR_BLOCKS_MAX * VD_BLOCK_BYTES)
            return false;
    }
    if (o->tensor)
        place_tensors(o);
    return o->tensor != NULL;
}

static bool read_rest(vd_offer *o, vd_cursor *c) {
    const size_t size = vd_get_u32(c);
    const uint8_t *proof = size <= VD_STATE_PROOF_BYTES_MAX ? vd_get(c, size) : NULL;
    const size_t left = proof ? c->size - c->at : 0;
    if (!proof || left / VD_HASH_SIZE != o->block_count || left % VD_HASH_SIZE != 0)
        return false;
    vd_put(&o->proof, proof, size);
    o->block = malloc(left + 1);
    if (o->block)
        memcpy(o->block, vd_get(c, left), left);
    return o->block && vd_buf_ok(&o->proof);
}

static bool read_offer(vd_offer *o, const vd_buf *text) {
    vd_cursor c = vd_cursor_of(text->data, text->size);
    const uint8_t *head = vd_get(&c, sizeof magic), *root = vd_get(&c, VD_HASH_SIZE),
                  *state = vd_get(&c, VD_HASH_SIZE);
    if (!head || !root || !state || memcmp(head, magic, sizeof magic) != 0)
        return false;
    memcpy(o->run_root.b, root, VD_HASH_SIZE);
    memcpy(o->state.b, state, VD_HASH_SIZE);
    return read_tensors(o, &c) && read_rest(o, &c);
}

vd_status vd_offer_load(const char *path, const char *dir, vd_offer **out, vd_err *err) {
    char state[1024];
    uint64_t size;
    vd_buf text = {0};
    vd_offer *o = new_offer(dir, err);
    *out = NULL;
    if (!o)
        return VD_ERR_LOCAL;
    vd_status status = vd_read_file(path, VD_OFFER_BYTES_MAX, &text, err);
    if (status == VD_OK && !read_offer(o, &text))
        status = vd_fail(err, VD_ERR_PEER, "%s: is no list of what a state has", path);
    vd_buf_free(&text);
    if (status == VD_OK) {
        vd_store_state_path(state, dir, &o->state);
        status = vd_open_file(state, &o->fd, &size, err);
    }
    if (status == VD_OK)
        *out = o;
    else
        vd_offer_destroy(o);
    return status;
}

/* ---- answering ---- */

static void offer_refuse(vd_response *response, int status, const char *why) {
    json_t *object = json_pack("{ss}", "error", why);
    response->status = object && vd_json_dump(object, &response->body) ? status : 500;
    response->content_type = "application/json";
    json_decref(object);
}

/* Parses a decimal number below `end`, without leading zeros, and moves *text behind it. */
static bool take_index(const char **text, uint64_t end, uint64_t *out) {
    const char *at = *text;
    for (*out = 0; *at >= '0' && *at <= '9' && *out < end; at++)
        *out = 10 * *out + (uint64_t)(*at - '0');
    const bool one_spelling = at > *text && (**text != '0' || at == *text + 1);
    *text = at;
    return one_spelling && *out < end;
}

static bool take_word(const char **text, const char *word) {
    const size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

static void offer_block(const vd_offer *o, const offered *t, uint64_t k, vd_response *response) {
    const uint64_t left = t->bytes - k * VD_BLOCK_BYTES;
    const size_t size = left < VD_BLOCK_BYTES ? (size_t)left : VD_BLOCK_BYTES;
    uint8_t *bytes = malloc(size);
    size_t have = 0;
    while (bytes && have < size) {
        const uint64_t at = t->at + k * VD_BLOCK_BYTES + have;
        const ssize_t got = pread(o->fd, bytes + have, size - have, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    if (bytes && have == size) {
        response->body = (vd_buf){.data = bytes, .size = size, .capacity = size};
        return;
    }
    free(bytes);
    offer_refuse(response, 503, "trouble of this provider: its state cannot be read");
}

static bool offer_tensor(const vd_offer *o, const char *rest, vd_response *response) {
    uint64_t leaf, k;
    if (!take_index(&rest, o->count, &leaf))
        return false;
    const offered *t = &o->tensor[leaf];
    const uint64_t blocks = blocks_of(t);
    if (strcmp(rest, "/hashes") == 0) {
        vd_put(&response->body, o->block + t->first, (size_t)blocks * VD_HASH_SIZE);
        return true;
    }
    if (!take_word(&rest, "/blocks/") || !take_index(&rest, blocks, &k) || *rest)
        return false;
    offer_block(o, t, k, response);
    return true;
}

static void offer_losses(const vd_offer *o, vd_response *response) {
    if (access(o->losses, F_OK) != 0)
        offer_refuse(response, 404, "the run has no losses");
    else if (vd_read_file(o->losses, VD_DELIVERED_LOSSES_MAX, &response->body, NULL) != VD_OK)
        offer_refuse(response, 404, "the run's losses are too large, or cannot be read");
}

void vd_offer_answer(const vd_offer *o, const char *rest, vd_response *response) {
    if (strcmp(rest, "/state") == 0) {
        vd_put(&response->body, o->proof.data, o->proof.size);
        response->content_type = "application/json";
    } else if (strcmp(rest, "/losses") == 0) {
        offer_losses(o, response);
    } else if (!take_word(&rest, "/state/") || !offer_tensor(o, rest, response)) {
        offer_refuse(response, 404, "the state has nothing there");
    }
}
