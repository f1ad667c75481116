/* Trainings that store bf16: which tensors have 16 bits, that a step loses nothing else by it, and
 * that a provider which stores something else is convicted. */
#include "repops/operators.h"
#include "tests/support/dispute.h"
#include "tests/support/fusing.h"
#include "verde/exec/estimate.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const vd_model_kind models[] = {VD_MODEL_MLP, VD_MODEL_GPT2, VD_MODEL_LLAMA, VD_MODEL_BERT,
                                       VD_MODEL_RESNET};
enum { MODELS = sizeof models / sizeof models[0] };

static bool is_bf16(const vd_leaf *leaf) {
    return leaf->shape.dtype == RO_BF16;
}

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

/* Statistics that a model only keeps, and AdamW's corrections, stay f32. */
static bool stays_f32(const char *name) {
    return begins(name, "adamw.c") || strstr(name, ".running_") || strstr(name, ".mean") ||
           strstr(name, ".var");
}

Test(storage, parameters_and_moments_are_bf16) {
    for (int i = 0; i < MODELS; i++) {
        test_job job;
        test_job_open_stored(&job, models[i], 1, 0);
        for (uint32_t k = 0; k < job.program.leaf_count; k++) {
            const vd_leaf *leaf = &job.program.leaf[k];
            cr_expect(is_bf16(leaf) == !stays_f32(leaf->name), "model %d: %s", i, leaf->name);
        }
        test_job_close(&job);
    }
}

/* ---- values that live from the forward to the backward pass ---- */

/* The last part of a backward node's name begins with "d_". */
static bool is_backward(const vd_program *p, uint32_t node) {
    const vd_name name = vd_node_name(&p->step, node);
    const char *last = strrchr(name.text, '.');
    return begins(last ? last + 1 : name.text, "d_");
}

/* Returns the number of elements of the largest f32 value that a forward node computes and a
 * backward node reads. */
static int64_t largest_kept(const vd_program *p) {
    const vd_graph *g = &p->step;
    const uint32_t sources = vd_source_count(p, g);
    int64_t most = 0;
    for (uint32_t n = 0; n < g->node_count; n++)
        for (int32_t i = 0; is_backward(p, n) && i < vd_node_stored(g, n)->input_count; i++) {
            const uint32_t value = vd_node_input(g, n, i);
            const ro_shape *shape = vd_value_shape(p, g, value);
            if (value < sources || shape->dtype != RO_F32 || is_backward(p, value - sources) ||
                strstr(vd_node_name(g, value - sources).text, "_again") ||
                strstr(vd_node_name(g, value - sources).text, "logits"))
                continue;
            most = ro_shape_numel(shape) > most ? ro_shape_numel(shape) : most;
        }
    return most;
}

Test(storage, the_backward_pass_reads_bf16) {
    enum { TOKENS = 16, CHANNELS = 16 };
    for (int i = 1; i < 3; i++) { /* GPT-2 and Llama */
        test_job stored, whole;
        test_job_open_stored(&stored, models[i], 1, 0);
        test_job_open(&whole, models[i], 1, 1);
        const int64_t most = largest_kept(&stored.program);
        cr_expect(largest_kept(&whole.program) >= TOKENS * CHANNELS);
        cr_expect(most < TOKENS * CHANNELS, "model %d: %lld elements", i, (long long)most);
        test_job_close(&stored);
        test_job_close(&whole);
    }
}

/* ---- fusion ---- */

static vd_hash root_of(const test_job *job, bool unfused, const char *backend) {
    char dir[] = "/tmp/storage.XXXXXX";
    ro_ctx *ro;
    vd_run_result result;
    vd_err err = {0};
    cr_assert(mkdtemp(dir));
    cr_assert(
        ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2, .backend = backend},
                      &ro) == RO_OK);
    const vd_exec exec = {
        .program = &job->program, .ro = ro, .data = job->data, .unfused = unfused};
    const vd_run_options options = {.exec = &exec, .dir = dir};
    cr_assert(vd_run(&options, &result, &err) == VD_OK, "%s", err.text);
    ro_ctx_destroy(ro);
    test_remove_dir(dir);
    return result.run_root;
}

Test(storage, groups_and_nodes_have_one_root) {
    for (int i = 0; i < 2 * MODELS; i++) {
        test_job job;
        if (i / 2 == MODELS - 1 && i % 2)
            continue; /* ResNet's convolutions have no fixed products */
        test_job_open_stored(&job, models[i / 2], 2, i % 2 ? RO_FIXED_16 : 0);
        const vd_hash fused = root_of(&job, false, NULL), nodes = root_of(&job, true, NULL);
        const vd_hash scalar = root_of(&job, false, "scalar");
        cr_expect(vd_hash_equal(&fused, &nodes), "model %d", i);
        cr_expect(vd_hash_equal(&fused, &scalar), "model %d", i);
        test_job_close(&job);
    }
}

static uint32_t groups(const vd_plan *plan, const vd_program *p, vd_fused_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->group_count; i++)
        if (plan->group[i].kind == kind)
            count += vd_plan_iterations(plan, &p->step, i);
    return count;
}

static uint32_t nodes(const vd_program *p, int op) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->step.node_count; i++)
        count += vd_node_stored(&p->step, i)->op == op;
    return count;
}

/* Counts the copies of heads that are executed. */
static uint32_t splits_that_run(const vd_plan *plan, const vd_program *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->step.node_count; i++) {
        const vd_planned planned = vd_plan_of(plan, &p->step, i);
        count += vd_node_stored(&p->step, i)->op == RO_OP_SPLIT_HEADS && !planned.idle &&
                 planned.group == VD_NO_GROUP;
    }
    return count;
}

/* Attention reads its rows where they are stored, even those that gradients read again. */
Test(storage, patterns_are_found) {
    test_job job;
    vd_plan plan;
    vd_err err = {0};
    test_job_open_stored(&job, VD_MODEL_GPT2, 1, 0);
    const vd_program *p = &job.program;
    cr_assert(vd_plan_create(p, &p->step, VD_FUSE_LAYERS, &plan, &err) == VD_OK, "%s", err.text);
    cr_expect(groups(&plan, p, VD_FUSED_ATTENTION) == nodes(p, RO_OP_ATTN_OUT));
    cr_expect(groups(&plan, p, VD_FUSED_ATTENTION_GRAD) == nodes(p, RO_OP_ATTN_DSCORE));
    cr_expect(groups(&plan, p, VD_FUSED_LAYER_NORM) == nodes(p, RO_OP_LAYERNORM));
    cr_expect(groups(&plan, p, VD_FUSED_LAYER_NORM_GRAD) == nodes(p, RO_OP_LN_DX));
    cr_expect(groups(&plan, p, VD_FUSED_CROSS_ENTROPY) == nodes(p, RO_OP_XENT));
    cr_expect(groups(&plan, p, VD_FUSED_EMBEDDING_GRAD) == nodes(p, RO_OP_XENT)); /* tied weights */
    cr_expect(groups(&plan, p, VD_FUSED_ADAMW_BF16) == nodes(p, RO_OP_ADAMW_W));
    cr_expect(splits_that_run(&plan, p) == 0, "%u", splits_that_run(&plan, p));
    vd_plan_free(&plan);
    test_job_close(&job);
}

/* ---- rounding ---- */

/* Of numbers that lie a fraction of the way to the next bf16 number, about that fraction rounds to
 * it. */
Test(storage, the_mean_stays) {
    enum { COUNT = 1 << 18 };
    static const double parts[] = {0.5, 1.0 / 1024, 0.75};
    float *x = malloc(COUNT * sizeof *x);
    uint16_t *y = malloc(COUNT * sizeof *y);
    ro_ctx *ro = test_two_threads();
    const ro_shape shape[] = {{RO_F32, 1, {COUNT}}, {RO_I32, 1, {1}}};
    const int32_t step = 5;
    for (int k = 0; k < 3; k++) {
        int64_t up = 0;
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)(-1 - parts[k] * 0x1p-7);
        ro_call call = {RO_OP_CAST_STOCHASTIC, 2, {3, 4}, shape, {0}};
        cr_assert(ro_infer(&call, NULL, 0) == RO_OK);
        cr_assert(ro_run(ro, &call, (const void *[]){x, &step}, y) == RO_OK);
        for (int i = 0; i < COUNT; i++) {
            cr_assert(y[i] == 0xbf80 || y[i] == 0xbf81);
            up += y[i] == 0xbf81;
        }
        const double deviation = sqrt(COUNT * parts[k] * (1 - parts[k]));
        cr_expect(fabs((double)up - COUNT * parts[k]) < 5 * deviation, "%lld", (long long)up);
    }
    ro_ctx_destroy(ro);
    free(x);
    free(y);
}

/* ---- disputes ---- */

static void expect_caught(const test_job *job, const test_provider *honest, const char *lie) {
    test_provider liar;
    test_dispute d;
    const vd_fault fault = test_fault(job, lie);
    test_provider_open(&liar, job, 2, &fault);
    test_duel(&d, job, &honest->side, &liar.side, 1);
    test_expect_convicted(&d, 1, VD_GRADE_WRONG_OUTPUT, lie);
    test_expect_place(&d, 1, fault.node, lie);
    test_dispute_close(&d);
    test_provider_close(&liar);
}

Test(storage, who_stores_another_number_is_convicted) {
    test_job job;
    test_provider honest;
    test_job_open_stored(&job, VD_MODEL_GPT2, 2, 0);
    test_provider_open(&honest, &job, 1, NULL);
    expect_caught(&job, &honest, "element@1:adamw.wte.w_bf16");
    expect_caught(&job, &honest, "element@1:adamw.h.0.mlp.up.weight.v_bf16");
    expect_caught(&job, &honest, "element@1:m1.h.0.mlp.up.argument_bf16");
    expect_caught(&job, &honest, "element@1:m0.h.0.attn.join_again");
    test_provider_close(&honest);
    test_job_close(&job);
}

/* ---- memory ---- */

static uint64_t memory_of(int32_t storage) {
    const vd_training t = {
        .model = {.kind = VD_MODEL_GPT2,
                  .vocab = 1000,
                  .context = 256,
                  .layers = 6,
                  .heads = 4,
                  .channels = 128},
        .optimizer = {.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .clip_norm = 1},
        .seed = 7,
        .batch = 32,
        .micro_batches = 1,
        .sequence = 64,
        .steps = 1,
        .checkpoint_interval = 1,
        .data_dtype = RO_U8,
        .data_count = 10000,
        .storage = storage,
    };
    vd_program program;
    vd_err err = {0};
    uint64_t bytes;
    cr_assert(vd_training_program(&t, &program, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_estimate_memory(&program, &bytes, &err) == VD_OK, "%s", err.text);
    vd_program_free(&program);
    return bytes;
}

Test(storage, takes_less_memory) {
    const double ratio = (double)memory_of(RO_BF16) / (double)memory_of(0);
    cr_expect(ratio < 0.65, "%.3f", ratio);
}
