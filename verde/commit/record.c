/* This file reads and lists records of nodes, and makes the tree over them. PROTOCOL.md
 * section 2.4. */
#include "verde/commit/record.h"
#include "verde/commit/sha.h"

#include <stdlib.h>
#include <string.h>

void vd_record_encode(const vd_hash *descriptor, const vd_hash *input, uint32_t input_count,
                      const vd_hash *output, vd_buf *out) {
    vd_put(out, descriptor->b, VD_HASH_SIZE);
    vd_put_u32(out, input_count);
    for (uint32_t i = 0; i < input_count; i++)
        vd_put(out, input[i].b, VD_HASH_SIZE);
    vd_put(out, output->b, VD_HASH_SIZE);
}

static void get_hash(vd_cursor *in, vd_hash *hash) {
    const uint8_t *bytes = vd_get(in, VD_HASH_SIZE);
    if (bytes)
        memcpy(hash->b, bytes, VD_HASH_SIZE);
}

bool vd_record_decode(const void *bytes, size_t size, vd_node_record *out) {
    vd_cursor in = vd_cursor_of(bytes, size);
    get_hash(&in, &out->descriptor);
    out->input_count = vd_get_u32(&in);
    if (in.failed || out->input_count > RO_MAX_INPUTS)
        return false;
    for (uint32_t i = 0; i < out->input_count; i++)
        get_hash(&in, &out->input[i]);
    get_hash(&in, &out->output);
    return vd_cursor_done(&in);
}

bool vd_descriptor_hash(const void *node_bytes, size_t size, vd_hash *out) {
    return vd_hash_tagged("verde/node/1", node_bytes, size, out);
}

void vd_records_free(vd_records *records) {
    vd_buf_free(&records->bytes);
    free(records->end);
    *records = (vd_records){0};
}

enum { FIXED_BYTES = VD_HASH_SIZE + 4 + VD_HASH_SIZE }; /* of a record without inputs */

uint64_t vd_records_bytes(uint64_t count, uint64_t inputs) {
    const uint64_t places = count * sizeof *((vd_records *)NULL)->end;
    return places + count * FIXED_BYTES + inputs * VD_HASH_SIZE;
}

bool vd_records_reserve(vd_records *records, uint64_t count, uint64_t inputs) {
    const uint64_t bytes = count * FIXED_BYTES + inputs * VD_HASH_SIZE;
    *records = (vd_records){.end = malloc((size_t)(count + 1) * sizeof *records->end)};
    records->bytes.data = malloc((size_t)bytes + 1);
    if (!records->end || !records->bytes.data) {
        vd_records_free(records);
        return false;
    }
    records->capacity = count;
    records->bytes.capacity = (size_t)bytes;
    return true;
}

static bool reserve(vd_records *records) {
    if (records->count < records->capacity)
        return true;
    uint64_t capacity = records->capacity ? 2 * records->capacity : 256;
    uint64_t *grown = realloc(records->end, capacity * sizeof *grown);
    if (!grown)
        return false;
    records->end = grown;
    records->capacity = capacity;
    return true;
}

bool vd_records_put(vd_records *records, const vd_hash *descriptor, const vd_hash *input,
                    uint32_t input_count, const vd_hash *output) {
    if (!reserve(records))
        return false;
    vd_record_encode(descriptor, input, input_count, output, &records->bytes);
    records->end[records->count++] = records->bytes.size;
    return vd_buf_ok(&records->bytes);
}

bool vd_records_add(vd_records *records, const void *bytes, size_t size) {
    if (!reserve(records))
        return false;
    vd_put(&records->bytes, bytes, size);
    records->end[records->count++] = records->bytes.size;
    return vd_buf_ok(&records->bytes);
}

const uint8_t *vd_records_at(const vd_records *records, uint64_t index, size_t *size) {
    uint64_t start = index ? records->end[index - 1] : 0;
    *size = (size_t)(records->end[index] - start);
    return records->bytes.data + start;
}

/* Hashes record i as leaf i. */
static void hash_records(vd_sha *sha, const vd_records *records, const vd_tree *tree) {
    for (uint64_t i = 0; i < records->count; i++) {
        size_t size;
        const uint8_t *bytes = vd_records_at(records, i, &size);
        vd_sha_leaf(sha, bytes, size, &tree->leaf[i]);
    }
    vd_tree_fill(sha, tree, 0, tree->count, 1);
}

vd_status vd_records_tree(const vd_records *records, vd_tree *tree, vd_err *err) {
    vd_status status = vd_tree_create(tree, records->count, err);
    if (status != VD_OK)
        return status;
    vd_sha *sha = vd_sha_create();
    if (sha)
        hash_records(sha, records, tree);
    bool done = sha && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    if (done)
        return VD_OK;
    vd_tree_free(tree);
    return vd_fail(err, VD_ERR_LOCAL, "trace: out of memory");
}
