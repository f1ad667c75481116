/* Audit paths: index and count, a leaf, then hashes. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t at[2];
    vd_hash leaf;
    const vd_hash root = {{0}};
    vd_proof proof = {.length = 0};
    if (size < sizeof at + sizeof leaf)
        return 0;
    memcpy(at, data, sizeof at);
    memcpy(&leaf, data + sizeof at, sizeof leaf);
    data += sizeof at + sizeof leaf, size -= sizeof at + sizeof leaf;
    while (size >= sizeof *proof.path && proof.length < VD_PROOF_MAX) {
        memcpy(&proof.path[proof.length++], data, sizeof *proof.path);
        data += sizeof *proof.path, size -= sizeof *proof.path;
    }
    fuzz_need(!vd_proof_check(&proof, at[0], at[1], &leaf, &root) || vd_hash_equal(&leaf, &root),
              "a path leads to zeros");
    return 0;
}
