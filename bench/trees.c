/* Commitments of large tensors: hashing beside OpenSSL's SHA-256, trees and proofs, and the time
 * that a provider takes for questions about a tensor. Rates are per second of CPU time, so that
 * other processes do not count; rates by wall-clock time are printed beside them. */
#include "bench/trees.h"

#include <openssl/evp.h>

#include "bench/bench.h"

enum { ROUNDS_MAX = 99, QUESTION_LEAVES = 1024, LINEAR_PROOFS = 8, RATE_MIB = 64 };

void die(const char *what) {
    fprintf(stderr, "trees: %s\n", what);
    exit(1);
}

void check(vd_status status, const vd_err *err) {
    if (status != VD_OK)
        die(err->text);
}

static ro_ctx *context(int threads) {
    ro_ctx *ro;
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = threads}, &ro) != RO_OK)
        die(ro_ctx_error(NULL));
    return ro;
}

/* ---- rates ---- */

typedef struct {
    const uint8_t *bytes;
    EVP_MD *md;
} messages;

static void digest_messages(void *user, int64_t first, int64_t last, int worker) {
    const messages *m = user;
    uint8_t out[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    (void)worker;
    for (int64_t i = first; i < last; i++)
        if (!ctx || EVP_DigestInit_ex(ctx, m->md, NULL) != 1 ||
            EVP_DigestUpdate(ctx, m->bytes + i * VD_LEAF_SIZE, VD_LEAF_SIZE) != 1 ||
            EVP_DigestFinal_ex(ctx, out, NULL) != 1)
            die("OpenSSL failed");
    EVP_MD_CTX_free(ctx);
}

static void by_openssl(ro_ctx *ro, const messages *m, size_t size) {
    ro_parallel_for(ro, (int64_t)(size / VD_LEAF_SIZE), 256, 1e6, digest_messages, (void *)m);
}

static void by_verde(ro_ctx *ro, const messages *m, size_t size) {
    vd_hash root;
    vd_err err = {0};
    check(vd_root_of_bytes(ro, m->bytes, size, &root, &err), &err);
}

/* MB/s, by CPU time and by wall-clock time. */
typedef struct {
    double cpu[ROUNDS_MAX], wall[ROUNDS_MAX];
} rates;

static void time_one(void (*run)(ro_ctx *, const messages *, size_t), ro_ctx *ro, const messages *m,
                     size_t size, rates *out, int round) {
    const double cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID), wall = clock_s(CLOCK_MONOTONIC);
    run(ro, m, size);
    out->cpu[round] = 1e-6 * (double)size / (clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    out->wall[round] = 1e-6 * (double)size / (clock_s(CLOCK_MONOTONIC) - wall);
}

/* Times both libraries in turn; the ratio is the median of the rounds' ratios. */
static void compare_rates(int threads, int rounds, const messages *m, size_t size) {
    static rates openssl, verde;
    double cpu[ROUNDS_MAX], wall[ROUNDS_MAX];
    ro_ctx *ro = context(threads);
    by_verde(ro, m, size);
    for (int i = 0; i < rounds; i++) {
        time_one(by_openssl, ro, m, size, &openssl, i);
        time_one(by_verde, ro, m, size, &verde, i);
        cpu[i] = verde.cpu[i] / openssl.cpu[i];
        wall[i] = verde.wall[i] / openssl.wall[i];
    }
    printf("%7d %12.0f %12.0f %7.2f %12.0f %12.0f %7.2f\n", threads,
           bench_median(openssl.cpu, rounds), bench_median(verde.cpu, rounds),
           bench_median(cpu, rounds), bench_median(openssl.wall, rounds),
           bench_median(verde.wall, rounds), bench_median(wall, rounds));
    ro_ctx_destroy(ro);
}

static void print_rates(int rounds, const uint8_t *bytes, size_t size) {
    messages m = {bytes, EVP_MD_fetch(NULL, "SHA2-256", NULL)};
    if (!m.md)
        die("OpenSSL has no SHA-256");
    puts("the root of 64 MiB, MB/s:  a second of CPU time, and a second of the wall's");
    printf("%7s %12s %12s %7s %12s %12s %7s\n", "threads", "OpenSSL", "Verde", "ratio", "OpenSSL",
           "Verde", "ratio");
    for (int threads = 1; threads <= 2; threads++)
        compare_rates(threads, rounds, &m, size);
    EVP_MD_free(m.md);
}

/* ---- trees ---- */

/* A prover that keeps only leaves, for comparison: it hashes every subtree beside the path
 * again. */
static void linear_path(const vd_hash *leaf, uint64_t count, uint64_t index, vd_proof *out) {
    if (count == 1)
        return;
    const uint64_t k = vd_tree_split(0, count);
    vd_err err = {0};
    if (index < k)
        linear_path(leaf, k, index, out);
    else
        linear_path(leaf + k, count - k, index - k, out);
    vd_hash *sibling = &out->path[out->length++];
    if (index < k)
        check(vd_root_of_leaves(leaf + k, count - k, sibling, &err), &err);
    else
        check(vd_root_of_leaves(leaf, k, sibling, &err), &err);
}

static double time_linear(const vd_tree *tree) {
    vd_proof proof;
    const double start = clock_s(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < LINEAR_PROOFS; i++) {
        proof.length = 0;
        linear_path(tree->leaf, tree->count, tree->count / LINEAR_PROOFS * i, &proof);
    }
    return (clock_s(CLOCK_MONOTONIC) - start) / LINEAR_PROOFS;
}

static double time_proofs(const vd_tree *tree) {
    vd_proof proof;
    vd_err err = {0};
    const double start = clock_s(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < QUESTION_LEAVES; i++)
        check(vd_tree_prove(tree, tree->count / QUESTION_LEAVES * i, &proof, &err), &err);
    return clock_s(CLOCK_MONOTONIC) - start;
}

static void print_tree(ro_ctx *ro, int rounds, const uint8_t *bytes, size_t mib) {
    double build[ROUNDS_MAX], prove[ROUNDS_MAX];
    vd_tree tree = {0};
    vd_err err = {0};
    for (int i = 0; i < rounds; i++) {
        vd_tree_free(&tree);
        const double start = clock_s(CLOCK_MONOTONIC);
        check(vd_tree_of_bytes(ro, &tree, bytes, (uint64_t)mib << 20, &err), &err);
        build[i] = clock_s(CLOCK_MONOTONIC) - start;
        prove[i] = time_proofs(&tree);
    }
    printf("%7zu %12.1f %12.1f %12.3f", mib, (double)(2 * tree.count - 1) * 32 / (1 << 20),
           1e3 * bench_median(build, rounds), 1e3 * bench_median(prove, rounds));
    if (mib == 512)
        printf("   %.0f ms a proof by an algorithm without inner nodes", 1e3 * time_linear(&tree));
    puts("");
    fflush(stdout);
    vd_tree_free(&tree);
}

static const char usage[] =
    "usage: trees [--mib N] [--rounds N]\n"
    "  --mib N     the largest tensor, in MiB (2048)\n"
    "  --rounds N  medians are of so many rounds (7)\n"
    "OpenSSL's rate is that of messages of 1 KiB, as `openssl speed -evp sha256` takes it.";

int main(int argc, char **argv) {
    static const size_t sizes[] = {64, 512, 2048};
    int mib = 2048, rounds = 7;
    const bench_option options[] = {
        {.name = "--mib", .number = &mib, .least = 64, .most = 1 << 16},
        {.name = "--rounds", .number = &rounds, .least = 1, .most = ROUNDS_MAX}};
    bench_options(argc, argv, usage, options, 2);
    uint64_t *bytes = malloc((size_t)mib << 20);
    if (!bytes)
        die("out of memory");
    for (size_t i = 0; i < (size_t)mib << 17; i++)
        bytes[i] = bench_word(i);
    print_rates(rounds, (const uint8_t *)bytes, (size_t)RATE_MIB << 20);
    ro_ctx *ro = context(2);
    printf("\ntrees by 2 threads, ms\n%7s %12s %12s %12s\n", "MiB", "MiB kept", "build",
           "1024 proofs");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= (size_t)mib; i++)
        print_tree(ro, rounds, (const uint8_t *)bytes, sizes[i]);
    print_questions(ro, (const uint8_t *)bytes, (int64_t)mib << 20);
    ro_ctx_destroy(ro);
    free(bytes);
    return 0;
}
