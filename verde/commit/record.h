/* Node records: what a trace commits to for each node. PROTOCOL.md section 2.4. */
#ifndef VD_RECORD_H
#define VD_RECORD_H

#include "verde/commit/commit.h"

/* descriptor hash, number of inputs u32, their tensor commitments, the output's. */
void vd_record_encode(const vd_hash *descriptor, const vd_hash *input, uint32_t input_count,
                      const vd_hash *output, vd_buf *out);

typedef struct {
    vd_hash descriptor, output;
    vd_hash input[RO_MAX_INPUTS];
    uint32_t input_count;
} vd_node_record;

/* False unless the bytes are exactly one record. */
VD_MUST_USE bool vd_record_decode(const void *bytes, size_t size, vd_node_record *out);

/* H("verde/node/1", canonical bytes of the node). */
VD_MUST_USE bool vd_descriptor_hash(const void *node_bytes, size_t size, vd_hash *out);

/* A run of records, kept as bytes with their places; the trace's tree is over these leaves. */
typedef struct {
    vd_buf bytes;
    uint64_t *end; /* where record i ends; owned */
    uint64_t count, capacity;
} vd_records;

void vd_records_free(vd_records *records);
/* Bytes of memory of so many records that have so many inputs together; and room for them in an
 * empty list, so that nothing moves as it grows. */
uint64_t vd_records_bytes(uint64_t count, uint64_t inputs);
VD_MUST_USE bool vd_records_reserve(vd_records *records, uint64_t count, uint64_t inputs);
VD_MUST_USE bool vd_records_put(vd_records *records, const vd_hash *descriptor,
                                const vd_hash *input, uint32_t input_count, const vd_hash *output);
/* Adds any bytes as one more record. */
VD_MUST_USE bool vd_records_add(vd_records *records, const void *bytes, size_t size);
const uint8_t *vd_records_at(const vd_records *records, uint64_t index, size_t *size);
VD_MUST_USE vd_status vd_records_tree(const vd_records *records, vd_tree *tree, vd_err *err);

#endif
