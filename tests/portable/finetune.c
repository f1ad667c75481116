/* Fine-tuning from tensors as files have them, of all parameters and with adapters: prints the
 * commitment of every state. */
#include "models/models.h"
#include "portable.h"
#include "repops/tools/op_data.h"
#include "verde/exec/exec.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 8, TOKENS = 300, TENSORS_MAX = 40, DATA_MAX = TENSORS_MAX + 1 };

static vd_err err;

#define TRY(call) CHECK((call) == VD_OK, "%s", err.text)

typedef struct {
    vd_training training;
    uint8_t tokens[TOKENS];
    vd_file_name *name;
    vd_file_tensor file[TENSORS_MAX];
    float *number[TENSORS_MAX];
    vd_program program;
    const void *data[DATA_MAX];
} finetuning;

static void make_training(finetuning *f) {
    f->training = (vd_training){
        .model = {.kind = VD_MODEL_LLAMA,
                  .vocab = 256,
                  .layers = 2,
                  .heads = 4,
                  .kv_heads = 2,
                  .channels = 16,
                  .hidden = 24,
                  .rope_base = 100},
        .optimizer = {.lr = 1e-2f,
                      .min_lr = 1e-3f,
                      .beta1 = 0.9f,
                      .beta2 = 0.95f,
                      .eps = 1e-8f,
                      .weight_decay = 0.1f,
                      .clip_norm = 1,
                      .schedule = RO_LR_COSINE,
                      .warmup = 2},
        .seed = 7,
        .batch = 2,
        .micro_batches = 1,
        .sequence = 12,
        .steps = STEPS,
        .checkpoint_interval = 1,
        .data_dtype = RO_U8,
        .data_count = TOKENS,
    };
    const ro_shape shape = {RO_U8, 1, {TOKENS}};
    vd_hash bytes, root;
    for (int i = 0; i < TOKENS; i++)
        f->tokens[i] = (uint8_t)case_word(5, 0, i);
    TRY(vd_tensor_hash(NULL, &shape, f->tokens, &bytes, &root, &err));
    memcpy(f->training.data_root, root.b, sizeof root.b);
}

static const ro_shape *shape_of(const vd_program *p, const char *leaf) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (strcmp(p->leaf[i].name, leaf) == 0)
            return &p->leaf[i].shape;
    return NULL;
}

/* Fills with multiples of 2^-26 below 0.5 in magnitude; norms have 1 added. */
static void fill(vd_file_tensor *t, float *number, uint32_t tensor) {
    for (int64_t e = 0; e < ro_shape_numel(&t->shape); e++)
        number[e] = (float)((int32_t)case_word(tensor, 9, e) >> 6) / 67108864.0f +
                    (t->shape.ndim == 1 ? 1.0f : 0.0f);
}

/* Makes the tensors of the model's files, with the shapes of a freshly initialised model. */
static void make_files(finetuning *f) {
    vd_program fresh;
    uint32_t count = 0;
    vd_hash bytes, root;
    TRY(vd_training_program(&f->training, &fresh, &err));
    TRY(vd_training_names(&f->training, &f->name, &count, &err));
    CHECK(count <= TENSORS_MAX, "%u tensors", count);
    for (uint32_t i = 0; i < count && !portable_failures; i++) {
        vd_file_tensor *t = &f->file[i];
        *t = (vd_file_tensor){.name = f->name[i].tensor,
                              .shape = *shape_of(&fresh, f->name[i].leaf)};
        f->number[i] = malloc((size_t)ro_shape_numel(&t->shape) * sizeof(float));
        fill(t, f->number[i], i);
        TRY(vd_tensor_hash(NULL, &t->shape, f->number[i], &bytes, &root, &err));
        memcpy(t->root, root.b, sizeof root.b);
    }
    f->training.file = f->file;
    f->training.file_count = count;
    vd_program_free(&fresh);
}

static void find_data(finetuning *f) {
    CHECK(f->program.data_count <= DATA_MAX, "%u data tensors", f->program.data_count);
    f->data[0] = f->tokens;
    for (uint32_t d = 1; d < f->program.data_count; d++)
        for (uint32_t i = 0; i < f->training.file_count; i++)
            if (strcmp(f->program.data[d].tensor.name, f->file[i].name) == 0)
                f->data[d] = f->number[i];
}

static void train(const vd_program *p, const void *const *data) {
    vd_exec exec = {.program = p, .data = data};
    vd_state state;
    vd_hash program, commitment;
    char text[2 * VD_HASH_SIZE + 1];
    CHECK(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &exec.ro) == RO_OK,
          "%s", ro_ctx_error(NULL));
    TRY(vd_program_hash(p, &program, &err));
    TRY(vd_exec_init(&exec, NULL, &state, &err));
    for (;;) {
        TRY(vd_state_hash(exec.ro, p, &program, &state, NULL, &commitment, &err));
        vd_hex(commitment.b, VD_HASH_SIZE, text);
        printf("state %lld %s\n", (long long)state.step, text);
        if (state.step == STEPS || portable_failures)
            break;
        TRY(vd_exec_step(&exec, NULL, &state, NULL, &err));
    }
    vd_state_free(&state);
    ro_ctx_destroy(exec.ro);
}

static void check_finetuning(const char *title, const vd_lora *lora) {
    finetuning *f = calloc(1, sizeof *f);
    puts(title);
    make_training(f);
    make_files(f);
    f->training.model.lora = *lora;
    TRY(vd_training_program(&f->training, &f->program, &err));
    find_data(f);
    if (!portable_failures)
        train(&f->program, f->data);
    vd_program_free(&f->program);
    for (int i = 0; i < TENSORS_MAX; i++)
        free(f->number[i]);
    free(f->name);
    free(f);
}

void check_finetunings(void) {
    check_finetuning("fine-tuning, fully", &(vd_lora){0});
    check_finetuning("fine-tuning, by adapters", &(vd_lora){2, 4, 2, {"attn.q", "mlp.down"}});
}
