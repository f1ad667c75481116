/* The interface between librepops and librepops_cuda.so: a device with memory of its own. It is
 * plain C, so that neither library needs the other's compiler. Private to repops. */
#ifndef REPOPS_SRC_DEVICE_H
#define REPOPS_SRC_DEVICE_H

#include "repops/guard.h"
#include "repops/src/jobs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ro_device ro_device;

/* Asks a device for the values of a free operator (SPEC 14.3): in binary64, or in binary32 without
 * bounds. All pointers are to device memory. */
typedef struct {
    const ro_call *call;
    const void *const *in;
    int f32;
    void *value;   /* double, or float */
    double *bound; /* E of SPEC 14.3; NULL: not wanted */
} ro_free_values;

/* All functions but close, free and those that return sizes return a status, and leave a sentence
 * in the device's `error` if it is not RO_OK. */
typedef struct {
    void (*close)(ro_device *device);
    ro_status (*run)(ro_device *device, const ro_call *call, const void *const *in, void *out);
    ro_status (*sgemm)(ro_device *device, const ro_products *products);
    ro_status (*linear)(ro_device *device, const ro_linear_job *job);
    size_t (*packed_size)(ro_device *device, const ro_linear_layer *layer, ro_packed_operand side);
    ro_status (*pack)(ro_device *device, const ro_pack_job *job);
    ro_status (*linear_of_packed)(ro_device *device, const ro_linear_job *job,
                                  const ro_linear_operands *in);
    ro_status (*attention_forward)(ro_device *device, const ro_attention_job *job);
    ro_status (*attention_backward)(ro_device *device, const ro_attention_grad_job *job);
    ro_status (*cross_entropy)(ro_device *device, const ro_cross_entropy_job *job);
    ro_status (*adamw)(ro_device *device, int64_t count, const ro_adamw_job *job);
    ro_status (*adamw_bf16)(ro_device *device, const ro_adamw_bf16_job *job);
    ro_status (*sgd)(ro_device *device, const ro_sgd_job *job);
    ro_status (*layer_norm)(ro_device *device, const ro_row_job *job);
    ro_status (*layer_norm_backward)(ro_device *device, const ro_row_grad_job *job);
    ro_status (*softmax)(ro_device *device, const ro_row_job *job);
    ro_status (*softmax_backward)(ro_device *device, const ro_row_grad_job *job);
    ro_status (*log_softmax)(ro_device *device, const ro_row_job *job);
    ro_status (*log_softmax_backward)(ro_device *device, const ro_row_grad_job *job);
    ro_status (*embedding_backward)(ro_device *device, const ro_embedding_job *job);
    ro_status (*rotary)(ro_device *device, const ro_rotary_job *job);
    ro_status (*alloc)(ro_device *device, size_t size, void **out);
    void (*free)(ro_device *device, void *block);
    ro_status (*write)(ro_device *device, void *to, const void *from, size_t size);
    ro_status (*read)(ro_device *device, void *to, const void *from, size_t size);
    ro_status (*copy)(ro_device *device, void *to, const void *from, size_t size);
    ro_status (*wait)(ro_device *device);
    ro_status (*tree_roots)(ro_device *device, int64_t count, const void *const *data,
                            const size_t *size, uint8_t *root);
    ro_status (*free_values)(ro_device *device, const ro_free_values *values);
    size_t (*peak)(ro_device *device);
    size_t (*available)(ro_device *device);
    /* Turns checks of fixed products and convolutions on; NULL turns them off. */
    void (*check)(ro_device *device, const ro_guard *guard);
    /* See ro_ctx_plain. */
    void (*plain)(ro_device *device, int on);
} ro_device_functions;

struct ro_device {
    const ro_device_functions *functions;
    char name[96];
    char uuid[48];
    char error[200];
};

/* Returns the version and a checksum of the headers that define what librepops and librepops_cuda
 * pass to each other. Each library is built with its own copy, from op.c. */
const char *ro_build(void);

/* The one exported function of librepops_cuda.so. `build` must equal its own ro_build. Of `options`
 * it uses the stream, the device allocator and `user`. On failure writes a sentence to `why`. */
typedef ro_status ro_cuda_open_function(const char *build, int index, const ro_options *options,
                                        ro_device **out, char *why, size_t why_size);
#define RO_CUDA_LIBRARY "librepops_cuda.so.1"

#ifdef __cplusplus
}
#endif
#endif
