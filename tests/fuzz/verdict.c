/* Payloads of verdicts, signed as by a malicious referee. */
#include "tests/fuzz/fuzz.h"
#include "verde/exec/source.h"
#include "verde/protocol/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_buf note = {0};
    vd_verdict verdict;
    vd_err err;
    if (vd_note_sign(fuzz_key(), VD_TYPE_VERDICT, data, size, &note, &err) == VD_OK &&
        vd_verdict_verify(note.data, note.size, NULL, vd_leaf_element, NULL, NULL, &verdict,
                          &err) == VD_OK) {
        fuzz_need(verdict.assignment.provider_count >= 1, "a verdict over nobody");
        vd_verdict_free(&verdict);
    }
    vd_buf_free(&note);
    return 0;
}
