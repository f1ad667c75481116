/* repops-conform: checks that this machine computes the specified bits. Runs the cases of
 * tests/golden/ops.txt, sgemm.txt, fused.txt, bounded.txt and functions.txt, which are compiled in,
 * on every backend. */
#include "repops/device.h"
#include "repops/modes.h"
#include "repops/src/fpenv.h"
#include "repops/tools/bounded.h"
#include "repops/tools/case_run.h"
#include "repops/tools/conform.h"
#include "repops/tools/fused.h"
#include "repops/tools/golden.h"
#include "repops/tools/product.h"
#include "repops/tools/sha256.h"

#include <getopt.h>
#include <stdio.h>

enum { CONFORM_SAME = 0, CONFORM_DIFFER = 1, CONFORM_USAGE = 2 };

static const char *const operator_lines[] = {
#include "golden_ops.h"
};
static const char *const sgemm_lines[] = {
#include "golden_sgemm.h"
};
static const char *const fused_lines[] = {
#include "golden_fused.h"
};
static const char *const bounded_lines[] = {
#include "golden_bounded.h"
};
static const char *const function_lines[] = {
#include "golden_functions.h"
};
enum {
    OPERATOR_LINES = sizeof operator_lines / sizeof operator_lines[0],
    SGEMM_LINES = sizeof sgemm_lines / sizeof sgemm_lines[0],
    FUSED_LINES = sizeof fused_lines / sizeof fused_lines[0],
    BOUNDED_LINES = sizeof bounded_lines / sizeof bounded_lines[0],
    FUNCTION_LINES = sizeof function_lines / sizeof function_lines[0],
};

static const char usage[] =
    "Usage: repops-conform [--device NAME]... [--threads N] [--operators] [--json]\n"
    "       repops-conform --list | --version | --help\n"
    "\n"
    "Compares the bits that this machine computes with those that repops/SPEC.md fixes:\n"
    "every operator and elementary function, on every backend of this processor.\n"
    "\n"
    "  --device NAME   only this backend: scalar, avx2, avx512, neon, cuda:0, ... (may be "
    "repeated)\n"
    "  --operators     leave out the elementary functions\n"
    "  --threads N     threads of each context; 0, the default: one per core\n"
    "  --json          one object for machines\n"
    "  --list          only the names of the devices\n"
    "  --version       versions of the library and of the specification\n"
    "  --help          this text\n"
    "\n"
    "Exit codes: 0 all conform; 1 some do not; 2 usage, or a device that is not here.\n"
    "\n"
    "Examples:\n"
    "  repops-conform                            the last line is for a bug report\n"
    "  repops-conform --device avx2 --threads 1\n"
    "  repops-conform --json > conform.json\n";

/* ---- devices ---- */

static bool add_device(report *r, const char *name, int threads) {
    device *d = &r->device[r->device_count];
    const ro_options options = {.size = sizeof options, .backend = name, .threads = threads};
    if (r->device_count == DEVICES_MAX || ro_ctx_create(&options, &d->ctx) != RO_OK)
        return false;
    for (int i = 0; i < ELEMENTARY_SETS; i++)
        if (strcmp(ro_ctx_backend(d->ctx), elementary_sets[i].backend) == 0)
            d->function = elementary_sets[i].list;
    r->device_count++;
    return true;
}

static void add_all_devices(report *r, int threads) {
    for (int i = 0; i < ELEMENTARY_SETS; i++)
        add_device(r, elementary_sets[i].backend, threads);
    add_device(r, "cuda:0", threads);
}

/* ---- cases ---- */

static void compare(report *r, item *it, int d, const char *name, const char *want,
                    const char *got) {
    failure f = {.got = ""};
    if (strcmp(want, got) == 0) {
        it->tally[d].same++;
        return;
    }
    it->tally[d].other++;
    snprintf(f.item, sizeof f.item, "%s", it->name);
    snprintf(f.name, sizeof f.name, "%s", name);
    snprintf(f.device, sizeof f.device, "%s", ro_ctx_backend(r->device[d].ctx));
    snprintf(f.want, sizeof f.want, "%s", want);
    snprintf(f.got, sizeof f.got, "%s", got);
    report_failure(r, f);
}

/* Hashes elements of `width` bytes as little-endian ones; a big-endian machine first reverses the
 * bytes of each, in place. */
static void hash_elements(void *data, size_t bytes, size_t width, char text[65]) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    uint8_t *p = data;
    for (size_t at = 0; at < bytes; at += width)
        for (size_t i = 0; i < width / 2; i++) {
            const uint8_t low = p[at + i];
            p[at + i] = p[at + width - 1 - i];
            p[at + width - 1 - i] = low;
        }
#else
    (void)width;
#endif
    sha256_text(data, bytes, text);
}

/* Computes a case: `got` becomes the text of a hash, or a sentence. Returns false if the device
 * does not offer the call. */
typedef bool computation(ro_ctx *ctx, const void *g, char got[65]);

static bool compute_operator(ro_ctx *ctx, const void *g, char got[65]) {
    op_case c;
    ro_status status = RO_OK;
    if (golden_build(g, &c, got, 65)) {
        status = case_run(ctx, &c);
        if (status == RO_OK)
            hash_elements(c.out, case_out_bytes(&c), ro_dtype_size(c.call.output.dtype), got);
        else
            snprintf(got, 65, "%s", ro_ctx_error(ctx));
    }
    case_free(&c);
    return status != RO_ERR_UNSUPPORTED;
}

static bool compute_product(ro_ctx *ctx, const void *g, char got[65]) {
    product p = {0};
    ro_status status = RO_OK;
    snprintf(got, 65, "no memory for the data");
    if (golden_product_build(g, &p)) {
        status = product_run(ctx, &p);
        if (status == RO_OK)
            hash_elements(p.out, (size_t)p.c_count * sizeof *p.out, sizeof *p.out, got);
        else
            snprintf(got, 65, "%s", ro_ctx_error(ctx));
    }
    product_free(&p);
    return status != RO_ERR_UNSUPPORTED;
}

static bool compute_fused(ro_ctx *ctx, const void *g, char got[65]) {
    float *out = NULL;
    int64_t count = 0;
    const ro_status status = golden_fused_run(ctx, g, &out, &count);
    if (status == RO_OK)
        hash_elements(out, (size_t)count * sizeof *out, sizeof *out, got);
    else
        snprintf(got, 65, "%s", ro_ctx_error(ctx));
    free(out);
    return status != RO_ERR_UNSUPPORTED;
}

/* Computes bounded elements. The CPU's reference does that, whatever the backend. */
static bool compute_bounded(ro_ctx *ctx, const void *g, char got[65]) {
    uint64_t out[2 * BOUNDED_ELEMENTS];
    op_case c;
    if (!ro_ctx_in_host_memory(ctx))
        return false;
    if (golden_build(g, &c, got, 65))
        hash_elements(out, (size_t)bounded_of_case(&c, out) * 2 * sizeof *out, sizeof *out, got);
    case_free(&c);
    return true;
}

static void run_case(report *r, item *it, const char *name, const char *want, computation *compute,
                     const void *g) {
    char got[65];
    it->cases++;
    for (int d = 0; d < r->device_count; d++) {
        report_progress(r, it, ro_ctx_backend(r->device[d].ctx));
        if (compute(r->device[d].ctx, g, got))
            compare(r, it, d, name, want, got);
        else
            it->tally[d].absent++;
    }
}

/* Runs all lines of an operator if line `first` is its first one, else nothing. */
static void run_operator(report *r, int first) {
    golden_case g, head;
    item it = {.cases = 0};
    golden_parse(operator_lines[first], &head);
    for (int i = 0; i < first; i++)
        if (golden_parse(operator_lines[i], &g) && strcmp(g.op, head.op) == 0)
            return;
    snprintf(it.name, sizeof it.name, "%s", head.op);
    for (int i = first; i < OPERATOR_LINES; i++)
        if (golden_parse(operator_lines[i], &g) && strcmp(g.op, head.op) == 0)
            run_case(r, &it, g.name, g.hash, compute_operator, &g);
    report_item(r, &it);
}

static void run_sgemm(report *r) {
    golden_product g;
    item it = {.name = "ro_sgemm", .function = true};
    for (int i = 0; i < SGEMM_LINES; i++)
        if (golden_product_parse(sgemm_lines[i], &g))
            run_case(r, &it, g.name, g.hash, compute_product, &g);
    report_item(r, &it);
}

static void run_bounded(report *r) {
    golden_case g;
    item it = {.name = "ro_ref_bounded", .function = true};
    for (int i = 0; i < BOUNDED_LINES; i++)
        if (golden_parse(bounded_lines[i], &g))
            run_case(r, &it, g.name, g.hash, compute_bounded, &g);
    report_item(r, &it);
}

static void run_fused(report *r, const char *function) {
    golden_fused g;
    item it = {.function = true};
    snprintf(it.name, sizeof it.name, "ro_%s", function);
    for (int i = 0; i < FUSED_LINES; i++)
        if (golden_fused_parse(fused_lines[i], &g) && strcmp(g.function, function) == 0)
            run_case(r, &it, g.name, g.hash, compute_fused, &g);
    report_item(r, &it);
}

static const elementary *find_function(const elementary *list, const char *name) {
    while (list && list->name && strcmp(list->name, name) != 0)
        list++;
    return list && list->name ? list : NULL;
}

static void run_function(report *r, const char *line, float *x) {
    item it = {.function = true, .cases = 1};
    char want[65], got[65];
    sscanf(line, "%64s %47s", want, it.name);
    for (int d = 0; d < r->device_count; d++) {
        const elementary *f = find_function(r->device[d].function, it.name);
        if (!f) {
            it.tally[d].absent++;
            continue;
        }
        report_progress(r, &it, ro_ctx_backend(r->device[d].ctx));
        for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
            const uint32_t bits = SAMPLE_FIRST + i * SAMPLE_STRIDE;
            memcpy(&x[i], &bits, sizeof bits);
        }
        const ro_fpenv env = ro_fpenv_enter();
        f->apply(x, SAMPLE_COUNT);
        ro_fpenv_leave(env);
        hash_elements(x, SAMPLE_COUNT * sizeof *x, sizeof *x, got);
        compare(r, &it, d, "sample", want, got);
    }
    report_item(r, &it);
}

/* ---- the command ---- */

typedef struct {
    const char *device[DEVICES_MAX];
    int device_count, threads;
    bool operators_only, list;
} wishes;

static int usage_error(const char *what, const char *value) {
    fprintf(stderr, "repops-conform: %s%s; try --help\n", what, value);
    return CONFORM_USAGE;
}

/* Returns -1 to continue, or else the exit code. */
static int parse_options(int argc, char **argv, report *r, wishes *w) {
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'}, {"threads", required_argument, NULL, 't'},
        {"operators", no_argument, NULL, 'o'},    {"json", no_argument, NULL, 'j'},
        {"list", no_argument, NULL, 'l'},         {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    char *end = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            if (w->device_count == DEVICES_MAX)
                return usage_error("too many devices", "");
            w->device[w->device_count++] = optarg;
            break;
        case 't':
            w->threads = (int)strtol(optarg, &end, 10);
            if (*optarg == '\0' || *end != '\0')
                return usage_error("--threads must be a number, got ", optarg);
            break;
        case 'o': w->operators_only = true; break;
        case 'j': r->json = true; break;
        case 'l': w->list = true; break;
        case 'v': printf("repops %s, spec %d\n", ro_version(), RO_SPEC_VERSION); return 0;
        case 'h': fputs(usage, stdout); return 0;
        default: return usage_error("unknown option", "");
        }
    }
    return optind < argc ? usage_error("no arguments expected, got ", argv[optind]) : -1;
}

static int add_devices(report *r, const wishes *w) {
    for (int i = 0; i < w->device_count; i++)
        if (!add_device(r, w->device[i], w->threads))
            return usage_error(ro_ctx_error(NULL), "");
    if (w->device_count == 0)
        add_all_devices(r, w->threads);
    return r->device_count ? -1 : usage_error(ro_ctx_error(NULL), "");
}

static void run_all(report *r, const wishes *w, float *sample) {
    report_begin(r);
    for (int i = 0; i < OPERATOR_LINES; i++)
        run_operator(r, i);
    run_sgemm(r);
    for (int i = 0; golden_fused_function(i); i++)
        run_fused(r, golden_fused_function(i));
    run_bounded(r);
    for (int i = 0; !w->operators_only && i < FUNCTION_LINES; i++)
        run_function(r, function_lines[i], sample);
    report_end(r);
}

int main(int argc, char **argv) {
    static report r;
    wishes w = {.threads = 0};
    float *sample = malloc(SAMPLE_COUNT * sizeof *sample);
    (void)ro_modes_set(); /* the data of cases is computed with these modes */
    int code = parse_options(argc, argv, &r, &w);
    if (code < 0)
        code = sample ? add_devices(&r, &w) : usage_error("no memory", "");
    if (code < 0 && w.list) {
        for (int d = 0; d < r.device_count; d++)
            puts(ro_ctx_backend(r.device[d].ctx));
        code = CONFORM_SAME;
    } else if (code < 0) {
        run_all(&r, &w, sample);
        code = r.differ ? CONFORM_DIFFER : CONFORM_SAME;
    }
    for (int d = 0; d < r.device_count; d++)
        ro_ctx_destroy(r.device[d].ctx);
    free(sample);
    return code;
}
