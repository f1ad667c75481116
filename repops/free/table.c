#include "repops/free/kernel.h"

#define RO_OPERATOR(number, NAME, name, ...)                                                       \
    extern RO_HIDDEN const ro_free_kernel RO_FREE_NAME(ro_free_kernel_##name);
#include "repops/src/operators.def"

#define ROW_FIXED(number, name)
#define ROW_FREE(number, name) [number] = &RO_FREE_NAME(ro_free_kernel_##name),

static const ro_free_kernel *const table[RO_OP_END] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, ...) ROW_##order(number, name)
#include "repops/src/operators.def"
};

ro_free_find RO_FREE_NAME(ro_free_kernel); /* for repops/src/free_kernels.c, which lists them */

const ro_free_kernel *RO_FREE_NAME(ro_free_kernel)(int op) {
    return op > 0 && op < RO_OP_END ? table[op] : NULL;
}
