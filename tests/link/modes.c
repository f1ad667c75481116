/* A third-party library that sets floating-point modes for whoever loads it: those that MODES
 * names, separated by commas. set_modes sets them for the calling thread. */
#include <fenv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

static void flush(void) {
    _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ, DAZ */
}
static void trap_subnormals(void) {
    _mm_setcsr(_mm_getcsr() & ~0x0100u);
}
#elif defined(__aarch64__)
static void flush(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | UINT64_C(1) << 24)); /* FZ */
}
static void trap_subnormals(void) {}
#else
static void flush(void) {}
static void trap_subnormals(void) {}
#endif

void set_modes(const char *names);
void set_modes(const char *names) {
    fesetenv(FE_DFL_ENV);
    if (strstr(names, "up"))
        fesetround(FE_UPWARD);
    if (strstr(names, "down"))
        fesetround(FE_DOWNWARD);
    if (strstr(names, "zero"))
        fesetround(FE_TOWARDZERO);
    if (strstr(names, "flush"))
        flush();
    if (strstr(names, "trap")) {
        feenableexcept(FE_ALL_EXCEPT);
        trap_subnormals();
    }
}

__attribute__((constructor)) static void set_from_environment(void) {
    const char *names = getenv("MODES");
    if (names)
        set_modes(names);
}
