/* Memory besides shared memory that lanes may access: live allocations, the launch's parameters and
 * the module's constants, to the byte. */
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/ptx.h"

namespace ptx {

enum { ALIGNMENT = 256 }; /* cudaMalloc's alignment */

memory &global_memory() {
    static memory *const all = new memory; /* never destroyed: some users outlive main */
    return *all;
}

void *memory::allocate(size_t size) {
    void *block = aligned_alloc(ALIGNMENT, (size / ALIGNMENT + 1) * ALIGNMENT);
    if (!block)
        return nullptr;
    memset(block, 0xff, size); /* NaNs show reads of unwritten memory */
    const uint64_t at = reinterpret_cast<uint64_t>(block);
    blocks[at] = at + size;
    generation++;
    return block;
}

bool memory::release(void *block) {
    if (blocks.erase(reinterpret_cast<uint64_t>(block)) == 0)
        return false;
    generation++;
    free(block);
    return true;
}

range memory::find(uint64_t at) const {
    range r;
    r.generation = generation;
    auto next = blocks.upper_bound(at);
    if (next == blocks.begin())
        return r;
    --next;
    if (at < next->second)
        r.from = next->first, r.to = next->second;
    return r;
}

bool memory::contains(const void *from, size_t size) const {
    const uint64_t at = reinterpret_cast<uint64_t>(from);
    const range r = find(at);
    return at >= r.from && at < r.to && size <= r.to - at;
}

/* ---- address ranges of state spaces ---- */

template <class T> static range extent_of(const std::vector<T> &v, size_t size) {
    range r;
    r.from = reinterpret_cast<uint64_t>(v.data());
    r.to = r.from + size;
    r.constant = true;
    return r;
}

static bool holds(const range &r, uint64_t at, int bytes) {
    return at >= r.from && at < r.to && (uint64_t)bytes <= r.to - at;
}

using tables = std::map<std::string, std::vector<uint32_t>>;

static range find_table(const tables &all, uint64_t at) {
    for (const auto &[name, words] : all) {
        const range r = extent_of(words, words.size() * sizeof(uint32_t));
        if (holds(r, at, 1))
            return r;
    }
    return range();
}

/* Finds the parameters, constants or tables at an address; these are few, and in the emulator's own
 * memory. */
static range find_constant(const kernel &k, space s, uint64_t at) {
    range r = extent_of(k.parameter_memory, k.parameter_size);
    const bool any = s == space::GENERIC;
    if ((any || s == space::PARAMETER) && holds(r, at, 1))
        return r;
    r = any || s == space::CONSTANT ? find_table(k.home->constants, at) : range();
    return r.to == r.from && (any || s == space::GLOBAL) ? find_table(k.home->tables, at) : r;
}

static range find(const kernel &k, space s, uint64_t at) {
    const range allocated = global_memory().find(at);
    range r = find_constant(k, s, at);
    r.generation = allocated.generation;
    const bool elsewhere = s == space::PARAMETER || s == space::CONSTANT;
    return elsewhere || r.to > r.from ? r : allocated;
}

char *reach(const warp &w, const instruction &i, int lane, space s, uint64_t at, int bytes,
            bool writes) {
    static const char *const name[] = {"any", "global", "shared", "parameter", "constant"};
    if (at % (uint64_t)bytes != 0)
        fault(w, i, lane, "misaligned: %d bytes at %#llx", bytes, (unsigned long long)at);
    if (!holds(i.seen, at, bytes) || !global_memory().is_current(i.seen)) {
        i.seen = find(*w.code, s, at);
        if (!holds(i.seen, at, bytes))
            fault(w, i, lane, "out of bounds: %d bytes at %#llx are not in %s memory%s", bytes,
                  (unsigned long long)at, name[(int)s],
                  i.seen.to > i.seen.from ? ", but begin there" : "");
    }
    if (writes && i.seen.constant)
        fault(w, i, lane, "writes to what is constant");
    return reinterpret_cast<char *>(at);
}

} // namespace ptx
