/* Shared memory of kernels with bulk copies: which accesses are allowed. A warp may access bytes
 * that a copy brings once it has passed the barrier that the copy signals, or has learnt of it from
 * a warp that did. A copy may only be issued to bytes that nothing reads or will read. */
#include <string.h>

#include "tests/ptx/asynchronous.h"

namespace ptx {

enum { LATENESSES = 4 };

void asynchronous::begin(block &b) {
    const size_t count = b.warps.size();
    of = &b;
    unit_bytes = b.code->shared_unit;
    knows.assign(count, knowledge(count, 0));
    for (size_t w = 0; w < count; w++)
        knows[w][w] = 1;
    barriers.clear(), copies.clear();
    units.assign(b.shared.bytes_of_block() / (size_t)unit_bytes + 1, unit());
    read_in.assign(units.size() * count, 0);
    issuers.assign(count, issuer());
    groups.assign((count + 3) / 4, warp_group());
    for (issuer &s : issuers) {
        const size_t registers = (size_t)b.code->words / LANES;
        s.hidden.resize((size_t)b.code->words);
        s.writes.resize(registers), s.reads.resize(registers), s.shape.resize(registers);
        s.touched.resize(registers);
        s.registers = launch_registers((int)count * LANES);
    }
    lateness = (int)(b.dice() % LATENESSES);
    failed_waits = 0;
}

void asynchronous::meet() {
    knowledge all(warps() + barriers.size(), 0);
    for (const knowledge &k : knows)
        for (size_t n = 0; n < k.size(); n++)
            all[n] = all[n] > k[n] ? all[n] : k[n];
    for (size_t w = 0; w < knows.size(); w++)
        knows[w] = all, knows[w][w]++;
}

/* A copy may still be running for a warp that does not know of its end. */
void asynchronous::check_known(const warp &w, const instruction &i, int lane, const unit &u,
                               uint64_t at, const char *what) const {
    if (u.on_its_way)
        fault(w, i, lane,
              "%s byte %llu of shared memory, to which an asynchronous copy has not "
              "arrived",
              what, (unsigned long long)at);
    if (watches() && u.barrier != NONE &&
        knows[(size_t)w.index][warps() + (size_t)u.barrier] <= u.phase)
        fault(w, i, lane,
              "a race in shared memory: %s byte %llu, and phase %u of the barrier at %llu, "
              "by which a copy brought it, was not waited for",
              what, (unsigned long long)at, u.phase,
              (unsigned long long)barriers[(size_t)u.barrier].at);
}

void asynchronous::read(const warp &w, const instruction &i, int lane, uint64_t at, int bytes) {
    for (uint64_t n = at / (uint64_t)unit_bytes; n * (uint64_t)unit_bytes < at + (uint64_t)bytes;
         n++) {
        const unit &u = units[n];
        check_known(w, i, lane, u, n * (uint64_t)unit_bytes, "reads");
        if (u.barrier == NONE)
            fault(w, i, lane, "reads byte %llu of shared memory, which nobody wrote",
                  (unsigned long long)(n * (uint64_t)unit_bytes));
        read_in[n * warps() + (size_t)w.index] = epoch(w);
    }
}

/* The bytes are undefined until the copy lands. */
void asynchronous::depart(const bulk_copy &c) {
    const warp &w = *c.of;
    memset(of->shared.reached(w, *c.by, c.lane, c.to, c.bytes), 0xff, (size_t)c.bytes);
    for (const mbarrier &m : barriers)
        if (m.at < c.to + (uint64_t)c.bytes && c.to < m.at + sizeof(uint64_t))
            fault(w, *c.by, c.lane, "copies over the barrier at %llu", (unsigned long long)m.at);
    for (uint64_t n = c.to / (uint64_t)unit_bytes;
         n * (uint64_t)unit_bytes < c.to + (uint64_t)c.bytes; n++) {
        unit &u = units[n];
        const unsigned long long at = n * (uint64_t)unit_bytes;
        if (u.products > 0 && watches())
            fault(w, *c.by, c.lane,
                  "copies to byte %llu of shared memory, which a product that was not "
                  "waited for reads",
                  at);
        check_known(w, *c.by, c.lane, u, at, "copies to");
        for (size_t reader = 0; watches() && reader < warps(); reader++)
            if (reader != (size_t)w.index &&
                read_in[n * warps() + reader] > knows[(size_t)w.index][reader])
                fault(w, *c.by, c.lane,
                      "a race in shared memory: copies to byte %llu, which warp %zu "
                      "read, and no barrier lies between",
                      at, reader);
        u.on_its_way = true;
    }
}

void asynchronous::arrive_at(const bulk_copy &c) {
    memcpy(of->shared.reached(*c.of, *c.by, c.lane, c.to, c.bytes), c.from, (size_t)c.bytes);
    for (uint64_t n = c.to / (uint64_t)unit_bytes;
         n * (uint64_t)unit_bytes < c.to + (uint64_t)c.bytes; n++)
        units[n].on_its_way = false, units[n].barrier = (int)c.barrier, units[n].phase = c.phase;
}

/* ---- operands of products, in vectors of sixteen bytes ---- */

void asynchronous::hold(const warp &w, const instruction &i, uint64_t at) {
    for (uint64_t n = at / (uint64_t)unit_bytes; n * (uint64_t)unit_bytes < at + 16; n++) {
        unit &u = units[n];
        check_known(w, i, NONE, u, n * (uint64_t)unit_bytes, "multiplies");
        if (u.barrier == NONE)
            fault(w, i, NONE, "multiplies byte %llu of shared memory, which nobody wrote",
                  (unsigned long long)(n * (uint64_t)unit_bytes));
        u.products++;
    }
}

void asynchronous::let_go(const warp &w, uint64_t at) {
    for (uint64_t n = at / (uint64_t)unit_bytes; n * (uint64_t)unit_bytes < at + 16; n++) {
        units[n].products--;
        read_in[n * warps() + (size_t)w.index] = epoch(w);
    }
}

} // namespace ptx
