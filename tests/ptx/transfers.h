/* Actions that access memory, or exchange values between a warp's lanes. */
#ifndef TESTS_PTX_TRANSFERS_H
#define TESTS_PTX_TRANSFERS_H

#include "tests/ptx/lanes.h"

namespace ptx {

inline uint64_t address_of(const warp &w, const address &a, int lane) {
    if (a.base == NONE)
        return a.offset;
    if (a.of == width::DOUBLE)
        return source<uint64_t>(w, a.base)[lane] + a.offset;
    return (uint32_t)(w.words[a.base + lane] + a.offset); /* in shared memory */
}

template <class F> void each(lane_mask mask, const F &f) {
    for (; mask; mask &= mask - 1)
        f(__builtin_ctz(mask));
}

template <space s>
char *bytes_for(block &b, const warp &w, const instruction &i, int lane, int bytes, bool writes) {
    const uint64_t at = address_of(w, i.at, lane);
    if constexpr (s == space::SHARED)
        return writes ? b.shared.write(w, i, lane, at, bytes)
                      : b.shared.read(w, i, lane, at, bytes);
    else
        return reach(w, i, lane, s, at, bytes, writes);
}

template <space s, class T, int n>
void load_lanes(block &b, warp &w, const instruction &i, lane_mask mask) {
    each(mask, [&](int lane) {
        T value[n];
        memcpy(value, bytes_for<s>(b, w, i, lane, sizeof value, false), sizeof value);
        for (int e = 0; e < n; e++) {
            const auto bits = bits_of(value[e]);
            memcpy(&w.words[i.operand[e] + lane * (int)(sizeof bits / 4)], &bits, sizeof bits);
        }
    });
}

template <space s, class T, int n>
void store_lanes(block &b, warp &w, const instruction &i, lane_mask mask) {
    each(mask, [&](int lane) {
        T value[n];
        for (int e = 0; e < n; e++)
            value[e] = source<T>(w, i.operand[e])[lane];
        memcpy(bytes_for<s>(b, w, i, lane, sizeof value, true), value, sizeof value);
    });
}

template <space s, class F>
void atomic_lanes(block &b, warp &w, const instruction &i, lane_mask mask) {
    each(mask, [&](int lane) {
        uint32_t value;
        const uint64_t at = address_of(w, i.at, lane);
        char *const to = s == space::SHARED ? b.shared.atomic(w, i, lane, at, sizeof value)
                                            : reach(w, i, lane, s, at, sizeof value, true);
        memcpy(&value, to, sizeof value);
        const uint32_t after = F()(value, w.words[i.operand[1] + lane]);
        memcpy(to, &after, sizeof after);
        w.words[i.operand[0] + lane] = value;
    });
}

template <space s, class T, int n = 1> operation load(const char *mnemonic) {
    const width of = width_of<T>();
    return {mnemonic, load_lanes<s, T, n>, form::LOAD, flow::NEXT, n, {of, of, of, of}};
}
template <space s, class T, int n = 1> operation store_to(const char *mnemonic) {
    const width of = width_of<T>();
    return {mnemonic, store_lanes<s, T, n>, form::STORE, flow::NEXT, n, {of, of, of, of}};
}
template <space s, class F> operation atomic(const char *mnemonic, F) {
    return {mnemonic, atomic_lanes<s, F>, form::ATOMIC, flow::NEXT, 2, {width::WORD, width::WORD}};
}

/* ---- transfers.cc ---- */

action copy_async, commit_copies, wait_copies, pack, unpack, meet_warp, ballot;
/* mma of signed bytes: 16 x 32 by 32 x 8, or 8 x 16 by 16 x 8. */
template <int rows> void multiply_bytes(block &b, warp &w, const instruction &i, lane_mask mask);
template <bool greatest> void reduce(block &b, warp &w, const instruction &i, lane_mask mask);
enum shuffle_kind { IDX, BFLY, UP };
template <shuffle_kind kind> void shuffle(block &b, warp &w, const instruction &i, lane_mask mask);

} // namespace ptx

#endif
