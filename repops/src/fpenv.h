/* Guard of the thread's floating-point control register: round to nearest, subnormals kept,
 * exceptions masked (SPEC.md section 1). In aarch64's FPCR and s390x's FPC the value 0 means all of
 * this. Any library built with -ffast-math sets FTZ/DAZ for a whole process, and threads inherit
 * it. The register is written only if it differs: a read costs 1 ns, a write 24. */
#ifndef REPOPS_FPENV_H
#define REPOPS_FPENV_H

#include <stdint.h>

#ifdef __FAST_MATH__
#error "repops must not be built with -ffast-math"
#endif
/* On 32-bit machines sizes of tensors would not fit size_t, and this file does not set the modes of
 * 32-bit x86. WebAssembly has one mode, and runs only the reference, which holds no tensors
 * (verde/wasm). */
#if SIZE_MAX < UINT64_MAX && !defined(__wasm__)
#error "repops needs a 64-bit machine: docs/linking.md"
#endif

typedef struct {
    uint64_t saved;
    int changed;
} ro_fpenv;

#if defined(__x86_64__)
#include <xmmintrin.h>

#define RO_FP_DEFAULT 0x1f80u
#define RO_FP_STICKY  0x3fu /* exception flags: they do not change results */

static inline uint64_t ro_fp_read(void) {
    return _mm_getcsr();
}
static inline void ro_fp_write(uint64_t value) {
    _mm_setcsr((unsigned)value);
}

#elif defined(__aarch64__)

#define RO_FP_DEFAULT 0u
#define RO_FP_STICKY  0u /* the flags are in another register, FPSR */

static inline uint64_t ro_fp_read(void) {
    uint64_t value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
static inline void ro_fp_write(uint64_t value) {
    __asm__ volatile("msr fpcr, %0" : : "r"(value) : "memory");
}

#elif defined(__s390x__)

#define RO_FP_DEFAULT 0u
#define RO_FP_STICKY  0x00ffff70u /* flags, data exception code, rounding of decimal numbers */

static inline uint64_t ro_fp_read(void) {
    uint32_t value;
    __asm__ volatile("efpc %0" : "=d"(value));
    return value;
}
static inline void ro_fp_write(uint64_t value) {
    __asm__ volatile("sfpc %0" : : "d"((uint32_t)value) : "memory");
}

#else /* unknown control register: the default modes are assumed */

#define RO_FP_DEFAULT 0u
#define RO_FP_STICKY  0u

static inline uint64_t ro_fp_read(void) {
    return RO_FP_DEFAULT;
}
static inline void ro_fp_write(uint64_t value) {
    (void)value;
}

#endif

static inline ro_fpenv ro_fpenv_enter(void) {
    ro_fpenv env = {ro_fp_read(), 0};
    if ((env.saved & ~(uint64_t)RO_FP_STICKY) != RO_FP_DEFAULT) {
        env.changed = 1;
        ro_fp_write(RO_FP_DEFAULT);
    }
    return env;
}

static inline void ro_fpenv_leave(ro_fpenv env) {
    if (env.changed)
        ro_fp_write(env.saved);
}

#endif
