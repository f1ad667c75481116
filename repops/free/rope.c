#include "repops/free/kernel.h"

const ro_free_kernel *RO_FREE_NAME(ro_free_rope)(int op) {
    (void)op;
    return NULL;
}
