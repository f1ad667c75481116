/* Counts kernels' memory requests for each instruction, without a device: kernels that
 * were compiled for ThreadSanitizer report each access to the functions of this file.
 * The k-th execution of an instruction by a warp's lanes between two barriers is one request.
 *
 * - Global memory answers in sectors of 32 bytes. The fewest would hold what is wanted.
 * - Shared memory has 32 banks of 4 bytes: a request takes as many turns as it has words in one
 *   bank. With words of 8 and 16 bytes a half and a quarter of the warp is served at once.
 *
 * Caches and time are not modelled. SIMT_TRAFFIC names a file that gets, when the program ends, a
 * line for each instruction: its offset in this library (hexadecimal), g or s, requests, lanes, and
 * sectors or turns, taken and fewest. */
#include "tests/simt/traffic.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

namespace simt {
namespace traffic {

enum { LANES = 32, SECTOR = 32, BANKS = 32, BANK = 4 };

struct lane_access {
    uintptr_t address;
    size_t size;
    unsigned lane;
};
typedef std::vector<lane_access> request;

struct instruction {
    const void *code;
    bool shared;
    bool operator<(const instruction &o) const {
        return code != o.code ? code < o.code : shared < o.shared;
    }
};
struct counts {
    long requests, lanes, taken, fewest;
};

static bool counting;
static unsigned lane;
static const char *shared;
static size_t shared_size;
static std::map<instruction, counts> all;
static std::map<instruction, std::vector<request>>
    open; /* keyed by how often a lane has executed the instruction */
static std::unordered_map<const void *, size_t> times[LANES][2];

/* Returns the distinct units of `unit` bytes that a request touches. */
static std::vector<uintptr_t> units(const request &r, uintptr_t unit) {
    std::vector<uintptr_t> touched;
    for (const lane_access &a : r)
        for (uintptr_t u = a.address / unit; u <= (a.address + a.size - 1) / unit; u++)
            touched.push_back(u);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    return touched;
}

static void count_global(const request &r, counts *c) {
    const long wanted = (long)(units(r, 1).size() + SECTOR - 1) / SECTOR;
    c->taken += (long)units(r, SECTOR).size();
    c->fewest += wanted;
}

static void count_shared(const request &r, counts *c) {
    const unsigned at_once = r[0].size <= 4 ? LANES : r[0].size == 8 ? LANES / 2 : LANES / 4;
    for (unsigned first = 0; first < LANES; first += at_once) {
        request part;
        long words[BANKS] = {};
        for (const lane_access &a : r)
            if (a.lane >= first && a.lane < first + at_once)
                part.push_back(a);
        for (const uintptr_t word : units(part, BANK))
            words[word % BANKS]++;
        c->taken += *std::max_element(words, words + BANKS);
        c->fewest += !part.empty();
    }
}

static void write_all() {
    const char *name = getenv("SIMT_TRAFFIC");
    FILE *file = name ? fopen(name, "a") : nullptr;
    Dl_info self;
    if (!file || !dladdr(reinterpret_cast<void *>(&write_all), &self))
        return;
    for (const auto &[at, c] : all)
        fprintf(file, "%lx %c %ld %ld %ld %ld\n",
                (unsigned long)(static_cast<const char *>(at.code) -
                                static_cast<const char *>(self.dli_fbase)),
                at.shared ? 's' : 'g', c.requests, c.lanes, c.taken, c.fewest);
    fclose(file);
}

void begin(const char *memory, size_t size) {
    static const int registered = atexit(write_all);
    (void)registered;
    shared = memory, shared_size = size;
    counting = true;
}

void end() {
    counting = false;
}

void run(unsigned which) {
    lane = which;
}

void meet() {
    for (auto &[at, requests] : open) {
        counts *c = &all[at];
        for (const request &r : requests) {
            c->requests++;
            c->lanes += (long)r.size();
            if (at.shared)
                count_shared(r, c);
            else
                count_global(r, c);
        }
    }
    open.clear();
    for (auto &t : times)
        t[0].clear(), t[1].clear();
}

/* Memory that is neither shared nor on the device holds the thread's own variables and
 * arguments. */
void access(const void *code, const void *address, size_t size) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(address);
    const bool in_shared = at - reinterpret_cast<uintptr_t>(shared) < shared_size;
    if (!counting || size == 0 || (!in_shared && !on_device(address)))
        return;
    std::vector<request> &requests = open[{code, in_shared}];
    const size_t nth = times[lane][in_shared][code]++;
    if (requests.size() <= nth)
        requests.resize(nth + 1);
    requests[nth].push_back({at, size, lane});
}

} // namespace traffic
} // namespace simt

/* ---- functions that -fsanitize=thread calls ---- */

#define REPORT(name, size)                                                                         \
    void name(void *address) {                                                                     \
        simt::traffic::access(__builtin_return_address(0), address, size);                         \
    }
#define REPORTS(size)                                                                              \
    REPORT(__tsan_read##size, size)                                                                \
    REPORT(__tsan_write##size, size)                                                               \
    REPORT(__tsan_unaligned_read##size, size)                                                      \
    REPORT(__tsan_unaligned_write##size, size)

extern "C" {
REPORTS(1)
REPORTS(2)
REPORTS(4)
REPORTS(8)
REPORTS(16)
void __tsan_read_range(void *address, unsigned long size) {
    simt::traffic::access(__builtin_return_address(0), address, size);
}
void __tsan_write_range(void *address, unsigned long size) {
    simt::traffic::access(__builtin_return_address(0), address, size);
}
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void *, void *) {}
void __tsan_vptr_read(void *, void *) {}
/* All fibers are in one thread. */
unsigned __tsan_atomic32_fetch_add(volatile unsigned *to, unsigned value, int) {
    const unsigned before = *to;
    *to = before + value;
    return before;
}
unsigned __tsan_atomic32_load(const volatile unsigned *from, int) {
    return *from;
}
void __tsan_atomic32_store(volatile unsigned *to, unsigned value, int) {
    *to = value;
}
char __tsan_atomic8_load(const volatile char *from, int) {
    return *from;
}
void __tsan_atomic_thread_fence(int) {}
}
