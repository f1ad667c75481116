/* Other libraries' matrix products, loaded at run time, each apart from the others. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdint.h>

/* batch row-major products c = op(a) op(b); matrices are dense and follow each other. */
typedef struct {
    int trans_a, trans_b;
    int64_t batch, m, n, k;
    const float *a, *b;
    float *c;
} product;

typedef struct {
    const char *name;
    int loaded;
    char detail[160]; /* the library's own name for its kernels; or why it is missing */
    void (*threads)(int count);
    /* The products as this library does them best: prepared once, run often. */
    int (*prepare)(const product *p); /* 0 if it cannot; NULL: nothing to prepare */
    void (*run)(const product *p);
} peer;

enum { PEER_OPENBLAS, PEER_BLIS, PEER_ONEDNN, PEERS };
extern peer peers[PEERS];

/* OpenBLAS and BLIS take unknown processors for old ones. Names the kernels for the instruction set
 * ("avx512" or "avx2") in the environment, unless it names some; call it before peers_load. */
void peers_environment(const char *isa);
void peers_load(void);

#endif
