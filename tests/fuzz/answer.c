/* Payloads of answers, signed as by a malicious provider. */
#include "tests/fuzz/fuzz.h"
#include "verde/protocol/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const vd_hash zeros;
    const vd_question question = {.kind = VD_ASK_OPEN, .depth = 8};
    const vd_job_programs job = {NULL, NULL};
    vd_stated stated;
    vd_public_key key;
    vd_buf note = {0};
    vd_err err;
    json_t *body = NULL;
    vd_key_public(fuzz_key(), &key);
    const vd_answer_to asked = {&key, &zeros, &zeros, vd_answer_most_of(&question, &job)};
    if (vd_note_sign(fuzz_key(), VD_TYPE_ANSWER, data, size, &note, &err) == VD_OK &&
        vd_answer_read(note.data, note.size, &asked, &stated, &body, &err) == VD_OK) {
        fuzz_need(json_is_object(body), "an answer is no object");
        vd_buf_free(&stated.payload);
    }
    json_decref(body);
    vd_buf_free(&note);
    return 0;
}
