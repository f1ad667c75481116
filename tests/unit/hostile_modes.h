/* Modes of floating point that a caller may have set and that no result may show. */
#ifndef TESTS_HOSTILE_MODES_H
#define TESTS_HOSTILE_MODES_H

#include "repops/src/fpenv.h"

#if defined(__x86_64__)
#define HOSTILE 0xdfc0u /* flush to zero, denormals are zero, round up */
#elif defined(__aarch64__)
#define HOSTILE 0x01480000u /* flush to zero, also of binary16; round up */
#elif defined(__s390x__)
#define HOSTILE 0x2u /* round up */
#endif

#endif
