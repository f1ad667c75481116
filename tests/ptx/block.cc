/* A launch: blocks run in a random order, their warps in a random order, some of them diverged. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "tests/ptx/asynchronous.h"

namespace ptx {

enum { EXIT_FAULT = 99, ONE_SPLIT_IN = 4, POISON = 0x7fc12345 };

/* ---- faults ---- */

[[noreturn]] static void end_program(const char *line) {
    fflush(stdout);
    fprintf(stderr, "ptx: %s\n", line);
    fflush(stderr);
    _exit(EXIT_FAULT); /* not exit: other threads are still running */
}

void die(const char *format, ...) {
    char line[2000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    end_program(line);
}

static uint64_t launches;

void fault(const warp &w, const instruction &i, int lane, const char *format, ...) {
    char what[500], thread[30] = "";
    const block &b = *w.of;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (lane != NONE)
        snprintf(thread, sizeof thread, ", thread %d", w.thread(lane));
    die("%s:%d: `%s`: %s: %s, block (%u, %u)%s, launch %llu, PTX_SEED=%llu",
        b.code->home->name.c_str(), i.line, i.mnemonic, what, b.code->name.c_str(), b.at.x, b.at.y,
        thread, (unsigned long long)launches, (unsigned long long)seed());
}

uint64_t seed() {
    static const uint64_t value =
        getenv("PTX_SEED") ? strtoull(getenv("PTX_SEED"), nullptr, 10) : 1;
    return value;
}

/* ---- a block's warps ---- */

static void fill(warp &w, int at, uint32_t value) {
    for (int l = 0; at != NONE && l < LANES; l++)
        w.words[at + l] = value;
}

static void fill(warp &w, int first, extent value) {
    const uint32_t all[] = {value.x, value.y, value.z};
    for (int d = 0; d < 3; d++)
        fill(w, w.code->special[first + d], all[d]);
}

/* Fills registers that are constant throughout a launch. */
static void prepare(block &b, warp &w, int index) {
    const kernel &k = *b.code;
    w.of = &b, w.code = &k, w.index = index;
    w.words.assign((size_t)k.words, POISON);
    w.predicates.assign((size_t)k.predicates, 0xaaaaaaaa);
    w.predicates[PREDICATE_FALSE] = 0, w.predicates[PREDICATE_TRUE] = ~0u;
    for (const constant_word &c : k.constants)
        w.words[c.at] = c.value;
    fill(w, BLOCK_SIZE, b.size);
    fill(w, GRID_SIZE, b.grid);
    for (int l = 0; l < LANES; l++) {
        const uint32_t thread = (uint32_t)w.thread(l);
        const uint32_t at[] = {thread % b.size.x, thread / b.size.x % b.size.y,
                               thread / b.size.x / b.size.y};
        for (int d = 0; d < 3; d++)
            if (k.special[THREAD + d] != NONE)
                w.words[k.special[THREAD + d] + l] = at[d];
    }
}

static void begin(block &b, warp &w) {
    const int left = (int)(b.size.x * b.size.y * b.size.z) - w.index * LANES;
    w.live = left >= LANES ? ~0u : (1u << left) - 1;
    w.split = b.dice() % ONE_SPLIT_IN == 0;
    memset(w.committed, 0, sizeof w.committed);
    fill(w, BLOCK, b.at);
    add_groups(w, 0, w.live, b.dice);
}

/* ---- barriers ---- */

static int threads_of(const block &b) {
    return (int)(b.size.x * b.size.y * b.size.z);
}

/* Finds the barrier at which all groups of lanes wait; otherwise they wait for ever. */
static const instruction &find_barrier(const block &b) {
    const warp *first = nullptr;
    int at = NONE, there = 0;
    for (const warp &w : b.warps)
        for (const group &g : w.groups) {
            const instruction &i = b.code->code[g.at];
            if (g.is == group::AT_EXCHANGE)
                fault(w, i, NONE, "lanes %#x wait for lanes that do not come", g.lanes);
            if (at != NONE && g.at != at)
                fault(w, i, NONE, "a divergent barrier: others wait in line %d",
                      b.code->code[at].line);
            at = g.at, first = &w;
            there += __builtin_popcount(g.lanes);
        }
    const instruction &i = b.code->code[at];
    if (there != threads_of(b))
        fault(*first, i, NONE, "a barrier for %d threads, of which %d came: others have ended",
              threads_of(b), there);
    return i;
}

/* Tells all threads whether the predicate is true in any of them. */
static void tell_all(block &b, const instruction &i) {
    bool any = false;
    for (const warp &w : b.warps)
        any |= ((w.predicates[i.operand[1]] ^ (i.source_negated ? ~0u : 0)) & w.live) != 0;
    for (warp &w : b.warps)
        w.predicates[i.operand[0]] = (w.predicates[i.operand[0]] & ~w.live) | (any ? w.live : 0);
}

static void pass_barrier(block &b) {
    const instruction &i = find_barrier(b);
    if (i.operand[0] != 0) /* no kernel's predicate is 0: 0 means no result */
        tell_all(b, i);
    b.shared.barrier();
    if (b.beside)
        b.beside->meet();
    for (warp &w : b.warps) {
        const int next = w.groups[0].at + 1;
        w.groups.clear();
        add_groups(w, next, w.live, b.dice);
    }
}

static void run_block(block &b) {
    std::vector<warp *> able;
    b.shared.begin();
    for (warp &w : b.warps)
        begin(b, w);
    if (b.beside)
        b.beside->begin(b);
    for (;;) {
        for (warp &w : b.warps)
            if (!w.groups.empty())
                able.push_back(&w);
        if (able.empty())
            return;
        while (!able.empty()) {
            const size_t which = b.dice() % able.size();
            if (b.beside)
                b.beside->turn();
            if (run_turn(b, *able[which]))
                continue;
            able[which] = able.back();
            able.pop_back();
        }
        bool ended = true;
        for (const warp &w : b.warps) {
            ended &= w.groups.empty();
            if (w.groups.empty() && !w.copies.empty())
                fault(w, *w.copies[0].by, w.copies[0].lane, "a copy that nobody waited for");
        }
        if (ended && b.beside)
            b.beside->end();
        if (ended)
            return;
        pass_barrier(b);
    }
}

/* ---- launches ---- */

static void check_launch(const kernel &k, extent grid, extent size) {
    const uint64_t threads = (uint64_t)size.x * size.y * size.z;
    if (threads == 0 || threads > k.threads_most || size.z > 64)
        die("%s: %llu threads to a block, of at most %u", k.name.c_str(),
            (unsigned long long)threads, k.threads_most);
    if (grid.x > INT32_MAX || grid.y > UINT16_MAX || grid.z != 1)
        die("%s: a grid of %u by %u by %u blocks", k.name.c_str(), grid.x, grid.y, grid.z);
}

uint64_t launch(kernel &k, extent grid, extent size, size_t shared_bytes,
                const void *const *arguments) {
    static block b; /* only one launch runs at a time */
    static asynchronous beside;
    check_launch(k, grid, size);
    launches++;
    for (size_t p = 0; p < k.parameters.size(); p++)
        memcpy(reinterpret_cast<char *>(k.parameter_memory.data()) + k.parameters[p].offset,
               arguments[p], k.parameters[p].size);
    b.code = &k, b.grid = grid, b.size = size, b.instructions = 0;
    b.dice.seed(seed() * 1000003 + launches);
    b.beside = k.is_asynchronous ? &beside : nullptr;
    b.shared.reserve(shared_bytes, k.shared_unit, b.beside);
    b.warps.resize((size_t)(threads_of(b) + LANES - 1) / LANES);
    for (size_t w = 0; w < b.warps.size(); w++)
        prepare(b, b.warps[w], (int)w);
    std::vector<uint32_t> order((size_t)grid.x * grid.y);
    for (size_t n = 0; n < order.size(); n++)
        order[n] = (uint32_t)n;
    std::shuffle(order.begin(), order.end(), b.dice);
    for (const uint32_t n : order) {
        b.at = {n % grid.x, n / grid.x, 0};
        run_block(b);
    }
    return b.instructions;
}

} // namespace ptx
