/* config.json of known models: which are accepted, and which field the others are refused for. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "verde/base/base.h"
#include "verde/job/config.h"

#define VECTORS "tests/vectors/configs/configs.txt"

static vd_status read_config(const char *text, vd_model *out, vd_err *err) {
    const vd_config_choice choice = {.dropout = -1, .pad = -1};
    *out = (vd_model){0};
    return vd_config_read(text, strlen(text), "config.json", &choice, out, err);
}

/* A line is "ANSWER NAME JSON", as the README.md beside the file says. */
static void check_line(char *line) {
    char *save = NULL, begins[128];
    const char *answer = strtok_r(line, " ", &save), *name = strtok_r(NULL, " ", &save);
    vd_model model;
    vd_err err = {.text = "accepted"};
    cr_assert(answer && name && *save == '{', "%s: no line of " VECTORS, line);
    const vd_status status = read_config(save, &model, &err);
    if (strcmp(answer, "accepted") == 0) {
        cr_expect(status == VD_OK, "%s: %s", name, err.text);
        return;
    }
    snprintf(begins, sizeof begins, "config.json: %s ", answer);
    cr_expect(status == VD_ERR_USAGE && strncmp(err.text, begins, strlen(begins)) == 0,
              "%s: expected to be refused by %s: %s", name, answer, err.text);
}

Test(config, known_models_are_taken_and_others_refused_by_the_field_that_decides) {
    vd_buf text = {0};
    vd_err err;
    int count = 0;
    cr_assert(vd_read_file(VECTORS, 1 << 20, &text, &err) == VD_OK, "%s", err.text);
    vd_put_u8(&text, 0);
    char *save = NULL;
    for (char *line = strtok_r((char *)text.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save), count++)
        check_line(line);
    cr_expect(count >= 35, "%d models", count);
    vd_buf_free(&text);
}

#define LLAMA                                                                                      \
    "{\"model_type\": \"llama\", \"vocab_size\": 64, \"hidden_size\": 16, "                        \
    "\"intermediate_size\": 24, \"num_hidden_layers\": 2, \"num_attention_heads\": 4"
#define BERT                                                                                       \
    "{\"model_type\": \"bert\", \"vocab_size\": 64, \"hidden_size\": 16, \"intermediate_size\": "  \
    "24, "                                                                                         \
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"max_position_embeddings\": 32"

Test(config, fields_that_are_not_there_have_the_defaults_of_transformers) {
    vd_model m;
    vd_err err;
    cr_assert(read_config(LLAMA "}", &m, &err) == VD_OK, "%s", err.text);
    cr_expect(m.norm_eps == 1e-6f && m.activation == VD_ACTIVATION_SILU && !m.tied);
    cr_assert(read_config(BERT "}", &m, &err) == VD_OK, "%s", err.text);
    cr_expect(m.norm_eps == 1e-12f && m.activation == VD_ACTIVATION_GELU_ERF && m.segments == 2);
}

Test(config, a_field_that_is_null_says_nothing) {
    vd_model with, without;
    vd_err err;
    cr_assert(read_config(LLAMA "}", &without, &err) == VD_OK, "%s", err.text);
    cr_assert(read_config(LLAMA ", \"some_field\": null, \"rms_norm_eps\": null}", &with, &err) ==
                  VD_OK,
              "%s", err.text);
    vd_buf a = {0}, b = {0};
    vd_config_meaning(&with, &a);
    vd_config_meaning(&without, &b);
    cr_expect(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
    vd_buf_free(&a);
    vd_buf_free(&b);
}
