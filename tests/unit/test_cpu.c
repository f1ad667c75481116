/* Every backend of the processor against the one-element reference, bit by bit; contexts, threads,
 * fork and the floating-point environment. */
#include "conv_cases.h"
#include "each_operator.h"
#include "fork_at_rest.h"
#include "hostile_modes.h"
#include "repops/ref.h"
#include "repops/src/backend.h"
#include "repops/src/math.h"
#include "repops/operators.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#ifdef __SANITIZE_ADDRESS__ /* fewer cases, since the sanitizer is many times slower */
enum { CASES = 20, MAX_THREADS = 3, MAX_LOADS = 100000 };
#else
enum { CASES = 60, MAX_THREADS = 3, MAX_LOADS = 1000000 };
#endif

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* ---- contexts whose workspace is filled with NaNs before each call ---- */

static struct {
    void *block;
    size_t size;
} scratch[BACKENDS * MAX_THREADS + 1];
static bool creating; /* set while a context is created: what it allocates then is no workspace */

static int place_of(const void *block) {
    int i = 0;
    while (i < BACKENDS * MAX_THREADS && scratch[i].block != block)
        i++;
    return i;
}

static void *scratch_alloc(void *user, size_t size, size_t alignment) {
    (void)user;
    size = (size + alignment - 1) / alignment * alignment;
    void *block = aligned_alloc(alignment, size);
    const int i = place_of(NULL);
    if (!creating)
        scratch[i].block = block, scratch[i].size = size;
    return block;
}

static void scratch_free(void *user, void *block) {
    (void)user;
    scratch[place_of(block)].block = NULL;
    free(block);
}

/* Overwrites all workspaces with NaNs, so that no call can use what earlier calls left there. */
static void spoil_scratch(void) {
    for (int i = 0; i < BACKENDS * MAX_THREADS; i++)
        if (scratch[i].block)
            memset(scratch[i].block, 0xff, scratch[i].size);
}

/* Returns NULL if this processor has no such backend. */
static ro_ctx *context(const char *backend, int threads) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options,
                                .threads = threads,
                                .backend = backend,
                                .alloc = scratch_alloc,
                                .free = scratch_free};
    creating = true;
    const ro_status status = ro_ctx_create(&options, &ctx);
    creating = false;
    return status == RO_OK ? ctx : NULL;
}

/* ---- one case ---- */

static int64_t loads_per_element(const ro_call *call) {
    return 1 + ro_ref_finish_loads(call) + ro_ref_steps(call) * ro_ref_step_loads(call);
}

/* Compares all elements, or a sample that always has the first and the last. */
static void expect_reference(const op_case *c, uint64_t seed, const char *backend) {
    const ro_ref_memory memory = {&c->call, (const void *const *)c->data};
    const ro_access in = {ro_ref_load_memory, (void *)&memory};
    const int64_t numel = ro_shape_numel(&c->call.output);
    const int64_t most = 2 + MAX_LOADS / loads_per_element(&c->call);
    for (int64_t i = 0; i < (numel < most ? numel : most); i++) {
        int64_t e = i;
        if (numel > most)
            e = i == 0   ? 0
                : i == 1 ? numel - 1
                         : (int64_t)(case_word(seed, 9, i) % (uint64_t)numel);
        const uint32_t want = ro_ref_element(&c->call, e, &in), got = case_out(c, e);
        cr_assert(got == want, "%s on %s, case %llu, element %lld: %08x, expected %08x",
                  ro_op_describe(c->call.op)->name, backend, (unsigned long long)seed, (long long)e,
                  got, want);
    }
}

static void run(ro_ctx *ctx, const op_case *c) {
    memset(c->out, 0xa5, case_out_bytes(c));
    spoil_scratch();
    cr_assert(ro_run(ctx, &c->call, (const void *const *)c->data, c->out) == RO_OK, "%s",
              ro_ctx_error(ctx));
}

typedef const char *(*roller)(op_case *c, int op, uint64_t seed);

/* Compares the first backend with the reference, and all others with the first. */
static void check_case(ro_ctx *ctx[BACKENDS][MAX_THREADS], roller roll_case, int op,
                       uint64_t seed) {
    op_case c;
    const char *why = roll_case(&c, op, seed);
    cr_assert(why == NULL, "case %llu: %s", (unsigned long long)seed, why);
    run(ctx[0][0], &c);
    expect_reference(&c, seed, backends[0]);
    void *first = malloc(case_out_bytes(&c));
    memcpy(first, c.out, case_out_bytes(&c));
    for (int b = 0; b < BACKENDS; b++) {
        for (int t = 0; t < MAX_THREADS && ctx[b][t]; t++) {
            run(ctx[b][t], &c);
            if (memcmp(first, c.out, case_out_bytes(&c)) == 0)
                continue;
            expect_reference(&c, seed, backends[b]);
            cr_assert_fail(
                "%s on %s with %d threads, case %llu: an element outside the sample differs",
                ro_op_describe(op)->name, backends[b], t + 1, (unsigned long long)seed);
        }
    }
    free(first);
    case_free(&c);
}

/* ---- in place ---- */

static void *copy_of(const void *bytes, size_t size) {
    void *copy = aligned_alloc(64, (size + 63) / 64 * 64);
    memcpy(copy, bytes, size);
    return copy;
}

/* Runs the call with its output over input i. Returns false where this is not allowed or their
 * sizes differ. */
static bool overwrite(ro_ctx *ctx, op_case *c, int i) {
    const size_t size = case_out_bytes(c);
    const void *in[RO_MAX_INPUTS];
    const ro_shape *shape = &c->call.input[i];
    if ((size_t)ro_shape_numel(shape) * ro_dtype_size(shape->dtype) != size)
        return false;
    memcpy(in, c->data, (size_t)c->call.input_count * sizeof *in);
    void *both = copy_of(c->data[i], size);
    in[i] = both;
    cr_assert(ro_run(ctx, &c->call, in, both) == RO_OK, "%s", ro_ctx_error(ctx));
    cr_assert(memcmp(both, c->out, size) == 0, "%s over its input %d on %s: other bits",
              ro_op_describe(c->call.op)->name, i, ro_ctx_backend(ctx));
    free(both);
    return true;
}

static int overwrite_inputs(ro_ctx *ctx, int op, uint64_t seed) {
    op_case c;
    int tried = 0;
    cr_assert(case_roll(&c, op, seed) == NULL);
    run(ctx, &c);
    for (int i = 0; i < c.call.input_count; i++)
        if (ro_op_in_place(op) >> i & 1)
            tried += overwrite(ctx, &c, i);
    case_free(&c);
    return tried;
}

Test(cpu, an_operator_may_overwrite_the_inputs_that_it_names) {
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 2);
        for (int op = next_operator(0); ctx && op; op = next_operator(op)) {
            int tried = 0;
            for (uint64_t seed = 0; ro_op_in_place(op) && seed < CASES; seed++)
                tried += overwrite_inputs(ctx, op, seed);
            cr_expect(!ro_op_in_place(op) || tried, "%s: not a test", ro_op_describe(op)->name);
        }
        ro_ctx_destroy(ctx);
    }
    cr_expect(ro_op_in_place(RO_OP_NONE) == 0 && ro_op_in_place(RO_OP_MATMUL) == 0);
}

ParameterizedTestParameters(cpu, operator_has_the_bits_of_the_reference) {
    static int op[RO_OP_END];
    return cr_make_param_array(int, op, list_operators(op));
}

static void check_cases(roller roll_case, int op, int cases) {
    ro_ctx *ctx[BACKENDS][MAX_THREADS];
    for (int b = 0; b < BACKENDS; b++)
        for (int t = 0; t < MAX_THREADS; t++)
            ctx[b][t] = context(backends[b], t + 1);
    for (int i = 0; i < cases; i++)
        check_case(ctx, roll_case, op, (uint64_t)op * 1000 + (uint64_t)i);
    for (int b = 0; b < BACKENDS; b++)
        for (int t = 0; t < MAX_THREADS; t++)
            ro_ctx_destroy(ctx[b][t]);
}

ParameterizedTest(int *op, cpu, operator_has_the_bits_of_the_reference) {
    check_cases(case_roll, *op, *op == RO_OP_MATMUL || is_convolution(*op) ? 4 * CASES : CASES);
}

ParameterizedTestParameters(cpu, every_way_of_convolutions_has_the_bits_of_the_reference) {
    static int list[RO_OP_END];
    size_t count = 0;
    for (int op = next_operator(0); op; op = next_operator(op))
        if (is_convolution(op))
            list[count++] = op;
    return cr_make_param_array(int, list, count);
}

ParameterizedTest(int *op, cpu, every_way_of_convolutions_has_the_bits_of_the_reference) {
    check_cases(conv_case_roll, *op, 2 * CASES);
}

/* With 126 channels, chunks end inside taps. Terms outside the image meet a weight that is not
 * finite. */
static void check_padded_convolution(ro_ctx *ctx, int op) {
    const ro_shape image = shape_of(RO_F32, 4, 1, 4, 4, 126);
    const ro_shape input[] = {image, {RO_F32, 4, {3, 3, 126, 126}}};
    const int bits = ro_conv_kind(op) == op ? 0 : RO_FIXED_24;
    const ro_call call = {op, 2, {1, 1, 1, 1, 1, 1, 1, bits}, input, image};
    float *x[2];
    uint32_t *out = malloc(4 * 4 * 126 * sizeof *out);
    for (int i = 0; i < 2; i++) {
        const int64_t count = ro_shape_numel(&input[i]);
        x[i] = malloc((size_t)count * sizeof *x[i]);
        for (int64_t e = 0; e < count; e++)
            x[i][e] = (float)(int32_t)case_word(9, i, e) * 0x1p-31f;
    }
    x[1][125] = INFINITY;
    cr_assert(ro_run(ctx, &call, (const void *const *)x, out) == RO_OK, "%s", ro_ctx_error(ctx));
    const ro_ref_memory memory = {&call, (const void *const *)x};
    const ro_access in = {ro_ref_load_memory, (void *)&memory};
    for (int64_t e = 0; e < 4 * 4 * 126; e++)
        cr_assert(out[e] == ro_ref_element(&call, e, &in), "%s on %s, element %lld: %08x",
                  ro_op_describe(op)->name, ro_ctx_backend(ctx), (long long)e, out[e]);
    free(x[0]), free(x[1]), free(out);
}

Test(cpu, convolution_beside_the_image_keeps_its_chunks) {
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 2);
        for (int i = 0; ctx && i < 2; i++) {
            check_padded_convolution(ctx, RO_OP_CONV2D + i);
            check_padded_convolution(ctx, RO_OP_CONV2D_FIXED + i);
        }
        ro_ctx_destroy(ctx);
    }
}

Test(cpu, convolution_whose_output_no_cache_keeps_has_the_bits_of_the_reference) {
    const ro_shape image = {RO_F32, 4, {1, 512, 512, 16}};
    op_case c = {.in = {image, {RO_F32, 4, {3, 3, 1, 16}}}};
    c.call = (ro_call){RO_OP_CONV2D, 2, {1, 1, 1, 1, 1, 1, 16}, c.in, image};
    case_fill(&c, 1, DATA_NORMAL);
    void *anywhere = c.out;
    c.out = copy_of(anywhere, case_out_bytes(&c)); /* at the start of a cache line */
    free(anywhere);
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 2);
        if (ctx) {
            run(ctx, &c);
            expect_reference(&c, 1, backends[b]);
        }
        ro_ctx_destroy(ctx);
    }
    case_free(&c);
}

/* Windows are one pixel, many of them in the padding, where only zeros may be read. */
Test(cpu, gradient_of_weights_beside_the_image_is_zero) {
    enum { CHANNELS = 80 };
    const ro_shape image = {RO_F32, 4, {2, 8, 1, CHANNELS}};
    op_case c = {.in = {image, image}};
    c.call = (ro_call){
        RO_OP_CONV2D_DW, 2, {1, 3, 0, 1, 1, 1, CHANNELS}, c.in, {RO_F32, 4, {1, 1, 1, CHANNELS}}};
    case_fill(&c, 1, DATA_NORMAL);
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 1);
        for (int i = 0; ctx && i < 2; i++) /* the first run allocates the workspace */
            run(ctx, &c);
        for (int64_t e = 0; ctx && e < CHANNELS; e++)
            cr_assert(case_out(&c, e) == 0, "%s, element %lld", backends[b], (long long)e);
        ro_ctx_destroy(ctx);
    }
    case_free(&c);
}

/* A backend that this processor lacks is reported as skipped, not as passed. */
static void require_backend(const char *name) {
    ro_ctx *ctx = context(name, 1);
    if (!ctx)
        cr_skip_test("%s", ro_ctx_error(NULL));
    cr_expect_str_eq(ro_ctx_backend(ctx), name);
    ro_ctx_destroy(ctx);
}

#if defined(__aarch64__)
Test(cpu, neon_took_part_in_the_comparison) {
    require_backend("neon");
}
#else
Test(cpu, avx2_took_part_in_the_comparison) {
    require_backend("avx2");
}

Test(cpu, avx512_took_part_in_the_comparison) {
    require_backend("avx512");
}
#endif

/* ---- maxima ---- */

static uint32_t row_maximum(ro_ctx *ctx, const uint32_t *bits, int64_t n) {
    const ro_shape shape = {RO_F32, 2, {1, n}};
    ro_call call = {.op = RO_OP_REDUCE_MAX,
                    .input_count = 1,
                    .input = &shape,
                    .output = {RO_F32, 2, {1, 1}},
                    .attr = {n, 1024}};
    uint32_t out;
    char why[200] = "";
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_run(ctx, &call, (const void *const[]){bits}, &out) == RO_OK, "%s",
              ro_ctx_error(ctx));
    return out;
}

/* Kernels look for zeros and NaNs apart from the comparison, in whole vectors and in the rest of a
 * row. */
Test(cpu, maximum_finds_one_zero_or_nan_at_every_place) {
    enum { LONGEST = 150 };
    static const uint32_t one[] = {0, 0x7fc01234, 0xff800001};
    uint32_t row[LONGEST];
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 1);
        for (int n = 1; ctx && n <= LONGEST; n++) {
            for (int i = 0; i < n; i++)
                row[i] = 0x80000000;
            cr_assert(row_maximum(ctx, row, n) == 0x80000000, "%s: %d times -0", backends[b], n);
            for (int i = 0; i < n; i++)
                for (int k = 0; k < 3; k++) {
                    row[i] = one[k];
                    const uint32_t got = row_maximum(ctx, row, n);
                    cr_assert(got == (k ? RO_QNAN_BITS : 0), "%s: %08x at %d of %d gives %08x",
                              backends[b], one[k], i, n, got);
                    row[i] = 0x80000000;
                }
        }
        ro_ctx_destroy(ctx);
    }
}

/* ---- exponentials and logarithms: kernels have a fast path for ordinary arguments ---- */

/* First four ordinary arguments, then four whose exp is 0, then the limits of both kinds and their
 * neighbours, and special values. */
static const float mixed_arguments[] = {
    0.5f,
    3.0f,
    87.0f,
    0x1p-126f, /* ordinary up to here */
    -INFINITY,
    -0x1.a00002p6f,
    -1e30f,
    -105.0f, /* exp is 0 up to here */
    -1.0f,
    -87.0f,
    -0x1.5c0002p6f,
    0x1.5c0002p6f,
    88.5f,
    90.0f,
    -103.5f,
    -104.0f,
    0.0f,
    -0.0f,
    INFINITY,
    NAN,
    0x1.fffffcp-127f,
    0x1p-149f,
    -0x1p-149f,
    0x1.fffffep127f,
};
enum { MIXED = sizeof mixed_arguments / sizeof mixed_arguments[0], MIXED_COUNT = 4001 };

static void expect_mixed(ro_ctx *ctx, const char *backend, int op, float (*f)(float),
                         const float *x) {
    float out[MIXED_COUNT];
    const ro_shape shape = {RO_F32, 1, {MIXED_COUNT}};
    ro_call call = {.op = op, .input_count = 1, .input = &shape};
    cr_assert(ro_infer(&call, NULL, 0) == RO_OK);
    cr_assert(ro_run(ctx, &call, (const void *const[]){x}, out) == RO_OK, "%s", ro_ctx_error(ctx));
    for (int i = 0; i < MIXED_COUNT; i++)
        cr_assert(ro_to_bits(out[i]) == ro_to_bits(f(x[i])), "%s on %s of %a: %a, expected %a",
                  ro_op_describe(op)->name, backend, (double)x[i], (double)out[i], (double)f(x[i]));
}

static float exp_of(float x) {
    return ro_exp(x);
}

static float log_of(float x) {
    return ro_log(x);
}

/* Mixes ordinary arguments with a few special ones at changing rates; every second run of 64 has
 * special ones of the second kind only. No other test puts both in one vector: sorted arguments
 * give vectors of one kind. */
Test(cpu, exp_and_log_have_the_same_bits_beside_special_cases) {
    float x[MIXED_COUNT];
    for (int i = 0; i < MIXED_COUNT; i++) {
        const uint64_t word = case_word(1, 1, i), rare = 1 + (uint64_t)(i / 64) % 16 / 2 * 4;
        const uint64_t kinds = i / 64 % 2 ? 8 : MIXED;
        x[i] = mixed_arguments[word / rare % (word % rare ? 4 : kinds)];
    }
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 1);
        if (!ctx)
            continue;
        expect_mixed(ctx, backends[b], RO_OP_EXP, exp_of, x);
        expect_mixed(ctx, backends[b], RO_OP_LOG, log_of, x);
        ro_ctx_destroy(ctx);
    }
}

/* ---- the caller's floating-point environment ---- */

#if defined(__x86_64__)
Test(cpu, flush_to_zero_and_rounding_of_the_caller_do_not_show) {
    static const unsigned modes[] = HOSTILE_MODES;
    int op[RO_OP_END];
    const int count = (int)list_operators(op);
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 2);
        for (int i = 0; ctx && i < 4 * count; i++) {
            const unsigned hostile = modes[i % 3]; /* each mode in turn */
            op_case c;
            case_roll(&c, op[i / 4], (uint64_t)(777 + i));
            const unsigned before = _mm_getcsr();
            _mm_setcsr(hostile);
            const ro_status status = ro_run(ctx, &c.call, (const void *const *)c.data, c.out);
            const unsigned after = _mm_getcsr();
            _mm_setcsr(before);
            cr_assert(status == RO_OK);
            cr_expect(after == hostile, "mode is %04x after %s", after,
                      ro_op_describe(op[i / 4])->name);
            expect_reference(&c, (uint64_t)i, backends[b]);
            case_free(&c);
        }
        ro_ctx_destroy(ctx);
    }
}

/* Workers inherit the floating-point mode of the thread that starts them. */
Test(cpu, workers_started_under_flush_to_zero_keep_subnormals) {
    ro_ctx *ctx = context("cpu", 3);
    op_case c = {.call = {.op = RO_OP_ADD, .input_count = 2}};
    c.call.input = c.in;
    c.in[0] = c.in[1] = shape1(1 << 20);
    cr_assert(ro_infer(&c.call, NULL, 0) == RO_OK);
    case_fill(&c, 5, DATA_TINY);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0xffc0); /* also rounds toward zero */
    const ro_status status = ro_run(ctx, &c.call, (const void *const *)c.data, c.out);
    _mm_setcsr(before);
    cr_assert(status == RO_OK);
    for (int64_t i = 0; i < 1 << 20; i++)
        cr_assert(((float *)c.out)[i] == ((float *)c.data[0])[i] + ((float *)c.data[1])[i]);
    case_free(&c);
    ro_ctx_destroy(ctx);
}
#endif

/* ---- threads and processes ---- */

static void large_product(op_case *c) {
    *c = (op_case){.call = {.op = RO_OP_MATMUL, .input_count = 2}};
    c->call.input = c->in;
    c->call.attr[RO_MATMUL_ALPHA] = ro_attr_f32(1.0f);
    c->call.attr[RO_MATMUL_CHUNK] = RO_DOT_CHUNK;
    c->in[0] = c->in[1] = shape2(200, 200);
    cr_assert(ro_infer(&c->call, NULL, 0) == RO_OK);
    case_fill(c, 3, DATA_NORMAL);
}

Test(cpu, child_of_fork_uses_the_context) {
    ro_ctx *ctx = context("cpu", 3);
    op_case c;
    large_product(&c);
    run(ctx, &c);
    void *first = malloc(case_out_bytes(&c));
    memcpy(first, c.out, case_out_bytes(&c));
    const pid_t child = fork_at_rest(ro_ctx_pool(ctx));
    if (child == 0) {
        int same = 1;
        for (int i = 0; i < 20; i++)
            same = same && ro_run(ctx, &c.call, (const void *const *)c.data, c.out) == RO_OK &&
                   memcmp(first, c.out, case_out_bytes(&c)) == 0;
        ro_ctx_destroy(ctx);
        _exit(same ? 0 : 1);
    }
    int status = -1;
    cr_assert(waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    run(ctx, &c);
    cr_expect(memcmp(first, c.out, case_out_bytes(&c)) == 0);
    free(first);
    case_free(&c);
    ro_ctx_destroy(ctx);
}

Test(cpu, child_of_fork_destroys_a_context_that_it_never_used) {
    ro_ctx *ctx = context("cpu", 3);
    op_case c;
    large_product(&c);
    run(ctx, &c);
    const pid_t child = fork_at_rest(ro_ctx_pool(ctx));
    if (child == 0) {
        ro_ctx_destroy(ctx);
        _exit(0);
    }
    int status = -1;
    cr_assert(waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    case_free(&c);
    ro_ctx_destroy(ctx);
}

Test(cpu, many_small_tasks_leave_no_worker_behind) {
    ro_ctx *ctx = context("cpu", 4);
    op_case c;
    large_product(&c);
    run(ctx, &c);
    void *first = malloc(case_out_bytes(&c));
    memcpy(first, c.out, case_out_bytes(&c));
    for (int i = 0; i < 500; i++) {
        run(ctx, &c);
        cr_assert(memcmp(first, c.out, case_out_bytes(&c)) == 0);
    }
    free(first);
    case_free(&c);
    ro_ctx_destroy(ctx);
}

/* ---- contexts ---- */

Test(cpu, unknown_backend_is_refused_with_a_sentence) {
    ro_ctx *ctx = (ro_ctx *)&ctx;
    const ro_options options = {.size = sizeof options, .backend = "sse9"};
    cr_expect(ro_ctx_create(&options, &ctx) == RO_ERR_ARG);
    cr_expect(ctx == NULL);
    cr_expect(strstr(ro_ctx_error(NULL), "sse9") != NULL);
    ro_ctx_destroy(NULL);
}

Test(cpu, environment_chooses_the_backend) {
    ro_ctx *ctx;
    setenv("REPOPS_CPU", "scalar", 1);
    cr_assert(ro_ctx_create(NULL, &ctx) == RO_OK);
    cr_expect_str_eq(ro_ctx_backend(ctx), "scalar");
    cr_expect(ro_ctx_threads(ctx) >= 1);
    ro_ctx_destroy(ctx);
    setenv("REPOPS_CPU", "abacus", 1);
    cr_expect(ro_ctx_create(NULL, &ctx) == RO_ERR_ARG);
}

Test(cpu, impossible_options_are_refused) {
    ro_ctx *ctx;
    cr_expect(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = -1}, &ctx) ==
              RO_ERR_ARG);
    cr_expect(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 100000}, &ctx) ==
              RO_ERR_ARG);
}

static void *no_memory(void *user, size_t size, void *stream) {
    (void)user, (void)size, (void)stream;
    return NULL;
}

static void no_free(void *user, void *block, void *stream) {
    (void)user, (void)block, (void)stream;
}

Test(cpu, a_stream_and_memory_of_a_device_go_together_and_to_a_device) {
    int stream;
    ro_ctx *ctx;
    ro_options options = {.size = sizeof options, .backend = "scalar", .stream = &stream};
    cr_expect(ro_ctx_create(&options, &ctx) == RO_ERR_ARG);
    cr_expect_str_eq(ro_ctx_error(NULL),
                     "`stream` is a CUDA device's: backend \"scalar\" has none");
    options.device_alloc = no_memory;
    cr_expect(ro_ctx_create(&options, &ctx) == RO_ERR_ARG);
    cr_expect_str_eq(ro_ctx_error(NULL), "`device_alloc` and `device_free` come together");
    options.device_free = no_free;
    options.stream = NULL;
    cr_expect(ro_ctx_create(&options, &ctx) == RO_ERR_ARG);
    cr_expect_str_eq(ro_ctx_error(NULL), "`device_alloc` needs `stream`, whose order it follows");
}

typedef struct {
    int live, calls, limit;
} arena;

static void *count_alloc(void *user, size_t size, size_t alignment) {
    arena *a = user;
    if (a->calls++ >= a->limit)
        return NULL;
    a->live++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void count_free(void *user, void *block) {
    ((arena *)user)->live--;
    free(block);
}

Test(cpu, all_memory_comes_from_the_callers_allocator) {
    arena a = {.limit = 100};
    const ro_options options = {
        .size = sizeof options, .threads = 2, .alloc = count_alloc, .free = count_free, .user = &a};
    ro_ctx *ctx;
    op_case c;
    large_product(&c);
    cr_assert(ro_ctx_create(&options, &ctx) == RO_OK);
    run(ctx, &c);
    const int calls = a.calls;
    run(ctx, &c);
    cr_expect(a.calls == calls, "the workspace is kept");
    ro_ctx_destroy(ctx);
    cr_expect(calls >= 2 && a.live == 0);
    case_free(&c);
}

Test(cpu, lack_of_memory_is_a_status) {
    arena a = {.limit = 1};
    const ro_options options = {
        .size = sizeof options, .threads = 2, .alloc = count_alloc, .free = count_free, .user = &a};
    ro_ctx *ctx;
    op_case c;
    large_product(&c);
    cr_assert(ro_ctx_create(&options, &ctx) == RO_OK);
    cr_expect(ro_run(ctx, &c.call, (const void *const *)c.data, c.out) == RO_ERR_MEMORY);
    cr_expect(strstr(ro_ctx_error(ctx), "memory") != NULL);
    a.limit = 100;
    run(ctx, &c);
    ro_ctx_destroy(ctx);
    a = (arena){0};
    cr_expect(ro_ctx_create(&options, &ctx) == RO_ERR_MEMORY);
    case_free(&c);
}

Test(cpu, operator_that_does_not_exist_is_an_argument_error) {
    ro_ctx *ctx = context("cpu", 1);
    cr_expect(ro_run(ctx, &(ro_call){.op = RO_OP_END}, NULL, NULL) == RO_ERR_ARG);
    cr_expect(ro_run(ctx, &(ro_call){.op = -1}, NULL, NULL) == RO_ERR_ARG);
    cr_expect(ro_run(ctx, &(ro_call){.op = RO_OP_END - 1}, NULL, NULL) == RO_ERR_ARG);
    ro_ctx_destroy(ctx);
}
