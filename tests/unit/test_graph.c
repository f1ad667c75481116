/* Programs: canonical bytes, validation, dumps, and the tree of sums over micro-batches. */
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_optimizer.h"
#include "repops/op_product.h"
#include "models/models.h"
#include "verde/exec/exec.h"
#include "verde/graph/build.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- two small programs ---- */

static vd_training recipe(vd_model_kind kind, int64_t micro_batches) {
    return (vd_training){
        .model = {kind, .vocab = 11, .context = 9, .layers = 1, .heads = 2, .channels = 6,
                  .hidden = 5, .dropout = 0.1f},
        .optimizer = {.lr = 1e-3f,
                      .min_lr = 1e-4f,
                      .beta1 = 0.9f,
                      .beta2 = 0.999f,
                      .eps = 1e-8f,
                      .weight_decay = 0.1f,
                      .clip_norm = 1.0f,
                      .schedule = RO_LR_COSINE,
                      .warmup = 2},
        .seed = 7,
        .batch = 60,
        .micro_batches = micro_batches,
        .sequence = 8,
        .steps = 10,
        .checkpoint_interval = 3,
        .data_dtype = RO_U8,
        .data_count = 1000,
        .data_root = {1, 2, 3},
    };
}

static vd_program program_of(vd_model_kind kind, int64_t micro_batches) {
    vd_program program;
    vd_err err;
    const vd_training training = recipe(kind, micro_batches);
    cr_assert(vd_training_program(&training, &program, &err) == VD_OK, "%s", err.text);
    return program;
}

static vd_buf bytes_of(const vd_program *program) {
    vd_buf out = {0};
    vd_program_encode(program, &out);
    cr_assert(vd_buf_ok(&out));
    return out;
}

static const vd_model_kind kinds[] = {VD_MODEL_MLP, VD_MODEL_GPT2};

/* ---- canonical bytes ---- */

static void expect_round_trip(const vd_program *program) {
    vd_program again;
    vd_err err;
    vd_hash before, after;
    vd_buf first = bytes_of(program);
    cr_assert(vd_program_decode(first.data, first.size, &again, &err) == VD_OK, "%s", err.text);
    vd_buf second = bytes_of(&again);
    cr_expect(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    cr_assert(vd_program_hash(program, &before, &err) == VD_OK);
    cr_assert(vd_program_hash(&again, &after, &err) == VD_OK);
    cr_expect(vd_hash_equal(&before, &after));
    vd_buf_free(&first);
    vd_buf_free(&second);
    vd_program_free(&again);
}

Test(encoding, programs_come_back_with_the_same_bytes_and_hash) {
    for (int k = 0; k < 2; k++) {
        vd_program program = program_of(kinds[k], 2);
        expect_round_trip(&program);
        vd_program_free(&program);
    }
}

/* Programs converted from other people's models have names as long as these. */
Test(encoding, names_of_255_bytes_come_back) {
    vd_program program = program_of(kinds[0], 2);
    char name[VD_NAME_SIZE] = {0};
    memset(name, 'n', VD_NAME_SIZE - 1);
    for (uint32_t i = 0; i < program.step.stored_count; i += 3)
        cr_assert(vd_store_name(&program.step, &program.step.stored[i], name, strlen(name)));
    memcpy(program.leaf[0].name, name, sizeof name);
    memcpy(program.data[0].tensor.name, name, sizeof name);
    expect_round_trip(&program);
    cr_expect(strcmp(vd_node_name(&program.step, 0).text, name) == 0);
    vd_program_free(&program);
}

Test(encoding, every_field_of_a_recipe_that_matters_gives_another_hash) {
    vd_training other[8];
    for (int i = 0; i < 8; i++)
        other[i] = recipe(VD_MODEL_GPT2, 2);
    other[1].seed++;
    other[2].optimizer.beta1 = 0.8f;
    other[3].model.dropout = 0;
    other[4].checkpoint_interval = 2;
    other[5].data_root[31] = 1;
    other[6].micro_batches = 4;
    other[7].data_dtype = RO_U16;
    vd_hash hash[8];
    for (int i = 0; i < 8; i++) {
        vd_program program;
        vd_err err;
        cr_assert(vd_training_program(&other[i], &program, &err) == VD_OK, "%s", err.text);
        cr_assert(vd_program_hash(&program, &hash[i], &err) == VD_OK);
        vd_program_free(&program);
        for (int k = 0; k < i; k++)
            cr_expect(!vd_hash_equal(&hash[i], &hash[k]), "recipes %d and %d", i, k);
    }
}

static void expect_refused(const uint8_t *bytes, size_t size) {
    vd_program program;
    vd_err err;
    const vd_status status = vd_program_decode(bytes, size, &program, &err);
    cr_assert(status == VD_ERR_PEER || status == VD_ERR_VERSION, "%zu bytes", size);
    cr_assert(program.leaf == NULL && program.step.stored == NULL, "a refused program is empty");
    cr_assert(strlen(err.text) > 10);
}

/* The copy is exactly as long as the bytes to read, so that sanitizers see a read beyond it. */
Test(encoding, every_truncation_is_refused) {
    for (int k = 0; k < 2; k++) {
        vd_program program = program_of(kinds[k], 1);
        vd_buf whole = bytes_of(&program);
        for (size_t size = 0; size < whole.size; size++) {
            uint8_t *part = malloc(size ? size : 1);
            memcpy(part, whole.data, size);
            expect_refused(part, size);
            free(part);
        }
        vd_buf_free(&whole);
        vd_program_free(&program);
    }
}

Test(encoding, bytes_after_the_end_are_refused) {
    vd_program program = program_of(VD_MODEL_MLP, 1);
    vd_buf bytes = bytes_of(&program);
    vd_put_u8(&bytes, 0);
    expect_refused(bytes.data, bytes.size);
    vd_buf_free(&bytes);
    vd_program_free(&program);
}

static void dump(const vd_program *program) {
    vd_buf out = {0};
    vd_graph_text(program, &program->init, &out);
    vd_graph_dot(program, &program->step, &out);
    cr_assert(vd_buf_ok(&out));
    vd_buf_free(&out);
}

/* Returns whether the changed bytes are a program. If so, it must encode to the same bytes. */
static bool mutate(vd_buf *bytes, size_t at, uint8_t change) {
    vd_program program;
    vd_err err;
    bytes->data[at] ^= change;
    const vd_status status = vd_program_decode(bytes->data, bytes->size, &program, &err);
    if (status == VD_OK) {
        vd_buf again = bytes_of(&program);
        cr_assert(again.size == bytes->size && memcmp(again.data, bytes->data, again.size) == 0,
                  "byte %zu ^ %02x decodes, to another encoding", at, change);
        vd_buf_free(&again);
        if (at % 64 == 0)
            dump(&program);
        vd_program_free(&program);
    }
    cr_assert(status == VD_OK || status == VD_ERR_PEER || status == VD_ERR_VERSION,
              "byte %zu ^ %02x: %s", at, change, err.text);
    bytes->data[at] ^= change;
    return status == VD_OK;
}

Test(encoding, a_changed_byte_is_refused_or_another_program) {
    const uint8_t changes[] = {0x01, 0x02, 0x10, 0x80, 0xff};
    for (int k = 0; k < 2; k++) {
        vd_program program = program_of(kinds[k], 1);
        vd_buf bytes = bytes_of(&program);
        size_t accepted = 0, tried = 0;
        const size_t stride = kinds[k] == VD_MODEL_GPT2 ? 3 : 1;
        for (size_t at = 0; at < bytes.size; at += stride, tried++)
            accepted += mutate(&bytes, at, changes[at % sizeof changes]);
        cr_expect(accepted > tried / 10 && accepted < tried, "%zu of %zu", accepted, tried);
        vd_buf_free(&bytes);
        vd_program_free(&program);
    }
}

Test(encoding, sizes_beyond_the_limit_are_refused_unread) {
    expect_refused(NULL, (size_t)VD_PROGRAM_BYTES_MAX + 1);
}

/* ---- validation ---- */

static uint32_t index_of(const vd_program *p, const char *name) {
    for (uint32_t i = 0; i < p->step.node_count; i++)
        if (strcmp(vd_node_name(&p->step, i).text, name) == 0)
            return i;
    cr_assert_fail("no node %s", name);
    return 0;
}

/* Finds a node of a program without repeats. */
static vd_node *node_of(vd_program *p, const char *name) {
    cr_assert(p->step.repeat_count == 0);
    return &p->step.stored[index_of(p, name)];
}

static uint32_t *edge_of(vd_program *p, const char *name) {
    return &p->step.stored_edge[node_of(p, name)->first_input];
}

static uint32_t value_of(vd_program *p, const char *name) {
    return vd_source_count(p, &p->step) + (uint32_t)(node_of(p, name) - p->step.stored);
}

#define RELU "m0.layer.0.relu"

static void own_output(vd_program *p) {
    *edge_of(p, RELU) = value_of(p, RELU);
}
static void later_value(vd_program *p) {
    *edge_of(p, RELU) = value_of(p, RELU) + 1;
}
static void no_value(vd_program *p) {
    *edge_of(p, RELU) = UINT32_MAX;
}
static void edges_outside(vd_program *p) {
    node_of(p, RELU)->first_input = p->step.edge_count;
}
static void edges_wrap(vd_program *p) {
    node_of(p, RELU)->first_input = UINT32_MAX;
}
static void inputs_negative(vd_program *p) {
    node_of(p, RELU)->input_count = -1;
}
static void inputs_many(vd_program *p) {
    node_of(p, RELU)->input_count = RO_MAX_INPUTS + 1;
}
static void inputs_missing(vd_program *p) {
    node_of(p, RELU)->input_count = 0;
}
static void operator_unknown(vd_program *p) {
    node_of(p, RELU)->op = RO_OP_END;
}
static void operator_negative(vd_program *p) {
    node_of(p, RELU)->op = -1;
}
static void shape_wrong(vd_program *p) {
    node_of(p, RELU)->shape.dim[0]++;
}
static void shape_missing(vd_program *p) {
    node_of(p, RELU)->shape = (ro_shape){0};
}
static void shape_type(vd_program *p) {
    node_of(p, RELU)->shape.dtype = RO_I32;
}
static void shape_type_unknown(vd_program *p) {
    node_of(p, RELU)->shape.dtype = 8;
}
static void shape_type_experimental(vd_program *p) {
    node_of(p, RELU)->shape.dtype = RO_DTYPE_EXPERIMENTAL;
}
static void leaf_type(vd_program *p) {
    p->leaf[1].shape.dtype = 255;
}
static void attr_bad(vd_program *p) {
    node_of(p, "m0.layer.0.matmul")->attr[RO_MATMUL_CHUNK] = 100;
}
static void attr_unused(vd_program *p) {
    node_of(p, RELU)->attr[0] = 1;
}
static void attr_last_unused(vd_program *p) {
    node_of(p, RELU)->attr[RO_MAX_ATTRS - 1] = 1;
}
static void name_node(vd_program *p, uint32_t stored, const char *name) {
    cr_assert(vd_store_name(&p->step, &p->step.stored[stored], name, strlen(name)));
}
static void name_endless(vd_program *p) {
    char name[VD_NAME_SIZE + 1] = {0};
    memset(name, 'x', VD_NAME_SIZE);
    name_node(p, index_of(p, RELU), name);
}
static void name_with_escape(vd_program *p) {
    name_node(p, index_of(p, RELU), "m0\033");
}
static void name_with_high_bit(vd_program *p) {
    name_node(p, index_of(p, RELU), "m0\xc3");
}
static void leaf_name_endless(vd_program *p) {
    memset(p->leaf[1].name, 'x', VD_NAME_SIZE);
}
static void leaf_names_twice(vd_program *p) {
    memcpy(p->leaf[p->leaf_count - 1].name, p->leaf[0].name, VD_NAME_SIZE);
}
static void data_name_with_newline(vd_program *p) {
    p->data[0].tensor.name[0] = '\n';
}
static void no_steps(vd_program *p) {
    p->steps = 0;
}
static void many_steps(vd_program *p) {
    p->steps = INT64_C(1) << 31;
}
static void no_interval(vd_program *p) {
    p->checkpoint_interval = 0;
}
static void interval_long(vd_program *p) {
    p->checkpoint_interval = p->steps + 1;
}
static void no_leaves(vd_program *p) {
    p->leaf_count = 0;
}
static void many_leaves(vd_program *p) {
    p->leaf_count = VD_LEAVES_MAX + 1;
}
static void many_data(vd_program *p) {
    p->data_count = VD_DATA_MAX + 1;
}
static void many_nodes(vd_program *p) {
    p->step.stored_count = VD_NODES_MAX + 1;
}
static void no_nodes(vd_program *p) {
    p->init.node_count = p->init.stored_count = 0;
}
static void leaf_empty(vd_program *p) {
    p->leaf[1].shape.dim[0] = 0;
}
static void leaf_huge(vd_program *p) {
    p->leaf[1].shape.dim[0] = INT64_MAX;
}
static void data_type(vd_program *p) {
    p->data[0].tensor.shape.dtype = 0;
}
static void data_empty(vd_program *p) {
    p->data[0].tensor.shape.dim[0] = 0;
}
/* The library accepts an empty tensor; a program must not have one. */
static void node_empty(vd_program *p) {
    uint32_t i = 0;
    while (vd_node_stored(&p->init, i)->op != RO_OP_FILL)
        i++;
    p->init.stored[i].shape.dim[0] = 0;
}
static void output_source(vd_program *p) {
    p->step.output[0] = 0;
}
static void output_outside(vd_program *p) {
    p->step.output[0] = UINT32_MAX;
}
static void output_shape(vd_program *p) {
    p->step.output[0] = p->step.output[1];
}
static void init_output_outside(vd_program *p) {
    p->init.output[0] = 1000;
}
static void loss_outside(vd_program *p) {
    p->step.loss = UINT32_MAX - 1;
}
static void loss_vector(vd_program *p) {
    p->step.loss = value_of(p, RELU);
}
static void loss_integer(vd_program *p) {
    p->step.loss = vd_source_count(p, &p->step) - 1;
}
static void loss_data(vd_program *p) {
    p->step.loss = p->leaf_count;
}

Test(validation, refusals_say_what_was_wrong) {
    const struct {
        void (*spoil)(vd_program *p);
        const char *why;
    } table[] = {
        {own_output, "not an earlier value"},
        {later_value, "not an earlier value"},
        {no_value, "not an earlier value"},
        {edges_outside, "no such operator or inputs"},
        {edges_wrap, "no such operator or inputs"},
        {inputs_negative, "no such operator or inputs"},
        {inputs_many, "no such operator or inputs"},
        {inputs_missing, "takes 1..1 inputs"},
        {operator_unknown, "no such operator or inputs"},
        {operator_negative, "no such operator or inputs"},
        {shape_wrong, "another shape"},
        {shape_missing, "no output shape"},
        {shape_type, "another shape"},
        {shape_type_unknown, "node 5 (" RELU "): element type 8 is not known to this version"},
        {shape_type_experimental, "element type 128 is experimental (128 to 255): no program may"},
        {attr_bad, "chunk must be"},
        {attr_unused, "unused attribute 0"},
        {attr_last_unused, "unused attribute 15"},
        {name_endless, "name is not printable"},
        {name_with_escape, "name is not printable"},
        {name_with_high_bit, "name is not printable"},
        {leaf_name_endless, "state leaf 1"},
        {leaf_names_twice, "two state leaves have the name `embedding`"},
        {data_name_with_newline, "data tensor 0"},
        {no_steps, "steps 0"},
        {many_steps, "steps 2147483648"},
        {no_interval, "checkpoint interval 0"},
        {interval_long, "checkpoint interval 11"},
        {no_leaves, "0 state leaves"},
        {many_leaves, "262145 state leaves, expected 1 to 262144"},
        {many_data, "131073 data tensors, expected at most 131072"},
        {many_nodes, "1048577 nodes"},
        {no_nodes, "init graph: 0 nodes"},
        {leaf_empty, "state leaf 1"},
        {leaf_huge, "state leaf 1"},
        {data_type, "data tensor 0 (tokens): there is no element type 0"},
        {leaf_type, "state leaf 1 (layer.0.weight): element type 255 is experimental"},
        {data_empty, "data tensor 0"},
        {node_empty, "its output has no elements"},
        {output_source, "state leaf 0"},
        {output_outside, "state leaf 0"},
        {output_shape, "state leaf 0"},
        {init_output_outside, "init graph: state leaf 0"},
        {loss_outside, "loss is not a value"},
        {loss_vector, "loss is not a value"},
        {loss_integer, "loss is not a value"},
        {loss_data, "loss is not a value"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        vd_program program = program_of(VD_MODEL_MLP, 1), spoilt = program;
        vd_err err = {.text = "accepted"};
        table[i].spoil(&spoilt);
        /* The copy shares its arrays with the program, which frees them. */
        const bool later = strstr(table[i].why, "not known to this version") != NULL;
        cr_expect(vd_program_validate(&spoilt, &err) == (later ? VD_ERR_VERSION : VD_ERR_PEER),
                  "row %zu", i);
        cr_expect(strstr(err.text, table[i].why), "row %zu: \"%s\" lacks \"%s\"", i, err.text,
                  table[i].why);
        vd_program_free(&program);
    }
}

Test(validation, a_graph_without_loss_is_valid) {
    vd_program program = program_of(VD_MODEL_MLP, 1);
    vd_err err;
    program.step.loss = UINT32_MAX;
    cr_expect(vd_program_validate(&program, &err) == VD_OK, "%s", err.text);
    vd_program_free(&program);
}

/* ---- recipes that give no graph ---- */

Test(models, combinations_without_a_graph_are_refused) {
    vd_training bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = recipe(VD_MODEL_GPT2, 1);
    bad[0].model.heads = 4;
    bad[1].sequence = bad[1].model.context + 1;
    bad[2].model.layers = 86;
    bad[3].micro_batches = 7;
    bad[4].data_count = bad[4].sequence;
    bad[5].model.kind = 9;
    const char *const why[] = {"heads must divide",      "sequence must be at most",
                               "layers must be at most", "micro_batches must divide",
                               "data must hold",         "no model of kind 9"};
    for (int i = 0; i < 6; i++) {
        vd_program program;
        vd_err err = {.text = "accepted"};
        cr_expect(vd_training_program(&bad[i], &program, &err) == VD_ERR_USAGE, "recipe %d", i);
        cr_expect(strstr(err.text, why[i]), "%s", err.text);
    }
}

/* The step has few stored nodes, but they stand for too many. */
Test(models, micro_batches_that_need_too_many_nodes_are_refused_by_name) {
    vd_training t = recipe(VD_MODEL_GPT2, 65536);
    vd_program program;
    vd_err err = {.text = "accepted"};
    t.model.layers = 85;
    t.batch = 65536;
    cr_expect(vd_training_program(&t, &program, &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, "micro_batches must be at most"), "%s", err.text);
    cr_expect(strstr(err.text, "got 65536"), "%s", err.text);
    cr_expect(program.step.stored == NULL);
}

Test(models, more_nodes_than_a_graph_may_have_are_an_error_when_they_are_added) {
    vd_program p = {0};
    vd_builder b = vd_builder_of(&p, &p.step);
    const ro_shape one = VD_SHAPE(RO_F32, 1);
    const vd_op fill = {.op = RO_OP_FILL, .shape = &one};
    vd_emit(&b, "first", fill, 0, NULL);
    p.step.stored_count = VD_NODES_MAX; /* as if so many had been added */
    vd_emit(&b, "last", fill, 0, NULL);
    cr_expect(b.status == VD_ERR_USAGE && strstr(b.err.text, "at most 1048576 nodes"), "%s",
              b.err.text);
    vd_builder_free(&b);
    vd_program_free(&p);
}

Test(models, parameters_of_gpt2_124m) {
    const vd_model model = {VD_MODEL_GPT2, .vocab = 50257, .context = 1024,
                            .layers = 12,  .heads = 12,    .channels = 768};
    cr_expect(vd_model_parameters(&model) == 124439808);
}

/* ---- dumps ---- */

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

static char *text_of(const vd_program *program, const vd_graph *graph,
                     void (*print)(const vd_program *, const vd_graph *, vd_buf *)) {
    vd_buf out = {0};
    print(program, graph, &out);
    vd_put_u8(&out, 0);
    cr_assert(vd_buf_ok(&out));
    return (char *)out.data;
}

Test(dumps, text_has_a_line_for_each_node_and_leaf) {
    for (int k = 0; k < 2; k++) {
        vd_program program = program_of(kinds[k], 2);
        char *text = text_of(&program, &program.step, vd_graph_text);
        cr_expect(count_of(text, "\n") == program.step.node_count + program.leaf_count);
        for (uint32_t i = 0; i < program.step.node_count; i++)
            cr_expect(strstr(text, vd_node_name(&program.step, i).text), "%s",
                      vd_node_name(&program.step, i).text);
        cr_expect(strstr(text, "state:adamw.c2 <- %"));
        cr_expect(strstr(text, "read_batch(data:tokens, step; seed=7, stream=0, batch=60, "
                               "first=30, shift=1) -> i32[30,8]"));
        free(text);
        vd_program_free(&program);
    }
}

/* Checks that strings end, brackets and braces close, and each statement ends with a semicolon or
 * opens a brace. */
static void expect_dot_syntax(const char *text) {
    bool quoted = false;
    int depth = 0, bracket = 0;
    char last = 0;
    for (const char *at = text; *at; at++) {
        if (quoted && *at == '\\')
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted) {
            depth += (*at == '{') - (*at == '}');
            bracket += (*at == '[') - (*at == ']');
        }
        cr_assert(depth >= 0 && bracket >= 0 && bracket <= 1);
        cr_assert(*at != '\n' || (!quoted && strchr(";{}", last)), "a line ends in %c", last);
        last = *at;
    }
    cr_expect(!quoted && depth == 0 && bracket == 0);
}

Test(dumps, dot_has_each_node_and_edge_and_is_balanced) {
    for (int k = 0; k < 2; k++) {
        vd_program program = program_of(kinds[k], 2);
        char *text = text_of(&program, &program.step, vd_graph_dot);
        expect_dot_syntax(text);
        cr_expect(strncmp(text, "digraph verde {\n", 16) == 0);
        cr_expect(count_of(text, "[label=") == program.step.node_count);
        uint32_t edges = 0;
        for (uint32_t i = 0; i < program.step.node_count; i++)
            edges += (uint32_t)vd_node_stored(&program.step, i)->input_count;
        cr_expect(count_of(text, " -> ") == edges + program.leaf_count);
        for (uint32_t i = 0; i < program.step.node_count; i++)
            cr_expect(strstr(text, vd_node_name(&program.step, i).text), "%s",
                      vd_node_name(&program.step, i).text);
        free(text);
        vd_program_free(&program);
    }
}

Test(dumps, names_with_quotes_and_backslashes_stay_inside_their_string) {
    vd_program program = program_of(VD_MODEL_MLP, 1);
    vd_err err;
    name_node(&program, 0, "\"];} evil \\");
    snprintf(program.leaf[0].name, VD_NAME_SIZE, "\\\"");
    cr_assert(vd_program_validate(&program, &err) == VD_OK, "%s", err.text);
    char *text = text_of(&program, &program.step, vd_graph_dot);
    expect_dot_syntax(text);
    free(text);
    vd_program_free(&program);
}

/* ---- the tree over micro-batches ---- */

/* Prints a value such as "(m0 m1)": sums as pairs, anything else as the micro-batch it belongs
 * to. */
static void print_tree(vd_program *p, uint32_t value, char *text, size_t size) {
    const uint32_t node = value - vd_source_count(p, &p->step);
    const vd_name name = vd_node_name(&p->step, node);
    size_t at = strlen(text);
    if (strncmp(name.text, "sum.", 4) != 0) {
        snprintf(text + at, size - at, "%.*s", (int)strcspn(name.text, "."), name.text);
        return;
    }
    cr_assert(vd_node_stored(&p->step, node)->op == RO_OP_ADD);
    strncat(text, "(", size - at - 1);
    print_tree(p, vd_node_input(&p->step, node, 0), text, size);
    strncat(text, " ", size - strlen(text) - 1);
    print_tree(p, vd_node_input(&p->step, node, 1), text, size);
    strncat(text, ")", size - strlen(text) - 1);
}

Test(micro_batches, sums_form_the_tree_that_splits_at_powers_of_two) {
    const char *const want[] = {
        "m0",
        "(m0 m1)",
        "((m0 m1) m2)",
        "((m0 m1) (m2 m3))",
        "(((m0 m1) (m2 m3)) m4)",
        "(((m0 m1) (m2 m3)) (m4 m5))",
    };
    for (int64_t micro = 1; micro <= 6; micro++) {
        vd_program program = program_of(VD_MODEL_MLP, micro);
        int sums = 0;
        for (uint32_t i = 0; i < program.step.node_count; i++) {
            const vd_node *n = vd_node_stored(&program.step, i);
            bool loss = strcmp(vd_node_name(&program.step, i).text, "mean.loss") == 0;
            if (!loss && n->op != RO_OP_ADAMW_M)
                continue;
            char text[100] = "";
            print_tree(&program, vd_node_input(&program.step, i, !loss), text, sizeof text);
            cr_expect_str_eq(text, want[micro - 1], "%s: %s", vd_node_name(&program.step, i).text,
                             text);
            cr_expect(!loss || n->attr[RO_DIV_CONST_DIVISOR] == ro_attr_f32(60 * 8),
                      "%s: the number of tokens", vd_node_name(&program.step, i).text);
            sums++;
        }
        cr_expect(sums == 1 + 5, "loss and 5 parameters");
        vd_program_free(&program);
    }
}

Test(micro_batches, each_reads_its_own_rows) {
    vd_program program = program_of(VD_MODEL_GPT2, 5);
    for (int64_t micro = 0; micro < 5; micro++) {
        static const char *const part[] = {"tokens", "targets"};
        for (int shift = 0; shift < 2; shift++) {
            char name[VD_NAME_SIZE];
            snprintf(name, sizeof name, "m%lld.batch.%s", (long long)micro, part[shift]);
            const uint32_t i = index_of(&program, name);
            const vd_node *n = vd_node_stored(&program.step, i);
            cr_expect(vd_node_attr(&program.step, i, RO_READ_BATCH_BATCH) == 60 &&
                      vd_node_attr(&program.step, i, RO_READ_BATCH_FIRST) == 12 * micro &&
                      vd_node_attr(&program.step, i, RO_READ_BATCH_SHIFT) == shift);
            cr_expect(n->shape.dim[0] == 12 && n->shape.dim[1] == 8);
        }
    }
    vd_program_free(&program);
}

/* Two nodes that draw from the same stream in one step would drop the same units. */
Test(micro_batches, no_two_sites_share_a_stream_of_random_numbers) {
    vd_program program = program_of(VD_MODEL_GPT2, 2);
    enum { SITES = 2 * 4 };
    int64_t stream[100];
    int count = 0, uses = 0;
    for (uint32_t i = 0; i < program.step.node_count; i++) {
        const vd_node *n = vd_node_stored(&program.step, i);
        if (n->op != RO_OP_DROPOUT)
            continue;
        const int64_t its = vd_node_attr(&program.step, i, RO_RANDOM_STREAM);
        int k = 0;
        while (k < count && stream[k] != its)
            k++;
        if (k == count)
            stream[count++] = its;
        uses++;
    }
    cr_expect(count == SITES, "%d streams", count);
    cr_expect(uses == 2 * SITES + 2, "%d uses: forward, backward, and twice in backward attention",
              uses);
    vd_program_free(&program);
}

/* ---- leaves of a run ---- */

Test(runs, leaves_are_the_checkpoints_and_the_end) {
    const struct {
        int64_t steps, interval;
        uint64_t leaves;
    } table[] = {
        {10, 3, 5}, {10, 10, 2}, {10, 5, 3}, {1, 1, 2}, {INT32_MAX, 1, (uint64_t)INT32_MAX + 1}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const vd_program p = {.steps = table[i].steps, .checkpoint_interval = table[i].interval};
        cr_expect(vd_run_leaves(&p) == table[i].leaves);
        cr_expect(vd_run_leaf_step(&p, 0) == 0);
        cr_expect(vd_run_leaf_step(&p, 1) == table[i].interval);
        cr_expect(vd_run_leaf_step(&p, table[i].leaves - 1) == table[i].steps);
    }
}
