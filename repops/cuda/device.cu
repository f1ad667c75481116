/* A CUDA device as librepops sees it: opening, memory, errors, and the table of operators. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "repops/cuda/cuda.cuh"

/* ---- errors ---- */

ro_status ro_cuda_fail(ro_cuda *d, ro_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(d->error, sizeof d->error, format, args);
    va_end(args);
    return status;
}

ro_status ro_cuda_check(ro_cuda *d, cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return RO_OK;
    (void)cudaGetLastError(); /* otherwise the next call would report it again */
    return ro_cuda_fail(d, RO_ERR_DEVICE, "cuda:%d: %s: %s", d->index, what,
                        cudaGetErrorString(error));
}

/* Clears an error of no interest, so that neither the next launch nor the program sees it. */
static void ignore(cudaError_t error) {
    if (error != cudaSuccess)
        (void)cudaGetLastError();
}

ro_status ro_cuda_launched(ro_cuda *d, const char *what) {
    return ro_cuda_check(d, cudaGetLastError(), what);
}

/* ---- memory ---- */

enum { CALLERS_ALIGNMENT = 64 };

static ro_status borrow(ro_cuda *d, size_t size, void **out) {
    void *block = d->lend(d->user, size ? size : 1, d->stream);
    if (!block)
        return ro_cuda_fail(d, RO_ERR_DEVICE,
                            "cuda:%d: no memory for %zu bytes: device_alloc has none", d->index,
                            size);
    if (reinterpret_cast<uintptr_t>(block) % CALLERS_ALIGNMENT != 0) {
        d->give_back(d->user, block, d->stream);
        return ro_cuda_fail(d, RO_ERR_ARG,
                            "cuda:%d: device_alloc gave %p, which is not aligned to 64 bytes",
                            d->index, block);
    }
    *out = block;
    return RO_OK;
}

/* Allocates in stream order from the context's pool, which keeps freed memory until it is
 * destroyed: after the first step of a training run no allocation asks the driver. */
ro_status ro_cuda_alloc(ro_cuda *d, size_t size, void **out) {
    char what[64];
    *out = nullptr;
    if (d->lend)
        return borrow(d, size, out);
    const cudaError_t error = cudaMallocFromPoolAsync(out, size ? size : 1, d->pool, d->stream);
    snprintf(what, sizeof what, "no memory for %zu bytes", size);
    return ro_cuda_check(d, error, what);
}

void ro_cuda_free(ro_cuda *d, void *block) {
    if (block && d->give_back)
        d->give_back(d->user, block, d->stream);
    else if (block)
        ignore(cudaFreeAsync(block, d->stream));
}

/* ---- the functions ---- */

static ro_cuda *of(ro_device *device) {
    return static_cast<ro_cuda *>(device);
}

/* While such an object lives, and its status is RO_OK, the device is the calling thread's current
 * one; another context, or the program, may have chosen another. A thread that never chose has
 * device 0, and the runtime does not tell: going back to 0 then initialises it, which takes time
 * and memory once, if the context is on another device. */
class current_device {
    int before = -1;

  public:
    ro_status status = RO_OK;

    explicit current_device(ro_cuda *d) {
        int now = 0;
        status = ro_cuda_check(d, cudaGetDevice(&now), "device");
        if (status != RO_OK || now == d->index)
            return;
        status = ro_cuda_check(d, cudaSetDevice(d->index), "device");
        before = now;
    }
    ~current_device() {
        if (before >= 0)
            ignore(cudaSetDevice(before));
    }
    current_device(const current_device &) = delete;
};

/* Makes a function for the table that calls f with its device current. */
template <auto f> struct entry;
template <class... A, ro_status (*f)(ro_cuda *, A...)> struct entry<f> {
    static ro_status call(ro_device *device, A... arguments) {
        const current_device here(of(device));
        return here.status == RO_OK ? f(of(device), arguments...) : here.status;
    }
};

static void close_device(ro_device *device) {
    ro_cuda *d = of(device);
    const current_device here(d);
    if (d->stream && d->own_stream) {
        ignore(cudaStreamSynchronize(d->stream));
        ignore(cudaStreamDestroy(d->stream));
    }
    if (d->pool)
        ignore(cudaMemPoolDestroy(d->pool));
    free(d);
}

#define RO_OPERATOR(number, NAME, name, ...)                                                       \
    extern RO_HIDDEN ro_cuda_operator *const ro_cuda_kernel_##name;
#include "repops/src/operators.def"

#define RO_OPERATOR(number, NAME, name, ...)                                                       \
    case number: return ro_cuda_kernel_##name;

static ro_cuda_operator *operator_of(int op) {
    switch (op) {
#include "repops/src/operators.def"
    default: return nullptr; /* experimental operators, which this library does not have */
    }
}

static ro_status device_run(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    ro_cuda_operator *f = operator_of(call->op);
    if (!f)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: there is no operator %s",
                            ro_op_describe(call->op)->name);
    return f(d, call, in, out);
}

static void free_block(ro_device *device, void *block) {
    const current_device here(of(device));
    ro_cuda_free(of(device), block);
}

static ro_status wait(ro_cuda *d) {
    return ro_cuda_check(d, cudaStreamSynchronize(d->stream), "wait");
}

static ro_status transfer(ro_cuda *d, void *to, const void *from, size_t size, cudaMemcpyKind kind,
                          const char *what) {
    if (size == 0)
        return RO_OK;
    return ro_cuda_check(d, cudaMemcpyAsync(to, from, size, kind, d->stream), what);
}

/* Returns whether the runtime has copied host memory when cudaMemcpyAsync returns: it stages
 * pageable memory, unless the device can read that itself. */
static bool is_staged(const ro_cuda *d, const void *from) {
    cudaPointerAttributes attributes;
    if (d->reads_pageable)
        return false;
    const cudaError_t error = cudaPointerGetAttributes(&attributes, from);
    ignore(error);
    return error == cudaSuccess && attributes.type == cudaMemoryTypeUnregistered;
}

static ro_status write(ro_cuda *d, void *to, const void *from, size_t size) {
    const ro_status status = transfer(d, to, from, size, cudaMemcpyHostToDevice, "write");
    return status != RO_OK || size == 0 || is_staged(d, from) ? status : wait(d);
}

static ro_status read(ro_cuda *d, void *to, const void *from, size_t size) {
    const ro_status status = transfer(d, to, from, size, cudaMemcpyDeviceToHost, "read");
    return status == RO_OK ? wait(d) : status;
}

static ro_status copy(ro_cuda *d, void *to, const void *from, size_t size) {
    return transfer(d, to, from, size, cudaMemcpyDeviceToDevice, "copy");
}

static size_t peak(ro_device *device) {
    uint64_t bytes = 0;
    if (!of(device)->pool)
        return 0;
    const cudaError_t error =
        cudaMemPoolGetAttribute(of(device)->pool, cudaMemPoolAttrUsedMemHigh, &bytes);
    ignore(error);
    return error == cudaSuccess ? (size_t)bytes : 0;
}

static size_t available(ro_device *device) {
    size_t bytes = 0, all;
    const current_device here(of(device));
    const cudaError_t error = cudaMemGetInfo(&bytes, &all);
    ignore(error);
    return here.status == RO_OK && error == cudaSuccess ? bytes : 0;
}

static size_t packed_size(ro_device *device, const ro_linear_layer *layer, ro_packed_operand side) {
    return ro_fixed_packed_size(of(device), layer, side);
}

static void check(ro_device *device, const ro_guard *guard) {
    of(device)->guard = guard ? *guard : ro_guard{};
}

static void plain(ro_device *device, int on) {
    of(device)->plain = on != 0;
}

static ro_status free_values(ro_cuda *d, const ro_free_values *values) {
    return (values->f32 ? ro_cuda_free_f32 : ro_cuda_free_f64)(d, values);
}

static const ro_device_functions functions = {close_device,
                                              entry<device_run>::call,
                                              entry<ro_cuda_sgemm>::call,
                                              entry<ro_cuda_linear>::call,
                                              packed_size,
                                              entry<ro_fixed_linear_pack>::call,
                                              entry<ro_fixed_linear_of_packed>::call,
                                              entry<ro_cuda_attention_forward>::call,
                                              entry<ro_cuda_attention_backward>::call,
                                              entry<ro_cuda_cross_entropy>::call,
                                              entry<ro_cuda_adamw>::call,
                                              entry<ro_cuda_adamw_bf16>::call,
                                              entry<ro_cuda_sgd>::call,
                                              entry<ro_cuda_layer_norm>::call,
                                              entry<ro_cuda_layer_norm_backward>::call,
                                              entry<ro_cuda_softmax>::call,
                                              entry<ro_cuda_softmax_backward>::call,
                                              entry<ro_cuda_log_softmax>::call,
                                              entry<ro_cuda_log_softmax_backward>::call,
                                              entry<ro_cuda_embedding_backward>::call,
                                              entry<ro_cuda_rotary>::call,
                                              entry<ro_cuda_alloc>::call,
                                              free_block,
                                              entry<write>::call,
                                              entry<read>::call,
                                              entry<copy>::call,
                                              entry<wait>::call,
                                              entry<ro_cuda_tree_roots>::call,
                                              entry<free_values>::call,
                                              peak,
                                              available,
                                              check,
                                              plain};

/* ---- opening ---- */

/* Creates a separate pool: it does not count what the program's other contexts use, and destroying
 * it frees everything. */
static ro_status create_pool(ro_cuda *d) {
    cudaMemPoolProps properties = {};
    uint64_t keep = UINT64_MAX;
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = d->index;
    const ro_status status =
        ro_cuda_check(d, cudaMemPoolCreate(&d->pool, &properties), "memory pool");
    if (status != RO_OK)
        return status;
    return ro_cuda_check(
        d, cudaMemPoolSetAttribute(d->pool, cudaMemPoolAttrReleaseThreshold, &keep), "memory pool");
}

/* Formats "GPU-8a1f...": 8, 4, 4, 4 and 12 digits. */
static void describe_uuid(ro_cuda *d, const char bytes[16]) {
    char *at = d->uuid + sprintf(d->uuid, "GPU-");
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      (unsigned char)bytes[i]);
}

static void describe(ro_cuda *d, const cudaDeviceProp *properties, int driver) {
    describe_uuid(d, properties->uuid.bytes);
    d->multiprocessors = properties->multiProcessorCount;
    d->shared_memory = (int)properties->sharedMemPerBlockOptin;
    d->shared_of_all = (int)properties->sharedMemPerMultiprocessor;
    d->shared_reserve = (int)properties->reservedSharedMemPerBlock;
    d->reads_pageable = properties->pageableMemoryAccess != 0;
    d->has_wgmma = ro_wgmma_built(properties->major, properties->minor);
    snprintf(d->name, sizeof d->name, "%.50s (sm_%d%d, driver for CUDA %d.%d)", properties->name,
             properties->major, properties->minor, driver / 1000, driver % 1000 / 10);
}

/* AdamW's arguments, the parameters' addresses, exceed 4 KiB, which drivers accept from 12.1 on. */
enum { OLDEST_ARCHITECTURE = 75, OLDEST_DRIVER = 12010 };

static ro_status check_device(ro_cuda *d, const cudaDeviceProp *properties, int driver) {
    if (driver < OLDEST_DRIVER)
        return ro_cuda_fail(d, RO_ERR_DEVICE,
                            "cuda:%d: the driver is too old: CUDA 12.1 is needed, on %s", d->index,
                            d->name);
    if (10 * properties->major + properties->minor < OLDEST_ARCHITECTURE)
        return ro_cuda_fail(d, RO_ERR_DEVICE,
                            "cuda:%d: the device is too old: sm_75 is needed, on %s", d->index,
                            d->name);
    if (!d->lend && !properties->memoryPoolsSupported)
        return ro_cuda_fail(d, RO_ERR_DEVICE,
                            "cuda:%d: no memory pools on %s, as on some virtual GPUs: a context "
                            "allocates from one of its own",
                            d->index, d->name);
    return RO_OK;
}

static ro_status open_stream(ro_cuda *d) {
    cudaDeviceProp properties;
    int driver = 0;
    const current_device here(d);
    ro_status status = here.status;
    if (status == RO_OK)
        status = ro_cuda_check(d, cudaGetDeviceProperties(&properties, d->index), "properties");
    if (status == RO_OK)
        status = ro_cuda_check(d, cudaDriverGetVersion(&driver), "driver");
    if (status != RO_OK)
        return status;
    describe(d, &properties, driver);
    status = check_device(d, &properties, driver);
    if (status == RO_OK && !d->lend)
        status = create_pool(d);
    d->own_stream = !d->stream;
    if (status == RO_OK && d->own_stream)
        status = ro_cuda_check(d, cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking),
                               "stream");
    return status;
}

static void take_options(ro_cuda *d, const ro_options *options) {
    d->stream = static_cast<cudaStream_t>(options->stream);
    d->lend = options->device_alloc;
    d->give_back = options->device_free;
    d->user = options->user;
}

/* Explains why a device is missing. Within a major version the driver may be older than the
 * toolkit, except for code that the driver compiles. */
static void say_missing(char *why, size_t size, int index, cudaError_t error) {
    int driver = 0;
    const bool old =
        error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess;
    if (old && driver == 0)
        snprintf(why, size, "cuda:%d: this machine has no NVIDIA driver", index);
    else if (old)
        snprintf(why, size, "cuda:%d: %s: it is for CUDA %d.%d, this library was built by %d.%d",
                 index, cudaGetErrorString(error), driver / 1000, driver % 1000 / 10,
                 CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else
        snprintf(why, size, "cuda:%d: %s", index,
                 error != cudaSuccess ? cudaGetErrorString(error)
                                      : "this machine has fewer devices");
}

extern "C" RO_API ro_cuda_open_function ro_cuda_open_device;

extern "C" ro_status ro_cuda_open_device(const char *build, int index, const ro_options *options,
                                         ro_device **out, char *why, size_t why_size) {
    int count = 0;
    *out = nullptr;
    if (strcmp(build, ro_build()) != 0) {
        snprintf(why, why_size, "cuda: librepops is %s, librepops_cuda %s: they must be one build",
                 build, ro_build());
        return RO_ERR_DEVICE;
    }
    const cudaError_t error = cudaGetDeviceCount(&count);
    ignore(error);
    if (error != cudaSuccess || index >= count) {
        say_missing(why, why_size, index, error);
        return RO_ERR_DEVICE;
    }
    ro_cuda *d = static_cast<ro_cuda *>(calloc(1, sizeof *d));
    if (!d) {
        snprintf(why, why_size, "cuda: out of memory");
        return RO_ERR_MEMORY;
    }
    d->functions = &functions;
    d->index = index;
    take_options(d, options);
    const ro_status status = open_stream(d);
    if (status != RO_OK) {
        snprintf(why, why_size, "%s", d->error);
        close_device(d);
        return status;
    }
    *out = d;
    return RO_OK;
}
