/* A test program in plain C, for machines without test framework and OpenSSL: tests/system/cross.sh
 * builds it for them and runs it under an emulator. It prints results that must be the same on
 * every machine; errors go to standard error. */
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

void run_folder(const char *folder); /* a job's folder, see docs/jobs.md */

void check_arithmetic(void);     /* fma in software, floating-point modes */
void check_operators(void);      /* every backend against the reference */
void check_fixed_products(void); /* golden elements, with every engine */
void check_programs(void);       /* encodings and commitments */
void check_finetunings(void);    /* commitments of runs from given weights */
void check_generations(void);    /* prompts run alone and together */

#endif
