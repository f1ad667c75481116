/* Conversions between element types, SPEC.md section 5. */
#include "repops/cuda/cuda.cuh"
#include "repops/src/half.h"
#include "repops/op_movement.h"

#include <type_traits>

/* The type of an element that is stored in 16 bits. */
struct bf16 {
    uint16_t bits;

    RO_DEVICE static bf16 of(float x) {
        return bf16{ro_to_bf16(x)};
    }
    RO_DEVICE float number() const {
        return ro_from_bf16(bits);
    }
};

struct f16 {
    uint16_t bits;

    RO_DEVICE static f16 of(float x) {
        return f16{ro_to_f16(x)};
    }
    RO_DEVICE float number() const {
        return ro_from_f16(bits);
    }
};

template <class T> constexpr bool is_half = std::is_same_v<T, bf16> || std::is_same_v<T, f16>;

/* Rounds toward zero and saturates at the ends of the range; NaN gives 0. */
RO_DEVICE int32_t integer_of(float x) {
    return x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : x == x ? (int32_t)x : 0;
}

RO_DEVICE int32_t integer_of(int32_t x) {
    return x;
}

template <class To, class From> RO_DEVICE To converted(From x) {
    if constexpr (is_half<From>)
        return converted<To>(x.number());
    else if constexpr (is_half<To>)
        return To::of((float)x);
    else if constexpr (std::is_same_v<To, float>)
        return (float)x;
    else {
        const int32_t i =
            integer_of(std::conditional_t<std::is_same_v<From, float>, float, int32_t>(x));
        if constexpr (sizeof(To) == 4)
            return i;
        else {
            constexpr bool has_sign = std::is_signed_v<To>;
            constexpr int32_t most = (1 << (8 * sizeof(To) - has_sign)) - 1;
            constexpr int32_t least = has_sign ? -most - 1 : 0;
            return (To)(i < least ? least : i > most ? most : i);
        }
    }
}

template <class To, class From>
ro_status cast_between(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const From *x = static_cast<const From *>(in[0]);
    return map<To>(d, call, out, [=] __device__(int64_t i) { return converted<To, From>(x[i]); });
}

static ro_status copied(ro_cuda *d, const ro_call *call, const void *in, void *out) {
    const size_t size = (size_t)ro_shape_numel(&call->output) * ro_dtype_size(call->output.dtype);
    return ro_cuda_check(d, cudaMemcpyAsync(out, in, size, cudaMemcpyDeviceToDevice, d->stream),
                         "cast");
}

/* Calls f with a value of the element type. */
template <class F> static ro_status by_type(int64_t dtype, const F &f) {
    switch (dtype) {
    case RO_F32: return f(float());
    case RO_I32: return f(int32_t());
    case RO_U16: return f(uint16_t());
    case RO_U8: return f(uint8_t());
    case RO_I8: return f(int8_t());
    case RO_BF16: return f(bf16());
    case RO_F16: return f(f16());
    default: return RO_ERR_UNSUPPORTED;
    }
}

static ro_status cast(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return by_type(call->attr[RO_CAST_DTYPE], [&](auto to) {
        return by_type(call->input[0].dtype, [&](auto x) {
            if constexpr (std::is_same_v<decltype(to), decltype(x)>)
                return copied(d, call, in[0], out);
            else
                return cast_between<decltype(to), decltype(x)>(d, call, in, out);
        });
    });
}
RO_CUDA_KERNEL(cast, cast)
