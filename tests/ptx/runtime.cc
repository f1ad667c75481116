/* CUDA's runtime for objects that nvcc compiled, with only those functions that they call. Kernels
 * are those in the PTX files that PTX_MODULES names (FILE:FILE:...); the code in the objects is
 * ignored. Streams are in order, as each call returns when its work is done.
 *
 * PTX_SEED (1) fixes all orders; PTX_ARCH (80), PTX_SHARED (KiB of shared memory for a block) and
 * PTX_SMS (4) describe the device; PTX_REPORT: a file that gets a line for each kernel: launches,
 * file, name, and executed instructions. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mutex>
#include <set>

#include "tests/ptx/ptx.h"

namespace ptx {

struct binary { /* what an object registers */
    std::set<std::string> kernels;
    module *code = nullptr;
};

struct host_function {
    binary *home;
    std::string name;
    kernel *code = nullptr;
    int allowed = 48 << 10; /* bytes of dynamic shared memory */
    long launches = 0;
    uint64_t instructions = 0; /* of all threads */
};

struct pool {
    uint64_t used = 0, most = 0;
};

static std::recursive_mutex one_at_a_time;
typedef std::lock_guard<std::recursive_mutex> hold;

/* Global state: made before any object registers something, and never destroyed. */
struct all {
    std::vector<std::unique_ptr<module>> modules;
    std::map<const void *, host_function> functions;
    std::map<void *, pool *> owner; /* for each allocation */
    std::map<void *, uint64_t> sizes;
};
static all &known() {
    static all *const a = new all;
    return *a;
}

static int number_of(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}
static int architecture() {
    return number_of("PTX_ARCH", 80);
}
static int shared_most() {
    const int arch = architecture();
    return number_of("PTX_SHARED", arch < 80 ? 64 : arch < 90 ? 163 : 227) << 10;
}

/* ---- kernels ---- */

static void load_modules() {
    const char *files = getenv("PTX_MODULES");
    if (!files || !*files)
        die("PTX_MODULES names no files");
    const std::string list = files;
    for (size_t at = 0; at < list.size();) {
        const size_t end = std::min(list.find(':', at), list.size());
        known().modules.push_back(load_module(list.substr(at, end - at)));
        at = end + 1;
    }
}

/* Finds the module with all kernels of an object: several modules may have a kernel's name. */
static module *find_module(const binary &b) {
    for (const auto &m : known().modules) {
        bool has_all = true;
        for (const std::string &name : b.kernels)
            has_all &= m->kernels.count(name) > 0;
        if (has_all)
            return m.get();
    }
    die("no file of PTX_MODULES has %s and the other kernels of its object",
        b.kernels.begin()->c_str());
}

static void report() {
    FILE *file = fopen(getenv("PTX_REPORT"), "w");
    if (!file)
        return;
    for (auto &[host, f] : known().functions) {
        if (!f.home->code)
            f.home->code = find_module(*f.home);
        fprintf(file, "%ld %s %s %llu\n", f.launches, f.home->code->name.c_str(), f.name.c_str(),
                (unsigned long long)f.instructions);
    }
    fclose(file);
}

static host_function &find_function(const void *host) {
    if (known().modules.empty()) {
        load_modules();
        if (getenv("PTX_REPORT"))
            atexit(report);
    }
    const auto found = known().functions.find(host);
    if (found == known().functions.end())
        die("a launch of what is no kernel");
    host_function &f = found->second;
    if (!f.home->code)
        f.home->code = find_module(*f.home);
    if (!f.code)
        f.code = find_kernel(*f.home->code, f.name);
    return f;
}

/* ---- errors ---- */

static thread_local cudaError_t last_error;
static cudaError_t failed(cudaError_t error) {
    return last_error = error;
}

/* Checks device memory only; host memory is not checked. */
static void check_device(const void *memory, size_t size, const char *what) {
    if (size > 0 && !global_memory().contains(memory, size))
        die("%s: %zu bytes that are not in one allocation", what, size);
}

static struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} thread_local pushed;

} // namespace ptx

using namespace ptx;

extern "C" {

/* ---- what nvcc writes into objects ---- */

void **__cudaRegisterFatBinary(void *) {
    return reinterpret_cast<void **>(new binary);
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
void __cudaRegisterFunction(void **handle, const char *host, char *, const char *name, int, uint3 *,
                            uint3 *, dim3 *, dim3 *, int *) {
    binary *const b = reinterpret_cast<binary *>(handle);
    b->kernels.insert(name);
    known().functions[host] = {b, name};
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    pushed = {grid, block, shared, stream};
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared;
    *static_cast<cudaStream_t *>(stream) = pushed.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void *>(host));
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t) {
    const hold lock(one_at_a_time);
    host_function &f = find_function(reinterpret_cast<const void *>(kernel));
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return failed(cudaErrorInvalidConfiguration); /* the library expects this error */
    if (shared > (size_t)f.allowed)
        die("%s: %zu bytes of shared memory, of which %d are allowed", f.name.c_str(), shared,
            f.allowed);
    f.launches++;
    f.instructions +=
        launch(*f.code, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, arguments);
    return cudaSuccess;
}

/* ---- the device ---- */

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : failed(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "compiled PTX on this CPU");
    p->major = architecture() / 10, p->minor = architecture() % 10;
    p->multiProcessorCount = number_of("PTX_SMS", 4);
    p->sharedMemPerBlockOptin = (size_t)shared_most();
    p->reservedSharedMemPerBlock = 1024;
    p->sharedMemPerMultiprocessor = p->sharedMemPerBlockOptin + p->reservedSharedMemPerBlock;
    p->memoryPoolsSupported = 1;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *host, cudaFuncAttribute attribute, int value) {
    const hold lock(one_at_a_time);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return cudaSuccess;
    if (value > shared_most())
        return failed(cudaErrorInvalidValue);
    find_function(host).allowed = value;
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    default: return "invalid value";
    }
}
cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    static int one;
    *stream = reinterpret_cast<cudaStream_t>(&one);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaMemGetInfo(size_t *available, size_t *all) {
    *available = *all = (size_t)1 << 34;
    return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const cudaMemPoolProps *) {
    *out = reinterpret_cast<cudaMemPool_t>(new pool);
    return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t memory_pool) {
    const hold lock(one_at_a_time);
    if (reinterpret_cast<pool *>(memory_pool)->used > 0)
        die("a memory pool is destroyed before what was allocated from it");
    delete reinterpret_cast<pool *>(memory_pool);
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) {
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memory_pool, cudaMemPoolAttr, void *value) {
    memcpy(value, &reinterpret_cast<pool *>(memory_pool)->most, sizeof(uint64_t));
    return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t from, cudaStream_t) {
    const hold lock(one_at_a_time);
    pool *const p = reinterpret_cast<pool *>(from);
    *out = size > SIZE_MAX / 2 ? nullptr : global_memory().allocate(size);
    if (!*out)
        return failed(cudaErrorMemoryAllocation);
    p->used += size;
    p->most = std::max(p->most, p->used);
    known().owner[*out] = p, known().sizes[*out] = size;
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void *memory, cudaStream_t) {
    const hold lock(one_at_a_time);
    if (!global_memory().release(memory))
        die("memory is freed that is not allocated");
    known().owner[memory]->used -= known().sizes[memory];
    known().owner.erase(memory), known().sizes.erase(memory);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t) {
    const hold lock(one_at_a_time);
    if (kind != cudaMemcpyDeviceToHost)
        check_device(to, size, "a copy to the device");
    if (kind != cudaMemcpyHostToDevice)
        check_device(from, size, "a copy from the device");
    memmove(to, from, size);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t) {
    const hold lock(one_at_a_time);
    check_device(to, size, "a fill");
    memset(to, value, size);
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *) {
    memset(out, 0, sizeof *out);
    out->type = cudaMemoryTypeUnregistered;
    return cudaSuccess;
}
}
