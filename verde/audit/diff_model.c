/* Compares two models: the first tensor and element that differ, and how many do. */
#include <stdlib.h>
#include <string.h>

#include "verde/audit/diff.h"
#include "verde/exec/distance.h"
#include "verde/weights/weights.h"

typedef struct {
    const vd_diff_options *o;
    vd_weights weights[2];
    uint64_t tensors;          /* in both models */
    uint64_t differ;           /* number of these with another form or element */
    uint64_t elements;         /* number that differ */
    uint64_t alone[2];         /* tensors that only this model has */
    const vd_weight *only;     /* the first of these */
    const vd_weight *first[2]; /* the first tensor that differs; NULL: none */
    bool other_form;           /* the first tensor has another type or shape */
    uint64_t first_elements;   /* number that differ in the first tensor, */
    uint64_t element;          /* the first of these, */
    uint64_t distance;         /* and the largest distance */
    bool has_distance;
    bool other_config;
} models;

static size_t element_size(const vd_weight *w) {
    return vd_weight_type_size(w->form.type);
}

/* Returns the tensor's dtype if its elements are numbers of repops, else 0. */
static int32_t dtype_of(const vd_weight *w) {
    return ro_dtype_size(w->shape.dtype) == element_size(w) ? w->shape.dtype : 0;
}

static bool has_type(const vd_weight *w) {
    static const vd_weight_type own[] = {VD_WEIGHT_U8,  VD_WEIGHT_I8,   VD_WEIGHT_U16,
                                         VD_WEIGHT_F16, VD_WEIGHT_BF16, VD_WEIGHT_I32,
                                         VD_WEIGHT_F32};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (w->form.type == own[i])
            return dtype_of(w) != 0;
    return false;
}

/* ---- comparing ---- */

static void see_element(models *m, const vd_weight *a, const vd_weight *b, uint64_t i,
                        uint64_t *count) {
    uint64_t distance;
    m->elements++;
    if ((*count)++ == 0 && m->first[0] == a)
        m->element = i;
    if (m->first[0] != a || !has_type(a) ||
        !vd_element_distance(a->shape.dtype,
                             vd_bits_of_element(a->shape.dtype, a->data, (int64_t)i),
                             vd_bits_of_element(b->shape.dtype, b->data, (int64_t)i), &distance))
        return;
    m->has_distance = true;
    if (distance > m->distance)
        m->distance = distance;
}

static void compare_tensors(models *m, const vd_weight *a, const vd_weight *b) {
    const size_t size = element_size(a);
    const bool same = vd_weight_form_equal(&a->form, &b->form);
    uint64_t count = 0;
    m->tensors++;
    if (same && memcmp(a->data, b->data, a->size) == 0)
        return;
    m->differ++;
    if (!m->first[0]) {
        m->first[0] = a;
        m->first[1] = b;
        m->other_form = !same;
    }
    for (uint64_t i = 0; same && i < a->size / size; i++)
        if (memcmp((const char *)a->data + i * size, (const char *)b->data + i * size, size) != 0)
            see_element(m, a, b, i, &count);
    if (m->first[0] == a)
        m->first_elements = count;
}

static void see_alone(models *m, const vd_weight *w, int side) {
    m->alone[side]++;
    if (!m->only)
        m->only = w;
}

static void compare(models *m) {
    const vd_weights *a = &m->weights[0], *b = &m->weights[1];
    uint32_t i = 0, k = 0;
    while (i < a->count || k < b->count) {
        const int order = i == a->count   ? 1
                          : k == b->count ? -1
                                          : strcmp(a->tensor[i].form.name, b->tensor[k].form.name);
        if (order < 0)
            see_alone(m, &a->tensor[i++], 0);
        else if (order > 0)
            see_alone(m, &b->tensor[k++], 1);
        else
            compare_tensors(m, &a->tensor[i++], &b->tensor[k++]);
        if (i > 0)
            vd_map_pass(a->tensor[i - 1].data, a->tensor[i - 1].size);
        if (k > 0)
            vd_map_pass(b->tensor[k - 1].data, b->tensor[k - 1].size);
    }
    m->other_config =
        a->has_config != b->has_config ||
        (a->has_config && (a->config.size != b->config.size ||
                           memcmp(a->config.data, b->config.data, a->config.size) != 0));
}

static bool is_equal(const models *m) {
    return m->differ == 0 && m->alone[0] == 0 && m->alone[1] == 0 && !m->other_config;
}

/* ---- printing ---- */

static void value_text(const vd_weight *w, uint64_t element, char text[VD_ELEMENT_TEXT]) {
    const size_t size = element_size(w);
    const uint8_t *at = (const uint8_t *)w->data + element * size;
    if (has_type(w)) {
        vd_element_text(w->shape.dtype,
                        vd_bits_of_element(w->shape.dtype, w->data, (int64_t)element), text);
        return;
    }
    snprintf(text, VD_ELEMENT_TEXT, "0x");
    for (size_t i = size; i-- > 0;)
        snprintf(text + strlen(text), VD_ELEMENT_TEXT - strlen(text), "%02x", at[i]);
}

static json_t *first_json(const models *m) {
    char form[2][VD_WEIGHT_FORM_TEXT], value[2][VD_ELEMENT_TEXT];
    for (int side = 0; side < 2; side++)
        vd_weight_form_text(&m->first[side]->form, form[side]);
    json_t *out = json_pack("{ss ss ss}", "tensor", m->first[0]->form.name, "form_a", form[0],
                            "form_b", form[1]);
    if (m->other_form)
        return out;
    for (int side = 0; side < 2; side++)
        value_text(m->first[side], m->element, value[side]);
    json_object_set_new(out, "elements", json_integer((json_int_t)m->first_elements));
    json_object_set_new(out, "element", json_integer((json_int_t)m->element));
    json_object_set_new(out, "value_a", json_string(value[0]));
    json_object_set_new(out, "value_b", json_string(value[1]));
    if (m->has_distance)
        json_object_set_new(out, "largest_distance", json_integer((json_int_t)m->distance));
    return out;
}

static void print_json(const models *m) {
    json_t *out = json_pack("{sb ss sI sI sI sI sI sb}", "equal", is_equal(m), "compared", "models",
                            "tensors", (json_int_t)m->tensors, "differ", (json_int_t)m->differ,
                            "elements", (json_int_t)m->elements, "only_a", (json_int_t)m->alone[0],
                            "only_b", (json_int_t)m->alone[1], "config_differs", m->other_config);
    if (m->first[0])
        json_object_set_new(out, "first", first_json(m));
    vd_result_json(out);
}

static void print_first(vd_buf *out, const models *m) {
    char text[2][VD_WEIGHT_FORM_TEXT];
    for (int side = 0; side < 2; side++)
        vd_weight_form_text(&m->first[side]->form, text[side]);
    vd_printf(out, "tensor       %s, %s\n", m->first[0]->form.name, text[0]);
    if (m->other_form) {
        vd_printf(out, "in b         %s\n", text[1]);
        return;
    }
    vd_printf(out, "elements     %llu of %llu differ\n", (unsigned long long)m->first_elements,
              (unsigned long long)(m->first[0]->size / element_size(m->first[0])));
    vd_printf(out, "element      %llu\n", (unsigned long long)m->element);
    for (int side = 0; side < 2; side++) {
        char value[VD_ELEMENT_TEXT];
        value_text(m->first[side], m->element, value);
        vd_printf(out, "value %c      %s\n", "ab"[side], value);
    }
    if (m->has_distance)
        vd_printf(out, "distance     %llu ULP at most, in this tensor\n",
                  (unsigned long long)m->distance);
}

static void print_text(const models *m) {
    vd_buf told = {0}, *out = &told;
    vd_printf(out, "a            %s\nb            %s\n", m->o->path[0], m->o->path[1]);
    vd_printf(
        out,
        "tensors      %llu in both, of which %llu differ%s; %llu in a alone, %llu in b alone\n",
        (unsigned long long)m->tensors, (unsigned long long)m->differ, m->differ == 1 ? "s" : "",
        (unsigned long long)m->alone[0], (unsigned long long)m->alone[1]);
    if (m->only)
        vd_printf(out, "alone        %s, and so on\n", m->only->form.name);
    if (m->other_config)
        vd_printf(out, "config.json  differs\n");
    if (m->first[0])
        print_first(out, m);
    if (m->differ > 1)
        vd_printf(out, "in all       %llu elements differ\n", (unsigned long long)m->elements);
    if (is_equal(m))
        vd_printf(out, "equal        yes, to the bit\n");
    vd_result_text(out);
}

/* Opens a model that exists. An error in the file is not a mistake in the options. */
static vd_status open_model(const char *path, vd_weights *out, vd_err *err) {
    const vd_status status = vd_weights_open(path, out, err);
    return status == VD_ERR_USAGE ? vd_fail(err, VD_ERR_PEER, "%s", err->text) : status;
}

vd_status vd_diff_models(const vd_diff_options *o, bool *differs, vd_err *err) {
    models m = {.o = o};
    vd_status status = open_model(o->path[0], &m.weights[0], err);
    if (status == VD_OK)
        status = open_model(o->path[1], &m.weights[1], err);
    if (status == VD_OK) {
        compare(&m);
        *differs = !is_equal(&m);
        if (o->common.json)
            print_json(&m);
        else
            print_text(&m);
    }
    vd_weights_close(&m.weights[0]);
    vd_weights_close(&m.weights[1]);
    return status;
}
