/* A block's shared memory. Two things are checked besides bounds, in whatever order threads run:
 * bytes that an asynchronous copy will write may not be accessed before its thread has waited; and
 * two accesses by two threads, one of them a write, need a barrier in between: the block's, or the
 * warp's if both threads are in one warp. PTX_RACES=0 leaves the latter to be found by random
 * orders. */
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/asynchronous.h"

namespace ptx {

bool watches() {
    static const bool does = !getenv("PTX_RACES") || atoi(getenv("PTX_RACES")) != 0;
    return does;
}

void shared_memory::reserve(size_t bytes_of_block, int smallest, asynchronous *watcher) {
    size = bytes_of_block;
    unit = smallest;
    beside = watcher;
    memory_.resize(size / sizeof memory_[0] + 1);
    traces.assign(size / (size_t)unit + 1, trace());
    barriers = 1;
}

/* The barrier separates this block from traces of earlier blocks. */
void shared_memory::begin() {
    memset(memory_.data(), 0xff, size);
    barrier();
}

void shared_memory::check(const warp &w, const instruction &i, int lane, uint64_t at,
                          int bytes) const {
    if (at % (uint64_t)bytes != 0)
        fault(w, i, lane, "misaligned: %d bytes at %llu of shared memory", bytes,
              (unsigned long long)at);
    if (at >= size || (uint64_t)bytes > size - at)
        fault(w, i, lane, "out of bounds: %d bytes at %llu of %zu bytes of shared memory", bytes,
              (unsigned long long)at, size);
    for (uint64_t n = at / unit; n * unit < at + bytes; n++)
        if (traces[n].on_its_way)
            fault(w, i, lane, "an asynchronous copy to byte %llu of shared memory has not arrived",
                  (unsigned long long)(n * unit));
}

static void race(const warp &w, const instruction &i, int lane, const char *before, int other) {
    if (watches())
        fault(w, i, lane, "a race in shared memory: thread %d %s this, and no barrier lies between",
              other, before);
}

static bool is_of(const warp &w, int thread) {
    return thread / LANES == w.index;
}

void shared_memory::note_read(const warp &w, const instruction &i, int lane, trace &t) const {
    const int thread = w.thread(lane);
    if (t.written_in == barriers && t.writer != thread &&
        !(is_of(w, t.writer) && t.write_syncs < w.syncs))
        race(w, i, lane, "wrote", t.writer);
    const bool first = t.read_in != barriers;
    const bool same_warp = first || is_of(w, t.reader);
    t.many_warps = !first && (t.many_warps || !same_warp);
    t.many_lanes =
        !first && same_warp && t.read_syncs == w.syncs && (t.many_lanes || t.reader != thread);
    t.read_in = barriers, t.read_syncs = w.syncs, t.reader = (uint16_t)thread;
}

void shared_memory::note_write(const warp &w, const instruction &i, int lane, trace &t) const {
    const int thread = w.thread(lane);
    if (t.written_in == barriers && t.writer != thread &&
        !(is_of(w, t.writer) && t.write_syncs < w.syncs))
        race(w, i, lane, "wrote", t.writer);
    if (t.read_in == barriers &&
        (t.many_warps || !is_of(w, t.reader) ||
         (t.read_syncs == w.syncs && (t.many_lanes || t.reader != thread))))
        race(w, i, lane, "read", t.reader);
    t.written_in = barriers, t.write_syncs = w.syncs, t.writer = (uint16_t)thread;
}

char *shared_memory::read(const warp &w, const instruction &i, int lane, uint64_t at, int n) {
    check(w, i, lane, at, n);
    if (beside)
        beside->read(w, i, lane, at, n);
    for (uint64_t u = at / unit; !beside && u * unit < at + n; u++)
        note_read(w, i, lane, traces[u]);
    return bytes(at);
}

char *shared_memory::write(const warp &w, const instruction &i, int lane, uint64_t at, int n) {
    check(w, i, lane, at, n);
    if (beside)
        fault(w, i, lane, "a store to shared memory beside bulk copies, which is not understood");
    for (uint64_t u = at / unit; u * unit < at + n; u++)
        note_write(w, i, lane, traces[u]);
    return bytes(at);
}

/* Atomics do not race with each other, so they are not traced. */
char *shared_memory::atomic(const warp &w, const instruction &i, int lane, uint64_t at, int n) {
    check(w, i, lane, at, n);
    return bytes(at);
}

char *shared_memory::reached(const warp &w, const instruction &i, int lane, uint64_t at, int n) {
    if (at >= size || (uint64_t)n > size - at)
        fault(w, i, lane, "out of bounds: %d bytes at %llu of %zu bytes of shared memory", n,
              (unsigned long long)at, size);
    return bytes(at);
}

void shared_memory::depart(const warp &w, const instruction &i, int lane, uint64_t at, int n) {
    memset(write(w, i, lane, at, n), 0xff, (size_t)n);
    for (uint64_t u = at / unit; u * unit < at + n; u++)
        traces[u].on_its_way = true;
}

void shared_memory::land(const warp &w, const instruction &i, int lane, uint64_t at, int n,
                         const void *from, int from_bytes) {
    for (uint64_t u = at / unit; u * unit < at + n; u++) {
        traces[u].on_its_way = false;
        note_write(w, i, lane, traces[u]);
    }
    memset(bytes(at), 0, (size_t)n);
    if (from_bytes > 0)
        memcpy(bytes(at), from, (size_t)from_bytes);
}

} // namespace ptx
