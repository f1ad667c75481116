#include "repops/tools/golden.h"

#include <stdio.h>

int golden_parse(const char *line, golden_case *out) {
    *out = (golden_case){.hash = "-"};
    return sscanf(line, "%31s %39s %159s %39s %119s %lld %11s %64s", out->op, out->name,
                  out->inputs, out->output, out->attrs, &out->ids, out->class, out->hash) >= 7;
}

/* Parses a shape: "f2x3" is f32 [2, 3]. Returns the rest of the text, or NULL. */
static const char *parse_shape(const char *text, ro_shape *shape) {
    const char *types = "?fibhwec"; /* a letter's index is its ro_dtype */
    const char *type = strchr(types, *text);
    char *at = (char *)text;
    if (!type || type == types || *type == '\0')
        return NULL;
    *shape = (ro_shape){.dtype = (int32_t)(type - types)};
    do {
        if (shape->ndim == RO_MAX_DIMS)
            return NULL;
        shape->dim[shape->ndim++] = strtoll(at + 1, &at, 10);
    } while (*at == 'x');
    return at;
}

static int parse_inputs(const char *text, op_case *c) {
    for (const char *at = text; *text != '-' && c->call.input_count < CASE_INPUTS; at++) {
        at = parse_shape(at, &c->in[c->call.input_count++]);
        if (!at)
            return 0;
        if (*at != ',')
            break;
    }
    return 1;
}

/* Parses "-", or integers and floats with a leading "f", separated by commas. */
static void parse_attrs(const char *text, int64_t *attr) {
    char *at = (char *)text;
    for (int i = 0; *text != '-' && i < RO_MAX_ATTRS; i++) {
        attr[i] = *at == 'f' ? ro_attr_f32(strtof(at + 1, &at)) : (int64_t)strtoull(at, &at, 0);
        if (*at++ != ',')
            break;
    }
}

data_class golden_class(const char *text) {
    static const char *const names[] = {"normal", "wide", "special", "rare",
                                        "tiny",   "zero", "masked"};
    int i = 0;
    while (i < DATA_END && strcmp(text, names[i]) != 0)
        i++;
    return (data_class)i;
}

uint64_t golden_seed(const char *name) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return h;
}

int golden_build(const golden_case *g, op_case *c, char *why, size_t why_size) {
    const data_class class = golden_class(g->class);
    memset(c, 0, sizeof *c);
    c->call.op = ro_op_by_name(g->op);
    c->call.input = c->in;
    c->ids = g->ids;
    parse_attrs(g->attrs, c->call.attr);
    if (class == DATA_END || !parse_inputs(g->inputs, c) ||
        (*g->output != '-' && !parse_shape(g->output, &c->call.output))) {
        snprintf(why, why_size, "shape or class that cannot be read");
        return 0;
    }
    if (ro_infer(&c->call, why, why_size) != RO_OK)
        return 0;
    if (case_fill(c, golden_seed(g->name), class))
        return 1;
    snprintf(why, why_size, "no memory for the data");
    return 0;
}
