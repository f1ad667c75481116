/* A test program of plain C, for machines that have no test framework and no OpenSSL: built for
 * them by tests/system/cross.sh and run under an emulator. It prints what must be the same on every
 * machine; what is wrong in itself goes to standard error. */
#ifndef TESTS_PORTABLE_H
#define TESTS_PORTABLE_H

#include <stdio.h>

extern int portable_failures;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            portable_failures++;                                                                   \
        }                                                                                          \
    } while (0)

void run_folder(const char *folder); /* of a job, as docs/jobs.md describes it */

void check_arithmetic(void);     /* fma in software, the modes of the floating-point unit */
void check_operators(void);      /* every backend against the reference */
void check_fixed_products(void); /* kept elements, by every engine */
void check_programs(void);       /* encodings and commitments */
void check_finetunings(void);    /* commitments of runs that start from given weights */
void check_generations(void);    /* of prompts that run alone and together */

#endif
