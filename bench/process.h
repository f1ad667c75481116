/* A peer in a process of its own, told line by line when to work: PyTorch, beside which we are
 * timed in turn, so that one works while the other one waits. */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct {
    FILE *to, *from;
    pid_t pid; /* 0: there is none */
} process;

/* argv[0] is looked up in PATH; argv ends with NULL. Exits the benchmark if it cannot fork. */
process process_open(const char *const *argv);
/* PyTorch with the widest kernels that this processor has, those of MKL too, or, where isa is
 * "avx2", held to AVX2. MKL's need mkl_kernels.so beside the benchmark. */
process torch_open(const char *const *argv, const char *isa);
/* Sends a line and reads one without its newline; false: the peer is gone. */
bool process_ask(process *p, const char *question, char *line, int size);
void process_close(process *p);

#endif
