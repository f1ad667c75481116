/* Files of prompts, and collections of programs. */
#include "verde/commit/collection.h"
#include "verde/job/job.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    vd_job job;
    vd_prompts prompts;
    vd_err err;
    char path[64];
} prompt_file;

/* Reads this text as the prompts of a job with a vocabulary of 10. */
static vd_status read_text(prompt_file *f, vd_job_task task, const char *text, size_t size) {
    vd_hash hash;
    *f = (prompt_file){.job = {.task = task}};
    snprintf(f->path, sizeof f->path, "/tmp/prompts-XXXXXX");
    const int fd = mkstemp(f->path);
    cr_assert(fd >= 0 && write(fd, text, size) == (ssize_t)size && close(fd) == 0);
    cr_assert(vd_hash_tagged(NULL, text, size, &hash));
    memcpy(f->job.prompts.sha256, hash.b, sizeof hash.b);
    snprintf(f->job.prompts.path, sizeof f->job.prompts.path, "%s", f->path);
    snprintf(f->job.path, sizeof f->job.path, "job.yaml");
    f->job.training.model.vocab = 10;
    f->job.generation.max_tokens = 5;
    const vd_status status = vd_job_load_prompts(&f->job, &f->prompts, &f->err);
    unlink(f->path);
    return status;
}

Test(prompts, lines_in_order_with_all_ends_that_a_line_may_have) {
    static const char *const texts[] = {
        "{\"key\": 7, \"ids\": [1, 2, 9]}\n{\"ids\":[0],\"key\":9223372036854775807}\n",
        "{\"key\": 7, \"ids\": [1, 2, 9]}\n{\"ids\":[0],\"key\":9223372036854775807}",
        "{\"key\": 7, \"ids\": [1, 2, 9]}\r\n{\"ids\":[0],\"key\":9223372036854775807}\r\n",
        "{\"key\": 7, \"ids\": [1, 2, 9]}\r\n{\"ids\":[0],\"key\":9223372036854775807}\r"};
    for (int i = 0; i < 4; i++) {
        prompt_file f;
        int32_t word[2];
        cr_assert_eq(read_text(&f, VD_JOB_GENERATES, texts[i], strlen(texts[i])), VD_OK, "%s",
                     f.err.text);
        const vd_prompt *p = f.prompts.list;
        cr_assert(f.prompts.count == 2 && f.prompts.tokens == 4);
        cr_assert(p[0].key == 7 && p[0].first == 0 && p[0].count == 3);
        cr_assert(p[1].key == INT64_MAX && p[1].first == 3 && p[1].count == 1);
        cr_assert(f.prompts.token[2] == 9 && f.prompts.token[3] == 0);
        vd_prompt_words(&p[1], word);
        cr_assert(word[0] == -1 && word[1] == INT32_MAX);
        vd_prompts_free(&f.prompts);
    }
}

static void refuse_text(vd_job_task task, const char *text, const char *why) {
    prompt_file f;
    char expected[256];
    cr_expect_eq(read_text(&f, task, text, strlen(text)), VD_ERR_USAGE, "%s was not refused", text);
    snprintf(expected, sizeof expected, "%s%s", f.path, why);
    cr_expect_str_eq(f.err.text, expected);
    cr_expect(!f.prompts.list && !f.prompts.token && !f.prompts.count);
}

Test(prompts, every_wrong_line_is_named) {
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", ": has no prompts"},
        {"[1]\n",
         ":1: expected a JSON object without bytes around it: its first byte is 0x5b, not {"},
        {"{\"key\":1,\"ids\":[1]}\r\r\n",
         ":1: expected a JSON object without bytes around it: its last byte is 0x0d, not }"},
        {"{\"key\":1,\"ids\":[1]}\n{\"key\":-1,\"ids\":[1]}\n",
         ":2: key must be a whole number 0..9223372036854775807"},
        {"{\"ids\":[1]}", ":1: key must be a whole number 0..9223372036854775807"},
        {"{\"key\":1.0,\"ids\":[1]}", ":1: key must be a whole number 0..9223372036854775807"},
        {"{\"key\":1}", ":1: ids must be a list of 1..65536 tokens"},
        {"{\"key\":1,\"ids\":[]}", ":1: ids must be a list of 1..65536 tokens"},
        {"{\"key\":1,\"ids\":[1,10]}", ":1: ids[1] must be a whole number 0..9"},
        {"{\"key\":1,\"ids\":[true]}", ":1: ids[0] must be a whole number 0..9"},
        {"{\"key\":1,\"ids\":[1],\"text\":\"\"}",
         ":1: has a member `text`, expected `key`, `ids` and perhaps `max_tokens`"},
        {"{\"key\":1,\"ids\":[1],\"max_tokens\":0}", ":1: max_tokens must be a whole number 1..5"},
        {"{\"key\":1,\"ids\":[1],\"max_tokens\":6}", ":1: max_tokens must be a whole number 1..5"},
        {"{\"key\":1,\"ids\":[1],\"max_tokens\":2.0}",
         ":1: max_tokens must be a whole number 1..5"},
        {"{\"key\":3,\"ids\":[1]}\n{\"key\":1,\"ids\":[1]}\n{\"key\":3,\"ids\":[2]}\n",
         ":3: key 3 is given twice, first on line 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse_text(VD_JOB_GENERATES, bad[i].text, bad[i].why);
    refuse_text(VD_JOB_SCORES, "{\"key\":1,\"ids\":[1]}",
                ":1: ids must be a list of 2..65536 tokens");
    refuse_text(VD_JOB_SCORES, "{\"key\":1,\"ids\":[1,2],\"max_tokens\":2}",
                ":1: has a member `max_tokens`, expected `key` and `ids` alone");
}

Test(prompts, a_line_may_have_a_limit_of_its_own) {
    static const char text[] = "{\"max_tokens\": 2, \"key\": 7, \"ids\": [1]}\n"
                               "{\"key\": 8, \"ids\": [1]}";
    prompt_file f;
    cr_assert_eq(read_text(&f, VD_JOB_GENERATES, text, strlen(text)), VD_OK, "%s", f.err.text);
    cr_expect(f.prompts.list[0].max_tokens == 2 && f.prompts.list[1].max_tokens == 5);
    vd_prompts_free(&f.prompts);
}

/* An image needs all of its bytes. A sequence that is classified may be a single token. */
Test(prompts, models_that_tell_classes_have_lines_of_their_own) {
    prompt_file f = {.job = {.task = VD_JOB_SCORES}};
    vd_model *m = &f.job.training.model;
    const char *const text = "{\"key\":1,\"ids\":[255,0,256]}", *const one =
                                                                    "{\"key\":1,\"ids\":[9]}";
    *m = (vd_model){.kind = VD_MODEL_RESNET, .vocab = 10, .image = 32};
    cr_expect_eq(vd_prompts_parse(&f.job, "p", text, strlen(text), &f.prompts, &f.err),
                 VD_ERR_USAGE);
    cr_expect_str_eq(f.err.text, "p:1: ids must be a list of 3072 bytes");
    m->image = 1;
    cr_expect_eq(vd_prompts_parse(&f.job, "p", text, strlen(text), &f.prompts, &f.err),
                 VD_ERR_USAGE);
    cr_expect_str_eq(f.err.text, "p:1: ids[2] must be a whole number 0..255");
    *m = (vd_model){.kind = VD_MODEL_BERT, .task = VD_TASK_CLASSES, .vocab = 10};
    cr_expect_eq(vd_prompts_parse(&f.job, "p", one, strlen(one), &f.prompts, &f.err), VD_OK, "%s",
                 f.err.text);
    vd_prompts_free(&f.prompts);
}

/* The error contains the JSON parser's message. */
Test(prompts, text_that_is_no_json_is_refused_with_its_line) {
    static const char *const bad[] = {"\n",
                                      "{\"key\":1,\"ids\":[1]}\n\n{\"key\":2,\"ids\":[1]}",
                                      "{\"key\":1,\"ids\":[1]} x",
                                      "{\"key\":1,\"key\":2,\"ids\":[1]}",
                                      "{\"key\":1,\"ids\":[1]}\n\x01",
                                      "{\"key\":1,\"ids\":[1]}\r\r\n",
                                      "{\"key\":1,\"ids\":[1]}\n\r\n"};
    static const int line[] = {1, 2, 1, 1, 2, 1, 2};
    for (int i = 0; i < 7; i++) {
        prompt_file f;
        char start[80];
        cr_expect_eq(read_text(&f, VD_JOB_GENERATES, bad[i], strlen(bad[i])), VD_ERR_USAGE,
                     "%s was not refused", bad[i]);
        snprintf(start, sizeof start, "%s:%d: ", f.path, line[i]);
        cr_expect(strncmp(f.err.text, start, strlen(start)) == 0, "%s", f.err.text);
    }
}

Test(prompts, a_line_has_a_limit) {
    const size_t size = VD_PROMPT_LINE_MAX + 1;
    char *text = malloc(size);
    prompt_file f;
    cr_assert(text);
    memset(text, ' ', size);
    cr_expect_eq(read_text(&f, VD_JOB_GENERATES, text, size), VD_ERR_USAGE);
    cr_expect(strstr(f.err.text, ":1: a line must have at most 1048576 bytes, got 1048577"), "%s",
              f.err.text);
    free(text);
}

Test(prompts, another_file_is_refused) {
    prompt_file f;
    const char *text = "{\"key\":1,\"ids\":[1]}";
    cr_assert_eq(read_text(&f, VD_JOB_GENERATES, text, strlen(text)), VD_OK);
    f.job.prompts.sha256[0] ^= 1;
    vd_prompts_free(&f.prompts);
    const int fd = open(f.path, O_CREAT | O_WRONLY, 0600);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) > 0 && close(fd) == 0);
    cr_expect_eq(vd_job_load_prompts(&f.job, &f.prompts, &f.err), VD_ERR_USAGE);
    cr_expect(strstr(f.err.text, "job.yaml: `prompts.sha256` is "), "%s", f.err.text);
    unlink(f.path);
}
