// What tests/cuda/run.sh and bench/cuda.sh ask before anything is built: "9 0 NVIDIA H200", or one line why not.
#include <stdio.h>

int main() {
    cudaDeviceProp p;
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&p, 0);
    if (error != cudaSuccess) {
        fprintf(stderr, "no CUDA device: %s\n", cudaGetErrorString(error));
        return 1;
    }
    printf("%d %d %s\n", p.major, p.minor, p.name);
    return 0;
}
