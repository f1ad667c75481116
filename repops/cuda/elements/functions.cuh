/* Functions of one element, SPEC.md section 6: static members, which can be template arguments. */
#ifndef REPOPS_CUDA_FUNCTIONS_CUH
#define REPOPS_CUDA_FUNCTIONS_CUH

#include "repops/cuda/cuda.cuh"

#define FUNCTION(name, expression)                                                                 \
    struct name {                                                                                  \
        static RO_DEVICE float of(float x) {                                                       \
            return expression;                                                                     \
        }                                                                                          \
    }
FUNCTION(exp_of, ro_exp(x));
FUNCTION(log_of, ro_log(x));
FUNCTION(sqrt_of, ro_canon(ro_sqrt(x)));
FUNCTION(rsqrt_of, ro_rsqrt(x));
FUNCTION(tanh_of, ro_tanh(x));
FUNCTION(erf_of, ro_erf(x));
FUNCTION(sigmoid_of, ro_sigmoid(x));
FUNCTION(silu_of, ro_canon(ro_silu(x)));
FUNCTION(gelu_of, ro_canon(ro_gelu(x)));
FUNCTION(gelu_erf_of, ro_gelu_erf(x));
FUNCTION(relu_of, ro_relu(x));
FUNCTION(abs_of, ro_canon(ro_abs(x)));

FUNCTION(gelu_slope, ro_gelu_slope(x));
FUNCTION(tanh_slope, ro_tanh_slope(x));
FUNCTION(erf_slope, ro_erf_slope(x));
FUNCTION(sigmoid_slope, ro_sigmoid_slope(x));
FUNCTION(silu_slope, ro_silu_slope(x));
FUNCTION(gelu_erf_slope, ro_gelu_erf_slope(x));
#undef FUNCTION

#endif
