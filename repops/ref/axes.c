/* Rearrangement along axes, casts, rotations: SPEC.md sections 5 and 13. */
#include "repops/ref/ref.h"
#include "repops/src/half.h"
#include "repops/src/rope.h"
#include "repops/op_attention.h"
#include "repops/op_movement.h"

static uint32_t transpose(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const ro_shape *x = &call->input[0], *out = &call->output;
    int64_t stride[RO_MAX_DIMS], from = 0;
    (void)acc;
    stride[x->ndim - 1] = 1;
    for (int i = x->ndim - 1; i > 0; i--)
        stride[i - 1] = stride[i] * x->dim[i];
    for (int i = out->ndim - 1; i >= 0; i--) {
        from += e % out->dim[i] * stride[call->attr[RO_TRANSPOSE_D0 + i]];
        e /= out->dim[i];
    }
    return load(in, 0, from);
}
RO_REFERENCE(transpose, .finish = transpose)

static uint32_t slice(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const ro_axis x = ro_axis_of(&call->input[0], call->attr[RO_SLICE_AXIS]);
    const int64_t length = call->attr[RO_SLICE_LENGTH], i = e % x.inner, j = e / x.inner % length;
    (void)acc;
    return load(
        in, 0,
        (e / x.inner / length * x.n + call->attr[RO_SLICE_START] + j * call->attr[RO_SLICE_STEP]) *
                x.inner +
            i);
}
RO_REFERENCE(slice, .finish = slice)

static uint32_t pad(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const ro_axis x = ro_axis_of(&call->input[0], call->attr[RO_PAD_AXIS]);
    const int64_t n = call->output.dim[call->attr[RO_PAD_AXIS]], step = call->attr[RO_PAD_STEP];
    const int64_t j = e / x.inner % n - call->attr[RO_PAD_BEFORE];
    (void)acc;
    if (j < 0 || j % step != 0 || j / step >= x.n)
        return (uint32_t)call->attr[RO_PAD_VALUE];
    return load(in, 0, (e / x.inner / n * x.n + j / step) * x.inner + e % x.inner);
}
RO_REFERENCE(pad, .finish = pad)

static uint32_t gather(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const ro_axis x = ro_axis_of(&call->input[0], call->attr[RO_GATHER_AXIS]);
    const int64_t ids = numel(call, 1);
    (void)acc;
    const int32_t id = (int32_t)load(in, 1, e / x.inner % ids);
    if (id < 0 || id >= x.n)
        return ro_nan_of(call->output.dtype);
    return load(in, 0, (e / x.inner / ids * x.n + id) * x.inner + e % x.inner);
}
RO_REFERENCE(gather, .finish = gather)

static uint32_t concat_axis(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    const ro_axis out = ro_axis_of(&call->output, call->attr[RO_CONCAT_AXIS_AXIS]);
    int64_t j = e / out.inner % out.n;
    int input = 0;
    (void)acc;
    while (j >= call->input[input].dim[call->attr[RO_CONCAT_AXIS_AXIS]])
        j -= call->input[input++].dim[call->attr[RO_CONCAT_AXIS_AXIS]];
    const int64_t n = call->input[input].dim[call->attr[RO_CONCAT_AXIS_AXIS]];
    return load(in, input, (e / out.inner / out.n * n + j) * out.inner + e % out.inner);
}
RO_REFERENCE(concat_axis, .finish = concat_axis)

static uint32_t put_rows(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const ro_axis x = ro_axis_of(&call->input[0], call->attr[RO_PUT_ROWS_AXIS]);
    const int64_t rows = call->input[1].dim[call->attr[RO_PUT_ROWS_AXIS]];
    const int64_t k = e / x.inner % x.n - (int32_t)load(in, 2, 0);
    (void)acc;
    if (k < 0 || k >= rows)
        return load(in, 0, e);
    return load(in, 1, (e / x.inner / x.n * rows + k) * x.inner + e % x.inner);
}
RO_REFERENCE(put_rows, .finish = put_rows)

static uint32_t reshape(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    return load(in, 0, e);
}
RO_REFERENCE(reshape, .finish = reshape)

/* Rounds toward zero, and limits to the type's range. A NaN gives 0. */
static int64_t integer_of(float x, int64_t least, int64_t most) {
    if (x != x)
        return 0;
    if (x <= (float)least)
        return least;
    return x >= (float)most ? most : (int64_t)x;
}

static int64_t cut_off(int64_t number, int64_t least, int64_t most) {
    return number < least ? least : number > most ? most : number;
}

/* Returns an element of an integer type. Only this extends the sign of an i8: no other operator
 * reads one as a number, and loads put zeros above its bits. */
static int32_t integer_at(int dtype, uint32_t bits) {
    return dtype == RO_I8 ? (int8_t)bits : (int32_t)bits;
}

static uint32_t integer_bits(int dtype, int64_t number) {
    return dtype == RO_I8 ? (uint8_t)number : (uint32_t)number;
}

/* Returns an element as an f32 number; integers are rounded to nearest even. */
static float number_of(int dtype, uint32_t bits) {
    return ro_nan_of(dtype) != 0 ? ro_number_of(dtype, bits) : (float)integer_at(dtype, bits);
}

static uint32_t cast(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    static const struct {
        int64_t least, most;
    } range[] = {[RO_I32] = {INT32_MIN, INT32_MAX},
                 [RO_U8] = {0, UINT8_MAX},
                 [RO_U16] = {0, UINT16_MAX},
                 [RO_I8] = {INT8_MIN, INT8_MAX}};
    const int from = call->input[0].dtype, to = (int)call->attr[RO_CAST_DTYPE];
    const uint32_t bits = load(in, 0, e);
    const float number = number_of(from, bits);
    (void)acc;
    if (from == to)
        return bits;
    switch (to) {
    case RO_F32: return ro_to_bits(number);
    case RO_BF16: return ro_to_bf16(number);
    case RO_F16: return ro_to_f16(number);
    default: break;
    }
    const int64_t least = range[to].least, most = range[to].most;
    return integer_bits(to, ro_nan_of(from) != 0 ? integer_of(number, least, most)
                                                 : cut_off(integer_at(from, bits), least, most));
}
RO_REFERENCE(cast, .finish = cast)

/* ---- rotary position embedding, SPEC.md section 13 ---- */

static uint32_t rope_turns(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const uint64_t log = ro_rope_log((uint32_t)call->attr[RO_ROPE_TURNS_BASE]);
    const uint64_t half = (uint64_t)call->output.dim[0];
    const ro_rope_scaling scaling = ro_rope_scaling_of(call);
    const uint64_t f = ro_rope_scaled(&scaling, ro_rope_frequency(log, half, (uint64_t)e / 2));
    (void)acc, (void)in;
    return (uint32_t)(e % 2 ? f >> 32 : f);
}
RO_REFERENCE(rope_turns, .finish = rope_turns)

ro_ref_turn ro_ref_turn_of(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_rotation v = ro_rotation_of(call);
    const int neighbours = (int)call->attr[RO_ROPE_PAIRS];
    const int64_t at = e % (2 * v.half), i = neighbours ? at / 2 : at % v.half;
    const int64_t place = ro_rotation_place(&v, e / (2 * v.half));
    const uint64_t f = ro_rope_words(load(in, 2, 2 * i), load(in, 2, 2 * i + 1));
    const uint32_t turn = ro_rope_turn(f, (int32_t)load(in, 1, place));
    ro_ref_turn t = {.second = neighbours ? (int)(at & 1) : at >= v.half};
    t.other = e + (neighbours ? 1 : v.half) * (t.second ? -1 : 1);
    t.cosine = ro_cos_turn(turn);
    t.sine = call->attr[RO_ROPE_INVERSE] ? -ro_sin_turn(turn) : ro_sin_turn(turn);
    return t;
}

static uint32_t rope(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const ro_ref_turn t = ro_ref_turn_of(call, e, in);
    const float mine = loadf(in, 0, e), product = loadf(in, 0, t.other) * t.sine;
    (void)acc;
    return result(ro_fma(mine, t.cosine, t.second ? product : -product));
}
/* An element of a pair needs both elements, a position and the two words of its turn. */
RO_LOADS(rope_loads, 5)
RO_REFERENCE(rope, .finish = rope, .loads = rope_loads)
