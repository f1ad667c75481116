#include "repops/modes.h"

#include "repops/src/fpenv.h"

/* glibc rounds numbers in text (printf, strtod) in the direction of the x87 control word, which
 * fesetround sets too. */
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

/* The upper half holds the x87 control word. */
uint64_t ro_modes(void) {
    const uint64_t own = (ro_fp_read() & ~(uint64_t)RO_FP_STICKY) ^ RO_FP_DEFAULT;
    return (uint64_t)(x87_read() ^ X87_DEFAULT) << 32 | (own & UINT32_MAX);
}

uint64_t ro_modes_set(void) {
    const uint64_t before = ro_modes();
    (void)ro_fpenv_enter();
    if (before >> 32)
        x87_write(X87_DEFAULT);
    return before;
}

void ro_modes_restore(uint64_t before) {
    const uint64_t now = ro_modes();
    if ((before ^ now) & UINT32_MAX)
        ro_fp_write((before & UINT32_MAX) ^ RO_FP_DEFAULT);
    if ((before ^ now) >> 32)
        x87_write((uint16_t)(before >> 32 ^ X87_DEFAULT));
}

void ro_team_modes_set(void *team) {
    const ro_team_modes *own = team;
    own->modes[own->number()] = ro_modes_set();
}

void ro_team_modes_restore(void *team) {
    const ro_team_modes *own = team;
    ro_modes_restore(own->modes[own->number()]);
}
