/* Files and configurations that do not fit the model are refused with a message that names the
 * tensor or the field. */
#include "models/models.h"
#include "verde/job/config.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ---- */

enum { TENSORS_MAX = 64 };

typedef struct {
    vd_training training;
    vd_file_name *names;
    vd_file_tensor tensor[TENSORS_MAX];
    uint32_t count;
    char name[TENSORS_MAX][VD_TENSOR_NAME_SIZE];
} tensor_list;

static ro_shape shape_of_leaf(const vd_program *p, const char *leaf) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (strcmp(p->leaf[i].name, leaf) == 0)
            return p->leaf[i].shape;
    cr_assert(false, "no leaf %s", leaf);
    return (ro_shape){0};
}

static const vd_model small_llama = {.kind = VD_MODEL_LLAMA,
                                     .vocab = 32,
                                     .layers = 1,
                                     .heads = 2,
                                     .kv_heads = 1,
                                     .channels = 8,
                                     .hidden = 12,
                                     .rope_base = 100};
static const vd_model small_gpt2 = {
    .kind = VD_MODEL_GPT2, .vocab = 32, .context = 8, .layers = 1, .heads = 2, .channels = 8};
static const vd_model small_bert = {.kind = VD_MODEL_BERT,
                                    .vocab = 32,
                                    .context = 8,
                                    .layers = 1,
                                    .heads = 2,
                                    .channels = 8,
                                    .mask_rate = 0.5f,
                                    .pad = -1};

/* Lists every tensor of the model's files. */
static void open_list(tensor_list *l, const vd_model *model) {
    vd_program p;
    vd_err err;
    *l = (tensor_list){.training = {.model = *model,
                                    .seed = 1,
                                    .batch = 1,
                                    .micro_batches = 1,
                                    .sequence = 8,
                                    .steps = 1,
                                    .checkpoint_interval = 1,
                                    .data_dtype = RO_U8,
                                    .data_count = 20}};
    cr_assert(vd_training_program(&l->training, &p, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_training_names(&l->training, &l->names, &l->count, &err) == VD_OK, "%s", err.text);
    cr_assert(l->count + 2 <= TENSORS_MAX);
    for (uint32_t i = 0; i < l->count; i++) {
        strcpy(l->name[i], l->names[i].tensor);
        l->tensor[i].shape = shape_of_leaf(&p, l->names[i].leaf);
    }
    for (uint32_t i = 0; i < TENSORS_MAX; i++)
        l->tensor[i].name = l->name[i];
    vd_program_free(&p);
}

static void add_tensor(tensor_list *l, const char *name) {
    strcpy(l->name[l->count], name);
    l->tensor[l->count++].shape = (ro_shape){RO_F32, 1, {8}};
}

static uint32_t find_tensor(const tensor_list *l, const char *name) {
    for (uint32_t i = 0; i < l->count; i++)
        if (strcmp(l->name[i], name) == 0)
            return i;
    cr_assert(false, "no %s", name);
    return 0;
}

/* Expects the error `why`, or with NULL that the tensors make a program. */
static void expect_list(tensor_list *l, const char *why) {
    vd_program p;
    vd_err err = {.text = "accepted"};
    l->training.file = l->tensor;
    l->training.file_count = l->count;
    const vd_status status = vd_training_program(&l->training, &p, &err);
    cr_expect(status == (why ? VD_ERR_USAGE : VD_OK), "%s: %s", why ? why : "good", err.text);
    if (why)
        cr_expect(strstr(err.text, why), "\"%s\" lacks \"%s\"", err.text, why);
    vd_program_free(&p);
    free(l->names);
    free(l);
}

static tensor_list *new_list(const vd_model *model) {
    tensor_list *l = malloc(sizeof *l);
    open_list(l, model);
    return l;
}

Test(tensors, all_that_the_model_has_are_taken) {
    expect_list(new_list(&small_llama), NULL);
    expect_list(new_list(&small_bert), NULL);
}

Test(tensors, missing_ones_are_named) {
    tensor_list *l = new_list(&small_llama);
    strcpy(l->name[find_tensor(l, "model.layers.0.mlp.up_proj.weight")], "model.x.inv_freq");
    expect_list(l, "no tensor model.layers.0.mlp.up_proj.weight");
}

Test(tensors, unknown_ones_are_named_and_known_ones_left_out) {
    tensor_list *l = new_list(&small_llama);
    add_tensor(l, "model.layers.0.self_attn.q_proj.bias");
    expect_list(l, "model.layers.0.self_attn.q_proj.bias: the model has no such tensor");
    l = new_list(&small_llama);
    add_tensor(l, "model.layers.0.self_attn.rotary_emb.inv_freq");
    expect_list(l, NULL);
}

Test(tensors, doubled_ones_are_named) {
    tensor_list *l = new_list(&small_llama);
    add_tensor(l, "model.norm.weight");
    expect_list(l, "model.norm.weight: the files have this tensor twice");
}

Test(tensors, shapes_and_types_must_fit) {
    tensor_list *l = new_list(&small_llama);
    uint32_t at = find_tensor(l, "model.layers.0.mlp.up_proj.weight");
    l->tensor[at].shape = (ro_shape){RO_F32, 2, {8, 12}};
    expect_list(l, "model.layers.0.mlp.up_proj.weight: its shape is [8,12], expected [12,8]");
    l = new_list(&small_llama);
    at = find_tensor(l, "model.norm.weight");
    l->tensor[at].shape.dtype = RO_I32;
    expect_list(l, "model.norm.weight: its numbers must be");
}

/* Adds a copy, with its commitment, of a tensor that is in the list. */
static void add_copy(tensor_list *l, const char *name, const char *of) {
    const uint32_t at = find_tensor(l, of);
    memset(l->tensor[at].root, 7, sizeof l->tensor[at].root);
    add_tensor(l, name);
    l->tensor[l->count - 1].shape = l->tensor[at].shape;
    memcpy(l->tensor[l->count - 1].root, l->tensor[at].root, sizeof l->tensor[at].root);
}

Test(tensors, an_output_table_in_the_files_must_be_that_of_the_tokens_where_both_are_one) {
    static const struct {
        const char *tensor, *of;
        const vd_model *model;
    } copy[] = {
        {"lm_head.weight", "model.embed_tokens.weight", &small_llama},
        {"lm_head.weight", "transformer.wte.weight", &small_gpt2},
        {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight", &small_bert},
        {"cls.predictions.decoder.bias", "cls.predictions.bias", &small_bert}};
    for (size_t i = 0; i < sizeof copy / sizeof copy[0]; i++) {
        vd_model tied = *copy[i].model;
        char why[200];
        tied.tied = tied.kind == VD_MODEL_LLAMA;
        tensor_list *l = new_list(&tied);
        add_copy(l, copy[i].tensor, copy[i].of);
        expect_list(l, NULL);
        snprintf(why, sizeof why, "%s: its numbers are not those of %s", copy[i].tensor,
                 copy[i].of);
        l = new_list(&tied);
        add_copy(l, copy[i].tensor, copy[i].of);
        l->tensor[l->count - 1].root[31] ^= 1;
        expect_list(l, why);
        l = new_list(&tied);
        add_copy(l, copy[i].tensor, copy[i].of);
        l->tensor[l->count - 1].shape.dtype = RO_BF16; /* differs, unless all are 16 bits */
        expect_list(l, why);
    }
}

/* `expected` holds the names that a training leaves out, each followed by a space. */
static void expect_left_out(tensor_list *l, const char *expected) {
    char said[200] = "";
    const char **name = NULL;
    uint32_t count = 0;
    vd_err err;
    l->training.file = l->tensor;
    l->training.file_count = l->count;
    cr_assert(vd_training_left_out(&l->training, &name, &count, &err) == VD_OK, "%s", err.text);
    for (uint32_t i = 0; i < count; i++)
        snprintf(said + strlen(said), sizeof said - strlen(said), "%s ", name[i]);
    cr_expect(strcmp(said, expected) == 0, "left out: %s", said);
    free(name);
}

Test(tensors, heads_that_a_job_does_not_train_are_left_out_by_name) {
    tensor_list *l = new_list(&small_bert);
    add_tensor(l, "bert.pooler.dense.bias");
    add_tensor(l, "cls.seq_relationship.bias");
    add_tensor(l, "bert.embeddings.position_ids");
    expect_left_out(l, "bert.pooler.dense.bias cls.seq_relationship.bias ");
    expect_list(l, NULL);
    vd_model classes = small_bert;
    classes.task = VD_TASK_CLASSES;
    classes.classes = 3;
    l = new_list(&classes);
    add_tensor(l, "cls.predictions.bias");
    expect_left_out(l, "cls.predictions.bias ");
    expect_list(l, NULL);
    l = new_list(&small_llama);
    add_tensor(l, "model.layers.0.self_attn.rotary_emb.inv_freq");
    expect_left_out(l, "");
    expect_list(l, NULL);
}

Test(tensors, files_of_the_bare_model_lack_its_name) {
    tensor_list *l = new_list(&small_bert);
    for (uint32_t i = 0; i < l->count; i++)
        if (strncmp(l->name[i], "bert.", 5) == 0)
            memmove(l->name[i], l->name[i] + 5, strlen(l->name[i] + 5) + 1);
    expect_list(l, NULL);
}

Test(tensors, older_files_of_bert_have_gamma_and_beta) {
    tensor_list *l = new_list(&small_bert);
    strcpy(l->name[find_tensor(l, "bert.embeddings.LayerNorm.weight")],
           "bert.embeddings.LayerNorm.gamma");
    strcpy(l->name[find_tensor(l, "bert.embeddings.LayerNorm.bias")],
           "bert.embeddings.LayerNorm.beta");
    expect_list(l, NULL);
}

Test(tensors, adapters_need_files_and_a_product_of_that_name) {
    tensor_list *l = new_list(&small_llama);
    l->training.model.lora =
        (vd_lora){.rank = 2, .alpha = 4, .target_count = 1, .target = {"attn.x"}};
    expect_list(l, "the model has no product named attn.x");
    vd_training t = {.model = small_llama,
                     .batch = 1,
                     .micro_batches = 1,
                     .sequence = 8,
                     .steps = 1,
                     .checkpoint_interval = 1,
                     .data_dtype = RO_U8,
                     .data_count = 20};
    t.model.lora = (vd_lora){.rank = 2, .alpha = 4, .target_count = 1, .target = {"attn.q"}};
    vd_program p;
    vd_err err = {.text = "accepted"};
    cr_expect(vd_training_program(&t, &p, &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, "no weights to adapt"), "%s", err.text);
}

/* ---- config.json ---- */

#define LLAMA(more)                                                                                \
    "{\"model_type\": \"llama\", \"vocab_size\": 64, \"hidden_size\": 16, "                        \
    "\"intermediate_size\": 24, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "            \
    "\"rms_norm_eps\": 1e-6, \"hidden_act\": \"silu\"" more "}"
#define QWEN(more)                                                                                 \
    "{\"model_type\": \"qwen2\", \"vocab_size\": 64, \"hidden_size\": 16, "                        \
    "\"intermediate_size\": 24, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "            \
    "\"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-6, \"hidden_act\": \"silu\"" more "}"
#define GPT2(more)                                                                                 \
    "{\"model_type\": \"gpt2\", \"vocab_size\": 64, \"n_positions\": 8, \"n_embd\": 16, "          \
    "\"n_layer\": 2, \"n_head\": 2, \"layer_norm_epsilon\": 1e-5, "                                \
    "\"activation_function\": \"gelu_new\"" more "}"
#define RESNET(sizes, depths)                                                                      \
    "{\"model_type\": \"resnet\", \"embedding_size\": 64, \"hidden_sizes\": " sizes                \
    ", \"depths\": " depths "}"

static vd_status read_config(const char *text, vd_model *out, vd_err *err) {
    const vd_config_choice choice = {.dropout = -1, .pad = -1};
    *out = (vd_model){0};
    return vd_config_read(text, strlen(text), "config.json", &choice, out, err);
}

Test(config, what_is_not_understood_is_named) {
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "expected a JSON object"},
        {"[]", "expected a JSON object"},
        {"{\"model_type\": \"llama\", \"model_type\": \"gpt2\"}", "byte"},
        {"{}", "model_type must be gpt2, llama"},
        {"{\"model_type\": \"t5\"}", "got \"t5\""},
        {"{\"model_type\": 7}", "model_type must be"},
        {LLAMA(", \"quantization_config\": {}"), "quantization_config is no field"},
        {LLAMA(", \"n_embd\": 16"), "n_embd is no field"},
        {"{\"model_type\": \"llama\", \"vocab_size\": 64}", "hidden_size is missing"},
        {LLAMA(", \"head_dim\": 2.5"), "head_dim must be a whole number 1..4096, got 2.5"},
        {LLAMA(", \"num_key_value_heads\": 0"), "num_key_value_heads must be"},
        {LLAMA(", \"num_key_value_heads\": 99999999999999999999"), "too big integer"},
        {LLAMA(", \"attention_bias\": 1"), "attention_bias must be true or false, got 1"},
        {LLAMA(", \"attention_dropout\": 0.1"), "attention_dropout must be 0, got 0.1"},
        {LLAMA(", \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}"), "rope_scaling must"},
        {LLAMA(", \"rope_scaling\": {\"type\": \"linear\"}"), "rope_scaling must be of type"},
        {LLAMA(", \"rope_scaling\": []"), "rope_scaling must be of type"},
        {LLAMA(", \"rope_parameters\": {\"rope_type\": \"default\"}, \"rope_scaling\": {}"),
         "rope_parameters must be alone"},
        {LLAMA(", \"rope_theta\": 0.5"), "rope_theta of 1 or more"},
        {LLAMA(", \"rope_theta\": \"x\""), "rope_theta of 1 or more"},
        {QWEN(", \"use_sliding_window\": true, \"sliding_window\": 0"), "sliding_window must be"},
        {QWEN(", \"layer_types\": [\"full_attention\"]"), "layer_types must be"},
        {QWEN(", \"layer_types\": [\"full_attention\", \"linear_attention\"]"), "layer_types"},
        {GPT2(", \"resid_pdrop\": 0.2"), "embd_pdrop must be the rate of the other dropouts"},
        {GPT2(", \"resid_pdrop\": 1"), "resid_pdrop must be a number"},
        {GPT2(", \"scale_attn_weights\": false"), "scale_attn_weights must be true, got false"},
        {RESNET("[256, 512]", "[1]"), "hidden_sizes must be as many as depths"},
        {RESNET("[256, 500]", "[1, 1]"), "hidden_sizes must be 4 times embedding_size"},
        {RESNET("[256]", "[0]"), "depths must be whole numbers"},
        {RESNET("[]", "[]"), "depths must be a list"},
        {RESNET("{}", "{}"), "depths must be a list"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        vd_model model;
        vd_err err = {.text = "accepted"};
        cr_expect(read_config(bad[i].text, &model, &err) == VD_ERR_USAGE, "%s", bad[i].text);
        cr_expect(strstr(err.text, bad[i].why), "\"%s\" lacks \"%s\"", err.text, bad[i].why);
    }
}

Test(config, families_have_their_habits) {
    vd_model m;
    vd_err err;
    cr_assert(read_config(LLAMA(", \"attention_bias\": true"), &m, &err) == VD_OK, "%s", err.text);
    cr_expect(m.kv_heads == 4 && m.qkv_bias && m.out_bias && !m.tied && m.rope_base == 10000);
    cr_assert(read_config(QWEN(", \"sliding_window\": 5"), &m, &err) == VD_OK, "%s", err.text);
    cr_expect(m.qkv_bias && !m.out_bias && m.window == 0);
    cr_assert(read_config(QWEN(", \"use_sliding_window\": true, \"sliding_window\": 5, "
                               "\"max_window_layers\": 1, "
                               "\"layer_types\": [\"full_attention\", \"sliding_attention\"]"),
                          &m, &err) == VD_OK,
              "%s", err.text);
    cr_expect(m.window == 5 && m.window_from == 1);
    cr_assert(read_config(GPT2(""), &m, &err) == VD_OK, "%s", err.text);
    cr_expect(m.dropout == 0.1f && m.hidden == 0);
    cr_assert(read_config(RESNET("[256, 512, 1024, 2048]", "[3, 4, 6, 3]"), &m, &err) == VD_OK);
    cr_expect(m.large_stem && m.stages == 4 && m.blocks[2] == 6 && m.vocab == 2);
}

/* Whatever byte changes, the text is accepted or refused, without a crash. */
Test(config, changed_bytes_are_read_or_refused) {
    char text[] = LLAMA(", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, "
                        "\"low_freq_factor\": 1, \"high_freq_factor\": 4, "
                        "\"original_max_position_embeddings\": 8192}");
    static const char other[] = "\"0{}[],:-e.\\n\x80";
    vd_model m;
    vd_err err;
    cr_assert(read_config(text, &m, &err) == VD_OK, "%s", err.text);
    for (size_t i = 0; i + 1 < sizeof text; i++)
        for (size_t k = 0; k + 1 < sizeof other; k++) {
            const char before = text[i];
            text[i] = other[k];
            const vd_status status = read_config(text, &m, &err);
            cr_expect(status == VD_OK || status == VD_ERR_USAGE);
            text[i] = before;
        }
}
