/* Floating-point modes that a caller may have set, and that must not affect any result. */
#ifndef TESTS_HOSTILE_MODES_H
#define TESTS_HOSTILE_MODES_H

#include "repops/src/fpenv.h"

#if defined(__x86_64__)
#define HOSTILE 0xdfc0u /* flush to zero, denormals are zero, round up */
#define HOSTILE_MODES                                                                              \
    { HOSTILE, 0xbfc0u, 0xffc0u } /* and down, toward zero */
#elif defined(__aarch64__)
#define HOSTILE 0x01480000u /* flush to zero, also for binary16; round up */
#define HOSTILE_MODES                                                                              \
    { HOSTILE, 0x01880000u, 0x01c80000u, 0x01000000u } /* down, toward zero; FZ */
#elif defined(__s390x__)
#define HOSTILE 0x2u /* round up */
#define HOSTILE_MODES                                                                              \
    { HOSTILE, 0x3u, 0x1u } /* and down, toward zero */
#endif

#endif
