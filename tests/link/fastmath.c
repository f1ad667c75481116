/* Linked with -ffast-math: the thread that loads it flushes subnormals afterwards. Compilers did
 * this with a constructor; since 13 gcc only adds it to programs. */
#if defined(__x86_64__)
#include <xmmintrin.h>

__attribute__((constructor)) static void flush_subnormals(void) {
    _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ, DAZ */
}
#elif defined(__aarch64__)
#include <stdint.h>

__attribute__((constructor)) static void flush_subnormals(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | UINT64_C(1) << 24)); /* FZ */
}
#endif

int fast_math_is_here(void);
int fast_math_is_here(void) {
    return 1;
}
