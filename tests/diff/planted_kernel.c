/* A deliberate bug, for tests/system/diff.sh: a `verde` whose scalar kernel of gelu's gradient gets
 * one bit of one element wrong every time, as if a compiler had broken it. */
#include <string.h>

#include "repops/op_function.h"
#include "repops/src/backend.h"

void __real_ro_table_scalar(ro_table *table);
void __wrap_ro_table_scalar(ro_table *table);

enum { ELEMENT = 1000 };
static void (*right)(const ro_job *job, int64_t first, int64_t last);

static void wrong(const ro_job *job, int64_t first, int64_t last) {
    uint32_t bits;
    right(job, first, last);
    if (first > ELEMENT || last <= ELEMENT)
        return;
    char *at = (char *)job->out + ELEMENT * sizeof bits;
    memcpy(&bits, at, sizeof bits);
    bits ^= 4;
    memcpy(at, &bits, sizeof bits);
}

/* Other backends' tables start as a copy of the scalar table, and replace kernels that they
 * have. */
void __wrap_ro_table_scalar(ro_table *table) {
    __real_ro_table_scalar(table);
    right = table->kernel[RO_OP_GELU_GRAD].range;
    table->kernel[RO_OP_GELU_GRAD].range = wrong;
}
