/* Signed notes. */
#include "tests/fuzz/fuzz.h"

#define TYPE "application/vnd.verde.question+json"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_public_key mine, signer;
    vd_buf payload = {0}, note = {0}, again = {0};
    vd_err err;
    vd_key_public(fuzz_key(), &mine);
    (void)!vd_note_signer(data, size, 1 << 20, &signer, &err);
    (void)!vd_note_open(data, size, 1 << 20, TYPE, &mine, &payload, &err);
    vd_buf_free(&payload);
    /* Any bytes come back unchanged after signing and opening. */
    if (vd_note_sign(fuzz_key(), TYPE, data, size, &note, &err) == VD_OK)
        fuzz_need(vd_note_open(note.data, note.size, note.size, TYPE, &mine, &again, &err) ==
                          VD_OK &&
                      fuzz_equal(&again, data, size),
                  "a note of ours is not read");
    vd_buf_free(&note);
    vd_buf_free(&again);
    return 0;
}
