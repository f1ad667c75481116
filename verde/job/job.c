/* This file reads a job file by the table of its keys, and checks how the values fit together. */
#include "verde/job/events.h"
#include "verde/job/fields.h"

#include <string.h>

_Static_assert((int)VD_FIELD_COUNT <= (int)VD_JOB_KEYS_MAX,
               "a job has room for the line of each key");

typedef struct {
    vd_events events;
    vd_job *job;
    uint32_t line[VD_FIELD_COUNT];         /* line of each key; 0: the key is missing */
    char got[VD_FIELD_COUNT][VD_GOT_SIZE]; /* each key's value as written, for errors */
} job_reader;

static vd_status fail_field(const job_reader *reader, int field, uint32_t line,
                            const char *expected, const char *got) {
    return vd_events_fail(&reader->events, line, "`%s` must be %s, got %s", vd_fields[field].path,
                          expected, got);
}

static vd_status fail_value(const job_reader *reader, int field) {
    char expected[VD_EXPECTED_SIZE];
    vd_field_expected(&vd_fields[field], expected);
    return fail_field(reader, field, reader->line[field], expected, reader->got[field]);
}

static vd_status fail_unknown(const job_reader *reader, const char *path) {
    const vd_field *nearest = vd_field_nearest(path);
    const char *dot = nearest ? strchr(nearest->path, '.') : NULL;
    uint32_t line = vd_events_line(&reader->events);
    if (!nearest)
        return vd_events_fail(&reader->events, line,
                              "`%s` is not a key of job files; docs/jobs.md lists them", path);
    if (!dot)
        return vd_events_fail(&reader->events, line,
                              "`%s` is not a key of job files; did you mean `%s`?", path,
                              nearest->path);
    return vd_events_fail(&reader->events, line,
                          "`%s` is not a key of job files; did you mean `%s` in `%.*s`?", path,
                          dot + 1, (int)(dot - nearest->path), nearest->path);
}

/* Finds the field of the key at the current event, inside of `mapping`. */
static vd_status read_key(job_reader *reader, const vd_field *mapping, int *field) {
    const vd_events *events = &reader->events;
    uint32_t line = vd_events_line(events);
    char path[VD_FIELD_PATH_SIZE], got[VD_GOT_SIZE];
    const char *key = vd_events_plain(events);
    vd_events_got(events, got);
    if (!key || !*key)
        return vd_events_fail(events, line, "a key must be a plain word, got %s", got);
    if (!strcmp(key, "<<"))
        return vd_events_fail(events, line, "merge keys are not allowed in a job file");
    /* A known key is shorter than `got` can hold; an unknown one may be cut. */
    snprintf(path, sizeof path, "%s%s%.32s", mapping ? mapping->path : "", mapping ? "." : "", got);
    *field = vd_field_find(path);
    if (*field < 0 || strchr(key, '.'))
        return fail_unknown(reader, path);
    if (reader->line[*field])
        return vd_events_fail(events, line, "`%s` is given twice, first on line %u", path,
                              reader->line[*field]);
    reader->line[*field] = line;
    return VD_OK;
}

static vd_status read_scalar(job_reader *reader, int field) {
    const vd_field *known = &vd_fields[field];
    bool words = known->type == VD_FIELD_FILE || known->type == VD_FIELD_FILES ||
                 known->type == VD_FIELD_DIGEST || known->type == VD_FIELD_TARGETS;
    const char *text =
        words ? vd_events_line_of_text(&reader->events) : vd_events_plain(&reader->events);
    vd_events_got(&reader->events, reader->got[field]);
    vd_status status = text ? vd_field_store(known, text, reader->job) : VD_ERR_USAGE;
    if (status == VD_ERR_LOCAL)
        return vd_fail(reader->events.err, status, "%s: out of memory", reader->events.name);
    return status ? fail_value(reader, field) : VD_OK;
}

/* Reads a value. A list must be written as one, even if it has one item. */
static vd_status read_value(job_reader *reader, int field) {
    if (!vd_field_is_list(&vd_fields[field]))
        return read_scalar(reader, field);
    vd_events_got(&reader->events, reader->got[field]);
    return fail_value(reader, field);
}

static vd_status read_list(job_reader *reader, int field) {
    const uint32_t line = vd_events_line(&reader->events);
    vd_events_got(&reader->events, reader->got[field]);
    for (int count = 0;; count++) {
        vd_status status = vd_events_next(&reader->events);
        if (status)
            return status;
        if (reader->events.event.type == YAML_SEQUENCE_END_EVENT)
            return count || vd_fields[field].may_be_empty
                       ? VD_OK
                       : vd_events_fail(&reader->events, line, "`%s` must not be empty",
                                        vd_fields[field].path);
        if ((status = read_scalar(reader, field)))
            return status;
    }
}

/* Reads a mapping from its first event to its last. Mappings are nested as deep as the table's, two
 * levels, and each key occurs at most once, which bounds the number of events. */
static vd_status read_mapping(job_reader *reader, const vd_field *mapping) {
    for (;;) {
        int field = 0;
        vd_status status = vd_events_next(&reader->events);
        if (status || reader->events.event.type == YAML_MAPPING_END_EVENT)
            return status;
        if ((status = read_key(reader, mapping, &field)))
            return status;
        if ((status = vd_events_next(&reader->events)))
            return status;
        bool mapping_may_be = vd_fields[field].type == VD_FIELD_MAPPING || vd_fields[field].parts;
        bool nested = mapping_may_be && reader->events.event.type == YAML_MAPPING_START_EVENT;
        bool list = vd_field_is_list(&vd_fields[field]) &&
                    reader->events.event.type == YAML_SEQUENCE_START_EVENT;
        status = nested ? read_mapping(reader, &vd_fields[field])
                 : list ? read_list(reader, field)
                        : read_value(reader, field);
        if (status)
            return status;
    }
}

static vd_status read_document(job_reader *reader) {
    char got[VD_GOT_SIZE];
    if (reader->events.event.type != YAML_MAPPING_START_EVENT) {
        vd_events_got(&reader->events, got);
        return vd_events_fail(&reader->events, vd_events_line(&reader->events),
                              "a job file must be a mapping of keys to values, got %s", got);
    }
    vd_status status = read_mapping(reader, NULL);
    return status ? status : vd_events_finish(&reader->events);
}

/* Returns the line where a missing key belongs: that of its mapping, or 1. */
static uint32_t line_of_mapping(const job_reader *reader, const vd_field *field) {
    char mapping[VD_FIELD_PATH_SIZE];
    const char *dot = strchr(field->path, '.');
    snprintf(mapping, sizeof mapping, "%.*s", dot ? (int)(dot - field->path) : 0, field->path);
    return dot ? reader->line[vd_field_find(mapping)] : 1;
}

static vd_status fail_missing(const job_reader *reader, int field) {
    char expected[VD_EXPECTED_SIZE];
    vd_field_expected(&vd_fields[field], expected);
    return fail_field(reader, field, line_of_mapping(reader, &vd_fields[field]), expected,
                      "nothing: the key is missing");
}

/* Returns whether a field may be missing: its mapping is optional and missing, or is one word. */
static bool left_out(const job_reader *reader, int field) {
    char mapping[VD_FIELD_PATH_SIZE];
    const char *path = vd_fields[field].path;
    snprintf(mapping, sizeof mapping, "%.*s", (int)strcspn(path, "."), path);
    const int outer = vd_field_find(mapping);
    const vd_field *around = &vd_fields[outer];
    const bool one_word = around->parts && reader->got[outer][0];
    if (one_word && outer != field)
        return true;
    return !reader->line[outer] && (around->optional || !vd_field_applies(around, reader->job));
}

static vd_status check_present(job_reader *reader) {
    reader->job->pretrained = (int)reader->job->training.model.kind == VD_JOB_PRETRAINED;
    reader->job->program = (int)reader->job->training.model.kind == VD_JOB_GIVEN_PROGRAM;
    reader->job->says_stops = reader->line[vd_field_find("stop")] != 0;
    for (int i = 0; i < VD_FIELD_COUNT; i++) {
        const vd_field *field = &vd_fields[i];
        if (left_out(reader, i))
            continue;
        bool applies = vd_field_applies(field, reader->job);
        if (reader->line[i] && !applies)
            return vd_events_fail(&reader->events, reader->line[i], "`%s` must not be there: %s",
                                  field->path, vd_field_reason(field, reader->job));
        if (reader->line[i] || !applies)
            continue;
        if (field->optional || (field->spare && reader->job->pretrained))
            continue;
        if (!field->otherwise)
            return fail_missing(reader, i);
        vd_field_set(field, field->otherwise, reader->job);
    }
    return VD_OK;
}

static int64_t sum_of_blocks(const vd_model *model) {
    int64_t sum = 0;
    for (int64_t i = 0; i < model->stages; i++)
        sum += model->blocks[i];
    return sum;
}

/* Checks the number of layers against the model's limit. */
static vd_status check_layers(const job_reader *reader) {
    const vd_model *model = &reader->job->training.model;
    const int64_t most = vd_layers_max(model->kind), blocks = sum_of_blocks(model);
    const int layers = vd_field_find("model.layers");
    char expected[VD_EXPECTED_SIZE], got[VD_GOT_SIZE];
    if (reader->job->pretrained)
        return VD_OK;
    if (model->kind != VD_MODEL_RESNET)
        return model->layers <= most ? VD_OK : fail_value(reader, layers);
    if (blocks <= most)
        return VD_OK;
    const int field = vd_field_find("model.blocks");
    snprintf(expected, sizeof expected, "%lld blocks or fewer in all", (long long)most);
    snprintf(got, sizeof got, "%lld", (long long)blocks);
    return fail_field(reader, field, reader->line[field], expected, got);
}

/* Checks data.mean and data.std: both or none must be given, with one number for each plane. */
static vd_status check_images(const job_reader *reader) {
    const struct {
        const char *path;
        int64_t count, other;
    } list[] = {{"data.mean", reader->job->image_means, reader->job->image_stds},
                {"data.std", reader->job->image_stds, reader->job->image_means}};
    for (int i = 0; i < 2; i++) {
        const int field = vd_field_find(list[i].path);
        char expected[VD_EXPECTED_SIZE], got[VD_GOT_SIZE];
        if (list[i].count == VD_IMAGE_PLANES || (list[i].count == 0 && list[i].other == 0))
            continue;
        if (list[i].count == 0)
            return fail_missing(reader, field);
        vd_field_expected(&vd_fields[field], expected);
        snprintf(got, sizeof got, "%lld", (long long)list[i].count);
        return fail_field(reader, field, reader->line[field], expected, got);
    }
    return VD_OK;
}

/* A relation that numbers of the job must have. */
typedef struct {
    bool met;
    const char *path, *expected;
} job_rule;

static vd_status check_rules(const job_reader *reader, const job_rule *rule, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int field = vd_field_find(rule[i].path);
        if (!rule[i].met)
            return fail_field(reader, field, reader->line[field], rule[i].expected,
                              reader->got[field]);
    }
    return VD_OK;
}

static vd_status check_model(const job_reader *reader) {
    const vd_training *training = &reader->job->training;
    const vd_model *model = &training->model;
    const bool prompts = vd_job_has_prompts(reader->job);
    bool bert = model->kind == VD_MODEL_BERT, positions = bert || model->kind == VD_MODEL_GPT2;
    bool pretrained = reader->job->pretrained;
    bool text = reader->job->data_kind == VD_DATA_TEXT && !pretrained;
    bool llama = model->kind == VD_MODEL_LLAMA;
    bool resnet = model->kind == VD_MODEL_RESNET;
    const job_rule rule[] = {
        {!prompts || pretrained || llama || model->kind == VD_MODEL_GPT2 ||
             (resnet && reader->job->task == VD_JOB_SCORES),
         "model.kind", "gpt2, llama or pretrained if task is generate, or resnet if it is score"},
        {prompts || pretrained || resnet == (reader->job->data_kind == VD_DATA_CIFAR10),
         "data.kind", "cifar10 if model.kind is resnet, and only then"},
        {!text || model->vocab >= 256, "model.vocab", "256 or more if data.kind is text"},
        {!text || !bert || model->vocab > 256, "model.vocab",
         "257 or more if data.kind is text and model.kind is bert"},
        {!bert || model->pad < model->vocab - 1, "model.pad", "below model.vocab - 1"},
        {!positions || model->channels % model->heads == 0, "model.heads",
         "a divisor of model.channels"},
        {!llama || model->channels % (2 * model->heads) == 0, "model.heads",
         "a divisor of half of model.channels"},
        {!llama || model->heads % model->kv_heads == 0, "model.kv_heads",
         "a divisor of model.heads"},
        {!positions || training->sequence <= model->context, "sequence", "model.context or less"},
    };
    return check_rules(reader, rule, sizeof rule / sizeof *rule);
}

static vd_status check_steps(const job_reader *reader) {
    const vd_training *training = &reader->job->training;
    const vd_optimizer *optimizer = &training->optimizer;
    const int64_t every = reader->job->evaluate.every;
    const bool goes_on = reader->job->start.run[0] != 0; /* its first step is not known yet */
    bool decay = optimizer->schedule != RO_LR_CONSTANT;
    const job_rule rule[] = {
        {training->batch % training->micro_batches == 0, "micro_batches", "a divisor of batch"},
        {training->checkpoint_interval <= training->steps, "checkpoint_interval", "steps or less"},
        {!every || every % training->checkpoint_interval == 0, "evaluate.every",
         "a multiple of checkpoint_interval"},
        {!decay || goes_on || optimizer->warmup < training->steps, "schedule.warmup",
         "less than steps"},
        {!optimizer->nesterov || optimizer->momentum > 0, "optimizer.nesterov",
         "false if optimizer.momentum is 0"},
        {!decay || optimizer->min_lr <= optimizer->lr, "schedule.min_lr", "optimizer.lr or less"},
    };
    return check_rules(reader, rule, sizeof rule / sizeof *rule);
}

static bool has_twice(const int64_t *list, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < i; j++)
            if (list[i] == list[j])
                return true;
    return false;
}

static vd_status check_generation(const job_reader *reader) {
    const vd_generation *g = &reader->job->generation;
    const bool files_say = reader->job->pretrained && !reader->job->says_stops;
    const job_rule rule[] = {
        {g->min_tokens <= g->max_tokens, "min_tokens", "max_tokens or less"},
        {g->min_tokens == 0 || g->stop_count > 0 || files_say, "min_tokens",
         "0 where there is no stop"},
        {!has_twice(g->stop, g->stop_count), "stop", "a list of tokens that all differ"},
    };
    return check_rules(reader, rule, sizeof rule / sizeof *rule);
}

static vd_status check_task(const job_reader *reader) {
    const job_rule rule[] = {{!vd_job_has_prompts(reader->job), "task",
                              "train or evaluate, as `model.kind` is program"}};
    return check_rules(reader, rule, sizeof rule / sizeof *rule);
}

static vd_status check_together(const job_reader *reader) {
    const vd_status status = check_model(reader);
    if (status != VD_OK)
        return status;
    return vd_job_has_prompts(reader->job) ? check_generation(reader) : check_steps(reader);
}

bool vd_job_has_prompts(const vd_job *job) {
    return job->packed || job->task == VD_JOB_GENERATES || job->task == VD_JOB_SCORES;
}

/* Fills in defaults of a job that generates. */
static void complete_generation(vd_job *job) {
    vd_generation *g = &job->generation;
    const double share = job->top_p != 0 ? (double)job->top_p : 1;
    g->temperature = g->temperature != 0 ? g->temperature : 1;
    g->repetition_penalty = g->repetition_penalty != 0 ? g->repetition_penalty : 1;
    g->top_p = (int64_t)(share * VD_TOP_P_ONE + 0.5);
}

vd_status vd_job_parse(const void *text, size_t size, const char *name, vd_job *out, vd_err *err) {
    job_reader reader = {.job = out};
    *out = (vd_job){0};
    out->training.model.dropout = -1; /* of a pretrained model: uses its config.json */
    if (strlen(name) >= sizeof out->path)
        return vd_fail(err, VD_ERR_USAGE, "the name of a job file must be below %d bytes",
                       VD_JOB_PATH_SIZE);
    memcpy(out->path, name, strlen(name) + 1);
    vd_status status = vd_job_check_version(text, size, out->path, err);
    if (status)
        return status;
    status = vd_events_open(&reader.events, text, size, out->path, "a job file", err);
    if (!status)
        status = read_document(&reader);
    if (!status)
        status = check_present(&reader);
    if (!status && out->program)
        status = check_task(&reader);
    if (!status && !out->program)
        status = check_layers(&reader);
    if (!status && !out->program)
        status = check_images(&reader);
    if (!status && !out->program)
        status = check_together(&reader);
    out->training.evaluates = out->task != VD_JOB_TRAINS;
    if (!status && vd_job_has_prompts(out)) {
        out->training.batch = out->training.micro_batches = 1;
        out->training.model.image = VD_CIFAR_SIZE;
        complete_generation(out);
    }
    if (!out->pretrained && out->training.model.dropout < 0)
        out->training.model.dropout = 0;
    if (!status && out->data_kind == VD_DATA_CIFAR10) {
        out->training.sequence = 1;
        out->training.model.image = VD_CIFAR_SIZE;
    }
    memcpy(out->line, reader.line, sizeof reader.line);
    vd_events_close(&reader.events);
    return status;
}

vd_status vd_job_read(const char *path, vd_job *out, vd_err *err) {
    vd_buf file = {0};
    vd_status status = vd_read_file(path, VD_JOB_BYTES_MAX, &file, err);
    if (!status)
        status = vd_job_parse(file.data, file.size, path, out, err);
    vd_buf_free(&file);
    return status;
}
