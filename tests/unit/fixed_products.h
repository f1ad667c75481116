/* Reads tests/vectors/fixed/products.txt; make.py beside it explains the format. The includer
 * defines FIXED_ASSERT(truth, format, ...), which must not return if truth is false. */
#ifndef TESTS_FIXED_PRODUCTS_H
#define TESTS_FIXED_PRODUCTS_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 32, RANGES_MOST = 64, KINDS_MOST = 64, PLANTS_MOST = 64, KEPT_MOST = 16 };

typedef struct {
    char name[NAME_SIZE];
    struct {
        uint32_t low, high;
    } range[RANGES_MOST];
    int count;
} numbers;

static numbers number_kind[KINDS_MOST];
static int kinds;

/* A replacement of elements from..to in a line of an operand. */
typedef struct {
    int side;
    int64_t line, from, to;
    uint32_t word;
} plant;

typedef struct {
    char name[NAME_SIZE];
    int64_t bits, batch, m, n, k, trans;
    uint32_t alpha;
    const numbers *of[2]; /* a, b */
    uint64_t seed;
    plant plant[PLANTS_MOST];
    int plants;
    uint32_t kept[KEPT_MOST];
    int kept_count;
} fixed_case;

static inline const numbers *numbers_named(const char *name) {
    for (int i = 0; i < kinds; i++)
        if (strcmp(number_kind[i].name, name) == 0)
            return &number_kind[i];
    FIXED_ASSERT(0, "no numbers %s", name);
    return NULL;
}

static inline void read_numbers(const char *at) {
    numbers *x = &number_kind[kinds];
    int length;
    FIXED_ASSERT(kinds++ < KINDS_MOST && sscanf(at, "numbers %31s%n", x->name, &length) == 1,
                 "%.30s", at);
    for (at += length; *at == ' '; at += length) {
        FIXED_ASSERT(x->count < RANGES_MOST &&
                         sscanf(at, " %8" SCNx32 "-%8" SCNx32 "%n", &x->range[x->count].low,
                                &x->range[x->count].high, &length) == 2,
                     "%s: %.30s", x->name, at);
        x->count++;
    }
    FIXED_ASSERT(x->count > 0, "%s", x->name);
}

static inline const char *read_plants(fixed_case *x, const char *at) {
    int length;
    for (plant p; sscanf(at, " %d:%" SCNd64 ":%" SCNd64 "-%" SCNd64 ":%8" SCNx32 "%n", &p.side,
                         &p.line, &p.from, &p.to, &p.word, &length) == 5;
         at += length) {
        FIXED_ASSERT(x->plants < PLANTS_MOST && p.to <= x->k, "%s: %.30s", x->name, at);
        x->plant[x->plants++] = p;
    }
    return at;
}

static inline void read_kept(fixed_case *x, const char *at) {
    int length;
    FIXED_ASSERT(strncmp(at, " =", 2) == 0, "%s: %.30s", x->name, at);
    for (at += 2; *at == ' '; at += length) {
        FIXED_ASSERT(x->kept_count < KEPT_MOST &&
                         sscanf(at, " %8" SCNx32 "%n", &x->kept[x->kept_count], &length) == 1,
                     "%s: %.30s", x->name, at);
        x->kept_count++;
    }
}

static inline void read_product(fixed_case *x, const char *at) {
    char a[NAME_SIZE], b[NAME_SIZE];
    int length;
    memset(x, 0, sizeof *x);
    FIXED_ASSERT(sscanf(at,
                        "product %31s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
                        " %" SCNd64 " %8" SCNx32 " %31s %31s %" SCNu64 "%n",
                        x->name, &x->bits, &x->batch, &x->m, &x->n, &x->k, &x->trans, &x->alpha, a,
                        b, &x->seed, &length) == 11,
                 "%.60s", at);
    x->of[0] = numbers_named(a), x->of[1] = numbers_named(b);
    read_kept(x, read_plants(x, at + length));
}

#endif
