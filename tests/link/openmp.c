/* A program that uses OpenMP: each thread of its team has a context with two threads; then one
 * context computes with the team's threads. */
#include "workload.h"

#include <omp.h>

enum { TEAM = 4 };

/* libgomp and libomp export this without a header. */
void GOMP_parallel(void (*body)(void *data), void *data, unsigned threads, unsigned flags);

static unsigned long long with_the_team(const workload_api *api) {
    const ro_options options = {.size = sizeof options, .threads = TEAM, .parallel = GOMP_parallel};
    ro_ctx *ctx;
    if (api->create(&options, &ctx) != RO_OK)
        return 0;
    const unsigned long long hash = workload(api, ctx);
    api->destroy(ctx);
    return hash;
}

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
    if (with_the_team(&api) != hash[0])
        return 1;
    printf("%016llx\n", hash[0]);
    return 0;
}
