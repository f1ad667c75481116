/* Reads matrices a (m x k) and b (k x n) as raw floats from standard input, and writes their
 * product by ro_sgemm. Usage: product M N K. */
#include <repops/repops.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    const size_t m = (size_t)atoi(argv[1]), n = (size_t)atoi(argv[2]), k = (size_t)atoi(argv[3]);
    float *a = malloc(m * k * sizeof *a), *b = malloc(k * n * sizeof *b);
    float *c = malloc(m * n * sizeof *c);
    ro_ctx *ctx;
    if (!a || !b || !c || ro_ctx_create(NULL, &ctx) != RO_OK ||
        fread(a, sizeof *a, m * k, stdin) != m * k || fread(b, sizeof *b, k * n, stdin) != k * n)
        return 1;
    if (ro_sgemm(ctx, 0, 0, (int64_t)m, (int64_t)n, (int64_t)k, 1, a, (int64_t)k, b, (int64_t)n, 0,
                 c, (int64_t)n) != RO_OK)
        return 1;
    return fwrite(c, sizeof *c, m * n, stdout) == m * n ? 0 : 1;
}
