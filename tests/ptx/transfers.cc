/* Asynchronous copies, halves of double registers, and operations between a warp's lanes. */
#include "tests/ptx/transfers.h"

#include "tests/ptx/asynchronous.h"

namespace ptx {

/* ---- asynchronous copies ---- */

void copy_async(block &b, warp &w, const instruction &i, lane_mask mask) {
    each(mask, [&](int lane) {
        const uint64_t to = address_of(w, i.at, lane), from = address_of(w, i.from, lane);
        const int wanted = (int)w.words[i.operand[0] + lane];
        if (wanted < 0 || wanted > i.count)
            fault(w, i, lane, "a copy of %d of %d bytes", wanted, i.count);
        /* All bytes that may be read must exist and be aligned, even if some are not read. */
        const void *source =
            wanted > 0 ? reach(w, i, lane, space::GLOBAL, from, i.count, false) : nullptr;
        b.shared.depart(w, i, lane, to, i.count);
        w.copies.push_back({lane, w.committed[lane], i.count, wanted, to, source, &i});
    });
}

void commit_copies(block &, warp &w, const instruction &, lane_mask mask) {
    each(mask, [&](int lane) { w.committed[lane]++; });
}

void wait_copies(block &b, warp &w, const instruction &i, lane_mask mask) {
    size_t kept = 0;
    for (const departed &c : w.copies)
        if ((mask >> c.lane & 1) && c.group < w.committed[c.lane] - i.count)
            b.shared.land(w, *c.by, c.lane, c.to, c.bytes, c.from, c.from_bytes);
        else
            w.copies[kept++] = c;
    w.copies.resize(kept);
}

/* ---- halves ---- */

void pack(block &, warp &w, const instruction &i, lane_mask mask) {
    each(mask, [&](int lane) {
        const uint32_t low = w.words[i.operand[1] + lane], high = w.words[i.operand[2] + lane];
        w.words[i.operand[0] + 2 * lane] = low, w.words[i.operand[0] + 2 * lane + 1] = high;
    });
}

void unpack(block &, warp &w, const instruction &i, lane_mask mask) {
    each(mask, [&](int lane) {
        const uint32_t *const halves = &w.words[i.operand[0] + 2 * lane];
        const uint32_t low = halves[0], high = halves[1];
        w.words[i.operand[1] + lane] = low, w.words[i.operand[2] + lane] = high;
    });
}

/* ---- lanes together: all lanes that the mask names have arrived ---- */

void meet_warp(block &b, warp &w, const instruction &, lane_mask mask) {
    if (mask == w.live)
        w.syncs++;
    if (mask == w.live && b.beside)
        b.beside->meet(w);
}

/* Computes the minimum or maximum of all lanes, unsigned. */
template <bool greatest> void reduce(block &, warp &w, const instruction &i, lane_mask mask) {
    uint32_t found = greatest ? 0 : ~0u;
    each(mask, [&](int lane) {
        const uint32_t a = w.words[i.operand[1] + lane];
        found = greatest == (a > found) ? a : found;
    });
    each(mask, [&](int lane) { w.words[i.operand[0] + lane] = found; });
}
template void reduce<false>(block &, warp &, const instruction &, lane_mask);
template void reduce<true>(block &, warp &, const instruction &, lane_mask);

void ballot(block &, warp &w, const instruction &i, lane_mask mask) {
    const lane_mask yes = w.predicates[i.operand[1]] ^ (i.source_negated ? ~0u : 0);
    each(mask, [&](int lane) { w.words[i.operand[0] + lane] = yes & mask; });
}

/* Returns the lane from which `lane` takes its value; *inside: it is in the lane's segment. PTX
 * ISA, shfl.sync. */
static int partner(shuffle_kind kind, int lane, uint32_t by, uint32_t bounds, bool *inside) {
    const int segment = (int)(bounds >> 8 & 31), clamp = (int)(bounds & 31), b = (int)(by & 31);
    const int first = lane & segment, last = first | (clamp & ~segment);
    int from = first | (b & ~segment);
    if (kind == BFLY)
        from = lane ^ b;
    else if (kind == UP)
        from = lane - b;
    *inside = kind == UP ? from >= last : from <= last;
    return *inside ? from : lane;
}

template <shuffle_kind kind> void shuffle(block &, warp &w, const instruction &i, lane_mask mask) {
    uint32_t value[LANES] = {};
    lane_mask all_inside = 0;
    each(mask, [&](int lane) {
        bool inside;
        const int from = partner(kind, lane, w.words[i.operand[2] + lane],
                                 w.words[i.operand[3] + lane], &inside);
        if (!(mask >> from & 1))
            fault(w, i, lane, "a shuffle from lane %d, which takes no part", from);
        value[lane] = w.words[i.operand[1] + from];
        all_inside |= (lane_mask)inside << lane;
    });
    store(w, i.operand[0], value, mask);
    if (i.operand[5] != NONE) {
        lane_mask &to = w.predicates[i.operand[5]];
        to = (to & ~mask) | (all_inside & mask);
    }
}
template void shuffle<IDX>(block &, warp &, const instruction &, lane_mask);
template void shuffle<BFLY>(block &, warp &, const instruction &, lane_mask);
template void shuffle<UP>(block &, warp &, const instruction &, lane_mask);

/* Layout in the PTX ISA, "Matrix Fragments for mma.m16n8k32" and ".m8n8k16". With g = lane / 4, q =
 * lane % 4: a register of a has k steps 4 q to 4 q + 3 of row g, odd registers of row g + 8; one of
 * b the same of column g. The upper half of the registers of a and b has the steps 16 further. Sums
 * are of row g, in the upper half g + 8, and columns 2 q and 2 q + 1. */
template <int rows> void multiply_bytes(block &, warp &w, const instruction &i, lane_mask mask) {
    const int high = rows / 8, steps = rows * 2, of_a = high * high, of_b = high;
    int8_t a[rows][32], b[8][32];
    each(mask, [&](int lane) {
        const int g = lane / 4, q = lane % 4;
        for (int n = 0; n < of_a; n++)
            memcpy(&a[g + n % high * 8][n / high * 16 + q * 4], &w.words[i.operand[5 + n] + lane],
                   4);
        for (int n = 0; n < of_b; n++)
            memcpy(&b[g][n * 16 + q * 4], &w.words[i.operand[5 + of_a + n] + lane], 4);
    });
    uint32_t sum[4][LANES] = {};
    each(mask, [&](int lane) {
        for (int n = 0; n < 2 * high; n++) {
            sum[n][lane] = w.words[i.operand[5 + of_a + of_b + n] + lane];
            for (int k = 0; k < steps; k++)
                sum[n][lane] += (uint32_t)(a[lane / 4 + n / 2 * 8][k] * b[lane % 4 * 2 + n % 2][k]);
        }
    });
    for (int n = 0; n < 2 * high; n++)
        store(w, i.operand[n], sum[n], mask);
}
template void multiply_bytes<16>(block &, warp &, const instruction &, lane_mask);
template void multiply_bytes<8>(block &, warp &, const instruction &, lane_mask);

} // namespace ptx
