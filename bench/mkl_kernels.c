/* Preloaded into PyTorch's process. MKL uses its widest kernels only if this function says that
 * Intel made the processor, and else others, which are half as fast here. Peers should run at their
 * best. */
int mkl_serv_intel_cpu_true(void);

int mkl_serv_intel_cpu_true(void) {
    return 1;
}
