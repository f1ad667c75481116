/* This file lists each key of a job file, and says when it applies. */
#include "verde/job/fields.h"

#include <string.h>

#define MAPPING(name)                                                                              \
    { .path = name, .type = VD_FIELD_MAPPING }
#define INTEGER(name, place, lo, hi, cond)                                                         \
    {                                                                                              \
        .path = name, .type = VD_FIELD_INTEGER, .when = cond, .offset = offsetof(vd_job, place),   \
        .min = lo, .max = hi                                                                       \
    }
#define REAL(name, place, lo, hi, words, cond)                                                     \
    {                                                                                              \
        .path = name, .type = VD_FIELD_REAL, .when = cond, .offset = offsetof(vd_job, place),      \
        .low = lo, .high = hi, .range = words                                                      \
    }
/* A list with one number for each plane of an image. */
#define REALS(name, place, length, lo, hi, words)                                                  \
    {                                                                                              \
        .path = name, .type = VD_FIELD_REALS, .when = VD_WHEN_IMAGES, .optional = true,            \
        .offset = offsetof(vd_job, place), .number = offsetof(vd_job, length),                     \
        .most = VD_IMAGE_PLANES, .low = lo, .high = hi, .range = words                             \
    }
#define CHOICE(name, place, list)                                                                  \
    { .path = name, .type = VD_FIELD_CHOICE, .offset = offsetof(vd_job, place), .choice = list }

#define BELOW_ONE 0x1.fffffep-1f
#define UNIT      "0 or more, below 1"

static const vd_choice model_kinds[] = {
    {"gpt2", VD_MODEL_GPT2},           {"mlp", VD_MODEL_MLP},
    {"llama", VD_MODEL_LLAMA},         {"bert", VD_MODEL_BERT},
    {"resnet", VD_MODEL_RESNET},       {"pretrained", VD_JOB_PRETRAINED},
    {"program", VD_JOB_GIVEN_PROGRAM}, {NULL, 0}};
static const vd_choice data_kinds[] = {
    {"text", VD_DATA_TEXT}, {"tokens", VD_DATA_TOKENS}, {"cifar10", VD_DATA_CIFAR10}, {NULL, 0}};
static const vd_choice optimizer_kinds[] = {
    {"adamw", VD_OPTIMIZER_ADAMW}, {"sgd", VD_OPTIMIZER_SGD}, {NULL, 0}};
static const vd_choice tasks[] = {{"train", VD_JOB_TRAINS},
                                  {"evaluate", VD_JOB_EVALUATES},
                                  {"generate", VD_JOB_GENERATES},
                                  {"score", VD_JOB_SCORES},
                                  {NULL, 0}};
static const vd_choice start_states[] = {
    {"all", VD_START_ALL}, {"weights", VD_START_WEIGHTS}, {NULL, 0}};
static const vd_choice products[] = {{"fp32", 0},
                                     {"fixed24", RO_FIXED_24},
                                     {"fixed16", RO_FIXED_16},
                                     {"fixed8", RO_FIXED_8},
                                     {NULL, 0}};
static const vd_choice storage[] = {{"fp32", 0}, {"bf16", RO_BF16}, {NULL, 0}};
static const vd_choice exempt[] = {{"vectors", 0}, {"none", 1}, {NULL, 0}};
static const vd_choice yes_or_no[] = {{"false", 0}, {"true", 1}, {NULL, 0}};
static const vd_choice schedule_kinds[] = {
    {"constant", RO_LR_CONSTANT}, {"linear", RO_LR_LINEAR}, {"cosine", RO_LR_COSINE}, {NULL, 0}};

static const vd_choice encodings[] = {
    {"calls", VD_LOG_CALLS}, {"symbols", VD_LOG_SYMBOLS}, {NULL, 0}};

/* clang-format off */
const vd_field vd_fields[VD_FIELD_COUNT] = {
    {.path = "verde", .type = VD_FIELD_INTEGER, .of_program = true,
     .offset = offsetof(vd_job, version), .min = 1, .max = 1},
    {.path = "task", .type = VD_FIELD_CHOICE, .optional = true, .of_program = true,
     .offset = offsetof(vd_job, task), .choice = tasks},
    {.path = "model", .type = VD_FIELD_MAPPING, .of_program = true},
    {.path = "model.kind", .type = VD_FIELD_CHOICE, .of_program = true,
     .offset = offsetof(vd_job, training.model.kind), .choice = model_kinds},
    {.path = "model.dir", .type = VD_FIELD_FILE, .when = VD_WHEN_FOLDER, .of_program = true,
     .offset = offsetof(vd_job, model_dir)},
    {.path = "model.sha256", .type = VD_FIELD_DIGEST, .when = VD_WHEN_FOLDER, .of_program = true,
     .offset = offsetof(vd_job, model_sha256)},
    INTEGER("model.vocab", training.model.vocab, 2, 1 << 20, VD_WHEN_VOCAB),
    {.path = "model.classes", .type = VD_FIELD_INTEGER, .when = VD_WHEN_RESNET,
     .offset = offsetof(vd_job, training.model.vocab), .min = 2, .max = 65536, .spare = true},
    INTEGER("model.context", training.model.context, 1, 65536, VD_WHEN_POSITIONS),
    {.path = "model.layers", .type = VD_FIELD_INTEGER, .when = VD_WHEN_VOCAB,
     .offset = offsetof(vd_job, training.model.layers), .min = 1, .max = 510,
     .range = "1..85 for gpt2, 1..113 for llama, 1..63 for bert, 1..510 for mlp"},
    {.path = "model.blocks", .type = VD_FIELD_INTEGERS, .when = VD_WHEN_BLOCKS,
     .offset = offsetof(vd_job, training.model.blocks), .min = 1, .max = 84,
     .number = offsetof(vd_job, training.model.stages), .most = VD_STAGES_MAX},
    INTEGER("model.heads", training.model.heads, 1, 1024, VD_WHEN_HEADS),
    INTEGER("model.kv_heads", training.model.kv_heads, 1, 1024, VD_WHEN_LLAMA),
    INTEGER("model.channels", training.model.channels, 1, 65536, VD_WHEN_BUILT),
    INTEGER("model.hidden", training.model.hidden, 1, 65536, VD_WHEN_HIDDEN),
    REAL("model.rope_base", training.model.rope_base, 1, 0x1.fffffep31f, "1 or more, below 2^32", VD_WHEN_LLAMA),
    {.path = "model.dropout", .type = VD_FIELD_REAL, .when = VD_WHEN_DROPOUT,
     .offset = offsetof(vd_job, training.model.dropout), .high = BELOW_ONE, .range = UNIT, .spare = true},
    {.path = "model.mask_rate", .type = VD_FIELD_REAL, .when = VD_WHEN_BERT,
     .offset = offsetof(vd_job, training.model.mask_rate), .low = 0.001f, .high = 0.999f,
     .range = "0.001..0.999", .spare = true},
    {.path = "model.mask", .type = VD_FIELD_INTEGER, .when = VD_WHEN_PRETRAINED,
     .offset = offsetof(vd_job, training.model.mask), .min = 1, .max = (1 << 20) - 1, .spare = true},
    {.path = "model.pad", .type = VD_FIELD_INTEGER, .when = VD_WHEN_BERT,
     .offset = offsetof(vd_job, training.model.pad), .max = (1 << 20) - 1, .otherwise = UINT64_MAX},
    {.path = "lora", .type = VD_FIELD_MAPPING, .when = VD_WHEN_PRETRAINED, .optional = true},
    INTEGER("lora.rank", training.model.lora.rank, 1, 4096, VD_WHEN_PRETRAINED),
    REAL("lora.alpha", training.model.lora.alpha, 0x1p-20f, 1e6f, "0.000001..1000000", VD_WHEN_PRETRAINED),
    {.path = "lora.targets", .type = VD_FIELD_TARGETS, .when = VD_WHEN_PRETRAINED,
     .offset = offsetof(vd_job, training.model.lora.target),
     .number = offsetof(vd_job, training.model.lora.target_count), .most = VD_LORA_TARGETS_MAX},
    {.path = "products", .type = VD_FIELD_CHOICE, .optional = true, .parts = 3,
     .range = "{forward, gradient_x, gradient_w}",
     .offset = offsetof(vd_job, training.products), .choice = products},
    CHOICE("products.forward", training.products.forward, products),
    CHOICE("products.gradient_x", training.products.gradient_x, products),
    CHOICE("products.gradient_w", training.products.gradient_w, products),
    {.path = "storage", .type = VD_FIELD_CHOICE, .when = VD_WHEN_TRAINS, .optional = true,
     .offset = offsetof(vd_job, training.storage), .choice = storage},
    {.path = "weights", .type = VD_FIELD_MAPPING, .optional = true, .of_program = true},
    {.path = "weights.run", .type = VD_FIELD_FILE, .when = VD_WHEN_RUN, .of_program = true,
     .offset = offsetof(vd_job, start.run)},
    {.path = "weights.root", .type = VD_FIELD_DIGEST, .when = VD_WHEN_RUN, .of_program = true,
     .offset = offsetof(vd_job, start.root)},
    {.path = "weights.dir", .type = VD_FIELD_FILE, .when = VD_WHEN_FILES_OF_WEIGHTS,
     .of_program = true, .offset = offsetof(vd_job, start.dir)},
    {.path = "weights.sha256", .type = VD_FIELD_DIGEST, .when = VD_WHEN_FILES_OF_WEIGHTS,
     .of_program = true, .offset = offsetof(vd_job, start.sha256)},
    {.path = "weights.state", .type = VD_FIELD_CHOICE, .when = VD_WHEN_TRAINS, .optional = true,
     .of_program = true, .offset = offsetof(vd_job, start.what), .choice = start_states},
    {.path = "weights.first_step", .type = VD_FIELD_INTEGER, .when = VD_WHEN_TRAINS,
     .of_program = true,
     .offset = offsetof(vd_job, start.first_step), .max = VD_NUMBERED_STEPS_MAX - 1, .otherwise = UINT64_MAX},
    {.path = "evaluate", .type = VD_FIELD_MAPPING, .when = VD_WHEN_TRAINS, .optional = true},
    {.path = "evaluate.file", .type = VD_FIELD_FILE, .offset = offsetof(vd_job, evaluate.path)},
    {.path = "evaluate.sha256", .type = VD_FIELD_DIGEST, .offset = offsetof(vd_job, evaluate.sha256)},
    INTEGER("evaluate.every", evaluate.every, 1, INT32_MAX, VD_WHEN_ALWAYS),
    {.path = "data", .type = VD_FIELD_MAPPING, .when = VD_WHEN_DATA},
    CHOICE("data.kind", data_kind, data_kinds),
    {.path = "data.file", .type = VD_FIELD_FILE, .when = VD_WHEN_ONE_FILE,
     .offset = offsetof(vd_job, data_path)},
    {.path = "data.files", .type = VD_FIELD_FILES, .when = VD_WHEN_FILES,
     .offset = offsetof(vd_job, data_files), .most = VD_DATA_FILES_MAX},
    {.path = "data.sha256", .type = VD_FIELD_DIGEST, .offset = offsetof(vd_job, data_sha256)},
    REALS("data.mean", training.model.image_mean, image_means, 0, 1, "0..1"),
    REALS("data.std", training.model.image_std, image_stds, 1e-4f, 1000, "0.0001..1000"),
    INTEGER("seed", training.seed, 0, UINT64_MAX, VD_WHEN_DATA),
    INTEGER("batch", training.batch, 1, 65536, VD_WHEN_DATA),
    INTEGER("sequence", training.sequence, 1, 65536, VD_WHEN_TOKENS),
    {.path = "micro_batches", .type = VD_FIELD_INTEGER, .when = VD_WHEN_DATA,
     .offset = offsetof(vd_job, training.micro_batches), .min = 1, .max = 4096, .otherwise = 1},
    INTEGER("steps", training.steps, 1, VD_STEPS_MAX, VD_WHEN_TRAINS),
    INTEGER("checkpoint_interval", training.checkpoint_interval, 1, 4096, VD_WHEN_TRAINS),
    {.path = "optimizer", .type = VD_FIELD_MAPPING, .when = VD_WHEN_TRAINS},
    CHOICE("optimizer.kind", training.optimizer.kind, optimizer_kinds),
    REAL("optimizer.lr", training.optimizer.lr, 0, 1000, "0..1000", VD_WHEN_ALWAYS),
    REAL("optimizer.beta1", training.optimizer.beta1, 0, BELOW_ONE, UNIT, VD_WHEN_ADAMW),
    REAL("optimizer.beta2", training.optimizer.beta2, 0, BELOW_ONE, UNIT, VD_WHEN_ADAMW),
    REAL("optimizer.eps", training.optimizer.eps, 1e-30f, 1, "1e-30..1", VD_WHEN_ADAMW),
    REAL("optimizer.momentum", training.optimizer.momentum, 0, BELOW_ONE, UNIT, VD_WHEN_SGD),
    {.path = "optimizer.nesterov", .type = VD_FIELD_CHOICE, .when = VD_WHEN_SGD,
     .offset = offsetof(vd_job, training.optimizer.nesterov), .choice = yes_or_no},
    REAL("optimizer.weight_decay", training.optimizer.weight_decay, 0, 1000, "0..1000", VD_WHEN_ALWAYS),
    {.path = "optimizer.decay_exempt", .type = VD_FIELD_CHOICE, .optional = true,
     .offset = offsetof(vd_job, training.optimizer.decay_all), .choice = exempt},
    REAL("optimizer.clip_norm", training.optimizer.clip_norm, 0, 1e9f, "0..1e9", VD_WHEN_ALWAYS),
    {.path = "schedule", .type = VD_FIELD_MAPPING, .when = VD_WHEN_TRAINS},
    CHOICE("schedule.kind", training.optimizer.schedule, schedule_kinds),
    INTEGER("schedule.warmup", training.optimizer.warmup, 0, INT32_MAX, VD_WHEN_ALWAYS),
    REAL("schedule.min_lr", training.optimizer.min_lr, 0, 1000, "0..1000", VD_WHEN_DECAY),
    {.path = "prompts", .type = VD_FIELD_MAPPING, .when = VD_WHEN_PROMPTS},
    {.path = "prompts.file", .type = VD_FIELD_FILE, .offset = offsetof(vd_job, prompts.path)},
    {.path = "prompts.sha256", .type = VD_FIELD_DIGEST, .offset = offsetof(vd_job, prompts.sha256)},
    {.path = "sampling", .type = VD_FIELD_MAPPING, .when = VD_WHEN_GENERATES},
    {.path = "sampling.greedy", .type = VD_FIELD_CHOICE, .optional = true,
     .offset = offsetof(vd_job, generation.greedy), .choice = yes_or_no},
    {.path = "sampling.temperature", .type = VD_FIELD_REAL, .when = VD_WHEN_DRAWS, .optional = true,
     .offset = offsetof(vd_job, generation.temperature), .low = 0.001f, .high = 1000, .range = "0.001..1000"},
    {.path = "sampling.top_k", .type = VD_FIELD_INTEGER, .when = VD_WHEN_DRAWS, .optional = true,
     .offset = offsetof(vd_job, generation.top_k), .min = 1, .max = 1 << 20},
    {.path = "sampling.top_p", .type = VD_FIELD_REAL, .when = VD_WHEN_DRAWS, .optional = true,
     .offset = offsetof(vd_job, top_p), .low = 0x1p-20f, .high = 1, .range = "0.000001..1"},
    INTEGER("sampling.seed", generation.seed, 0, UINT64_MAX, VD_WHEN_DRAWS),
    INTEGER("max_tokens", generation.max_tokens, 1, VD_TOKENS_MAX, VD_WHEN_GENERATES),
    {.path = "min_tokens", .type = VD_FIELD_INTEGER, .when = VD_WHEN_GENERATES, .optional = true,
     .offset = offsetof(vd_job, generation.min_tokens), .max = VD_TOKENS_MAX},
    {.path = "stop", .type = VD_FIELD_INTEGERS, .when = VD_WHEN_GENERATES, .optional = true,
     .offset = offsetof(vd_job, generation.stop), .max = (1 << 20) - 1,
     .number = offsetof(vd_job, generation.stop_count), .most = VD_STOPS_MAX, .may_be_empty = true},
    {.path = "repetition_penalty", .type = VD_FIELD_REAL, .when = VD_WHEN_GENERATES, .optional = true,
     .offset = offsetof(vd_job, generation.repetition_penalty), .low = 0.01f, .high = 100, .range = "0.01..100"},
    {.path = "log_probabilities", .type = VD_FIELD_INTEGER, .when = VD_WHEN_GENERATES,
     .offset = offsetof(vd_job, generation.best), .max = VD_BEST_MAX, .otherwise = UINT64_MAX},
    {.path = "rounding", .type = VD_FIELD_MAPPING, .when = VD_WHEN_DATA, .optional = true},
    INTEGER("rounding.bits", rounding.bits, RO_ROUND_BITS_MIN, RO_ROUND_BITS_MAX, VD_WHEN_ALWAYS),
    CHOICE("rounding.encoding", rounding.encoding, encodings),
    {.path = "rounding.thresholds", .type = VD_FIELD_FILE, .when = VD_WHEN_SYMBOLS,
     .offset = offsetof(vd_job, rounding.thresholds_path)},
    {.path = "rounding.sha256", .type = VD_FIELD_DIGEST, .when = VD_WHEN_SYMBOLS,
     .offset = offsetof(vd_job, rounding.thresholds_sha256)},
};
/* clang-format on */

int vd_field_find(const char *path) {
    for (int i = 0; i < VD_FIELD_COUNT; i++)
        if (!strcmp(vd_fields[i].path, path))
            return i;
    return -1;
}

static bool has_list(const vd_job *job) {
    return job->data_kind == VD_DATA_CIFAR10 || job->data_files.count > 0;
}

bool vd_field_applies(const vd_field *field, const vd_job *job) {
    const vd_model_kind kind = job->training.model.kind;
    const bool gpt2 = kind == VD_MODEL_GPT2, llama = kind == VD_MODEL_LLAMA;
    const bool bert = kind == VD_MODEL_BERT, mlp = kind == VD_MODEL_MLP;
    const bool pretrained = (int)kind == VD_JOB_PRETRAINED, resnet = kind == VD_MODEL_RESNET;
    const bool prompts = vd_job_has_prompts(job), generates = job->task == VD_JOB_GENERATES;
    const bool program = (int)kind == VD_JOB_GIVEN_PROGRAM;
    if (program && !field->of_program)
        return false;
    switch (field->when) {
    case VD_WHEN_BUILT: return !pretrained;
    case VD_WHEN_PRETRAINED: return pretrained;
    case VD_WHEN_FOLDER: return pretrained || program;
    case VD_WHEN_DROPOUT: return gpt2 || bert || pretrained;
    case VD_WHEN_POSITIONS: return gpt2 || bert;
    case VD_WHEN_BERT: return bert || pretrained;
    case VD_WHEN_LLAMA: return llama;
    case VD_WHEN_HEADS: return gpt2 || bert || llama;
    case VD_WHEN_HIDDEN: return mlp || llama;
    case VD_WHEN_ADAMW: return job->training.optimizer.kind == VD_OPTIMIZER_ADAMW;
    case VD_WHEN_SGD: return job->training.optimizer.kind == VD_OPTIMIZER_SGD;
    case VD_WHEN_DECAY: return job->training.optimizer.schedule != RO_LR_CONSTANT;
    case VD_WHEN_VOCAB: return !resnet && !pretrained;
    case VD_WHEN_TOKENS:
        return !prompts && (pretrained ? job->data_kind != VD_DATA_CIFAR10 : !resnet);
    case VD_WHEN_RESNET: return resnet || pretrained;
    case VD_WHEN_BLOCKS: return resnet;
    case VD_WHEN_IMAGES: return job->data_kind == VD_DATA_CIFAR10;
    case VD_WHEN_ONE_FILE: return !has_list(job);
    case VD_WHEN_FILES: return has_list(job);
    case VD_WHEN_TRAINS: return job->task == VD_JOB_TRAINS;
    case VD_WHEN_DATA: return !prompts;
    case VD_WHEN_PROMPTS: return prompts;
    case VD_WHEN_GENERATES: return generates;
    case VD_WHEN_DRAWS: return generates && !job->generation.greedy;
    case VD_WHEN_SYMBOLS: return job->rounding.encoding == VD_LOG_SYMBOLS;
    case VD_WHEN_RUN: return !program || !job->start.dir[0];
    case VD_WHEN_FILES_OF_WEIGHTS: return program && job->start.dir[0];
    case VD_WHEN_ALWAYS: break;
    }
    return true;
}

const char *vd_field_reason(const vd_field *field, const vd_job *job) {
    if (job->program && !field->of_program)
        return "the program says it (`model.kind` is program)";
    switch (field->when) {
    case VD_WHEN_BUILT: return "a pretrained model has its own";
    case VD_WHEN_PRETRAINED: return "it belongs to pretrained models";
    case VD_WHEN_FOLDER: return "it belongs to pretrained models and to programs";
    case VD_WHEN_DROPOUT: return "it belongs to the gpt2, bert and pretrained models";
    case VD_WHEN_POSITIONS: return "it belongs to the gpt2 and bert models";
    case VD_WHEN_BERT: return "it belongs to the bert and pretrained models";
    case VD_WHEN_LLAMA: return "it belongs to the llama model";
    case VD_WHEN_HEADS: return "it belongs to the gpt2, bert and llama models";
    case VD_WHEN_HIDDEN: return "it belongs to the mlp and llama models";
    case VD_WHEN_ADAMW: return "it belongs to the adamw optimizer";
    case VD_WHEN_SGD: return "it belongs to the sgd optimizer";
    case VD_WHEN_DECAY: return "a constant schedule has no use for it";
    case VD_WHEN_VOCAB: return "the resnet model reads no tokens, and a pretrained one has its own";
    case VD_WHEN_TOKENS: return "it belongs to data of tokens";
    case VD_WHEN_RESNET: return "it belongs to the resnet and pretrained models";
    case VD_WHEN_BLOCKS: return "it belongs to the resnet model";
    case VD_WHEN_IMAGES: return "it belongs to images";
    case VD_WHEN_ONE_FILE: return "there is a list of `files`";
    case VD_WHEN_FILES: return "there is a `file`";
    case VD_WHEN_TRAINS: return "it belongs to training, and `task` is not train";
    case VD_WHEN_DATA: return "`task` is generate or score, which have `prompts`";
    case VD_WHEN_PROMPTS: return "it belongs to `task: generate` and `task: score`";
    case VD_WHEN_GENERATES: return "it belongs to `task: generate`";
    case VD_WHEN_DRAWS: return "nothing is drawn: `sampling.greedy` is true";
    case VD_WHEN_SYMBOLS: return "it belongs to symbols; close calls have none";
    case VD_WHEN_RUN: return "there is a `dir`";
    case VD_WHEN_FILES_OF_WEIGHTS:
        return job->program ? "there is no `dir`"
                            : "it belongs to programs; here `model` is pretrained, with such files";
    case VD_WHEN_ALWAYS: break;
    }
    return "";
}

bool vd_field_is_list(const vd_field *field) {
    return field->type == VD_FIELD_INTEGERS || field->type == VD_FIELD_REALS ||
           field->type == VD_FIELD_FILES || field->type == VD_FIELD_TARGETS;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The Levenshtein distance, computed row by row. */
static size_t edit_distance(const char *a, const char *b) {
    size_t row[VD_FIELD_PATH_SIZE], b_length = strlen(b);
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(replaced, 1 + least(row[j], row[j - 1]));
        }
    }
    return row[b_length];
}

static const char *last_part(const char *path) {
    const char *dot = strchr(path, '.');
    return dot ? dot + 1 : path;
}

const vd_field *vd_field_nearest(const char *path) {
    const vd_field *nearest = NULL;
    size_t nearest_distance = 2 + strlen(last_part(path)) / 4; /* a typing error changes less */
    for (int i = 0; i < VD_FIELD_COUNT; i++) {
        /* The right name in the wrong mapping is also near. */
        const char *known = vd_fields[i].path;
        size_t moved = 1 + edit_distance(last_part(path), last_part(known));
        size_t distance = least(edit_distance(path, known), moved);
        if (distance < nearest_distance) {
            nearest_distance = distance;
            nearest = &vd_fields[i];
        }
    }
    return nearest;
}
