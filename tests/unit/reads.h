/* Evaluates which elements an element reads, in the language of SPEC.md section 15, for a call. */
#ifndef TESTS_READS_H
#define TESTS_READS_H

#include "repops/repops.h"
#include "repops/src/philox.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READS_VARIABLES = 32 };

typedef struct {
    const char *name;
    size_t length;
    int64_t value;
} reads_variable;

typedef struct {
    const ro_call *call;
    const char *inputs; /* names and types: "x any, ids i32" */
    int64_t (*load)(void *user, int input, int64_t index);
    void *user;
    const char *text, *at;
    int64_t step;
    reads_variable variable[READS_VARIABLES];
    int variables;
} reads;

/* ---- names ---- */

static inline void reads_space(reads *r) {
    while (*r->at == ' ')
        r->at++;
}

static inline int reads_taken(reads *r, const char *token) {
    reads_space(r);
    const size_t length = strlen(token);
    const int word = isalpha((unsigned char)*token);
    if (strncmp(r->at, token, length) != 0 ||
        (word && (isalnum((unsigned char)r->at[length]) || r->at[length] == '_')))
        return 0;
    r->at += length;
    return 1;
}

static inline void reads_need(reads *r, const char *token) {
    cr_assert(reads_taken(r, token), "\"%s\": expected %s at \"%s\"", r->text, token, r->at);
}

static inline size_t reads_name(reads *r) {
    size_t length = 0;
    reads_space(r);
    while (isalnum((unsigned char)r->at[length]) || r->at[length] == '_')
        length++;
    return isdigit((unsigned char)*r->at) ? 0 : length;
}

static inline int reads_is(const char *name, size_t length, const char *word) {
    return strlen(word) == length && strncmp(name, word, length) == 0;
}

/* Returns the number of the input with that name; -1: there is none, or it is the output. */
static inline int reads_input(const reads *r, const char *name, size_t length) {
    const char *at = r->inputs;
    const int list = strstr(at, "...") != NULL;
    for (int i = 0; *at; i++) {
        const size_t n = strcspn(at, " ,.");
        if (n == length && strncmp(at, name, n) == 0)
            return list && i > 0 ? r->call->input_count - 1 : i;
        at += strcspn(at, ",");
        at += strspn(at, ", ");
    }
    return -1;
}

static inline void reads_set(reads *r, const char *name, size_t length, int64_t value) {
    for (int i = 0; i < r->variables; i++)
        if (r->variable[i].length == length && strncmp(r->variable[i].name, name, length) == 0) {
            r->variable[i].value = value;
            return;
        }
    cr_assert(r->variables < READS_VARIABLES);
    r->variable[r->variables++] = (reads_variable){name, length, value};
}

static inline int reads_attribute(const reads *r, const char *name, size_t length) {
    const ro_op_info *info = ro_op_describe(r->call->op);
    for (int i = 0; i < info->attr_count; i++)
        if (reads_is(name, length, info->attr[i].name))
            return i;
    return -1;
}

static inline int64_t reads_value(const reads *r, const char *name, size_t length) {
    for (int i = 0; i < r->variables; i++)
        if (r->variable[i].length == length && strncmp(r->variable[i].name, name, length) == 0)
            return r->variable[i].value;
    const int attribute = reads_attribute(r, name, length);
    cr_assert(attribute >= 0, "\"%s\": there is no %.*s", r->text, (int)length, name);
    return r->call->attr[attribute];
}

static inline int64_t reads_attr(const reads *r, const char *name) {
    return reads_value(r, name, strlen(name));
}

/* Does query q of scores [..., T, S] admit a key? */
static inline int reads_admits(const reads *r, const ro_shape *s, int64_t q, int64_t key) {
    const int64_t at = q % s->dim[s->ndim - 2], window = reads_attr(r, "window");
    return !reads_attr(r, "causal") || (key <= at && (window == 0 || key > at - window));
}

/* ---- numbers ---- */

static inline int64_t reads_number(reads *r);

static inline int64_t reads_divide(int64_t a, int64_t b) {
    return b ? a / b : 0;
}

static inline int64_t reads_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline const ro_shape *reads_shape(reads *r) {
    const size_t length = reads_name(r);
    const int input = reads_input(r, r->at, length);
    const int out = reads_is(r->at, length, "out");
    cr_assert(out || input >= 0, "\"%s\": no tensor at \"%s\"", r->text, r->at);
    r->at += length;
    return out ? &r->call->output : &r->call->input[input];
}

static inline int64_t reads_product(const ro_shape *s, int64_t first) {
    int64_t product = 1;
    for (int64_t i = first; i < s->ndim; i++)
        product *= s->dim[i];
    return product;
}

static inline int64_t reads_axis(const reads *r) {
    const int axis = reads_attribute(r, "axis", 4);
    return axis < 0 ? 0 : r->call->attr[axis];
}

/* Sums elements of the inputs before q, or their lengths along the axis. */
static inline int64_t reads_before(const reads *r, int64_t q, int along) {
    int64_t sum = 0;
    for (int64_t i = 0; i < q; i++)
        sum += along ? r->call->input[i].dim[reads_axis(r)] : ro_shape_numel(&r->call->input[i]);
    return sum;
}

/* Counts windows of tokens in the inputs before q. */
static inline int64_t reads_windows(const reads *r, int64_t q) {
    const ro_shape *out = &r->call->output;
    int64_t sum = 0;
    for (int64_t i = 0; i < q; i++)
        sum += (ro_shape_numel(&r->call->input[i]) - 1) / out->dim[out->ndim - 1];
    return sum;
}

static inline int64_t reads_of_tensor(reads *r, const char *name, size_t length) {
    const ro_shape *s = reads_shape(r);
    if (reads_is(name, length, "numel"))
        return ro_shape_numel(s);
    if (reads_is(name, length, "ndim"))
        return s->ndim;
    if (reads_is(name, length, "last"))
        return s->dim[s->ndim - 1];
    if (reads_is(name, length, "n"))
        return s->dim[reads_axis(r)];
    if (reads_is(name, length, "inner"))
        return reads_product(s, reads_axis(r) + 1);
    if (reads_is(name, length, "matrix"))
        return reads_product(s, reads_attr(r, "batch_dims"));
    if (reads_is(name, length, "queries"))
        return s->dim[s->ndim - 2];
    reads_need(r, ",");
    const int64_t k = reads_number(r);
    if (reads_is(name, length, "dim"))
        return s->dim[k];
    if (reads_is(name, length, "stride"))
        return reads_product(s, k + 1);
    cr_assert(reads_is(name, length, "admitted"), "\"%s\": no function %.*s", r->text, (int)length,
              name);
    reads_need(r, ",");
    const int64_t key = reads_number(r); /* k is the query */
    return reads_admits(r, s, k, key);
}

static inline int64_t reads_of_numbers(reads *r, const char *name, size_t length, int *known) {
    int64_t v[3] = {0};
    static const char *const names[] = {"min",      "max",      "unsigned",  "permute",
                                        "first_of", "place_of", "attribute", "windows_of"};
    *known = 0;
    for (int i = 0; i < 8; i++)
        *known |= reads_is(name, length, names[i]);
    if (!*known)
        return 0;
    int count = 0;
    do
        v[count++] = reads_number(r);
    while (count < 3 && reads_taken(r, ","));
    switch (*name) {
    case 'u': return (int64_t)(uint32_t)v[0];
    case 'f': return reads_before(r, v[0], 0);
    case 'w': return reads_windows(r, v[0]);
    case 'a': return r->call->attr[v[0]];
    case 'm': return name[1] == 'i' ? reads_min(v[0], v[1]) : v[0] > v[1] ? v[0] : v[1];
    default: break;
    }
    if (name[1] == 'l')
        return reads_before(r, v[0], 1);
    return (int64_t)ro_permute((uint64_t)reads_attr(r, "seed"), (uint32_t)reads_attr(r, "stream"),
                               (uint64_t)v[0], (uint64_t)v[1], (uint64_t)v[2]);
}

static inline int64_t reads_element(reads *r, int input) {
    const int64_t index = reads_number(r);
    reads_need(r, "]");
    cr_assert(input >= 0 && input < r->call->input_count, "\"%s\": no such input", r->text);
    cr_assert(index >= 0 && index < ro_shape_numel(&r->call->input[input]),
              "\"%s\": element %lld of input %d", r->text, (long long)index, input);
    return r->load(r->user, input, index);
}

static inline int64_t reads_call(reads *r, const char *name, size_t length) {
    int known;
    const int input = reads_input(r, name, length);
    int64_t value;
    if (input >= 0) { /* x(q)[i] */
        value = reads_number(r);
        reads_need(r, ")");
        reads_need(r, "[");
        return reads_element(r, (int)value);
    }
    value = reads_of_numbers(r, name, length, &known);
    if (!known)
        value = reads_of_tensor(r, name, length);
    reads_need(r, ")");
    return value;
}

static inline int64_t reads_primary(reads *r) {
    if (reads_taken(r, "-"))
        return -reads_primary(r);
    if (reads_taken(r, "(")) {
        const int64_t value = reads_number(r);
        reads_need(r, ")");
        return value;
    }
    reads_space(r);
    if (isdigit((unsigned char)*r->at))
        return strtoll(r->at, (char **)&r->at, 10);
    const size_t length = reads_name(r);
    const char *name = r->at;
    cr_assert(length > 0, "\"%s\": a number is missing at \"%s\"", r->text, r->at);
    r->at += length;
    if (reads_taken(r, "["))
        return reads_element(r, reads_input(r, name, length));
    if (reads_taken(r, "("))
        return reads_call(r, name, length);
    if (reads_is(name, length, "inputs"))
        return r->call->input_count;
    return reads_is(name, length, "inf") ? 0x800000 : reads_value(r, name, length);
}

static inline int64_t reads_term(reads *r) {
    int64_t value = reads_primary(r);
    for (;;) {
        if (reads_taken(r, "*"))
            value *= reads_primary(r);
        else if (reads_taken(r, "/"))
            value = reads_divide(value, reads_primary(r));
        else if (reads_taken(r, "%")) {
            const int64_t by = reads_primary(r);
            value -= reads_divide(value, by) * by;
        } else
            return value;
    }
}

static inline int64_t reads_sum(reads *r) {
    int64_t value = reads_term(r);
    for (;;) {
        if (reads_taken(r, "+"))
            value += reads_term(r);
        else if (reads_taken(r, "-"))
            value -= reads_term(r);
        else
            return value;
    }
}

static inline int64_t reads_comparison(reads *r) {
    const int64_t a = reads_sum(r);
    if (reads_taken(r, "=="))
        return a == reads_sum(r);
    if (reads_taken(r, "!="))
        return a != reads_sum(r);
    if (reads_taken(r, "<="))
        return a <= reads_sum(r);
    if (reads_taken(r, ">="))
        return a >= reads_sum(r);
    if (reads_taken(r, "<"))
        return a < reads_sum(r);
    return reads_taken(r, ">") ? a > reads_sum(r) : a;
}

static inline int64_t reads_number(reads *r) {
    int64_t value = reads_comparison(r);
    while (reads_taken(r, "and")) {
        const int64_t other = reads_comparison(r);
        value = value && other;
    }
    if (!reads_taken(r, "?"))
        return value;
    const int64_t yes = reads_number(r);
    reads_need(r, ":");
    const int64_t no = reads_number(r);
    return value ? yes : no;
}

/* ---- statements ---- */

static inline void reads_all(reads *r);

/* Skips to the end of the entry or of the braces. */
static inline void reads_skip(reads *r) {
    for (int depth = 0; *r->at && (depth > 0 || *r->at != '}'); r->at++)
        depth += (*r->at == '{') - (*r->at == '}');
}

static inline void reads_loop(reads *r, const char *name, size_t length, int64_t from, int64_t to) {
    reads_need(r, ":");
    const int braces = reads_taken(r, "{");
    const char *body = r->at;
    for (int64_t k = from; k < to; k++) {
        r->at = body;
        reads_set(r, name, length, k);
        reads_all(r);
    }
    r->at = body;
    reads_skip(r);
    if (braces)
        reads_need(r, "}");
}

static inline void reads_range(reads *r, const char *name, size_t length) {
    const int64_t e = reads_attr(r, "e");
    int64_t from, to;
    if (reads_taken(r, "part")) {
        reads_need(r, "(");
        const int64_t count = reads_number(r);
        reads_need(r, ")");
        from = 256 * r->step, to = reads_min(from + 256, count);
    } else if (reads_taken(r, "block")) {
        const int64_t cols = reads_attr(r, "cols"), block = reads_attr(r, "block");
        const int64_t blocks = cols > block ? (cols + block - 1) / block : 1;
        from = e % blocks * block, to = reads_min(from + block, cols);
    } else if (reads_taken(r, "group")) {
        const int64_t cols = reads_attr(r, "cols");
        const int64_t rows = reads_divide(ro_shape_numel(&r->call->input[0]), cols);
        from = reads_divide(e, cols) * 64, to = reads_min(from + 64, rows);
    } else {
        reads_need(r, "keys");
        reads_need(r, "(");
        const ro_shape *s = reads_shape(r);
        reads_need(r, ",");
        const int64_t q = reads_number(r);
        reads_need(r, ",");
        const int64_t block = reads_number(r), keys = s->dim[s->ndim - 1];
        reads_need(r, ")");
        from = 128 * block;
        to = reads_min(from + 128, keys);
        while (from < to && !reads_admits(r, s, q, from))
            from++;
        while (from < to && !reads_admits(r, s, q, to - 1))
            to--;
    }
    reads_loop(r, name, length, from, to);
}

static inline void reads_one(reads *r) {
    if (reads_taken(r, "if")) {
        const int64_t holds = reads_number(r);
        reads_need(r, ":");
        const int braces = reads_taken(r, "{");
        if (!holds)
            reads_skip(r);
        else
            reads_all(r);
        if (braces)
            reads_need(r, "}");
        return;
    }
    const size_t length = reads_name(r);
    const char *name = r->at, *start = r->at;
    r->at += length;
    if (reads_taken(r, "in")) {
        reads_range(r, name, length);
    } else if (reads_taken(r, "=") && *r->at != '=') {
        const int64_t from = reads_number(r);
        if (reads_taken(r, ".."))
            reads_loop(r, name, length, from, reads_number(r));
        else
            reads_set(r, name, length, from);
    } else {
        r->at = start;
        reads_number(r);
    }
}

static inline void reads_all(reads *r) {
    do
        reads_one(r);
    while (reads_taken(r, ";"));
    reads_space(r);
    cr_assert(*r->at == 0 || *r->at == '}', "\"%s\": not understood: \"%s\"", r->text, r->at);
}

/* Lists what element e, or a step of its fold, reads. */
static inline void reads_run(reads *r, const char *text, int64_t e, int64_t step) {
    r->text = r->at = text;
    r->step = step;
    r->variables = 0;
    reads_set(r, "e", 1, e);
    reads_set(r, "j", 1, step);
    if (reads_attribute(r, "block", 5) >= 0) {
        const int64_t cols = reads_attr(r, "cols"), block = reads_attr(r, "block");
        reads_set(r, "r", 1, e / (cols > block ? (cols + block - 1) / block : 1));
    }
    if (*text)
        reads_all(r);
    cr_assert(*r->at == 0, "\"%s\": not understood: \"%s\"", text, r->at);
}

#endif
