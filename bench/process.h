/* A peer in a process of its own, usually PyTorch. It works only when a line asks it to, so that it
 * and this process take turns. */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct {
    FILE *to, *from;
    pid_t pid; /* 0: there is no process */
} process;

/* argv[0] is looked up in PATH; argv ends with NULL. Exits the benchmark if it cannot fork. */
process process_open(const char *const *argv);
/* Starts PyTorch with the widest kernels that this processor has, MKL's included, or limited to
 * AVX2 if isa is "avx2". For MKL's, mkl_kernels.so must lie beside the benchmark. */
process torch_open(const char *const *argv, const char *isa);
/* Sends a line and reads one without its newline. Returns false if the peer is gone. */
bool process_ask(process *p, const char *question, char *line, int size);
void process_close(process *p);

#endif
