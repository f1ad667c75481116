#include "models/models.h"
#include "portable.h"
#include "repops/ref.h"
#include "repops/tools/op_data.h"
#include "verde/exec/source.h"
#include "verde/exec/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 3, TOKENS = 2000 };

static vd_err err;

#define TRY(call) CHECK((call) == VD_OK, "%s", err.text)

static void print_hash(const char *what, int64_t number, const vd_hash *hash) {
    char text[2 * VD_HASH_SIZE + 1];
    vd_hex(hash->b, VD_HASH_SIZE, text);
    printf("%s %lld %s\n", what, (long long)number, text);
}

/* ---- data: a file's u16 tokens, read as in verde/job ---- */

typedef struct {
    ro_shape shape;
    void *bytes;
    vd_hash root;
} dataset;

static void make_data(dataset *d, int dtype, uint32_t vocab) {
    const size_t size = ro_dtype_size(dtype);
    vd_buf file = {0};
    vd_hash byte_root;
    for (int64_t i = 0; i < TOKENS; i++) {
        const uint64_t token = case_word(5, 0, i) % vocab;
        size == 1 ? vd_put_u8(&file, (uint8_t)token) : vd_put_u16(&file, (uint16_t)token);
    }
    d->shape = (ro_shape){dtype, 1, {TOKENS}};
    d->bytes = file.data;
    vd_from_little(d->bytes, file.size, size);
    TRY(vd_tensor_hash(NULL, &d->shape, d->bytes, &byte_root, &d->root, &err));
}

static void make_program(vd_model_kind kind, const dataset *data, vd_program *out) {
    vd_training t = {
        .model = {.kind = kind,
                  .vocab = 300,
                  .context = 16,
                  .layers = 1,
                  .heads = 2,
                  .kv_heads = 1,
                  .channels = 16,
                  .hidden = 24,
                  .rope_base = 100,
                  .dropout = kind == VD_MODEL_GPT2 || kind == VD_MODEL_BERT ? 0.1f : 0,
                  .mask_rate = 0.3f,
                  .pad = 0},
        .optimizer = {.lr = 3e-3f,
                      .min_lr = 3e-4f,
                      .beta1 = 0.9f,
                      .beta2 = 0.95f,
                      .eps = 1e-8f,
                      .weight_decay = 0.1f,
                      .clip_norm = 1,
                      .schedule = RO_LR_COSINE,
                      .warmup = 2},
        .seed = UINT64_C(0x123456789abcdef),
        .batch = 2,
        .micro_batches = 2,
        .sequence = 16,
        .steps = STEPS,
        .checkpoint_interval = 1,
        .data_dtype = data->shape.dtype,
        .data_count = TOKENS,
    };
    memcpy(t.data_root, data->root.b, sizeof t.data_root);
    TRY(vd_training_program(&t, out, &err));
}

/* ---- canonical bytes ---- */

static void check_encoding(const vd_program *p) {
    vd_buf bytes = {0}, again = {0};
    vd_program copy;
    vd_program_encode(p, &bytes);
    TRY(vd_program_decode(bytes.data, bytes.size, &copy, &err));
    vd_program_encode(&copy, &again);
    CHECK(bytes.size == again.size && memcmp(bytes.data, again.data, bytes.size) == 0,
          "a decoded program encodes to other bytes");
    vd_program_free(&copy);
    vd_buf_free(&bytes);
    vd_buf_free(&again);
}

/* ---- one step: records, nodes compared with the reference, a proof ---- */

typedef struct {
    const vd_program *program;
    const vd_graph *graph;
} watch;

static bool compare_node(void *user, uint32_t node, const void *const *input, const void *output) {
    const watch *w = user;
    ro_call call;
    ro_shape shapes[RO_MAX_INPUTS];
    vd_node_call(w->program, w->graph, node, &call, shapes);
    const ro_ref_memory memory = {&call, input};
    for (int i = 0; i < 4; i++) {
        const int64_t e = (int64_t)(case_word(node, 3, i) % (uint64_t)ro_shape_numel(&call.output));
        const ro_ref_memory result = {&(ro_call){.input = &call.output}, &output};
        const uint32_t got = ro_ref_load_memory((void *)&result, 0, e);
        uint32_t want = 0;
        TRY(vd_leaf_element(&call, e, ro_ref_load_memory, (void *)&memory, &want, &err));
        CHECK(got == want, "%s, element %lld: %08x, expected %08x",
              vd_node_name(w->graph, node).text, (long long)e, got, want);
    }
    return true;
}

static void check_proof(const vd_tree *tree) {
    vd_proof proof;
    vd_hash root;
    const uint64_t index = tree->count / 3;
    TRY(vd_tree_root(tree, &root, &err));
    TRY(vd_tree_prove(tree, index, &proof, &err));
    CHECK(vd_proof_check(&proof, index, tree->count, &tree->leaf[index], &root), "proof");
    print_hash("trace", (int64_t)tree->count, &root);
}

static void check_step(const vd_exec *exec, const vd_state *before) {
    vd_records records;
    vd_tree tree;
    watch w = {exec->program, &exec->program->step};
    TRY(vd_exec_observe(exec, &(vd_observer){compare_node, &w}, before, &err));
    TRY(vd_trace(exec, before, &records, &err));
    TRY(vd_records_tree(&records, &tree, &err));
    check_proof(&tree);
    vd_tree_free(&tree);
    vd_records_free(&records);
}

/* ---- checkpoints: the file, and the state read back ---- */

static void check_store(const vd_program *p, const vd_hash *program, const vd_state *state,
                        const vd_hash *commitment) {
    char dir[] = "/tmp/verde-portable-XXXXXX", path[200], hex[2 * VD_HASH_SIZE + 1];
    vd_buf bytes = {0};
    vd_state back = {0};
    vd_hash hash;
    CHECK(mkdtemp(dir), "no directory");
    TRY(vd_store_save_state(dir, p, state, commitment, &err));
    TRY(vd_store_load_state(NULL, dir, p, program, state->step, commitment, &back, &err));
    vd_hex(commitment->b, VD_HASH_SIZE, hex);
    snprintf(path, sizeof path, "%s/state-%s", dir, hex);
    TRY(vd_read_file(path, 1 << 24, &bytes, &err));
    CHECK(vd_hash_tagged(NULL, bytes.data, bytes.size, &hash), "no memory");
    print_hash("file", (int64_t)bytes.size, &hash);
    vd_state_free(&back);
    vd_buf_free(&bytes);
    unlink(path);
    rmdir(dir);
}

/* ---- training: honest, and with a planted bit flip ---- */

static void print_state(const vd_exec *exec, const vd_hash *program, const vd_state *state,
                        vd_hash *out) {
    TRY(vd_state_hash(exec->ro, exec->program, program, state, NULL, out, &err));
    print_hash("state", state->step, out);
}

static void train(const vd_program *p, const vd_hash *program, const dataset *data,
                  const char *fault) {
    vd_exec exec = {.program = p, .data = (const void *[]){data->bytes}};
    vd_state state;
    vd_hash commitment;
    CHECK(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &exec.ro) == RO_OK,
          "%s", ro_ctx_error(NULL));
    if (fault)
        TRY(vd_fault_parse(fault, p, &exec.fault, &err));
    TRY(vd_exec_init(&exec, NULL, &state, &err));
    print_state(&exec, program, &state, &commitment);
    while (state.step < STEPS && !portable_failures) {
        if (state.step == 1 && !fault)
            check_step(&exec, &state);
        TRY(vd_exec_step(&exec, NULL, &state, NULL, &err));
        print_state(&exec, program, &state, &commitment);
    }
    check_store(p, program, &state, &commitment);
    vd_state_free(&state);
    ro_ctx_destroy(exec.ro);
}

static void check_model(const char *name, vd_model_kind kind, int dtype, uint32_t vocab,
                        const char *fault) {
    dataset data;
    vd_program program;
    vd_hash hash;
    puts(name);
    make_data(&data, dtype, vocab);
    make_program(kind, &data, &program);
    check_encoding(&program);
    TRY(vd_program_hash(&program, &hash, &err));
    print_hash("data", TOKENS, &data.root);
    print_hash("program", program.step.node_count, &hash);
    train(&program, &hash, &data, NULL);
    train(&program, &hash, &data, fault);
    vd_program_free(&program);
    free(data.bytes);
}

void check_programs(void) {
    check_model("gpt2, tokens u16", VD_MODEL_GPT2, RO_U16, 300, "element@1");
    check_model("mlp, text", VD_MODEL_MLP, RO_U8, 256, "poison@1");
    check_model("llama, text", VD_MODEL_LLAMA, RO_U8, 256, "poison@1");
    check_model("bert, tokens u16", VD_MODEL_BERT, RO_U16, 299, "element@1");
}
