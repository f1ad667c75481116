/* Fuzz targets: parsers of bytes that may come from anybody. Each is a C file with the function of
 * libFuzzer; `make fuzz` runs it with new inputs, `make test` with the kept ones (replay.c). */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "verde/commit/commit.h"
#include "verde/graph/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts with the sentence unless `holds`. */
void fuzz_need(bool holds, const char *sentence);
/* Returns the path of a file with these bytes, which exists until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);
/* Returns a folder that only has this file, until the next call. */
const char *fuzz_folder(const char *name, const uint8_t *data, size_t size);
/* Returns the same key each time. */
const vd_key *fuzz_key(void);
/* Returns the program of models/jobs/toy.yaml, with data of another size. The caller must not free
 * it. */
const vd_program *fuzz_program(void);
bool fuzz_equal(const vd_buf *a, const void *bytes, size_t size);

#endif
