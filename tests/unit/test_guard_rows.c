/* A run's guard for products without checksums: rows of products are computed again by other
 * kernels. Also what run.json records of the findings. */
#include "repops/device.h"
#include "repops/operators.h"
#include "tests/support/dispute.h"
#include "tests/support/fusing.h"
#include "verde/exec/kept_weights_internal.h"
#include "verde/exec/run_log_found.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    vd_hash state;
    int64_t found;
    uint64_t rows; /* rows computed again */
    vd_guard_finding first;
} result;

static void keep_first(void *user, const vd_guard_finding *f) {
    result *r = user;
    if (r->found++ == 0)
        r->first = *f;
}

/* Trains for two steps, without a guard if seed is 0. */
static result train(const test_job *job, const char *backend, const vd_fault *fault,
                    uint64_t seed) {
    ro_ctx *ro;
    vd_err err = {0};
    vd_state state;
    result out = {0};
    vd_guard guard = {.tell = keep_first, .user = &out, .seed = seed};
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = 1};
    cr_assert(ro_ctx_create(&options, &ro) == RO_OK);
    vd_exec exec = {.program = &job->program, .ro = ro, .data = job->data};
    if (fault)
        exec.fault = *fault;
    if (seed) {
        cr_assert(vd_guard_open(&guard, ro, &err) == VD_OK, "%s", err.text);
        exec.guard = &guard;
    }
    vd_status status = vd_exec_init(&exec, NULL, &state, &err);
    for (int s = 0; s < 2 && status == VD_OK; s++)
        status = vd_exec_step(&exec, NULL, &state, NULL, &err);
    cr_assert(status == VD_OK, "%s", err.text);
    cr_assert(vd_state_hash(NULL, &job->program, &job->hash, &state, NULL, &out.state, &err) ==
              VD_OK);
    out.rows = guard.rows;
    vd_state_free(&state);
    vd_guard_close(&guard);
    ro_ctx_destroy(ro);
    return out;
}

static const char *best(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") ? "avx2" : NULL;
#elif defined(__aarch64__)
    return "neon";
#else
    return NULL;
#endif
}

/* A flip in an output is found, and then repaired, exactly if its row is drawn. */
static void flip(vd_model_kind kind, const char *text, int rounds) {
    test_job job;
    test_job_open(&job, kind, 2, 2);
    const vd_fault fault = test_fault(&job, text);
    const vd_hash honest = train(&job, best(), NULL, 0).state;
    int found = 0;
    for (int i = 1; i <= rounds; i++) {
        const result r = train(&job, best(), &fault, (uint64_t)i);
        cr_expect(vd_hash_equal(&r.state, &honest) == (r.found > 0), "%s, seed %d: %d found", text,
                  i, (int)r.found);
        if (r.found == 0)
            continue;
        found++;
        cr_expect(r.found == 1 && r.first.kind == VD_GUARD_ROWS && !r.first.again &&
                  r.first.step == fault.step && r.first.rows == 1 && r.first.chunk == -1);
    }
    cr_expect(found > rounds / 256 && found < rounds / 16, "%s: %d of %d found", text, found,
              rounds);
    test_job_close(&job);
}

Test(guard_rows, find_one_of_64_flips_of_an_output_and_repair_it) {
    if (!best())
        cr_skip_test("this machine has scalar kernels alone");
    flip(VD_MODEL_GPT2, "element@1", 512);
    test_job job;
    test_job_open(&job, VD_MODEL_RESNET, 2, 2);
    char text[40];
    snprintf(text, sizeof text, "element@1:%u", test_node(&job, 1, RO_OP_CONV2D));
    test_job_close(&job);
    flip(VD_MODEL_RESNET, text, 512);
}

/* Nothing is found in a faultless run of any model, with fused groups of nodes as well. */
Test(guard_rows, find_nothing_where_nothing_is_wrong) {
    static const vd_model_kind kinds[] = {VD_MODEL_GPT2, VD_MODEL_MLP, VD_MODEL_RESNET,
                                          VD_MODEL_LLAMA, VD_MODEL_BERT};
    for (size_t i = 0; best() && i < sizeof kinds / sizeof kinds[0]; i++)
        for (int bits = 0; bits <= RO_FIXED_24; bits += 8) {
            test_job job;
            test_job_open_fixed(&job, kinds[i], 2, bits);
            const vd_hash want = train(&job, best(), NULL, 0).state;
            uint64_t rows = 0;
            for (uint64_t seed = 1; bits == 0 && seed < 40; seed++) {
                const result r = train(&job, best(), NULL, seed);
                cr_expect(r.found == 0 && vd_hash_equal(&r.state, &want));
                rows += r.rows;
            }
            cr_expect(bits || rows > 0, "no row was computed again");
            const result r = bits ? train(&job, best(), NULL, 1) : (result){.state = want};
            cr_expect(r.found == 0 && vd_hash_equal(&r.state, &want));
            test_job_close(&job);
        }
}

enum { ROWS = 128, K = 8, COLS = 16 };

/* Flips an element of a product's output. It is computed again if its row is drawn. */
static int repair(ro_ctx *ro, const vd_fused *group, const vd_fused_memory *at,
                  const float *right) {
    int repaired = 0;
    for (uint64_t seed = 1; seed <= 256; seed++) {
        float out[ROWS * COLS];
        vd_err err = {0};
        result found = {0};
        vd_guard guard = {.tell = keep_first, .user = &found, .seed = seed};
        cr_assert(vd_guard_open(&guard, ro, &err) == VD_OK, "%s", err.text);
        memcpy(out, right, sizeof out);
        out[37 * COLS + 3] += 1;
        cr_assert(ro_write(ro, at->out[0], out, sizeof out) == RO_OK);
        cr_assert(vd_guard_group(&guard, group, at, NULL, &err) == VD_OK, "%s", err.text);
        cr_assert(ro_read(ro, out, at->out[0], sizeof out) == RO_OK);
        const bool same = memcmp(out, right, sizeof out) == 0;
        cr_expect(same == (found.found > 0));
        cr_expect(!same || (found.first.row == 37 && found.first.col == 3));
        repaired += same;
        vd_guard_close(&guard);
    }
    return repaired;
}

/* A product whose data-tensor weights are kept in the form that a kernel reads is checked like
 * others. */
static void check_kept(const char *backend) {
    float a[ROWS * K], b[K * COLS], right[ROWS * COLS];
    vd_conv conv = {.own = {.op = RO_OP_MATMUL, .input_count = 2},
                    .own_shape = {{RO_F32, 2, {ROWS, K}}, {RO_F32, 2, {K, COLS}}}};
    vd_fused group = {.kind = VD_FUSED_CONV, .conv = &conv};
    ro_ctx *ro;
    for (int i = 0; i < ROWS * K; i++)
        a[i] = (float)(i % 7) - 2.5f;
    for (int i = 0; i < K * COLS; i++)
        b[i] = (float)(i % 5) - 1.25f;
    conv.own.attr[RO_MATMUL_CHUNK] = 256;
    conv.own.input = conv.own_shape;
    conv.own.attr[RO_MATMUL_ALPHA] = 0x3f800000;
    cr_assert(ro_infer(&conv.own, (char[200]){0}, 200) == RO_OK);
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = 1};
    cr_assert(ro_ctx_create(&options, &ro) == RO_OK, "%s", ro_ctx_error(NULL));
    void *const in[] = {ro_alloc(ro, sizeof a), ro_alloc(ro, sizeof b)};
    const vd_fused_memory at = {.in = {in[0], in[1]}, .out = {ro_alloc(ro, sizeof right)}};
    cr_assert(in[0] && in[1] && at.out[0]);
    cr_assert(ro_write(ro, in[0], a, sizeof a) == RO_OK);
    cr_assert(ro_write(ro, in[1], b, sizeof b) == RO_OK);
    cr_assert(ro_run(ro, &conv.own, (const void *const *)in, at.out[0]) == RO_OK, "%s",
              ro_ctx_error(ro));
    cr_assert(ro_read(ro, right, at.out[0], sizeof right) == RO_OK);
    conv.own.input = NULL;
    const int repaired = repair(ro, &group, &at, right);
    cr_expect(repaired > 0 && repaired < 32, "%d of 256", repaired);
    ro_free(ro, in[0]), ro_free(ro, in[1]), ro_free(ro, at.out[0]);
    ro_ctx_destroy(ro);
}

Test(guard_rows, check_products_of_weights_that_are_kept) {
    if (!best())
        cr_skip_test("this machine has scalar kernels alone");
    check_kept(best());
}

/* A bit flip in packed weights affects every product that reads them. Once found, the weights are
 * packed anew, and later products are right. */
Test(guard_rows, damaged_weights_that_stay_packed_are_packed_anew) {
    enum { IN = 512, OUT = 512, MANY = 64, AT = 64 + 4 * 1000 + 2 };
    vd_fused group = {.kind = VD_FUSED_LINEAR,
                      .linear = {.size = sizeof group.linear, .rows = MANY, .in = IN, .out = OUT},
                      .weight_dtype = RO_F32,
                      .frozen = true,
                      .input_count = 2,
                      .output_count = 1};
    if (!best())
        cr_skip_test("this machine has scalar kernels alone");
    test_job job;
    vd_err err = {0};
    ro_ctx *ro;
    test_job_open(&job, VD_MODEL_MLP, 1, 1);
    vd_kept_weights *kept = vd_kept_weights_create(&job.program, NULL);
    static float x[MANY * IN], w[IN * OUT], y[MANY * OUT], right[MANY * OUT];
    for (int i = 0; i < MANY * IN; i++)
        x[i] = (float)(i % 7) - 2.625f;
    for (int i = 0; i < IN * OUT; i++)
        w[i] = (float)(i % 5) - 1.375f;
    const ro_options options = {.size = sizeof options, .backend = best(), .threads = 1};
    cr_assert(kept && ro_ctx_create(&options, &ro) == RO_OK);
    const vd_fused_memory at = {.in = {x, w}, .out = {right}}, again = {.in = {x, w}, .out = {y}};
    cr_assert(vd_fused_run(&group, &at, 1, ro, kept, 0, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_kept_weights_packings(kept) == 1, "nothing is kept");
    const size_t bytes = vd_kept_weights_bytes(kept);
    ((uint8_t *)kept->entry[0].packed)[AT] ^= 0x40;
    result r = {0};
    for (uint64_t seed = 1; r.found == 0 && seed < 1000; seed++) {
        vd_guard guard = {.tell = keep_first, .user = &r, .seed = seed};
        cr_assert(vd_guard_open(&guard, ro, &err) == VD_OK, "%s", err.text);
        cr_assert(vd_fused_run(&group, &again, 1, ro, kept, 0, &err) == VD_OK, "%s", err.text);
        cr_assert(memcmp(y, right, sizeof y) != 0, "the flip changes nothing");
        cr_assert(vd_guard_group(&guard, &group, &again, kept, &err) == VD_OK, "%s", err.text);
        vd_guard_close(&guard);
    }
    cr_expect(r.found == 1 && memcmp(y, right, sizeof y) == 0, "found, but not repaired");
    cr_assert(vd_fused_run(&group, &again, 1, ro, kept, 0, &err) == VD_OK, "%s", err.text);
    cr_expect(memcmp(y, right, sizeof y) == 0, "the damaged weights are read again");
    cr_expect(vd_kept_weights_bytes(kept) == bytes && vd_kept_weights_packings(kept) == 2);
    vd_kept_weights_destroy(kept);
    test_job_close(&job);
    ro_ctx_destroy(ro);
}

/* Needs the library that tests/simt/guard.sh names in REPOPS_CUDA_LIBRARY. */
Test(guard_rows, check_products_on_a_device) {
    if (!getenv("REPOPS_CUDA_LIBRARY"))
        cr_skip_test("no library for a device is named");
    check_kept("cuda:0");
}

/* ---- the record of findings in run.json ---- */

static const char *const good =
    "[{\"step\":5,\"node\":\"a.matmul\",\"kind\":\"sums\",\"again\":false,\"product\":0,"
    "\"chunk\":0,\"row\":1,\"rows\":1,\"column\":-1,\"columns\":0,\"machine\":0}]";

static vd_status read_text(const char *text, vd_run_log *log, vd_err *err) {
    json_t *list = json_loads(text, 0, NULL);
    cr_assert(list, "%s", text);
    *log = (vd_run_log){.machine_count = 1};
    const vd_status status = vd_found_read(list, log, err);
    json_decref(list);
    return status;
}

Test(guard_rows, what_was_found_is_read_as_it_was_written) {
    vd_run_log log;
    vd_err err = {0};
    cr_assert(read_text(good, &log, &err) == VD_OK, "%s", err.text);
    json_t *again = vd_found_json(log.found, log.found_count);
    char *text = json_dumps(again, JSON_COMPACT);
    cr_expect(strcmp(text, good) == 0, "%s", text);
    free(text), json_decref(again), free(log.found);
}

Test(guard_rows, refuse_a_list_that_is_none) {
    static const char *const bad[][2] = {
        {"[]", "guard: expected a list of 1..1024"},
        {"{}", "guard: expected a list of 1..1024"},
        {"[{\"stop\":5}]", "guard[0]"},
        {"[3]", "guard[0]"},
        {"[{\"step\":5,\"node\":\"a\",\"kind\":\"odd\",\"again\":false,\"product\":0,\"chunk\":0,"
         "\"row\":1,\"rows\":1,\"column\":-1,\"columns\":0}]",
         "guard[0] is not what --guard finds"},
        {"[{\"step\":5,\"node\":\"a\",\"kind\":\"rows\",\"again\":false,\"product\":0,\"chunk\":0,"
         "\"row\":1,\"rows\":1,\"column\":-1,\"columns\":0,\"machine\":1}]",
         "guard[0] is not what --guard finds"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        vd_run_log log;
        vd_err err = {0};
        cr_expect(read_text(bad[i][0], &log, &err) == VD_ERR_PEER);
        cr_expect(strstr(err.text, bad[i][1]), "%s", err.text);
        free(log.found);
    }
}
