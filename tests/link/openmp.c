/* A program with OpenMP of its own: every thread of its team has a context with two threads. */
#include "workload.h"

#include <omp.h>

enum { TEAM = 4 };

int main(void) {
    const workload_api api = WORKLOAD_LINKED;
    unsigned long long hash[TEAM] = {0};
    for (int round = 0; round < 3; round++) {
#pragma omp parallel for num_threads(TEAM)
        for (int i = 0; i < TEAM; i++)
            hash[i] = workload_once(&api, 2);
        for (int i = 1; i < TEAM; i++)
            if (hash[i] != hash[0])
                return 1;
    }
    printf("%016llx\n", hash[0]);
    return 0;
}
