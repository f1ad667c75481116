/* Finds which nodes of two programs correspond, and what is reported about them. */
#include <string.h>

#include "small_models.h"
#include "verde/graph/compare.h"

typedef struct {
    char text[4096];
    uint32_t count;
} told;

static void tell(void *user, const vd_program_difference *d) {
    told *t = user;
    const size_t at = strlen(t->text);
    t->count++;
    snprintf(t->text + at, sizeof t->text - at, "%s|%s|%s|%s|%s\n", d->where, d->name, d->what,
             d->text[0] ? d->text[0] : "-", d->text[1] ? d->text[1] : "-");
}

static told compare(const vd_program *a, const vd_program *b) {
    vd_alignment pairs;
    told t = {{0}, 0};
    vd_err err = {0};
    cr_assert(vd_align(a, b, false, &pairs, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_program_compare(a, b, &pairs, tell, &t, &err) == VD_OK, "%s", err.text);
    vd_alignment_free(&pairs);
    return t;
}

static vd_program of(const vd_training *t) {
    vd_program program;
    vd_err err = {0};
    cr_assert(vd_training_program(t, &program, &err) == VD_OK, "%s", err.text);
    return program;
}

Test(align, a_program_has_no_difference_from_itself) {
    for (int kind = 0; kind < KINDS; kind++) {
        vd_program a = program_of(kinds[kind], 3), b = program_of(kinds[kind], 3);
        const told t = compare(&a, &b);
        cr_expect_eq(t.count, 0, "%s", t.text);
        vd_program_free(&a);
        vd_program_free(&b);
    }
}

Test(align, an_attribute_is_named) {
    vd_training t = recipe(VD_MODEL_GPT2, 1);
    vd_program a = of(&t);
    t.optimizer.lr *= 2;
    vd_program b = of(&t);
    const told found = compare(&a, &b);
    cr_expect_eq(found.count, 1, "%s", found.text);
    cr_expect(strstr(found.text, "step|adamw.learning_rate|attribute base|0.00100000005|0.002"),
              "%s", found.text);
    vd_program_free(&a);
    vd_program_free(&b);
}

Test(align, steps_and_data_are_named) {
    vd_training t = recipe(VD_MODEL_MLP, 1);
    vd_program a = of(&t);
    t.steps = 3;
    t.data_root[0] ^= 1;
    vd_program b = of(&t);
    const told found = compare(&a, &b);
    cr_expect(strstr(found.text, "program||steps|2|3\n"), "%s", found.text);
    cr_expect(strstr(found.text, "|contents|0102"), "%s", found.text);
    vd_program_free(&a);
    vd_program_free(&b);
}

/* Each node of the smaller model has a partner in a model with one more layer. */
Test(align, nodes_of_one_side_alone_are_told_as_such) {
    vd_training t = recipe(VD_MODEL_GPT2, 1);
    vd_alignment pairs;
    vd_program a = of(&t);
    t.model.layers++;
    vd_program b = of(&t);
    uint32_t alone = 0;
    cr_assert(vd_align(&a, &b, false, &pairs, NULL) == VD_OK);
    for (uint32_t i = 0; i < a.leaf_count; i++)
        cr_expect_neq(pairs.leaf.of[0][i], VD_UNPAIRED, "%s", a.leaf[i].name);
    for (uint32_t i = 0; i < pairs.step.count[1]; i++) {
        const uint32_t k = pairs.step.of[1][i];
        alone += k == VD_UNPAIRED;
        cr_expect(k == VD_UNPAIRED || pairs.step.of[0][k] == i, "partners of each other");
    }
    cr_expect_geq(alone, b.step.node_count - a.step.node_count);
    cr_expect_lt(alone, b.step.node_count / 2);
    vd_alignment_free(&pairs);
    vd_program_free(&a);
    vd_program_free(&b);
}

/* A renamed node is matched like its neighbours. */
Test(align, renamed_nodes_have_partners) {
    vd_program a = program_of(VD_MODEL_GPT2, 1), b = program_of(VD_MODEL_GPT2, 1);
    const uint32_t node = b.step.node_count / 2;
    vd_alignment pairs;
    cr_assert(vd_graph_unroll(&b.step, NULL) == VD_OK);
    cr_assert(vd_store_name(&b.step, &b.step.stored[node], "another", 7));
    cr_assert(vd_align(&a, &b, false, &pairs, NULL) == VD_OK);
    cr_expect_eq(pairs.step.of[0][node], node);
    vd_alignment_free(&pairs);
    const told found = compare(&a, &b);
    cr_expect_eq(found.count, 1, "%s", found.text);
    cr_expect(strstr(found.text, "|name|") && strstr(found.text, "|another\n"), "%s", found.text);
    vd_program_free(&a);
    vd_program_free(&b);
}
