/* Products by groups of four warps (wgmma, PTX ISA 9.7.15), and setmaxnreg. Each warp computes 16
 * of the 64 rows, independently: what other warps have waited for does not matter to it. Until a
 * warp has waited, sums are poison, the product's registers may not be used, and nothing may be
 * copied over its operands. */
#include <string.h>

#include "tests/ptx/asynchronous.h"
#include "tests/ptx/lanes.h"

namespace ptx {

enum {
    ROWS = 16, /* rows of a warp */
    STEPS = 32,
    VECTOR = 16,
    COLUMNS_MOST = 256,
    GROUP = 4,
    POISON_SUM = 0x5bad5bad,
    REGISTERS_OF_ALL = 65536,
    REGISTERS_LEAST = 24,
    REGISTERS_MOST = 256,
};

/* ---- operands in shared memory ---- */

/* An operand's descriptor, 9.7.15.5.1.2 ("Shared Memory Matrix Layout", "Matrix Descriptor
 * Format"): bits 0-13, 16-29 and 32-45 are the start, leading and stride byte offsets divided by
 * 16, 49-51 the base offset, 62-63 the swizzling. An operand is K-major: eight rows are one atom,
 * in which a row has 16, 32, 64 or 128 bytes and the stride leads to the next eight rows. Without
 * swizzling the leading offset is the distance of the two halves of 32 steps. With swizzling,
 * vectors of 16 bytes are permuted within an atom: the lowest bits of a vector's number, 1 to 3 by
 * the atom's width, are XORed with the number of its 128-byte line. */
struct descriptor {
    uint64_t start, leading, stride;
    int base, swizzle;

    explicit descriptor(uint64_t d)
        : start((d & 0x3fff) << 4), leading((d >> 16 & 0x3fff) << 4),
          stride((d >> 32 & 0x3fff) << 4), base((int)(d >> 49 & 7)), swizzle((int)(d >> 62)) {}
    /* Returns the address of steps 16 half to 16 half + 15 of a row. */
    uint64_t place(int row, int half) const {
        static const uint64_t width[] = {16, 128, 64, 32}, bits[] = {0, 7, 3, 1};
        const uint64_t eights = start + (uint64_t)(row / 8) * stride;
        if (swizzle == 0)
            return eights + (uint64_t)half * leading + (uint64_t)(row % 8) * VECTOR;
        const uint64_t at = eights + (uint64_t)(row % 8) * width[swizzle] + (uint64_t)half * VECTOR;
        return at ^ (at >> 7 & bits[swizzle]) << 4;
    }
    /* Says what is wrong, or NULL. An atom must begin at a multiple of its size, as swizzling
     * assumes if the base offset is 0, and a row's 32 bytes must be within the atom's width. */
    const char *trouble() const {
        static const uint64_t width[] = {16, 128, 64, 32};
        if (base != 0)
            return "a base offset, which is not understood";
        if (swizzle && start % (8 * width[swizzle]) >= width[swizzle])
            return "a start that is not in the first row of an atom";
        if (swizzle && start % width[swizzle] + STEPS > width[swizzle])
            return "steps that go on beyond the rows of an atom";
        if (swizzle && stride % (8 * width[swizzle]) != 0)
            return "a stride that is no whole number of atoms";
        return nullptr;
    }
};

/* Calls f(row or column, half, address, of_a) for all vectors that a warp's share reads. */
template <class F>
void asynchronous::each_vector(const warp &w, const product &p, const F &f) const {
    const descriptor a(p.a), b(p.b);
    for (int half = 0; half < 2; half++) {
        for (int row = 0; p.operands->of_a != NONE && row < ROWS; row++)
            f(row, half, a.place(w.index % GROUP * ROWS + row, half), true);
        for (int column = 0; column < p.operands->columns; column++)
            f(column, half, b.place(column, half), false);
    }
}

static void check_descriptor(const warp &w, const instruction &i, uint64_t d) {
    const char *const trouble = descriptor(d).trouble();
    if (trouble)
        fault(w, i, NONE, "a descriptor, %#llx, with %s", (unsigned long long)d, trouble);
}

/* ---- issuing ---- */

/* All warps of a group must issue the same product: 9.7.15.5. */
void asynchronous::follow(const warp &w, const instruction &i, uint64_t a, uint64_t b) {
    warp_group &g = groups[(size_t)w.index / GROUP];
    const uint64_t number = issuers[(size_t)w.index].issued++;
    if ((size_t)(w.index / GROUP * GROUP + GROUP) > warps())
        fault(w, i, NONE, "a product by a group of less than four warps");
    if (number - g.first == g.open.size())
        g.open.push_back({&i, a, b, 0});
    issue &first = g.open[number - g.first];
    if (first.by != &i || first.a != a || first.b != b)
        fault(w, i, NONE,
              "another product than that of the group's other warps, which is in line %d",
              first.by->line);
    first.warps++;
    while (!g.open.empty() && g.open.front().warps == GROUP)
        g.open.pop_front(), g.first++;
}

/* A wgmma.fence must come before the first product, and between another use of a product's
 * registers and the product, but not between products of one shape that add to the same sums:
 * 9.7.15.7.1. */
static void check_fence(const warp &w, const instruction &i, const issuer &s, int at) {
    if (s.fenced == 0)
        fault(w, i, NONE, "a product before any wgmma.fence");
    if (s.touched[(size_t)at / LANES] > s.fenced)
        fault(w, i, NONE, "a product has a register that was used since the last wgmma.fence");
}

void asynchronous::begin_writing(warp &w, const instruction &i, const product_operands &o) {
    issuer &s = issuers[(size_t)w.index];
    for (const int at : o.d) {
        const size_t r = (size_t)at / LANES;
        check_fence(w, i, s, at);
        if (s.reads[r] > 0)
            fault(w, i, NONE, "a product writes a register that one before it reads");
        if (s.writes[r] > 0 && s.shape[r] != o.columns)
            fault(w, i, NONE,
                  "a product adds to sums of one of another shape that was not waited for");
        if (s.writes[r]++ == 0)
            for (int l = 0; l < LANES; l++)
                s.hidden[(size_t)(at + l)] = w.words[(size_t)(at + l)],
                                       w.words[(size_t)(at + l)] = POISON_SUM;
        s.shape[r] = o.columns;
    }
    for (int n = 0; o.of_a == NONE && n < 4; n++) {
        check_fence(w, i, s, o.a[n]);
        if (s.writes[(size_t)o.a[n] / LANES] > 0)
            fault(w, i, NONE, "a product reads a register that one before it writes");
        s.reads[(size_t)o.a[n] / LANES]++;
    }
}

static uint64_t common(const warp &w, const instruction &i, int at) {
    const source<uint64_t> lanes(w, at);
    for (int l = 1; l < LANES; l++)
        if (lanes[l] != lanes[0])
            fault(w, i, l, "another descriptor than that of the warp's other lanes");
    return lanes[0];
}

void asynchronous::multiply(warp &w, const instruction &i) {
    const product_operands &o = of->code->products[(size_t)i.count];
    issuer &s = issuers[(size_t)w.index];
    const lane_mask adds = w.predicates[(size_t)o.adds];
    product p = {&i, &o, 0, common(w, i, o.of_b), adds != 0, false, s.committed};
    if (o.of_a != NONE)
        check_descriptor(w, i, p.a = common(w, i, o.of_a));
    check_descriptor(w, i, p.b);
    if (adds != 0 && adds != ~0u)
        fault(w, i, NONE, "some lanes add, some do not");
    follow(w, i, p.a, p.b);
    begin_writing(w, i, o);
    each_vector(w, p, [&](int, int, uint64_t at, bool) {
        of->shared.reached(w, i, NONE, at, VECTOR);
        hold(w, i, at);
    });
    s.products.push_back(p);
    if (of->dice() % 4 == 0) /* all running products end now, or only one of them */
        for (product &q : s.products)
            execute(w, q);
}

/* ---- computing ---- */

/* Fragments of m64nNk32, 9.7.15.5.1.1: those of mma.m16n8k32 for every eight columns. */
void asynchronous::execute(warp &w, product &p) {
    int16_t a[ROWS][STEPS], b[COLUMNS_MOST][STEPS];
    issuer &s = issuers[(size_t)w.index];
    if (p.ended)
        return;
    p.ended = true;
    each_vector(w, p, [&](int n, int half, uint64_t at, bool of_a) {
        const char *const from = of->shared.reached(w, *p.by, NONE, at, VECTOR);
        for (int k = 0; k < VECTOR; k++)
            (of_a ? a[n] : b[n])[half * VECTOR + k] = (int8_t)from[k];
    });
    for (int n = 0; p.operands->of_a == NONE && n < 4; n++)
        for (int l = 0; l < LANES; l++)
            for (int k = 0; k < 4; k++)
                a[l / 4 + n % 2 * 8][n / 2 * 16 + l % 4 * 4 + k] =
                    (int8_t)(w.words[(size_t)(p.operands->a[n] + l)] >> (8 * k));
    for (size_t n = 0; n < p.operands->d.size(); n++) {
        uint32_t *const sums = &s.hidden[(size_t)p.operands->d[n]];
        for (int l = 0; l < LANES; l++) {
            const int16_t *const row = a[l / 4 + (int)(n % 4 / 2) * 8];
            const int16_t *const column = b[n / 4 * 8 + (size_t)(l % 4 * 2) + n % 2];
            int sum = 0;
            for (int k = 0; k < STEPS; k++)
                sum += row[k] * column[k];
            sums[l] = (p.adds ? sums[l] : 0) + (uint32_t)sum;
        }
    }
}

/* ---- waiting: 9.7.15.7.2 and 9.7.15.7.3 ---- */

void asynchronous::fence_registers(warp &w) {
    issuer &s = issuers[(size_t)w.index];
    s.fenced = s.now++;
}

void asynchronous::commit(warp &w) {
    issuers[(size_t)w.index].committed++;
}

void asynchronous::finish(warp &w, const product &p) {
    issuer &s = issuers[(size_t)w.index];
    for (const int at : p.operands->d)
        if (--s.writes[(size_t)at / LANES] == 0)
            memcpy(&w.words[(size_t)at], &s.hidden[(size_t)at], LANES * sizeof(uint32_t));
    for (int n = 0; p.operands->of_a == NONE && n < 4; n++)
        s.reads[(size_t)p.operands->a[n] / LANES]--;
    each_vector(w, p, [&](int, int, uint64_t at, bool) { let_go(w, at); });
}

/* Ends all groups of products except the last i.count; uncommitted products belong to none. */
void asynchronous::wait_products(warp &w, const instruction &i) {
    issuer &s = issuers[(size_t)w.index];
    while (!s.products.empty() &&
           (int64_t)s.products.front().group < (int64_t)s.committed - i.count) {
        execute(w, s.products.front());
        finish(w, s.products.front());
        s.products.pop_front();
    }
    failed_waits = 0;
    meet(w);
}

/* ---- other uses of registers ---- */

void asynchronous::touch(const warp &w, const instruction &i, const std::vector<int> &registers) {
    issuer &s = issuers[(size_t)w.index];
    s.now++;
    for (const int t : registers) {
        const size_t r = (size_t)t / 2;
        if (s.writes[r] > 0 && watches())
            fault(w, i, NONE, "uses a sum of a product that was not waited for");
        if (s.reads[r] > 0 && t % 2 && watches())
            fault(w, i, NONE, "writes a register that a product which was not waited for reads");
        s.touched[r] = s.now;
    }
}

/* Returns the registers for each thread that nvcc assumes if a block has a multiprocessor for
 * itself. */
int launch_registers(int threads) {
    const int each = REGISTERS_OF_ALL / threads / 8 * 8;
    return each < REGISTERS_MOST - 1 ? each : REGISTERS_MOST - 8;
}

void asynchronous::set_registers(warp &w, const instruction &i, bool more) {
    issuer &s = issuers[(size_t)w.index];
    if (i.count < REGISTERS_LEAST || i.count > REGISTERS_MOST || i.count % 8)
        fault(w, i, NONE, "%d registers, not a multiple of 8 from %d to %d", i.count,
              (int)REGISTERS_LEAST, (int)REGISTERS_MOST);
    if (more ? i.count < s.registers : i.count > s.registers)
        fault(w, i, NONE, "%d registers %s %d", i.count,
              more ? "are not more than" : "are more than", s.registers);
    s.registers = i.count;
}

void asynchronous::end() {
    int registers = 0, same = 0;
    for (size_t n = 0; n < issuers.size(); n++) {
        const issuer &s = issuers[n];
        registers += s.registers;
        same += s.registers == issuers[n / GROUP * GROUP].registers;
        if (!s.products.empty())
            fault(of->warps[n], *s.products[0].by, NONE, "a product that nobody waited for");
    }
    for (const warp_group &g : groups)
        if (!g.open.empty())
            fault(of->warps[0], *g.open[0].by, NONE,
                  "a product that not all warps of a group issued");
    if (!copies.empty())
        fault(*copies[0].of, *copies[0].by, copies[0].lane, "a bulk copy that nobody waited for");
    if (same != (int)issuers.size())
        die("%s: setmaxnreg by some warps of a group only", of->code->name.c_str());
    const int threads = (int)warps() * LANES, have = launch_registers(threads) * threads;
    if (registers * LANES > have)
        die("%s: setmaxnreg: the block's warps want %d registers, and have %d",
            of->code->name.c_str(), registers * LANES, have);
}

/* ---- actions, which need all lanes of a warp ---- */

static void all_lanes(const warp &w, const instruction &i, lane_mask mask) {
    if (mask != ~0u)
        fault(w, i, NONE, "by lanes %#x, not by all of the warp", mask);
}

void fence_products(block &b, warp &w, const instruction &i, lane_mask mask) {
    all_lanes(w, i, mask), b.beside->fence_registers(w);
}
void issue_product(block &b, warp &w, const instruction &i, lane_mask mask) {
    all_lanes(w, i, mask), b.beside->multiply(w, i);
}
void commit_products(block &b, warp &w, const instruction &i, lane_mask mask) {
    all_lanes(w, i, mask), b.beside->commit(w);
}
void wait_for_products(block &b, warp &w, const instruction &i, lane_mask mask) {
    all_lanes(w, i, mask), b.beside->wait_products(w, i);
}
void more_registers(block &b, warp &w, const instruction &i, lane_mask mask) {
    all_lanes(w, i, mask), b.beside->set_registers(w, i, true);
}
void fewer_registers(block &b, warp &w, const instruction &i, lane_mask mask) {
    all_lanes(w, i, mask), b.beside->set_registers(w, i, false);
}

} // namespace ptx
