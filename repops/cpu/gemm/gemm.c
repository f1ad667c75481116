/* The tables of kernels. A product is computed by the first kernel that takes it. Each comment says
 * what a kernel is for and how many times as fast it is as the rows below it, with AVX-512 and with
 * AVX2 (bench/NOTES.md, "What each kernel gains"). */
#include "repops/cpu/gemm/gemm_kernel.h"

const gemm_kernel *const RO_NAME(ro_gemm_kernels)[2][GEMM_KERNELS_MOST] = {
    {
        /* One chunk, and operands too small to pack. 4.8 and 1.5 for 16^3, 1.05 for 100^3. */
        &RO_NAME(ro_gemm_small),
        /* Masks with a window, which no row below supports. */
        &RO_NAME(ro_gemm_windowed),
        /* Up to four results, whose fmas would wait for each other. 15 and 11 for 1024 steps. */
        &RO_NAME(ro_gemm_chunks),
        /* Few rows or few columns, where the other operand is stored along k. 1.6 to 1.9. */
        &RO_NAME(ro_gemm_dots),
        /* One chunk and a small b stored along k, which is transposed first. 1.0 to 1.2. */
        &RO_NAME(ro_gemm_turned),
        /* One row by a wide b stored along n, read in order of addresses. 1.27 and 1.24. */
        &RO_NAME(ro_gemm_sweep),
        /* All other products, packed in blocks that fit the caches. */
        &RO_NAME(ro_gemm_blocks),
    },
    {
        /* Few rows, b along k, widened in registers. 2.5 and 2.0 for a row, 1.9 and 1.4 for 4. */
        &RO_NAME(ro_gemm_dots16),
        /* Enough rows to pack b, which is widened meanwhile. 1.1; AVX2 with b along n 0.7. */
        &RO_NAME(ro_gemm_blocks),
        /* Few rows, b stored along n, read in order. 2.5 for a row, 2.1 and 1.7 for 4. */
        &RO_NAME(ro_gemm_sweep16),
        /* All other products: b is widened in parts, which the kernels above multiply. */
        &RO_NAME(ro_gemm_widened),
    },
};
