/* Makes actions from functions of one lane's values: value("add.rn.f32", [](float a, float b)
 * { return a + b; }) is the whole definition of that mnemonic. */
#ifndef TESTS_PTX_LANES_H
#define TESTS_PTX_LANES_H

#include <string.h>

#include <bit>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/ptx/ptx.h"

namespace ptx {

template <class T> constexpr width width_of() {
    if (std::is_same_v<T, bool>)
        return width::PREDICATE;
    return sizeof(T) == 8 ? width::DOUBLE : width::WORD;
}

/* ---- operands ---- */

/* A value smaller than a word is in a word. */
template <class T> struct source {
    const uint32_t *words;
    source(const warp &w, int at) : words(&w.words[at]) {}
    T operator[](int lane) const {
        if constexpr (sizeof(T) < 4)
            return (T)words[lane];
        else
            return std::bit_cast<T>(words[lane]);
    }
};
template <class T>
requires(sizeof(T) == 8) struct source<T> {
    const uint32_t *words;
    source(const warp &w, int at) : words(&w.words[at]) {}
    T operator[](int lane) const {
        T value;
        memcpy(&value, words + 2 * lane, sizeof value);
        return value;
    }
};
template <> struct source<bool> {
    lane_mask bits;
    source(const warp &w, int at) : bits(w.predicates[at]) {}
    bool operator[](int lane) const {
        return bits >> lane & 1;
    }
};

/* ---- results ---- */

/* Arithmetic in binary32 returns this one NaN, unlike this CPU's. */
enum : uint32_t { ARITHMETIC_NAN = 0x7fffffff };

template <class T> auto bits_of(T value) {
    if constexpr (std::is_same_v<T, float>)
        return value != value ? (uint32_t)ARITHMETIC_NAN : std::bit_cast<uint32_t>(value);
    else if constexpr (sizeof(T) == 8)
        return std::bit_cast<uint64_t>(value);
    else
        return (uint32_t)value; /* sign-extended, like loads */
}

template <class Bits> void store(warp &w, int at, const Bits *value, lane_mask mask) {
    Bits *const to = reinterpret_cast<Bits *>(&w.words[at]);
    if (mask == ~0u)
        memcpy(to, value, LANES * sizeof(Bits));
    else
        for (int l = 0; l < LANES; l++)
            to[l] = mask >> l & 1 ? value[l] : to[l];
}

/* Computes all lanes, so that the compiler vectorises the loop, and stores those of the mask. */
template <class F, class R, class... A, size_t... n>
void compute(warp &w, const instruction &i, lane_mask mask, R (*)(A...),
             std::index_sequence<n...>) {
    const F f;
    const std::tuple<source<A>...> in(source<A>(w, i.operand[n + 1])...);
    if constexpr (std::is_same_v<R, bool>) {
        lane_mask bits = 0;
        for (int l = 0; l < LANES; l++)
            bits |= (lane_mask)f(std::get<n>(in)[l]...) << l;
        lane_mask &to = w.predicates[i.operand[0]];
        to = (to & ~mask) | (bits & mask);
    } else {
        decltype(bits_of(R())) value[LANES];
        for (int l = 0; l < LANES; l++)
            value[l] = bits_of<R>(f(std::get<n>(in)[l]...));
        store(w, i.operand[0], value, mask);
    }
}

/* F: a captureless lambda whose parameters are the operands. */
template <class F> void apply(block &, warp &w, const instruction &i, lane_mask mask) {
    [&]<class R, class... A>(R (*signature)(A...)) {
        compute<F>(w, i, mask, signature, std::index_sequence_for<A...>());
    }(+F());
}

template <class F> operation value(const char *mnemonic, F f) {
    return [&]<class R, class... A>(R (*)(A...)) {
        return operation{mnemonic,
                         apply<F>,
                         form::VALUES,
                         flow::NEXT,
                         1 + (int)sizeof...(A),
                         {width_of<R>(), width_of<A>()...}};
    }(+f);
}

} // namespace ptx

#endif
