/* Preloaded into PyTorch's process: MKL takes its widest kernels only where this says that Intel
 * made the processor, and others, half as fast here, everywhere else. A peer is measured at its
 * best. */
int mkl_serv_intel_cpu_true(void);

int mkl_serv_intel_cpu_true(void) {
    return 1;
}
