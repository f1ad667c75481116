/* The largest size that an answer may have: a little more than a valid one needs. A larger one is
 * rejected unread, so that a provider cannot make its answers expensive to read for the referee, or
 * for whoever verifies the verdict. PROTOCOL.md section 9. */
#include "verde/log/note.h"
#include "verde/exec/source.h"
#include "verde/log/log.h"
#include "verde/protocol/message.h"

/* Returns the number of hashes in the longest audit path: log2(leaves), rounded up. */
static size_t depth_of(uint64_t leaves) {
    size_t depth = 0;
    while (depth < VD_PROOF_MAX && leaves > UINT64_C(1) << depth)
        depth++;
    return depth;
}

/* Returns the size of leaf number `leaf` of the question's tree, in bytes. */
static size_t leaf_size(const vd_question *q, const vd_program *program, uint64_t leaf) {
    switch (q->tree.kind) {
    case VD_TREE_RUN: return program->rounding.bits ? 2 * VD_HASH_SIZE : VD_HASH_SIZE;
    case VD_TREE_TRACE: {
        const vd_graph *graph = vd_step_graph(program, q->tree.step);
        const int32_t inputs = vd_node_stored(graph, (uint32_t)leaf)->input_count;
        return 2 * VD_HASH_SIZE + sizeof(uint32_t) + (size_t)inputs * VD_HASH_SIZE;
    }
    case VD_TREE_TENSOR: return VD_LEAF_SIZE;
    case VD_TREE_FOLD: return VD_PART_BYTES;
    default: return VD_HASH_SIZE;
    }
}

#define BASE64_SIZE(bytes) (((bytes) + 2) / 3 * 4)
enum { SECTION_TEXT = BASE64_SIZE(VD_LOG_SECTION_BYTES) };
_Static_assert(VD_ANSWER_SPARE + 2 * VD_PROOF_MAX * VD_ANSWER_HASH + SECTION_TEXT <=
                   VD_ANSWER_BYTES_MAX,
               "an answer with a section of a log may be larger than answers may be");

/* Returns the limits of an answer that holds `hashes` hashes and no other list. */
static vd_answer_most plain(size_t hashes) {
    return (vd_answer_most){.elements = VD_SMALL_ELEMENTS + hashes,
                            .payload = VD_ANSWER_SPARE + hashes * VD_ANSWER_HASH};
}

/* Returns the limits of an answer with `count` proofs of leaves. If the question lists no leaves,
 * all are taken to be as large as leaf 0. */
static vd_answer_most proofs(const vd_question *q, const vd_job_programs *job, size_t count) {
    const size_t depth = depth_of(vd_job_leaves(job->program, job->collection, &q->tree));
    vd_answer_most most = plain(0);
    most.elements += count * (depth + 4);
    most.payload += count * (VD_ANSWER_LEAF + depth * VD_ANSWER_HASH);
    for (size_t i = 0; i < count; i++)
        most.payload += BASE64_SIZE(leaf_size(q, job->program, q->leaf ? q->leaf[i] : 0));
    return most;
}

static vd_answer_most payload_of(const vd_question *q, const vd_job_programs *job) {
    switch (q->kind) {
    case VD_ASK_OPEN: return plain((size_t)1 << q->depth);
    case VD_ASK_PROVE: return proofs(q, job, q->leaf_count);
    case VD_ASK_SUBRUN: return proofs(q, job, 2);
    case VD_ASK_NOTE: {
        vd_answer_most most = plain(0);
        most.payload += 2 * VD_LOG_NOTE_MAX; /* a JSON string, which may escape a byte */
        return most;
    }
    case VD_ASK_SECTION: {
        vd_answer_most most = plain(2 * VD_PROOF_MAX);
        most.payload += SECTION_TEXT; /* no other answer may be as large */
        return most;
    }
    default: return plain(0);
    }
}

vd_answer_most vd_answer_most_of(const vd_question *q, const vd_job_programs *job) {
    vd_answer_most most = payload_of(q, job);
    most.note = VD_ANSWER_SPARE + BASE64_SIZE(most.payload);
    return most;
}
