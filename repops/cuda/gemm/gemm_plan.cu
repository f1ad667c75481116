/* Chooses a tile and the units of k; see gemm_plan.cuh. Times are cycles of one multiprocessor that
 * does 128 multiply-adds per cycle; only their order counts. */
#include "repops/cuda/gemm/gemm_plan.cuh"

struct tile_facts {
    gemm_tile_name name;
    int m, n, blocks; /* blocks: how many a multiprocessor has registers for */
    int threads;      /* threads of a block */
    double rate;      /* fraction of 128 multiply-adds per cycle; flat tiles: as memory allows */
};

template <class Tile> static constexpr tile_facts facts_of(gemm_tile_name name, double rate) {
    return {name, Tile::M, Tile::N, Tile::BLOCKS, Tile::THREADS, rate};
}

static const tile_facts tiles[GEMM_TILES] = {
    facts_of<gemm_large>(GEMM_LARGE, 0.92), facts_of<gemm_medium>(GEMM_MEDIUM, 0.91),
    facts_of<gemm_small>(GEMM_SMALL, 0.80), facts_of<gemm_flat16>(GEMM_FLAT16, 0.60),
    facts_of<gemm_flat8>(GEMM_FLAT8, 0.34),
};

/* From a block's start until its first stage has arrived, and from its last stage to its end. */
static const double block_cycles = 2000;
static const double launch_cycles = 6000; /* launches the kernel that adds sums */
static const double sum_bytes = 24;       /* bytes of sums per multiprocessor and cycle */

/* A tile with the operands of a problem. */
struct candidate {
    const tile_facts *tile;
    int resident; /* blocks on a multiprocessor at a time; 0: none fits */
    int64_t blocks;
};

static candidate candidate_of(const ro_cuda *d, const gemm_problem *p, const tile_facts *t,
                              int bytes) {
    const int fit = d->shared_of_all / (bytes + d->shared_reserve);
    const int resident = bytes > d->shared_memory ? 0 : fit < t->blocks ? fit : t->blocks;
    return {t, resident, ceil_div(p->m, t->m) * ceil_div(p->n, t->n) * p->batch};
}

/* Returns the fraction of the rate that so few warps reach: each scheduler needs three or four. */
static double busy(const ro_cuda *d, const candidate *c, int64_t blocks) {
    const int64_t each = ceil_div(blocks, d->multiprocessors);
    const int64_t warps = (each < c->resident ? each : c->resident) * c->tile->threads / 128;
    return warps >= 4 ? 1.0 : warps == 3 ? 0.96 : warps == 2 ? 0.88 : 0.62;
}

/* Returns how many blocks in sequence take as long as the busiest multiprocessor. Resident blocks
 * end together, and the next blocks go to free multiprocessors. So the last blocks fill some of
 * these and leave others idle. */
static double rounds(const ro_cuda *d, const candidate *c) {
    const int64_t at_once = (int64_t)d->multiprocessors * c->resident;
    return (double)(c->blocks > at_once ? c->resident * ceil_div(c->blocks, at_once)
                                        : ceil_div(c->blocks, d->multiprocessors));
}

struct estimate {
    double cycles;
    int64_t lead;
};

static estimate whole(const ro_cuda *d, const gemm_problem *p, const candidate *c, int64_t chunks) {
    const tile_facts *t = c->tile;
    const double steps = rounds(d, c) * (double)p->k;
    const double rate = 128 * t->rate * busy(d, c, c->blocks);
    return {steps * t->m * t->n / rate + block_cycles, chunks};
}

/* Estimates units. Unit 0 of each tile takes as many chunks as let the other units even out the
 * load. */
static estimate divided(const ro_cuda *d, const gemm_problem *p, const candidate *c,
                        int64_t chunks) {
    const tile_facts *t = c->tile;
    const double size = (double)p->batch * (double)p->m * (double)p->n;
    const double share = (double)c->blocks * (double)chunks / d->multiprocessors;
    const double most = 0.9 * share / rounds(d, c);
    const int64_t lead = most < 1 ? 1 : most >= (double)chunks ? chunks - 1 : (int64_t)most;
    const int64_t units = chunks - lead + 1;
    const double rate = 128 * t->rate * busy(d, c, c->blocks * units);
    const double work = ceil(share) * (double)p->chunk * t->m * t->n / rate;
    const double sums = 8 * size * (double)units / sum_bytes / d->multiprocessors;
    return {work + sums + 2 * block_cycles + launch_cycles, lead};
}

static bool offered(const gemm_problem *p, const candidate *c, bool flat) {
    const tile_facts *t = c->tile;
    if (c->resident == 0)
        return false;
    if (t->name == GEMM_LARGE && p->mask != RO_MASK_NONE)
        return false;
    if (t->name == GEMM_FLAT16 || t->name == GEMM_FLAT8)
        return flat && p->m <= t->m;
    return true;
}

/* Returns whether the sums of at least two units fit into memory. */
static bool divisible(const gemm_problem *p, int64_t chunks) {
    return chunks > 1 && p->m <= GEMM_MOST_SUMS && p->n <= GEMM_MOST_SUMS &&
           p->batch <= GEMM_MOST_SUMS &&
           (double)p->batch * (double)p->m * (double)p->n <= GEMM_MOST_SUMS / 4;
}

gemm_plan ro_gemm_plan(const ro_cuda *d, const gemm_problem *p, const gemm_memory &memory,
                       bool flat) {
    const int64_t chunks = ceil_div(p->k, p->chunk);
    gemm_plan best = {GEMM_SMALL, chunks, chunks};
    double least = HUGE_VAL;
    for (const tile_facts &t : tiles) {
        const candidate c = candidate_of(d, p, &t, memory.bytes[t.name]);
        if (!offered(p, &c, flat))
            continue;
        for (int way = 0; way < (divisible(p, chunks) ? 2 : 1); way++) {
            const estimate e = way ? divided(d, p, &c, chunks) : whole(d, p, &c, chunks);
            if (e.cycles >= least)
                continue;
            least = e.cycles;
            best = {t.name, chunks, e.lead};
        }
    }
    return best;
}
