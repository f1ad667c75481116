/* Matrix products of other libraries, which are loaded at run time, isolated from each other. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdint.h>

/* `batch` row-major products c = op(a) op(b) of dense matrices that follow each other in memory. */
typedef struct {
    int trans_a, trans_b;
    int64_t batch, m, n, k;
    const float *a, *b;
    float *c;
} product;

typedef struct {
    const char *name;
    int loaded;
    char detail[160]; /* the library's own name for its kernels, or why it is missing */
    void (*threads)(int count);
    /* Computes the products in the library's fastest way: prepared once, run often. */
    int (*prepare)(const product *p); /* returns 0 if it cannot; NULL: nothing to prepare */
    void (*run)(const product *p);
} peer;

enum { PEER_OPENBLAS, PEER_BLIS, PEER_ONEDNN, PEERS };
extern peer peers[PEERS];

/* OpenBLAS and BLIS mistake unknown processors for old ones. This names the kernels for the
 * instruction set ("avx512" or "avx2") in the environment; call it before peers_load. */
void peers_environment(const char *isa);
void peers_load(void);

#endif
