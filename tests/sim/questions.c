#include "tests/sim/questions.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/toy.h"

static json_t *question_of(const vd_buf *request) {
    vd_buf payload = {0};
    json_t *both = json_loadb((const char *)request->data, request->size, 0, NULL);
    const char *text =
        json_string_value(json_object_get(json_object_get(both, "question"), "payload"));
    sim_need(text && vd_unbase64(text, strlen(text), &payload, NULL) == VD_OK, "no question");
    json_t *question = json_loadb((const char *)payload.data, payload.size, 0, NULL);
    sim_need(question != NULL, "a question is no JSON");
    vd_buf_free(&payload);
    json_decref(both);
    return question;
}

static long long member(const json_t *object, const char *name) {
    return (long long)json_integer_value(json_object_get(object, name));
}

void sim_question_text(const vd_buf *request, char *text, size_t size) {
    json_t *question = question_of(request);
    const json_t *tree = json_object_get(question, "tree");
    const char *ask = json_string_value(json_object_get(question, "ask"));
    const char *of = json_string_value(json_object_get(tree, "of"));
    if (!of)
        snprintf(text, size, "%s", ask);
    else if (strcmp(of, "subrun") == 0)
        snprintf(text, size, "%s states %lld..%lld", ask, member(tree, "from"), member(tree, "to"));
    else if (strcmp(of, "tensor") == 0)
        snprintf(text, size, "%s tensor %lld of step %lld", ask, member(tree, "value"),
                 member(tree, "step"));
    else if (strcmp(of, "run") == 0)
        snprintf(text, size, "%s run", ask);
    else
        snprintf(text, size, "%s %s of step %lld", ask, of, member(tree, "step"));
    json_decref(question);
}

/* ---- answered requests ---- */

static uint64_t name_of(uint32_t provider, const vd_hash *request) {
    uint64_t name;
    memcpy(&name, request->b, sizeof name);
    name ^= provider * UINT64_C(0x9e3779b97f4a7c15);
    return name ? name : 1;
}

/* Returns the index of a name, or where it would be inserted. */
static size_t place_of(const sim_names *names, uint64_t name) {
    size_t at = name % SIM_NAMES;
    for (size_t i = 0; i < SIM_NAMES; i++, at = (at + 1) % SIM_NAMES)
        if (names->name[at] == name || names->name[at] == 0)
            return at;
    sim_need(false, "more answers than there is room for");
    return 0;
}

bool sim_names_has(const sim_names *names, uint32_t provider, const vd_hash *request) {
    const uint64_t name = name_of(provider, request);
    return names->name[place_of(names, name)] == name;
}

void sim_names_add(sim_names *names, uint32_t provider, const vd_hash *request) {
    const uint64_t name = name_of(provider, request);
    names->name[place_of(names, name)] = name;
}
