/* All free operators in one source, since compiling takes most of its time for what they share. */
#include "repops/cuda/free/elements.cuh"
#include "repops/cuda/free/products.cuh"
#include "repops/cuda/free/sums.cuh"

#define ROW_FIXED(number, name)
#define ROW_FREE(number, name)                                                                     \
    case number:                                                                                   \
        return FREE_SPACE::free_operator_##name;
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, ...) ROW_##order(number, name)

static FREE_SPACE::free_operator *operator_of(int op) {
    switch (op) {
#include "repops/src/operators.def"
    default: return nullptr;
    }
}

ro_status FREE_NAME(ro_cuda_free)(ro_cuda *d, const ro_free_values *job) {
    FREE_SPACE::free_operator *f = operator_of(job->call->op);
    if (!f)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: no free kernel of %s",
                            ro_op_describe(job->call->op)->name);
    return f(d, job->call, job->in, {static_cast<real *>(job->value), job->bound});
}
