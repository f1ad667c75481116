/* Records: what a trace commits to for each node. PROTOCOL.md section 2.4. */
#ifndef VD_RECORD_H
#define VD_RECORD_H

#include "verde/commit/commit.h"

/* Appends a record: descriptor hash, number of inputs as u32, their commitments, the output's. */
void vd_record_encode(const vd_hash *descriptor, const vd_hash *input, uint32_t input_count,
                      const vd_hash *output, vd_buf *out);

typedef struct {
    vd_hash descriptor, output;
    vd_hash input[RO_MAX_INPUTS];
    uint32_t input_count;
} vd_node_record;

/* Returns false unless the bytes are exactly one record. */
VD_MUST_USE bool vd_record_decode(const void *bytes, size_t size, vd_node_record *out);

/* H("verde/node/1", canonical bytes of the node). */
VD_MUST_USE bool vd_descriptor_hash(const void *node_bytes, size_t size, vd_hash *out);

/* Several records, kept as bytes with their ends; they are the leaves of the trace's tree. */
typedef struct {
    vd_buf bytes;
    uint64_t *end; /* end[i]: where record i ends; owned */
    uint64_t count, capacity;
} vd_records;

void vd_records_free(vd_records *records);
/* The memory of `count` records that have `inputs` inputs in all; and reserving it in an empty
 * list, so that the list never moves as it grows. */
uint64_t vd_records_bytes(uint64_t count, uint64_t inputs);
VD_MUST_USE bool vd_records_reserve(vd_records *records, uint64_t count, uint64_t inputs);
VD_MUST_USE bool vd_records_put(vd_records *records, const vd_hash *descriptor,
                                const vd_hash *input, uint32_t input_count, const vd_hash *output);
/* Appends any bytes as one record. */
VD_MUST_USE bool vd_records_add(vd_records *records, const void *bytes, size_t size);
const uint8_t *vd_records_at(const vd_records *records, uint64_t index, size_t *size);
VD_MUST_USE vd_status vd_records_tree(const vd_records *records, vd_tree *tree, vd_err *err);

#endif
