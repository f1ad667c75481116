/* Questions: an accepted one has only one encoding, and is about a tree of the program. */
#include "tests/fuzz/fuzz.h"
#include "verde/protocol/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const vd_hash assignment;
    const vd_program *program = fuzz_program();
    vd_question question = {0};
    vd_buf again = {0};
    vd_err err;
    const vd_job_programs job = {.program = program};
    if (vd_question_read(data, size, &job, &assignment, &question, NULL, &err) == VD_OK) {
        char text[256];
        fuzz_need(question.kind < VD_ASK_SUBRUN || vd_tree_leaves(program, &question.tree) > 0,
                  "a question is about no tree");
        vd_question_print(&question, program, text, sizeof text);
        fuzz_need(vd_question_write(&question, &assignment, &again, &err) == VD_OK &&
                      fuzz_equal(&again, data, size),
                  "a question has two spellings");
        vd_question_free(&question);
    }
    vd_buf_free(&again);
    return 0;
}
