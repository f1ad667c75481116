/* Parsers, each fed with bytes that come from anybody. A target is one C file with the function of
 * libFuzzer; `make fuzz` runs it with new inputs, `make test` with the kept ones (replay.c). */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "verde/commit/commit.h"
#include "verde/graph/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts, with the sentence, unless it holds. */
void fuzz_need(bool holds, const char *sentence);
/* The path of a file with these bytes, until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);
/* A folder that is empty but for this file, until the next call. */
const char *fuzz_folder(const char *name, const uint8_t *data, size_t size);
/* The same key each time. */
const vd_key *fuzz_key(void);
/* The program of models/jobs/toy.yaml, with data of another size; borrowed. */
const vd_program *fuzz_program(void);
bool fuzz_equal(const vd_buf *a, const void *bytes, size_t size);

#endif
