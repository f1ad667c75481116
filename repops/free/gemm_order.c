/* The order in which the partial sums of a product are added; see gemm.h. */
#include "repops/free/gemm.h"

/* Returns the step for sum i of `count`, in pieces of `piece` sums. */
static free_step step_of(int64_t i, int64_t count, int64_t piece, int pairwise) {
    int depth, merges;
    const int last = i == count - 1;
    if (pairwise) {
        depth = __builtin_popcountll((uint64_t)i);
        merges = last ? depth : __builtin_ctzll(~(uint64_t)i);
    } else {
        const int later = i >= piece, within = i % piece > 0;
        depth = later + within;
        merges = within + (later && (last || (i + 1) % piece == 0));
    }
    return merges ? (free_step){depth - 1, merges - 1, FREE_ADD} : (free_step){depth, 0, FREE_SET};
}

free_step RO_FREE_NAME(ro_free_run_step)(const free_order *o, int64_t i, int64_t runs) {
    return step_of(i, runs, o->piece, o->pairwise);
}

/* Returns the step for a block's sum. Blocks of a chain continue one slot, which is merged after
 * the last of them. */
free_step RO_FREE_NAME(ro_free_block_step)(const free_order *o, int64_t i) {
    const int64_t chains = ceil_div(o->blocks, o->chain), chain = i / o->chain;
    const int begins = i % o->chain == 0, ends = (i + 1) % o->chain == 0 || i == o->blocks - 1;
    const free_step s = step_of(chain, chains, 1, o->pairwise);
    if (begins && ends)
        return s;
    const int slot = s.slot + (s.mode == FREE_ADD);
    const int merges = s.merges + (s.mode == FREE_ADD);
    return (free_step){slot, ends ? merges : 0, begins ? FREE_SET : FREE_CONTINUE};
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

static int64_t round_to(int64_t x, int64_t unit) {
    return ceil_div(x, unit) * unit;
}

free_order RO_FREE_NAME(ro_free_order)(const ro_profile *p, int64_t k) {
    free_order o = {.k = k, .chain = 1, .pairwise = p->pairwise};
    const int64_t whole = max_i64(1, k), terms = p->split ? min_i64(p->split, whole) : whole;
    if (p->lanes == 1 && terms > FREE_KC) {
        o.chain = ceil_div(terms, FREE_KC);
        o.block = o.run = round_to(ceil_div(terms, o.chain), FREE_RUN);
        o.piece = 1;
    } else {
        o.run = clamp(round_to(ceil_div(terms, p->lanes), FREE_RUN), FREE_RUN, FREE_KC);
        const int64_t piece = round_to(terms, o.run);
        o.block = piece <= FREE_KC ? FREE_KC / piece * piece : FREE_KC / o.run * o.run;
        o.piece = min_i64(piece, o.block) / o.run;
    }
    o.blocks = ceil_div(k, o.block);
    o.slots = 1;
    for (int64_t i = 0; i < o.blocks && o.slots < 64; i++) {
        const free_step s = RO_FREE_NAME(ro_free_block_step)(&o, i);
        o.slots = s.slot + 1 > o.slots ? s.slot + 1 : o.slots;
    }
    return o;
}
