/* How a warp's lanes run through a kernel: in groups that diverge at branches. A warp in step runs
 * the hindmost group first, so that groups reconverge; in a split warp groups are random from the
 * start and take turns, which a device may also do: only barriers and exchanges bring lanes
 * together. */
#include <limits.h>

#include "tests/ptx/asynchronous.h"

namespace ptx {

enum { TURN_SPLIT = 300, TURN_IN_STEP = 4000 }; /* limits of instructions in a turn */

void add_groups(warp &w, int at, lane_mask lanes, std::mt19937_64 &dice) {
    if (!w.split) {
        w.groups.push_back({at, lanes});
        return;
    }
    const lane_mask a = (lane_mask)dice(), b = (lane_mask)dice();
    for (const lane_mask some : {a & b, a & ~b, ~a & b, ~a & ~b})
        if (lanes & some)
            w.groups.push_back({at, lanes & some});
}

/* ---- which group runs ---- */

static int pick_any(const warp &w, std::mt19937_64 &dice) {
    int found = NONE;
    unsigned seen = 0;
    for (size_t g = 0; g < w.groups.size(); g++)
        if (w.groups[g].is == group::READY && dice() % ++seen == 0)
            found = (int)g;
    return found;
}

/* Picks the hindmost group, joined with others at the same place. */
static int pick_last(warp &w) {
    int found = NONE;
    for (size_t g = 0; g < w.groups.size(); g++) {
        if (w.groups[g].is != group::READY)
            continue;
        if (found != NONE && w.groups[g].at == w.groups[found].at) {
            w.groups[found].lanes |= w.groups[g].lanes;
            w.groups.erase(w.groups.begin() + (long)g--);
        } else if (found == NONE || w.groups[g].at < w.groups[found].at) {
            found = (int)g;
        }
    }
    return found;
}

/* Finds the place where the next group waits for those behind it. */
static int meeting_place(const warp &w, int except) {
    int place = INT_MAX;
    for (size_t g = 0; !w.split && g < w.groups.size(); g++)
        if ((int)g != except && w.groups[g].is == group::READY && w.groups[g].at < place)
            place = w.groups[g].at;
    return place;
}

/* ---- operations that involve more than one group ---- */

static void touch(block &b, const warp &w, int at) {
    if (b.beside && !w.code->touches[(size_t)at].empty())
        b.beside->touch(w, w.code->code[(size_t)at], w.code->touches[(size_t)at]);
}

/* A group waits for the lanes that it names; the last one to arrive continues with all of them. */
static bool exchange(block &b, warp &w, int index) {
    group &g = w.groups[index];
    const instruction &i = w.code->code[g.at];
    if (i.guard != NONE)
        fault(w, i, NONE, "lanes that come together under a guard");
    const uint32_t *const names = &w.words[i.operand[4]];
    lane_mask named = 0;
    for (int l = 0; l < LANES; l++)
        named |= g.lanes >> l & 1 ? names[l] : 0;
    for (int l = 0; l < LANES; l++)
        if ((g.lanes >> l & 1) && (names[l] != named || !(named >> l & 1)))
            fault(w, i, l, "names lanes %#x, others %#x", names[l], named);
    if (named & ~w.live)
        fault(w, i, NONE, "names lanes %#x that have ended, or never were", named & ~w.live);
    g.is = group::AT_EXCHANGE;
    for (size_t o = w.groups.size(); o-- > 0;) {
        group &other = w.groups[o];
        if ((int)o == index || other.is != group::AT_EXCHANGE || other.at != w.groups[index].at)
            continue;
        w.groups[index].lanes |= other.lanes;
        w.groups.erase(w.groups.begin() + (long)o);
        index -= (int)o < index;
    }
    const group together = w.groups[index];
    if (named & ~together.lanes)
        return false;
    if (together.lanes & ~named)
        fault(w, i, NONE, "lanes %#x are there and not named", together.lanes & ~named);
    touch(b, w, together.at);
    i.run(b, w, i, together.lanes);
    w.groups.erase(w.groups.begin() + index);
    add_groups(w, together.at + 1, together.lanes, b.dice);
    return true;
}

/* Ends lanes; groups that wait for them are tried again. */
static void leave(warp &w, int index, lane_mask lanes) {
    w.live &= ~lanes;
    w.groups[index].lanes &= ~lanes;
    w.groups[index].at++;
    if (!w.groups[index].lanes)
        w.groups.erase(w.groups.begin() + index);
    for (group &g : w.groups)
        if (g.is == group::AT_EXCHANGE)
            g.is = group::READY;
}

/* Returns false if lanes diverged; then another group may be next. */
static bool branch(warp &w, int index, const instruction &i, lane_mask taken) {
    group &g = w.groups[index];
    if (taken == 0) {
        g.at++;
    } else if (taken == g.lanes) {
        g.at = i.count;
    } else {
        g.lanes &= ~taken;
        g.at++;
        w.groups.push_back({i.count, taken});
        return false;
    }
    return true;
}

/* ---- turns ---- */

/* Executes an instruction. Returns false if the group cannot continue now. */
static bool step(block &b, warp &w, int index) {
    group &g = w.groups[index];
    const instruction &i = w.code->code[g.at];
    lane_mask mask = g.lanes;
    b.instructions += (uint64_t)__builtin_popcount(g.lanes); /* independent of how lanes diverge */
    if (i.guard != NONE)
        mask &= w.predicates[i.guard] ^ (i.guard_negated ? ~0u : 0);
    switch (i.kind) {
    case flow::NEXT:
        if (mask) {
            touch(b, w, g.at);
            i.run(b, w, i, mask);
        }
        g.at++;
        return true;
    case flow::BRANCH: return branch(w, index, i, mask);
    case flow::RETURN: leave(w, index, mask); return false;
    case flow::BLOCK_BARRIER:
        if (i.guard != NONE)
            fault(w, i, NONE, "a barrier under a guard");
        g.is = group::AT_BARRIER;
        return false;
    case flow::WARP_EXCHANGE: exchange(b, w, index); return false;
    }
    return false;
}

bool run_turn(block &b, warp &w) {
    const int index = w.split ? pick_any(w, b.dice) : pick_last(w);
    if (index == NONE)
        return false;
    const int place = meeting_place(w, index);
    int left = 1 + (int)(b.dice() % (w.split ? TURN_SPLIT : TURN_IN_STEP));
    w.yields = false;
    while (left-- > 0 && w.groups[index].at < place && step(b, w, index) && !w.yields) {
    }
    return true;
}

} // namespace ptx
