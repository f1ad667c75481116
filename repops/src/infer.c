/* Decides which calls are valid, and infers output shapes. SPEC.md sections 3 to 9 and 11. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "repops/src/infer.h"

ro_status ro_refuse(ro_check *c, const char *format, ...) {
    const ro_op_info *info = ro_op_describe(c->call->op);
    if (c->why && c->why_size) {
        int at = snprintf(c->why, c->why_size, "%s: ", info ? info->name : "operator");
        va_list args;
        va_start(args, format);
        if (at > 0 && (size_t)at < c->why_size)
            vsnprintf(c->why + at, c->why_size - (size_t)at, format, args);
        va_end(args);
    }
    return RO_ERR_ARG;
}

int ro_shape_valid(const ro_shape *s) {
    if (ro_dtype_size(s->dtype) == 0 || s->ndim < 1 || s->ndim > RO_MAX_DIMS)
        return 0;
    int64_t product = 1; /* of the positive dimensions, so that no partial product can overflow */
    for (int i = 0; i < s->ndim; i++) {
        if (s->dim[i] < 0 || s->dim[i] > RO_MAX_NUMEL / product)
            return 0;
        product *= s->dim[i] > 0 ? s->dim[i] : 1;
    }
    for (int i = s->ndim; i < RO_MAX_DIMS; i++)
        if (s->dim[i] != 0)
            return 0;
    return 1;
}

ro_status ro_want_type(ro_check *c, int input, int dtype) {
    if (c->in[input].dtype == dtype)
        return RO_OK;
    return ro_refuse(c, "input %d must be %s, got %s", input, ro_dtype_name(dtype),
                     ro_dtype_name(c->in[input].dtype));
}

ro_status ro_want_float(ro_check *c, int input) {
    const int dtype = c->in[input].dtype;
    if (dtype == RO_F32 || dtype == RO_BF16 || dtype == RO_F16)
        return RO_OK;
    return ro_refuse(c, "input %d must be f32, bf16 or f16, got %s", input, ro_dtype_name(dtype));
}

ro_status ro_want_same(ro_check *c, int input, int as) {
    if (ro_shape_equal(&c->in[input], &c->in[as]))
        return RO_OK;
    return ro_refuse(c, "inputs %d and %d must have the same shape", input, as);
}

/* ---- operands whose shape differs from that of the tensor they belong to, SPEC 4 ---- */

typedef struct {
    char text[128];
} shape_text;

static shape_text text_of(const ro_shape *s) {
    shape_text t = {"["};
    size_t at = 1;
    for (int i = 0; i < s->ndim; i++)
        at += (size_t)snprintf(t.text + at, sizeof t.text - at, "%s%lld", i ? ", " : "",
                               (long long)s->dim[i]);
    snprintf(t.text + at, sizeof t.text - at, "]");
    return t;
}

ro_status ro_want_one(ro_check *c, int input) {
    if (NUMEL(input) == 1)
        return RO_OK;
    return ro_refuse(c, "input %d must have one element, got %s", input,
                     text_of(&c->in[input]).text);
}

/* Returns the first `ndim` dimensions but those of one element, which do not move elements. */
static ro_shape squeezed(const ro_shape *s, int ndim) {
    ro_shape out = {.dtype = s->dtype};
    for (int i = 0; i < ndim; i++)
        if (s->dim[i] != 1)
            out.dim[out.ndim++] = s->dim[i];
    return out;
}

/* Returns nonzero if `got` has the first `ndim` dimensions of `as`, ignoring those of 1. */
static int same_order(const ro_shape *got, const ro_shape *as, int ndim) {
    const ro_shape a = squeezed(got, got->ndim), b = squeezed(as, ndim);
    return a.ndim == b.ndim && memcmp(a.dim, b.dim, sizeof a.dim) == 0;
}

static int one_dimension(const ro_shape *s) {
    return squeezed(s, s->ndim).ndim <= 1;
}

/* Returns how many leading dimensions of `of` remain after trailing ones with product `cols`, if
 * the product of the remaining ones is `count`; -1 otherwise. */
static int leading(const ro_shape *of, int64_t cols, int64_t count) {
    int ndim = of->ndim;
    for (int64_t inner = 1; ndim > 0 && inner != cols; ndim--)
        inner *= of->dim[ndim - 1];
    int64_t outer = 1;
    for (int i = 0; i < ndim; i++)
        outer *= of->dim[i];
    return outer == count ? ndim : -1;
}

ro_status ro_want_per_row(ro_check *c, int input, int of, int64_t cols, int64_t count) {
    const ro_shape *s = &c->in[input];
    const int ndim = leading(&c->in[of], cols, count);
    if (NUMEL(input) == count &&
        (one_dimension(s) || (ndim > 0 && same_order(s, &c->in[of], ndim))))
        return RO_OK;
    return ro_refuse(c, "input %d must have one element for each of %lld rows of %s, got %s", input,
                     (long long)count, text_of(&c->in[of]).text, text_of(s).text);
}

ro_status ro_want_per_last(ro_check *c, int input, int of) {
    const ro_shape *x = &c->in[of];
    return ro_want_per_row(c, input, of, x->dim[x->ndim - 1], ro_rows_of(x));
}

/* The product of dimensions that come from attributes may not fit in 64 bits. */
static int has_numel(int64_t numel, const ro_shape *dims) {
    for (int i = 0; i < dims->ndim; i++)
        if (dims->dim[i] == 0)
            return numel == 0;
    for (int i = 0; i < dims->ndim; numel /= dims->dim[i++])
        if (numel % dims->dim[i] != 0)
            return 0;
    return numel == 1;
}

ro_status ro_want_dims(ro_check *c, int input, const ro_shape *want) {
    const ro_shape *s = &c->in[input];
    if (has_numel(NUMEL(input), want) && (one_dimension(s) || same_order(s, want, want->ndim)))
        return RO_OK;
    return ro_refuse(c, "input %d must be %s, got %s", input, text_of(want).text, text_of(s).text);
}

ro_status ro_want_vector(ro_check *c, int input, int64_t cols) {
    return ro_want_dims(c, input, &(ro_shape){.ndim = 1, .dim = {cols}});
}

ro_status ro_want_matrix(ro_check *c, int input, int64_t rows, int64_t cols) {
    return ro_want_dims(c, input, &(ro_shape){.ndim = 2, .dim = {rows, cols}});
}

/* Returns nonzero if b equals the last dimensions of a, perhaps after leading ones of 1. */
static int is_suffix(const ro_shape *b, const ro_shape *a) {
    const int more = a->ndim - b->ndim;
    int first = 0;
    while (first < b->ndim && b->dim[first] == 1)
        first++;
    return more >= 0 && memcmp(b->dim + first, a->dim + more + first,
                               (size_t)(b->ndim - first) * sizeof *b->dim) == 0;
}

/* Returns nonzero if b is one dimension, as long as the product of some last dimensions of a. */
static int is_flat_suffix(const ro_shape *b, const ro_shape *a) {
    int64_t length = 1;
    for (int i = a->ndim - 1; i >= 0 && b->ndim == 1; i--) {
        length *= a->dim[i];
        if (length == b->dim[0])
            return 1;
    }
    return 0;
}

ro_status ro_want_repeats(ro_check *c) {
    const ro_shape *a = &c->in[0], *b = &c->in[1];
    if (NUMEL(1) == 1 || is_suffix(b, a) || is_flat_suffix(b, a))
        return RO_OK;
    return ro_refuse(c, "%s does not repeat into %s: expected its last dimensions or one element",
                     text_of(b).text, text_of(a).text);
}

ro_status ro_want_range(ro_check *c, int attr, int64_t lo, int64_t hi) {
    int64_t got = c->call->attr[attr];
    if (got >= lo && got <= hi)
        return RO_OK;
    return ro_refuse(c, "%s must be %lld..%lld, got %lld",
                     ro_op_describe(c->call->op)->attr[attr].name, (long long)lo, (long long)hi,
                     (long long)got);
}

ro_status ro_want_window(ro_check *c, int attr, int masked) {
    if (!masked && c->call->attr[attr] != 0)
        return ro_refuse(c, "a window needs a mask: window must be 0");
    return ro_want_range(c, attr, 0, RO_MAX_NUMEL);
}

ro_status ro_want_scalar_step(ro_check *c, int input) {
    ro_status status = ro_want_type(c, input, RO_I32);
    return status != RO_OK ? status : ro_want_one(c, input);
}

ro_status ro_declared(ro_check *c, int dtype) {
    if (c->call->output.dtype != dtype)
        return ro_refuse(c, "output must be %s, got %s", ro_dtype_name(dtype),
                         ro_dtype_name(c->call->output.dtype));
    return RO_OK;
}

ro_status ro_all_f32(ro_check *c) {
    for (int i = 0; i < c->call->input_count; i++)
        TRY(ro_want_type(c, i, RO_F32));
    c->want = c->in[0];
    return RO_OK;
}

ro_status ro_want_output(ro_check *c, int64_t numel) {
    int64_t got = ro_shape_numel(&c->call->output);
    if (got == numel)
        return RO_OK;
    return ro_refuse(c, "output must have %lld elements, got %lld", (long long)numel,
                     (long long)got);
}

static ro_status (*const checks[RO_OP_END])(ro_check *) = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, check, ...)               \
    [number] = (check),
#include "repops/src/operators.def"
};

/* Attributes of kind f hold the bits of a binary32, with zeros above them. */
static ro_status ro_check_attrs(ro_check *c, const ro_op_info *info) {
    for (int i = 0; i < info->attr_count; i++)
        if (info->attr[i].kind == 'f')
            TRY(ro_want_range(c, i, 0, UINT32_MAX));
    for (int i = info->attr_count; i < RO_MAX_ATTRS; i++)
        if (c->call->attr[i] != 0)
            return ro_refuse(c, "unused attribute %d must be 0", i);
    return RO_OK;
}

static ro_status ro_check_inputs(ro_check *c, const ro_op_info *info) {
    if (c->call->input_count < info->min_inputs || c->call->input_count > info->max_inputs)
        return ro_refuse(c, "takes %d..%d inputs, got %d", info->min_inputs, info->max_inputs,
                         c->call->input_count);
    if (c->call->input_count > 0 && !c->in)
        return ro_refuse(c, "the shapes of the inputs are missing");
    for (int i = 0; i < c->call->input_count; i++)
        if (!ro_shape_valid(&c->in[i]))
            return ro_refuse(c, "input %d has no valid shape", i);
    if ((info->declared_shape || c->call->output.ndim != 0) && !ro_shape_valid(&c->call->output))
        return ro_refuse(c, "output has no valid shape");
    return ro_check_attrs(c, info);
}

ro_status ro_infer(ro_call *call, char *why, size_t why_size) {
    if (!call) {
        if (why && why_size)
            snprintf(why, why_size, "infer: `call` must not be NULL");
        return RO_ERR_ARG;
    }
    ro_check c = {.call = call, .in = call->input, .why = why, .why_size = why_size};
    const ro_op_info *info = ro_op_describe(call->op);
    if (!info)
        return ro_refuse(&c, "there is no number %d", (int)call->op);
    TRY(ro_check_inputs(&c, info));
    TRY(checks[call->op](&c));
    if (info->declared_shape)
        return RO_OK;
    if (!ro_shape_valid(&c.want))
        return ro_refuse(&c, "output would have more than 2^40 elements");
    if (call->output.ndim != 0 && !ro_shape_equal(&call->output, &c.want))
        return ro_refuse(&c, "output has another shape than its inputs give");
    call->output = c.want;
    return RO_OK;
}
