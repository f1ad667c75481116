#include "repops/modes.h"

#include "repops/src/fpenv.h"

/* The C library takes the direction in which it rounds numbers in text from the control word of
 * the x87, which fesetround sets as well. */
#if defined(__x86_64__)
enum { X87_DEFAULT = 0x37f };

static uint16_t x87_read(void) {
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return word;
}
static void x87_write(uint16_t word) {
    __asm__ volatile("fldcw %0" : : "m"(word));
}
#else
enum { X87_DEFAULT = 0 };

static uint16_t x87_read(void) {
    return X87_DEFAULT;
}
static void x87_write(uint16_t word) {
    (void)word;
}
#endif

uint64_t ro_modes_set(void) {
    const uint64_t before = (uint64_t)x87_read() << 32 | (ro_fp_read() & UINT32_MAX);
    (void)ro_fpenv_enter();
    if (before >> 32 != X87_DEFAULT)
        x87_write(X87_DEFAULT);
    return before;
}

void ro_modes_restore(uint64_t before) {
    ro_fp_write(before & UINT32_MAX);
    if (before >> 32 != X87_DEFAULT)
        x87_write((uint16_t)(before >> 32));
}
