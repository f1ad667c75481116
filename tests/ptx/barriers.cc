/* Barriers in shared memory (mbarrier) that count arrivals and bytes, and the copies that signal
 * them. PTX ISA 9.7.13.15: a phase ends when no arrival is missing and the byte count is 0; then
 * the next one begins. A wait by parity passes if the last phase that has ended has that parity
 * (before any has, if the parity is that of a phase before the first). */
#include <algorithm>

#include "tests/ptx/asynchronous.h"
#include "tests/ptx/transfers.h"

namespace ptx {

enum {
    BARRIER_BYTES = 8,
    BULK_ALIGNMENT = 16,
    ARRIVALS_MOST = (1 << 20) - 1,
    WAITS_MOST = 100000, /* failed waits in a row, after which nothing will come */
};

static void learn(knowledge &to, const knowledge &from) {
    if (to.size() < from.size())
        to.resize(from.size());
    for (size_t n = 0; n < from.size(); n++)
        to[n] = to[n] > from[n] ? to[n] : from[n];
}

size_t asynchronous::find(const warp &w, const instruction &i, int lane, uint64_t at) const {
    for (size_t n = 0; n < barriers.size(); n++)
        if (barriers[n].at == at) {
            const mbarrier &m = barriers[n];
            if (m.maker != w.index && knows[(size_t)w.index][(size_t)m.maker] < m.made_in)
                fault(w, i, lane,
                      "uses the barrier at %llu, which warp %d made, and has not met it",
                      (unsigned long long)at, m.maker);
            return n;
        }
    fault(w, i, lane, "no barrier was made at %llu of shared memory", (unsigned long long)at);
}

void asynchronous::init(const warp &w, const instruction &i, int lane, uint64_t at, int arrivals) {
    mbarrier m = {};
    if (arrivals < 1 || arrivals > ARRIVALS_MOST)
        fault(w, i, lane, "a barrier of %d arrivals", arrivals);
    for (const mbarrier &other : barriers)
        if (at < other.at + BARRIER_BYTES && other.at < at + BARRIER_BYTES)
            fault(w, i, lane, "a barrier where there is one, at %llu",
                  (unsigned long long)other.at);
    if (at % BARRIER_BYTES)
        fault(w, i, lane, "misaligned: a barrier at %llu", (unsigned long long)at);
    of->shared.reached(w, i, lane, at, BARRIER_BYTES);
    m.at = at, m.arrivals = m.missing = arrivals;
    m.maker = w.index, m.made_in = epoch(w);
    m.passed.assign(warps() * LANES, NONE);
    barriers.push_back(m);
    for (knowledge &k : knows)
        k.resize(warps() + barriers.size());
}

void asynchronous::fence(const warp &w) {
    for (mbarrier &m : barriers)
        m.is_fenced |= m.maker == w.index;
}

/* Ends a phase for which nothing is missing. */
void asynchronous::settle(mbarrier &m, size_t index) {
    if (m.missing > 0 || m.bytes != 0)
        return;
    m.missing = m.arrivals, m.phases++;
    learn(m.ended, m.arriving);
    m.ended.resize(warps() + barriers.size());
    m.ended[warps() + index] = m.phases;
    m.arriving.clear();
}

/* Threads that pass learn what this warp knows, and what its lanes did before they last met. */
void asynchronous::arrive(const warp &w, const instruction &i, int lane, uint64_t at, int bytes) {
    const size_t index = find(w, i, lane, at);
    mbarrier &m = barriers[index];
    failed_waits = 0;
    if (m.missing == 0)
        fault(w, i, lane,
              "an arrival too many at the barrier at %llu: phase %u has its %d, and %lld "
              "bytes are missing",
              (unsigned long long)at, m.phases, m.arrivals, (long long)m.bytes);
    if (m.phases > 0 && std::find(m.passed.begin(), m.passed.end(), m.phases) == m.passed.end())
        fault(
            w, i, lane,
            "arrives at the barrier at %llu for phase %u, and nobody has waited for the one before",
            (unsigned long long)at, m.phases);
    if (bytes < 0 || bytes > ARRIVALS_MOST)
        fault(w, i, lane, "expects %d bytes", bytes);
    knowledge own = knows[(size_t)w.index];
    own[(size_t)w.index]--;
    learn(m.arriving, own);
    m.bytes += bytes, m.missing--;
    settle(m, index);
}

bool asynchronous::wait(warp &w, const instruction &i, int lane, uint64_t at, uint32_t parity) {
    mbarrier &m = barriers[find(w, i, lane, at)];
    int64_t &passed = m.passed[(size_t)w.thread(lane)];
    if (parity > 1)
        fault(w, i, lane, "waits for parity %u", parity);
    if ((m.phases & 1) == parity) {
        if (copies.empty() && ++failed_waits > WAITS_MOST)
            fault(w, i, lane,
                  "waits for phase %u of the barrier at %llu, which never ends: %d "
                  "arrivals and %lld bytes are missing",
                  m.phases, (unsigned long long)at, m.missing, (long long)m.bytes);
        w.yields = true;
        return false;
    }
    if (passed == m.phases)
        fault(w, i, lane,
              "passes the barrier at %llu by phase %lld, as it did before: a wrong parity",
              (unsigned long long)at, (long long)m.phases - 1);
    passed = m.phases, failed_waits = 0;
    learn(knows[(size_t)w.index], m.ended);
    return true;
}

/* ---- copies: 9.7.9.25.4 ---- */

void asynchronous::copy(const warp &w, const instruction &i, int lane, uint64_t to, uint64_t from,
                        int bytes, uint64_t barrier) {
    const char *const source = reinterpret_cast<const char *>(from);
    const size_t index = find(w, i, lane, barrier);
    if (bytes <= 0 || bytes % BULK_ALIGNMENT || to % BULK_ALIGNMENT || from % BULK_ALIGNMENT)
        fault(w, i, lane,
              "misaligned: a bulk copy of %d bytes to %llu of shared memory, from %#llx", bytes,
              (unsigned long long)to, (unsigned long long)from);
    if (!global_memory().contains(source, (size_t)bytes))
        fault(w, i, lane, "out of bounds: %d bytes at %#llx are not in global memory", bytes,
              (unsigned long long)from);
    if (!barriers[index].is_fenced)
        fault(w, i, lane, "a copy to a barrier, after whose making there was no fence");
    copies.push_back({&i, &w, lane, bytes, to, source, index, barriers[index].phases});
    failed_waits = 0;
    depart(copies.back());
}

void asynchronous::land(size_t which) {
    const bulk_copy c = copies[which];
    mbarrier &m = barriers[c.barrier];
    copies[which] = copies.back();
    copies.pop_back();
    failed_waits = 0;
    if (m.phases != c.phase)
        fault(*c.of, *c.by, c.lane,
              "%d bytes that are copied in phase %u of the barrier at %llu come "
              "in phase %u: fewer were expected",
              c.bytes, c.phase, (unsigned long long)m.at, m.phases);
    arrive_at(c);
    m.bytes -= c.bytes;
    if (m.bytes < 0 && m.missing == 0)
        fault(*c.of, *c.by, c.lane,
              "%lld bytes too many come in phase %u of the barrier at %llu: fewer were expected",
              (long long)-m.bytes, m.phases, (unsigned long long)m.at);
    settle(m, c.barrier);
}

/* Lands copies: some soon, some late, some only when no thread can go on without them. */
void asynchronous::turn() {
    static const long waits[] = {0, 0, 50, 1000};
    static const uint64_t one_in[] = {4, 64, 16, 16};
    if (!copies.empty() && failed_waits + 1 >= waits[lateness] &&
        of->dice() % one_in[lateness] == 0)
        land(of->dice() % copies.size());
    else if (!copies.empty())
        failed_waits++;
}

/* ---- actions ---- */

void init_barrier(block &b, warp &w, const instruction &i, lane_mask mask) {
    each(mask, [&](int lane) {
        b.beside->init(w, i, lane, address_of(w, i.at, lane), (int)w.words[i.operand[0] + lane]);
    });
}

void fence_barriers(block &b, warp &w, const instruction &, lane_mask) {
    b.beside->fence(w);
}

void arrive_barrier(block &b, warp &w, const instruction &i, lane_mask mask) {
    each(mask, [&](int lane) {
        b.beside->arrive(w, i, lane, address_of(w, i.at, lane),
                         i.operand[0] == NONE ? 0 : (int)w.words[i.operand[0] + lane]);
    });
}

void wait_barrier(block &b, warp &w, const instruction &i, lane_mask mask) {
    lane_mask ended = 0;
    each(mask, [&](int lane) {
        const uint32_t parity = w.words[i.operand[1] + lane];
        ended |= (lane_mask)b.beside->wait(w, i, lane, address_of(w, i.at, lane), parity) << lane;
    });
    lane_mask &to = w.predicates[i.operand[0]];
    to = (to & ~mask) | ended;
}

void copy_bulk(block &b, warp &w, const instruction &i, lane_mask mask) {
    each(mask, [&](int lane) {
        b.beside->copy(w, i, lane, address_of(w, i.at, lane), address_of(w, i.from, lane),
                       (int)w.words[i.operand[0] + lane], address_of(w, i.barrier, lane));
    });
}

} // namespace ptx
