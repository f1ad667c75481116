// Prints what tests/cuda/run.sh and bench/cuda.sh need to know before they build anything: "9 0
// NVIDIA H200", and a line of facts that decide how the library runs; or one line why there is no
// usable device.
#include <stdio.h>

int main() {
    cudaDeviceProp p;
    int count = 0, driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&p, 0);
    if (error != cudaSuccess) {
        fprintf(stderr, "no CUDA device: %s (driver for CUDA %d.%d, runtime %d.%d)\n",
                cudaGetErrorString(error), driver / 1000, driver % 1000 / 10, runtime / 1000,
                runtime % 1000 / 10);
        return 1;
    }
    printf("%d %d %s\n", p.major, p.minor, p.name);
    printf("driver for CUDA %d.%d, runtime %d.%d, devices %d, multiprocessors %d, shared memory of "
           "a block %zu KiB, memory %.1f GiB, "
           "memoryPoolsSupported %d, pageableMemoryAccess %d\n",
           driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, count,
           p.multiProcessorCount, p.sharedMemPerBlockOptin >> 10,
           (double)p.totalGlobalMem / (1 << 30), p.memoryPoolsSupported, p.pageableMemoryAccess);
    return 0;
}
