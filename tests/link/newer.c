/* A program compiled with a later version's headers, whose ro_options has one more member: left at
 * 0 it changes nothing; any other value is refused, with the message that is printed. */
#include "workload.h"

typedef struct {
    ro_options known;
    int64_t later;
} later_options;

int main(void) {
    const workload_api api = WORKLOAD_LINKED;
    later_options options;
    ro_ctx *ctx = NULL;
    memset(&options, 0, sizeof options);
    options.known.size = sizeof options;
    options.known.threads = 2;
    if (ro_ctx_create(&options.known, &ctx) != RO_OK)
        return fprintf(stderr, "%s\n", ro_ctx_error(NULL)), 1;
    if (workload(&api, ctx) != workload_once(&api, 2))
        return fprintf(stderr, "computes something else\n"), 1;
    ro_ctx_destroy(ctx);
    options.later = 1;
    if (ro_ctx_create(&options.known, &ctx) != RO_ERR_ARG || ctx)
        return fprintf(stderr, "took what it does not know\n"), 1;
    printf("%s\n", ro_ctx_error(NULL));
    return 0;
}
