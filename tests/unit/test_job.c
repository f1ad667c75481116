/* Job files and the data that they name. Must run in the project's root. */
#include "verde/commit/commit.h"
#include "verde/job/fields.h"
#include "verde/job/job.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GOOD "tests/vectors/jobs/good/"
#define BAD  "tests/vectors/jobs/bad/"

static vd_job read_good(const char *path) {
    vd_job job;
    vd_err err = {0};
    cr_assert_eq(vd_job_read(path, &job, &err), VD_OK, "%s", err.text);
    return job;
}

/* ---- valid jobs ---- */

Test(job, block_style_fills_every_field) {
    vd_job job = read_good(GOOD "block.yaml");
    const vd_training *t = &job.training;
    cr_assert_str_eq(job.path, GOOD "block.yaml");
    cr_assert_str_eq(job.data_path, GOOD "tokens.bin");
    cr_assert(job.version == 1 && job.data_kind == VD_DATA_TOKENS);
    cr_assert_eq(job.training.optimizer.kind, VD_OPTIMIZER_ADAMW);
    cr_assert(job.data_sha256[0] == 0x01 && job.data_sha256[31] == 0xef);
    cr_assert(t->model.kind == VD_MODEL_GPT2 && t->model.vocab == 50257 && t->model.context == 64);
    cr_assert(t->model.layers == 3 && t->model.heads == 4 && t->model.channels == 48);
    cr_assert(t->model.hidden == 0 && t->model.dropout == 0.25f);
    cr_assert(t->seed == UINT64_MAX && t->batch == 12 && t->micro_batches == 3);
    cr_assert(t->sequence == 64 && t->steps == INT32_MAX && t->checkpoint_interval == 4096);
    cr_assert(t->optimizer.lr == 1.5e-3f && t->optimizer.beta1 == 0.9f &&
              t->optimizer.beta2 == 0.95f);
    cr_assert(t->optimizer.eps == 1e-8f && t->optimizer.weight_decay == 0.1f &&
              t->optimizer.clip_norm == 1);
    cr_assert(t->optimizer.schedule == RO_LR_COSINE && t->optimizer.warmup == INT32_MAX - 1);
    cr_assert(t->optimizer.min_lr == 1e-4f && t->data_dtype == 0 && t->data_count == 0);
}

Test(job, flow_style_in_any_order_with_defaults) {
    vd_job job = read_good(GOOD "flow.yaml");
    const vd_training *t = &job.training;
    cr_assert_str_eq(job.data_path, "/data/text");
    cr_assert(t->model.kind == VD_MODEL_MLP && t->model.channels == 5 && t->model.hidden == 7);
    cr_assert(t->model.context == 0 && t->model.heads == 0 && t->model.dropout == 0);
    cr_assert(t->micro_batches == 1 && t->seed == 0 && t->steps == 1);
    cr_assert(t->optimizer.schedule == RO_LR_CONSTANT && t->optimizer.warmup == 0);
    cr_assert(t->optimizer.lr == 1000 && t->optimizer.beta2 == 0 && t->optimizer.min_lr == 0);
}

Test(job, prompts_and_how_to_go_on_with_them) {
    const vd_job job = read_good(GOOD "generate.yaml");
    const vd_generation *g = &job.generation;
    cr_assert(job.task == VD_JOB_GENERATES && job.training.evaluates && vd_job_has_prompts(&job));
    cr_assert_str_eq(job.prompts.path, GOOD "prompts.jsonl");
    cr_assert(job.prompts.sha256[1] == 0x23 && !g->greedy && g->temperature == 0.5f);
    cr_assert(g->top_k == 5 && g->top_p == 3 * VD_TOP_P_ONE / 4 && g->seed == UINT64_MAX);
    cr_assert(g->max_tokens == 3 && g->min_tokens == 2 && g->repetition_penalty == 1.5f);
    cr_assert(g->stop_count == 2 && g->stop[0] == 50 && g->stop[1] == 7 && g->best == 5);
}

Test(job, what_generating_need_not_say) {
    const vd_job job = read_good(GOOD "greedy.yaml");
    const vd_generation *g = &job.generation;
    cr_assert(g->greedy && g->temperature == 1 && g->top_k == 0 && g->top_p == VD_TOP_P_ONE);
    cr_assert(g->max_tokens == 65536 && g->min_tokens == 0 && g->stop_count == 0);
    cr_assert(g->repetition_penalty == 1 && g->best == -1);
    cr_assert(read_good(GOOD "score.yaml").task == VD_JOB_SCORES);
}

Test(job, sgd_has_keys_of_its_own) {
    vd_job job = read_good(GOOD "sgd.yaml");
    const vd_optimizer *o = &job.training.optimizer;
    cr_assert(o->kind == VD_OPTIMIZER_SGD && o->momentum == 0.9f && o->nesterov == 1);
    cr_assert(o->lr == 0.1f && o->weight_decay == 5e-4f && o->clip_norm == 0);
    cr_assert(o->beta1 == 0 && o->beta2 == 0 && o->eps == 0);
}

Test(job, pretrained_model_has_what_the_job_says_until_its_files_are_read) {
    const vd_job job = read_good(GOOD "pretrained.yaml");
    const vd_model *m = &job.training.model;
    cr_assert(job.pretrained && m->dropout == -1 && m->pad == -1 && m->vocab == 0);
    cr_assert_str_eq(job.model_dir, GOOD "smollm");
    cr_assert(job.model_sha256[0] == 0x01 && job.training.sequence == 32);
    cr_assert(m->lora.rank == 4 && m->lora.alpha == 8 && m->lora.target_count == 2);
    cr_assert_str_eq(m->lora.target[1], "mlp.up");
    cr_assert(job.training.optimizer.decay_all == 1);
}

Test(job, products_are_one_word_or_three) {
    const vd_products own = read_good(GOOD "products.yaml").training.products;
    const vd_products one = read_good(GOOD "products-word.yaml").training.products;
    cr_expect(own.forward == RO_FIXED_16 && own.gradient_x == 0 && own.gradient_w == RO_FIXED_24);
    cr_expect(one.forward == RO_FIXED_24 && one.gradient_x == RO_FIXED_24 &&
              one.gradient_w == RO_FIXED_24);
}

Test(job, callers_locale_changes_no_number) {
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        cr_skip_test("no locale with a decimal comma");
    cr_assert_eq(read_good(GOOD "block.yaml").training.optimizer.lr, 1.5e-3f);
}

Test(job, examples_make_programs) {
    static const char *const path[] = {"models/jobs/demo.yaml", "models/jobs/toy.yaml",
                                       "models/jobs/mlp.yaml", "models/jobs/toy-log.yaml"};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        vd_job job = read_good(path[i]);
        vd_dataset data;
        vd_program program = {0};
        vd_err err = {0};
        cr_assert_eq(vd_job_load_data(&job, NULL, &data, &err), VD_OK, "%s", err.text);
        cr_assert(data.list[0].tensor.shape.dtype == RO_U8 && job.training.data_dtype == RO_U8);
        cr_assert_eq(data.list[0].tensor.shape.dim[0], job.training.data_count);
        cr_assert_eq(vd_job_program(&job, &program, &err), VD_OK, "%s", err.text);
        vd_program_free(&program);
        vd_dataset_free(&data);
    }
}

Test(job, gpt2_124m_example_has_gpt2s_parameters) {
    vd_job job = read_good("models/jobs/gpt2-124m.yaml");
    cr_assert_eq(vd_model_parameters(&job.training.model), 124439808);
}

Test(job, resnet50_example_has_its_parameters_and_tiny_its_sizes) {
    vd_job job = read_good("models/jobs/resnet50-cifar.yaml");
    cr_assert_eq(vd_model_parameters(&job.training.model), 23520842);
    job = read_good("models/jobs/resnet-tiny.yaml");
    const vd_model *m = &job.training.model;
    cr_assert(m->kind == VD_MODEL_RESNET && m->vocab == 10 && m->channels == 8);
    cr_assert(m->image == 32 && m->stages == 2 && m->blocks[0] == 1 && m->blocks[1] == 1);
    cr_assert(job.training.sequence == 1 && job.data_files.count == 1);
    cr_assert_str_eq(job.data_files.text, "../data/stripes.bin");
}

Test(job, bert_example_has_no_padding_unless_it_says_so) {
    const vd_job job = read_good("models/jobs/bert-tiny.yaml");
    const vd_model *m = &job.training.model;
    cr_assert(m->kind == VD_MODEL_BERT && m->pad == -1 && m->mask_rate == 0.15f);
}

/* The table of keys states in words the number of layers that each model allows. */
Test(job, ranges_of_layers_are_those_of_the_models) {
    static const struct {
        const char *name;
        vd_model_kind kind;
    } model[] = {{"gpt2", VD_MODEL_GPT2},
                 {"llama", VD_MODEL_LLAMA},
                 {"bert", VD_MODEL_BERT},
                 {"mlp", VD_MODEL_MLP}};
    char expected[VD_EXPECTED_SIZE], range[40];
    const vd_field *layers = &vd_fields[vd_field_find("model.layers")];
    vd_field_expected(layers, expected);
    int64_t most = 0;
    for (int i = 0; i < 4; i++) {
        const int64_t limit = vd_layers_max(model[i].kind);
        snprintf(range, sizeof range, "1..%lld for %s,", (long long)limit, model[i].name);
        cr_expect(strstr(expected, range), "\"%s\" lacks \"%s\"", expected, range);
        most = limit > most ? limit : most;
    }
    cr_expect(layers->max == (uint64_t)most);
    cr_expect(vd_fields[vd_field_find("model.blocks")].max ==
              (uint64_t)vd_layers_max(VD_MODEL_RESNET));
}

/* ---- invalid jobs ---- */

/* The expected error is in the file's .err file or, without one, in its first line: "# expect:
 * ...". */
static void expected_error(const char *path, char *text, int size) {
    char beside[512], line[512] = "";
    snprintf(beside, sizeof beside, "%.*s.err", (int)(strlen(path) - strlen(".yaml")), path);
    FILE *file = fopen(beside, "r");
    const char *prefix = file ? "" : "# expect: ";
    file = file ? file : fopen(path, "r");
    cr_assert(file && fgets(line, sizeof line, file), "%s: no expected error", path);
    fclose(file);
    line[strcspn(line, "\n")] = 0;
    cr_assert(!strncmp(line, prefix, strlen(prefix)), "%s: no expected error", path);
    snprintf(text, (size_t)size, "%s", line + strlen(prefix));
}

static void check_refused(const char *path) {
    char expected[512], place[512];
    vd_job job;
    vd_err err = {0};
    expected_error(path, expected, sizeof expected);
    snprintf(place, sizeof place, "%s:", path);
    cr_expect_eq(vd_job_read(path, &job, &err), VD_ERR_USAGE, "%s was not refused", path);
    cr_expect(strstr(err.text, expected), "%s: expected \"%s\", got \"%s\"", path, expected,
              err.text);
    cr_expect(!strncmp(err.text, place, strlen(place)), "no place: %s", err.text);
    cr_expect_eq(vd_job_read(path, &job, NULL), VD_ERR_USAGE);
}

Test(job, every_bad_file_is_refused_with_its_reason) {
    DIR *directory = opendir(BAD);
    cr_assert(directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[512];
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".yaml") != 0)
            continue;
        snprintf(path, sizeof path, BAD "%s", entry->d_name);
        check_refused(path);
        count++;
    }
    closedir(directory);
    cr_assert_geq(count, 100);
}

Test(job, another_version_is_told_before_all_else) {
    static const struct {
        const char *text;
        vd_status status;
        const char *says;
    } file[] = {
        {"verde: 2\n", VD_ERR_VERSION, "f:1: version 2 of a job file; this verde reads version 1"},
        {"new: {a: [1]}\nmodel: 7\nverde: 12\n", VD_ERR_VERSION, "f:3: version 12 of a job file"},
        {"new: {verde: 2}\nverde: 1\n", VD_ERR_USAGE, "f:1: `new` is not a key"},
        {"new: {a: [{b: c}]}\nverde: 2\n", VD_ERR_USAGE, "f:1: `new` is not a key"},
        {"verde: 1.0\n", VD_ERR_USAGE, "f:1: `verde` must be 1..1"},
        {"verde: \"2\"\n", VD_ERR_USAGE, "f:1: `verde` must be 1..1"},
        {"verde: 0\n", VD_ERR_USAGE, "f:1: `verde` must be 1..1"},
        {"verde: true\n", VD_ERR_USAGE, "f:1: `verde` must be 1..1"},
    };
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        vd_job job;
        vd_err err = {0};
        cr_expect_eq(vd_job_parse(file[i].text, strlen(file[i].text), "f", &job, &err),
                     file[i].status, "%s", file[i].text);
        cr_expect(strstr(err.text, file[i].says), "%s", err.text);
    }
}

Test(job, file_that_is_not_there) {
    vd_job job;
    vd_err err = {0};
    cr_assert_eq(vd_job_read(GOOD "none.yaml", &job, &err), VD_ERR_USAGE);
    cr_assert(strstr(err.text, GOOD "none.yaml"), "%s", err.text);
}

/* A text that repeats `unit` is refused quickly. */
static void check_bomb(const char *start, const char *unit, size_t size) {
    vd_buf text = {0};
    vd_err err = {0};
    vd_job job;
    vd_put(&text, start, strlen(start));
    while (text.size + strlen(unit) <= size)
        vd_put(&text, unit, strlen(unit));
    cr_assert(vd_buf_ok(&text));
    double before = vd_cpu_seconds();
    cr_expect_eq(vd_job_parse(text.data, text.size, "bomb.yaml", &job, &err), VD_ERR_USAGE);
    cr_expect_lt(vd_cpu_seconds() - before, 1, "%zu bytes of \"%s\" took too long", size, unit);
    cr_expect(!strncmp(err.text, "bomb.yaml:", 10), "%s", err.text);
    vd_buf_free(&text);
}

Test(job, bombs_are_refused_at_once) {
    static const char *const unit[] = {
        "[",       "{",   "- ", "? ", "[\n",          "{a: ",        "a: {",      "*a ",
        "&a ",     "!a ", "!!", "\"", "\\",           "a",           "a\n",       "a: a\n",
        "a: b, ",  "#\n", "\n", " ",  "%TAG !a! b\n", "%YAML 1.1\n", "---\n",     "...\n",
        "|\n",     ": ",  ",",  "]",  "\xef\xbf\xbd", "'",           "a: |\n \n", "\r",
        "\xc2\x85"};
    static const char *const start[] = {"",
                                        "model: {",
                                        "model: ",
                                        "steps: ",
                                        "steps: \"",
                                        "[a, ",
                                        "verde: 1\nmodel: {kind: gpt2, layers: ",
                                        "data: {file: "};
    for (size_t s = 0; s < sizeof start / sizeof *start; s++) {
        for (size_t u = 0; u < sizeof unit / sizeof *unit; u++)
            check_bomb(start[s], unit[u], VD_JOB_BYTES_MAX);
        check_bomb(start[s], "[", 160000);
    }
}

Test(job, any_cut_and_any_flipped_byte_is_read_without_harm) {
    vd_buf file = {0};
    vd_err err = {0};
    vd_job job;
    cr_assert_eq(vd_read_file(GOOD "block.yaml", VD_JOB_BYTES_MAX, &file, &err), VD_OK);
    for (size_t size = 0; size < file.size; size++)
        (void)!vd_job_parse(file.data, size, "cut.yaml", &job, &err);
    for (size_t i = 0; i < file.size; i++) {
        for (int flip = 1; flip < 256; flip += 2) {
            file.data[i] ^= (uint8_t)flip;
            (void)!vd_job_parse(file.data, file.size, "flipped.yaml", &job, &err);
            file.data[i] ^= (uint8_t)flip;
        }
    }
    cr_assert_eq(vd_job_parse(file.data, file.size, "whole.yaml", &job, &err), VD_OK);
    vd_buf_free(&file);
}

/* ---- data ---- */

enum { TOKENS = 40, HEADER = VD_TOKENS_HEADER_SIZE / 4 };

typedef struct {
    uint32_t header[HEADER];
    uint16_t token[TOKENS];
} token_file;

/* A job with a vocabulary of 50257 on a valid token file of this test's own. */
static vd_job token_job(const char *test, token_file *file) {
    vd_job job = read_good(GOOD "block.yaml");
    snprintf(job.data_path, sizeof job.data_path, TEST_BUILD "/tests/job-%s.bin", test);
    *file = (token_file){.header = {VD_TOKENS16_MAGIC, VD_TOKENS16_VERSION, TOKENS}};
    for (int i = 0; i < TOKENS; i++)
        file->token[i] = (uint16_t)(50256 - 1000 * i);
    return job;
}

/* Writes `size` bytes as the job's data, sets their SHA-256 in the job, and loads them. */
static vd_status load(vd_job *job, const void *bytes, size_t size, vd_dataset *data, vd_err *err) {
    vd_hash digest;
    cr_assert_eq(vd_write_file(job->data_path, bytes, size, 0644, err), VD_OK, "%s", err->text);
    cr_assert(vd_hash_tagged(NULL, bytes, size, &digest));
    memcpy(job->data_sha256, digest.b, sizeof digest.b);
    vd_status status = vd_job_load_data(job, NULL, data, err);
    unlink(job->data_path);
    return status;
}

static void refuse(vd_job *job, const void *bytes, size_t size, const char *expected) {
    vd_dataset data;
    vd_err err = {0};
    cr_expect_eq(load(job, bytes, size, &data, &err), VD_ERR_USAGE, "expected: %s", expected);
    cr_expect(strstr(err.text, expected), "expected \"%s\", got \"%s\"", expected, err.text);
    cr_expect(!strncmp(err.text, job->data_path, strlen(job->data_path)), "%s", err.text);
    cr_expect(!data.list && !data.file && job->training.data_count == 0);
}

Test(job, tokens_become_a_tensor_with_its_commitment) {
    token_file file;
    vd_job job = token_job("right", &file);
    vd_dataset data;
    vd_err err = {0};
    vd_hash byte_root, root;
    cr_assert_eq(load(&job, &file, sizeof file, &data, &err), VD_OK, "%s", err.text);
    const ro_shape shape = {RO_U16, 1, {TOKENS}};
    cr_assert(ro_shape_equal(&data.list[0].tensor.shape, &shape));
    cr_assert(!memcmp(data.list[0].tensor.data, file.token, sizeof file.token));
    cr_assert(job.training.data_dtype == RO_U16 && job.training.data_count == TOKENS);
    cr_assert_eq(vd_tensor_hash(NULL, &shape, file.token, &byte_root, &root, &err), VD_OK);
    cr_assert(!memcmp(job.training.data_root, root.b, sizeof root.b));
    vd_dataset_free(&data);
    vd_dataset_free(&data); /* harmless */
}

Test(job, token_files_of_another_size_are_refused) {
    token_file file;
    vd_job job = token_job("size", &file);
    vd_buf longer = {0};
    refuse(&job, &file, 0, "must start with a header of 1024 bytes, got 0 bytes in all");
    refuse(&job, &file, 7, "must start with a header of 1024 bytes, got 7 bytes in all");
    refuse(&job, &file, VD_TOKENS_HEADER_SIZE - 1, "got 1023 bytes in all");
    refuse(&job, &file, VD_TOKENS_HEADER_SIZE, "a file of 40 tokens must have 1104 bytes");
    refuse(&job, &file, sizeof file - 1, "must have 1104 bytes, got 1103");
    vd_put(&longer, &file, sizeof file);
    vd_put_u8(&longer, 0);
    refuse(&job, longer.data, longer.size, "must have 1104 bytes, got 1105");
    vd_buf_free(&longer);
}

Test(job, token_files_with_another_header_are_refused) {
    static const struct {
        int index;
        uint32_t value;
        const char *expected;
    } bad[] = {
        {0, 20240521,
         "must start with the number 20240520 (16 bits) or 20240801 (32 bits), got 20240521"},
        {0, 0x98d83401, "must start with the number 20240520"}, /* big-endian */
        {1, 0, "version must be 1, got 0"},
        {1, 2, "version must be 1, got 2"},
        {2, 0, "token count must be 1..2147483647, got 0"},
        {2, UINT32_MAX, "token count must be 1..2147483647, got 4294967295"},
        {2, INT32_MAX, "a file of 2147483647 tokens must have 4294968318 bytes, got 1104"},
        {2, TOKENS - 1, "a file of 39 tokens must have 1102 bytes, got 1104"},
        {3, 1, "numbers after the third must be 0"},
        {HEADER - 1, 1, "numbers after the third must be 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        token_file file;
        vd_job job = token_job("header", &file);
        file.header[bad[i].index] = bad[i].value;
        refuse(&job, &file, sizeof file, bad[i].expected);
    }
}

Test(job, tokens_past_the_vocabulary_are_refused) {
    for (int place = 0; place < TOKENS; place += TOKENS - 1) {
        token_file file;
        vd_job job = token_job("vocabulary", &file);
        char expected[128];
        file.token[place] = 50257;
        snprintf(expected, sizeof expected, "token %d must be below model.vocab (50257), got 50257",
                 place);
        refuse(&job, &file, sizeof file, expected);
    }
}

Test(job, data_of_another_sha256_is_refused) {
    vd_job job = read_good("models/jobs/toy.yaml");
    vd_dataset data;
    vd_err err = {0};
    job.data_sha256[31] ^= 1;
    cr_assert_eq(vd_job_load_data(&job, NULL, &data, &err), VD_ERR_USAGE);
    cr_assert(strstr(err.text, "models/jobs/toy.yaml:7: `data.sha256` is "), "%s", err.text);
    cr_assert(!data.file && job.training.data_count == 0);
}

Test(job, data_that_is_not_there_is_the_users_to_correct) {
    vd_job job = read_good("models/jobs/toy.yaml");
    vd_dataset data;
    vd_err err = {0};
    strcpy(job.data_path, GOOD "none.bin");
    cr_assert_eq(vd_job_load_data(&job, NULL, &data, &err), VD_ERR_USAGE, "%s", err.text);
    cr_assert(strstr(err.text, GOOD "none.bin"), "%s", err.text);
}

Test(job, empty_text_is_refused) {
    token_file file;
    vd_job job = token_job("empty", &file);
    job.data_kind = VD_DATA_TEXT;
    refuse(&job, &file, 0, "a text must have at least 1 byte");
}

Test(job, too_little_data_is_refused_in_the_jobs_name) {
    vd_job job = read_good("models/jobs/toy.yaml");
    vd_program program = {0};
    vd_err err = {0};
    job.training.data_dtype = RO_U8;
    job.training.data_count = 32; /* one sequence and the token after it need 33 */
    cr_assert_eq(vd_job_program(&job, &program, &err), VD_ERR_USAGE);
    cr_assert(!strncmp(err.text, "models/jobs/toy.yaml: ", 22), "%s", err.text);
}

/* ---- images ---- */

/* The names in a job are relative to its file, so this one is absolute. */
static const char *build_dir(void) {
    static char path[PATH_MAX];
    cr_assert(realpath(TEST_BUILD, path));
    return path;
}

enum { RECORD = 1 + 3 * 32 * 32 };

/* Adds the name of a file of this test's own to the job's list. */
static char *add_name(vd_job *job, const char *test, int number) {
    vd_job_names *names = &job->data_files;
    char *path = names->text + names->size;
    names->size += 1 + (size_t)snprintf(path, sizeof names->text - names->size,
                                        "%s/tests/job-%s-%d.bin", build_dir(), test, number);
    names->count++;
    return path;
}

static void remove_files(const vd_job *job) {
    const char *path = job->data_files.text;
    for (int64_t i = 0; i < job->data_files.count; i++, path += strlen(path) + 1)
        unlink(path);
}

/* Writes the bytes of `records` to two files, `first` bytes and `second` bytes, and loads them. */
static vd_status load_records(const char *test, const uint8_t *records, size_t first, size_t second,
                              vd_job *job, vd_dataset *data, vd_err *err) {
    vd_hash digest;
    *job = read_good("models/jobs/resnet-tiny.yaml");
    job->data_files = (vd_job_names){0};
    for (int i = 0; i < 2; i++) {
        char *path = add_name(job, test, i);
        cr_assert_eq(vd_write_file(path, records + (i ? first : 0), i ? second : first, 0644, err),
                     VD_OK);
    }
    cr_assert(vd_hash_tagged(NULL, records, first + second, &digest));
    memcpy(job->data_sha256, digest.b, sizeof digest.b);
    vd_status status = vd_job_load_data(job, NULL, data, err);
    remove_files(job);
    return status;
}

Test(job, files_of_images_become_one_tensor) {
    static uint8_t records[3 * RECORD];
    vd_job job;
    vd_dataset data;
    vd_err err = {0};
    for (size_t i = 0; i < sizeof records; i++)
        records[i] = (uint8_t)(i % RECORD ? i * 7 : i / RECORD);
    cr_assert_eq(load_records("images", records, 2 * RECORD, RECORD, &job, &data, &err), VD_OK,
                 "%s", err.text);
    cr_assert(data.list[0].tensor.shape.dtype == RO_U8 &&
              data.list[0].tensor.shape.dim[0] == 3 * RECORD);
    cr_assert(!memcmp(data.list[0].tensor.data, records, sizeof records));
    cr_assert_eq(job.training.data_count, 3 * RECORD);
    vd_dataset_free(&data);
}

Test(job, files_of_images_are_checked_one_by_one) {
    static uint8_t records[4 * RECORD];
    static const struct {
        size_t first, second, bad_label; /* sizes in bytes; a record with a bad label, 0: none */
        const char *expected;
    } cases[] = {
        {2 * RECORD, 2 * RECORD, 3,
         "-1.bin: the label of record 1 must be below model.classes (10), got 10"},
        {2 * RECORD, 7, 0,
         "-1.bin: a file of images must have one or more records of 3073 bytes, got 7 "},
        {2 * RECORD, 0, 0,
         "-1.bin: a file of images must have one or more records of 3073 bytes, got 0 "},
        {2 * RECORD - 1, RECORD + 1, 0,
         "-0.bin: a file of images must have one or more records of 3073 bytes, got 6145 "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vd_job job;
        vd_dataset data;
        vd_err err = {.text = "accepted"};
        memset(records, 0, sizeof records);
        records[cases[i].bad_label * RECORD] = cases[i].bad_label ? 10 : 0;
        cr_expect_eq(
            load_records("bad", records, cases[i].first, cases[i].second, &job, &data, &err),
            VD_ERR_USAGE, "case %zu", i);
        cr_expect(strstr(err.text, cases[i].expected), "case %zu: %s", i, err.text);
    }
}

Test(job, wrong_sum_of_several_files_is_that_of_all_of_them) {
    vd_job job = read_good("models/jobs/resnet-tiny.yaml");
    vd_dataset data;
    vd_err err = {0};
    const size_t size = job.data_files.size;
    memcpy(job.data_files.text + size, job.data_files.text, size);
    job.data_files.count = 2;
    cr_expect_eq(vd_job_load_data(&job, NULL, &data, &err), VD_ERR_USAGE);
    cr_expect(strstr(err.text, "but the 2 files of `data.files`, one after the other, have "), "%s",
              err.text);
}
