/* All free operators: one source, as most of the time of a compilation goes into what they share.
 */
#include "repops/cuda/free/elements.cuh"
#include "repops/cuda/free/products.cuh"
#include "repops/cuda/free/sums.cuh"

ro_status FREE_NAME(ro_cuda_free)(ro_cuda *d, const ro_free_values *job) {
    static FREE_SPACE::free_operator *table[RO_OP_END];
    static const bool filled = [] {
        FREE_SPACE::add_elements(table);
        FREE_SPACE::add_sums(table);
        FREE_SPACE::add_products(table);
        return true;
    }();
    (void)filled;
    if (!table[job->call->op])
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: no free kernel of %s",
                            ro_op_describe(job->call->op)->name);
    return table[job->call->op](d, job->call, job->in,
                                {static_cast<real *>(job->value), job->bound});
}
