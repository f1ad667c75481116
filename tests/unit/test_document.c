/* The dispute that PROTOCOL.md takes its examples from. EXAMPLE=FILE saves its verdict, from which
 * tests/independent/appendix.py computes the numbers in the document. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/support/dispute.h"

static void keep(const vd_buf *verdict) {
    const char *path = getenv("EXAMPLE");
    FILE *file = path ? fopen(path, "wb") : NULL;
    cr_assert(!path || (file && fwrite(verdict->data, 1, verdict->size, file) == verdict->size),
              "EXAMPLE: cannot write it");
    if (file)
        cr_assert(fclose(file) == 0);
}

/* Six steps, a checkpoint after every third. The fault is one bit of one element of AdamW's first
 * moment. */
Test(document, has_a_dispute_of_two_providers) {
    const vd_fault fault = {VD_FAULT_ELEMENT, 4, 76, 255, 12};
    test_job job;
    test_provider honest, liar;
    test_job_open(&job, VD_MODEL_MLP, 6, 3);
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&liar, &job, 2, &fault);
    test_dispute d = {.job = &job, .side = {&honest.side, &liar.side}};
    test_settle(&d);
    test_expect_convicted(&d, 1, VD_GRADE_WRONG_OUTPUT, "the example");
    cr_expect(d.rounds == 17, "%u rounds", d.rounds);
    keep(&d.verdict);
    test_dispute_close(&d);
    test_provider_close(&liar);
    test_provider_close(&honest);
    test_job_close(&job);
}
