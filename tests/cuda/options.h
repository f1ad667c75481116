/* Options of the programs that compare a device with the CPU. */
#ifndef TESTS_CUDA_OPTIONS_H
#define TESTS_CUDA_OPTIONS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Initialise it with the defaults. A program has the options --device and --most if they are not
 * 0. */
typedef struct {
    const char *device;
    uint64_t seeds, first;
    int64_t most;  /* limit of elements in inputs and output; larger cases are skipped */
    char **wanted; /* names to run; none: all */
    int wanted_count;
} options;

/* Returns 0 if the command line is wrong. */
static inline int parse_options(int argc, char **argv, options *o) {
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (o->device && strcmp(argv[i], "--device") == 0)
            o->device = argv[i + 1];
        else if (strcmp(argv[i], "--seeds") == 0)
            o->seeds = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--first") == 0)
            o->first = strtoull(argv[i + 1], NULL, 10);
        else if (o->most && strcmp(argv[i], "--most") == 0)
            o->most = strtoll(argv[i + 1], NULL, 10);
        else
            return 0;
    }
    o->wanted = argv + i;
    o->wanted_count = argc - i;
    return 1;
}

static inline int is_wanted(const options *o, const char *name) {
    for (int i = 0; i < o->wanted_count; i++)
        if (strcmp(o->wanted[i], name) == 0)
            return 1;
    return o->wanted_count == 0;
}

#endif
