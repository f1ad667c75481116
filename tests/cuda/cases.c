/* Random cases of every operator on a device and on this machine's CPU: bytes are equal. Each runs
 * with tensors where the device allocates, then with each one element further, then with the output
 * over each input that it may overwrite.
 *
 * Usage: cases [--device cuda:0] [--seeds N] [--first SEED] [--most ELEMENTS] [OPERATOR...]
 *        cases --list: the operators' names
 * Plain C and librepops alone: machines with a GPU may have nothing else. */
#include "op_cases.h"
#include "repops/tools/case_run.h"
#include "tests/cuda/options.h"

#include <stdio.h>

enum { LARGE_MOST = 30 /* cases of an operator that may be skipped */ };

typedef struct {
    long same, differ, absent, large;
} tally;

static int64_t elements(const op_case *c) {
    int64_t total = ro_shape_numel(&c->call.output);
    for (int i = 0; i < c->call.input_count; i++)
        total += ro_shape_numel(&c->in[i]);
    return total;
}

static void report_difference(const op_case *c, uint64_t seed, const void *want) {
    const uint8_t *a = want, *b = c->out;
    size_t at = 0, width = ro_dtype_size(c->call.output.dtype);
    while (a[at] == b[at])
        at++;
    printf("  %s, case %llu: element %zu differs (output", ro_op_describe(c->call.op)->name,
           (unsigned long long)seed, at / width);
    for (int i = 0; i < c->call.output.ndim; i++)
        printf(" %lld", (long long)c->call.output.dim[i]);
    printf(")\n");
}

/* ---- tensors elsewhere in memory ---- */

typedef struct {
    void *block[CASE_INPUTS + 1]; /* the output's is the last */
    const void *in[CASE_INPUTS];
    void *out;
} placed;

static void *place(ro_ctx *device, void **block, const void *data, const ro_shape *s, int shift) {
    const size_t width = ro_dtype_size(s->dtype), size = (size_t)ro_shape_numel(s) * width;
    *block = ro_alloc(device, size + width);
    char *at = (char *)*block + (shift ? width : 0);
    return *block && ro_write(device, at, data, size) == RO_OK ? at : NULL;
}

/* Runs the case. shift: each tensor begins one element into its block. over: the input whose memory
 * the output takes, or -1. */
static ro_status run_placed(ro_ctx *device, op_case *c, int shift, int over) {
    placed p = {0};
    const int inputs = c->call.input_count;
    int ok = 1;
    memset(c->out, 0x5a, case_out_bytes(c));
    for (int i = 0; i < inputs && ok; i++)
        ok = !!(p.in[i] = place(device, &p.block[i], c->data[i], &c->in[i], shift));
    p.out = over >= 0 ? (void *)(uintptr_t)p.in[over]
                      : place(device, &p.block[inputs], c->out, &c->call.output, shift);
    ro_status status = ok && p.out ? ro_run(device, &c->call, p.in, p.out) : RO_ERR_MEMORY;
    if (status == RO_OK)
        status = ro_read(device, c->out, p.out, case_out_bytes(c));
    for (int i = 0; i <= inputs; i++)
        ro_free(device, p.block[i]);
    return status;
}

static int may_overwrite(const op_case *c, int i) {
    const size_t size = (size_t)ro_shape_numel(&c->in[i]) * ro_dtype_size(c->in[i].dtype);
    return (ro_op_in_place(c->call.op) >> i & 1) && size == case_out_bytes(c);
}

static void check_placed(ro_ctx *device, op_case *c, uint64_t seed, const void *want, tally *t) {
    for (int over = -1; over < c->call.input_count; over++) {
        if (over >= 0 && !may_overwrite(c, over))
            continue;
        const ro_status status = run_placed(device, c, over < 0, over);
        if (status == RO_OK && memcmp(want, c->out, case_out_bytes(c)) == 0)
            continue;
        t->differ++;
        printf("  %s, case %llu: %s: %s\n", ro_op_describe(c->call.op)->name,
               (unsigned long long)seed, over < 0 ? "an element further on" : "over an input",
               status == RO_OK ? "other bits" : ro_ctx_error(device));
    }
}

/* ---- cases ---- */

static void run_case(ro_ctx *cpu, ro_ctx *device, int op, uint64_t seed, int64_t most, tally *t) {
    op_case c;
    const char *why = case_roll(&c, op, seed);
    if (why || elements(&c) > most) {
        t->large += !why;
        t->differ += why != NULL;
        if (why)
            printf("  %s, case %llu: %s\n", ro_op_describe(op)->name, (unsigned long long)seed,
                   why);
        else
            case_free(&c);
        return;
    }
    const size_t size = case_out_bytes(&c);
    void *want = malloc(size + 1);
    ro_status status = want ? case_run(cpu, &c) : RO_ERR_MEMORY;
    if (status == RO_OK) {
        memcpy(want, c.out, size);
        status = case_run(device, &c);
    }
    if (status == RO_ERR_UNSUPPORTED) {
        t->absent++;
    } else if (status != RO_OK) {
        t->differ++;
        printf("  %s, case %llu: %s\n", ro_op_describe(op)->name, (unsigned long long)seed,
               ro_ctx_error(device));
    } else if (memcmp(want, c.out, size) != 0) {
        t->differ++;
        report_difference(&c, seed, want);
    } else {
        t->same++;
        check_placed(device, &c, seed, want, t);
    }
    free(want);
    case_free(&c);
}

static int run_all(const options *o, ro_ctx *cpu, ro_ctx *device) {
    tally all = {0};
    for (int op = 1; op < RO_OP_END; op++) {
        tally t = {0};
        if (!ro_op_describe(op) || !is_wanted(o, ro_op_describe(op)->name))
            continue;
        /* Cases that are too large are replaced by later ones. */
        for (uint64_t i = 0; i < o->seeds + (uint64_t)t.large && t.large < LARGE_MOST; i++)
            run_case(cpu, device, op, o->first + i, o->most, &t);
        if (t.differ || t.absent || t.same == 0)
            printf("%-24s %4ld same %4ld differ %4ld absent %4ld left out\n",
                   ro_op_describe(op)->name, t.same, t.differ, t.absent, t.large);
        all.same += t.same, all.differ += t.differ, all.absent += t.absent, all.large += t.large;
        all.differ += t.same == 0 && t.absent == 0;
        fflush(stdout);
    }
    printf("%s: %ld cases have the CPU's bits, %ld differ, %ld not offered, %ld too large\n",
           ro_ctx_device(device), all.same, all.differ, all.absent, all.large);
    return all.differ || all.absent ? 1 : 0;
}

static int list(void) {
    for (int op = 1; op < RO_OP_END; op++)
        if (ro_op_describe(op))
            puts(ro_op_describe(op)->name);
    return 0;
}

int main(int argc, char **argv) {
    options o = {.device = "cuda:0", .seeds = 8, .most = INT64_C(1) << 40};
    ro_ctx *cpu = NULL, *device = NULL;
    int code = 2;
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (!parse_options(argc, argv, &o))
        fprintf(stderr, "usage: cases [--device NAME] [--seeds N] [--first SEED] [--most ELEMENTS] "
                        "[OPERATOR...]\n");
    else if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = "cpu"}, &cpu) !=
                 RO_OK ||
             ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = o.device},
                           &device) != RO_OK)
        fprintf(stderr, "cases: %s\n", ro_ctx_error(NULL));
    else
        code = run_all(&o, cpu, device);
    ro_ctx_destroy(device);
    ro_ctx_destroy(cpu);
    return code;
}
