/* Random cases of every free operator by the profile "cuda" (SPEC.md section 14), compared with
 * this machine's CPU: values are within each other's bounds, following the other's reports gives
 * the same bits, and binary32 is near binary64.
 *
 * Usage: free [--seeds N] [--first SEED] [--most ELEMENTS] [OPERATOR...]; free --list
 * Plain C and librepops alone: machines with a GPU may have nothing else. */
#include "op_cases.h"
#include "repops/free.h"
#include "tests/cuda/options.h"

#include <math.h>
#include <stdio.h>

enum { LARGE_MOST = 30 /* cases of an operator that may be skipped */ };

typedef struct {
    long good, bad, large, calls;
} tally;

typedef struct {
    ro_ctx *ctx;
    const op_case *c;
    const char *name;
    uint64_t seed;
    int64_t n;
    const ro_profile *cpu, *cuda;
    double *y[2], *bound[2]; /* on the CPU, on the device */
    float *out, *other;
} check;

static int fails(const check *k, int64_t e, const char *what) {
    printf("  %s, case %llu, element %lld: %s (%a, %a; bounds %a, %a)\n", k->name,
           (unsigned long long)k->seed, (long long)e, what, k->y[0][e], k->y[1][e], k->bound[0][e],
           k->bound[1][e]);
    return 0;
}

static int run(const check *k, const ro_profile *p, const ro_rounding *r, void *out,
               ro_free_report *report) {
    if (ro_free_run(k->ctx, p, r, &k->c->call, (const void *const *)k->c->data, out, report) ==
        RO_OK)
        return 1;
    printf("  %s, case %llu, %s: %s\n", k->name, (unsigned long long)k->seed, p->name,
           ro_ctx_error(k->ctx));
    return 0;
}

/* A bound is at least twice the possible error of either, so that it holds for both. */
static int check_values(const check *k) {
    for (int i = 0; i < 2; i++) {
        const ro_rounding r = {
            .size = sizeof r, .mode = RO_FREE_VALUES, .value = k->y[i], .bound = k->bound[i]};
        if (!run(k, i ? k->cuda : k->cpu, &r, k->out, NULL))
            return 0;
    }
    for (int64_t e = 0; e < k->n; e++) {
        const double a = k->y[0][e], b = k->y[1][e];
        if (a == b || (a != a && b != b))
            continue;
        if (a - a != 0 || b - b != 0)
            return fails(k, e, "not finite on one side");
        if (fabs(a - b) > k->bound[0][e] || fabs(a - b) > k->bound[1][e])
            return fails(k, e, "too far apart");
    }
    return 1;
}

static int check_replay(const check *k, const ro_profile *trainer, const ro_profile *auditor,
                        tally *t) {
    const int32_t bits[] = {32, 24, 16};
    ro_rounding r = {.size = sizeof r, .mode = RO_FREE_REPORT, .bits = bits[k->seed % 3]};
    ro_free_report made = {.size = sizeof made};
    if (!run(k, trainer, &r, k->out, &made))
        return 0;
    /* The context keeps the report until its next run. */
    const size_t size = (size_t)made.call_count * sizeof *made.call;
    ro_close_call *call = malloc(size + 1);
    if (!call)
        return 0;
    if (size)
        memcpy(call, made.call, size);
    t->calls += (long)made.call_count;
    r.mode = RO_FREE_REPLAY, r.call = call, r.call_count = made.call_count;
    int ok = run(k, auditor, &r, k->other, NULL);
    free(call);
    for (int64_t e = 0; ok && e < k->n; e++)
        if (memcmp(&k->out[e], &k->other[e], sizeof *k->out) != 0)
            ok = fails(k, e,
                       trainer == k->cuda ? "the CPU follows the device to other bits"
                                          : "the device follows the CPU to other bits");
    return ok;
}

/* Errors of binary32 are about 2^29 of binary64's bounds. */
static int check_f32(const check *k) {
    const ro_rounding r = {.size = sizeof r, .mode = RO_FREE_F32};
    if (!run(k, k->cuda, &r, k->out, NULL))
        return 0;
    for (int64_t e = 0; e < k->n; e++) {
        const double y = k->y[1][e], x = (double)k->out[e];
        const double reach = 0x1p34 * k->bound[1][e] + 0x1p-20 * fabs(y) + 0x1p-14;
        if (k->seed % DATA_END == 0 && y - y == 0 && x - x == 0 && fabs(x - y) > reach) {
            printf("  binary32: %a\n", x);
            return fails(k, e, "binary32 is somewhere else");
        }
    }
    return 1;
}

static int check_all(check *k, tally *t) {
    const size_t n = (size_t)k->n + 1;
    int ok = 1;
    for (int i = 0; i < 2; i++) {
        k->y[i] = calloc(n, sizeof *k->y[i]);
        k->bound[i] = calloc(n, sizeof *k->bound[i]);
        ok = ok && k->y[i] && k->bound[i];
    }
    k->out = calloc(n, sizeof *k->out);
    k->other = calloc(n, sizeof *k->other);
    ok = ok && k->out && k->other && check_values(k) && check_replay(k, k->cuda, k->cpu, t) &&
         check_replay(k, k->cpu, k->cuda, t) && check_f32(k);
    for (int i = 0; i < 2; i++) {
        free(k->y[i]);
        free(k->bound[i]);
    }
    free(k->out);
    free(k->other);
    return ok;
}

static void run_case(ro_ctx *ctx, int op, uint64_t seed, int64_t most, tally *t) {
    op_case c;
    const char *why = case_roll(&c, op, seed);
    if (why) {
        printf("  %s, case %llu: %s\n", ro_op_describe(op)->name, (unsigned long long)seed, why);
        t->bad++;
        return;
    }
    int64_t elements = ro_shape_numel(&c.call.output);
    for (int i = 0; i < c.call.input_count; i++) {
        elements += ro_shape_numel(&c.in[i]);
        free(c.data[i]);
    }
    free(c.out);
    /* Takes the classes of data in turn. */
    if (!case_fill(&c, seed, (data_class)(seed % DATA_END))) {
        t->bad++;
        return;
    }
    check k = {.ctx = ctx, .c = &c, .name = ro_op_describe(op)->name, .seed = seed};
    k.n = ro_shape_numel(&c.call.output);
    k.cpu = ro_profile_at((int)(seed % 4));
    k.cuda = ro_profile_by_name("cuda");
    if (elements > most)
        t->large++;
    else if (check_all(&k, t))
        t->good++;
    else
        t->bad++;
    case_free(&c);
}

static int run_all(const options *o, ro_ctx *ctx) {
    tally all = {0};
    for (int op = 1; op < RO_OP_END; op++) {
        tally t = {0};
        if (!ro_op_describe(op) || !ro_op_is_free(op) || !is_wanted(o, ro_op_describe(op)->name))
            continue;
        /* Cases that are too large are replaced by later ones. */
        for (uint64_t i = 0; i < o->seeds + (uint64_t)t.large && t.large < LARGE_MOST; i++)
            run_case(ctx, op, o->first + i, o->most, &t);
        if (t.bad || t.good == 0)
            printf("%-24s %4ld good %4ld bad %4ld left out\n", ro_op_describe(op)->name, t.good,
                   t.bad, t.large);
        all.good += t.good, all.bad += t.bad + (t.good == 0), all.calls += t.calls;
        fflush(stdout);
    }
    printf("free operators: %ld cases within their bounds and followed to the same bits, %ld not; "
           "%ld close calls\n",
           all.good, all.bad, all.calls);
    return all.bad ? 1 : 0;
}

static int list(void) {
    for (int op = 1; op < RO_OP_END; op++)
        if (ro_op_describe(op) && ro_op_is_free(op))
            puts(ro_op_describe(op)->name);
    return 0;
}

int main(int argc, char **argv) {
    options o = {.seeds = 8, .most = INT64_C(1) << 40};
    ro_ctx *ctx = NULL;
    int code = 2;
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "usage: free [--seeds N] [--first SEED] [--most ELEMENTS] [OPERATOR...]\n");
        return 2;
    }
    if (ro_ctx_create(NULL, &ctx) != RO_OK)
        fprintf(stderr, "free: %s\n", ro_ctx_error(NULL));
    else if (ro_free_open(ctx, ro_profile_by_name("cuda")) != RO_OK)
        fprintf(stderr, "free: %s\n", ro_ctx_error(ctx));
    else
        code = run_all(&o, ctx);
    ro_ctx_destroy(ctx);
    return code;
}
