#include "repops/free/kernel.h"

ro_free_find RO_FREE_NAME(ro_free_kernel); /* for repops/src/free_kernels.c, which names them all */

const ro_free_kernel *RO_FREE_NAME(ro_free_kernel)(int op) {
    static ro_free_find *const families[] = {
        RO_FREE_NAME(ro_free_products),    RO_FREE_NAME(ro_free_conv),
        RO_FREE_NAME(ro_free_elementwise), RO_FREE_NAME(ro_free_functions),
        RO_FREE_NAME(ro_free_rows),        RO_FREE_NAME(ro_free_columns),
        RO_FREE_NAME(ro_free_norm),        RO_FREE_NAME(ro_free_softmax),
        RO_FREE_NAME(ro_free_attention),   RO_FREE_NAME(ro_free_optimizer),
        RO_FREE_NAME(ro_free_pooling),     RO_FREE_NAME(ro_free_batchnorm),
        RO_FREE_NAME(ro_free_embedding),   RO_FREE_NAME(ro_free_rope)};
    for (int i = 0; i < (int)(sizeof families / sizeof families[0]); i++) {
        const ro_free_kernel *kernel = families[i](op);
        if (kernel)
            return kernel;
    }
    return NULL;
}
