/* The asynchronous operations of sm_90a: bulk copies, barriers in shared memory that count
 * their bytes (mbarrier), and products by groups of four warps (wgmma). Sections refer to
 * NVIDIA's PTX ISA 9.
 *
 * - barriers.cc  mbarriers and bulk copies (9.7.13.15, 9.7.9.25.4)
 * - stages.cc    shared memory that copies write, threads read and products read
 * - products.cc  wgmma (9.7.15), and registers that warps give each other (9.7.19.5)
 *
 * The emulator is an adversary: copies land late and in random order, products end when they are
 * waited for or at a random earlier moment, and a warp only learns of others by barriers. Its
 * knowledge is a list of the progress of each warp and each barrier: whoever passes a barrier
 * learns what those knew that arrived. Lanes of a warp count as one, except for a read that only a
 * warp's barrier ends. */
#ifndef TESTS_PTX_ASYNCHRONOUS_H
#define TESTS_PTX_ASYNCHRONOUS_H

#include <deque>

#include "tests/ptx/ptx.h"

namespace ptx {

/* For each warp the number of epochs that have ended, then for each barrier its phases. */
typedef std::vector<uint32_t> knowledge;

struct mbarrier {
    uint64_t at;
    int arrivals, missing;  /* of a phase; those still missing */
    int64_t bytes = 0;      /* still missing; negative: came before they were expected */
    uint32_t phases = 0;    /* phases that have ended */
    int maker;              /* the warp that made it */
    uint32_t made_in;       /* the maker's epoch then */
    bool is_fenced = false; /* copies may use it */
    knowledge arriving, ended;
    std::vector<int64_t> passed; /* for each thread: phases that had ended when it last passed */
};

struct bulk_copy {
    const instruction *by;
    const warp *of;
    int lane, bytes;
    uint64_t to;
    const char *from;
    size_t barrier;
    uint32_t phase; /* the barrier's phase when it began */
};

/* The state of a few bytes of shared memory. */
struct unit {
    int barrier = NONE; /* of the copy that wrote it; NONE: no copy did */
    uint32_t phase = 0;
    bool on_its_way = false;
    uint16_t products = 0; /* running products that read it */
};

struct product {
    const instruction *by;
    const product_operands *operands;
    uint64_t a, b; /* descriptors; a is 0 if its operand is in registers */
    bool adds, ended;
    uint32_t group; /* number of its commit group */
};

/* A warp's share of products. */
struct issuer {
    std::deque<product> products; /* not yet waited for */
    uint32_t committed = 0;
    uint64_t issued = 0, now = 1, fenced = 0;
    std::vector<uint32_t> hidden;  /* sums of running products */
    std::vector<uint16_t> writes;  /* for each register: running products that write it */
    std::vector<uint16_t> reads;   /* running products that read it */
    std::vector<int> shape;        /* columns of products that write it */
    std::vector<uint64_t> touched; /* time of its last other use */
    int registers = 0;             /* registers that a thread may use */
};

/* A product that a group's warps issue: it must be the same for all four, in the same order. */
struct issue {
    const instruction *by;
    uint64_t a, b;
    int warps;
};
struct warp_group {
    std::deque<issue> open; /* issued by fewer than four warps */
    uint64_t first = 0;
};

class asynchronous {
    block *of = nullptr;
    std::vector<knowledge> knows; /* for each warp */
    std::vector<mbarrier> barriers;
    std::vector<bulk_copy> copies;
    std::vector<unit> units;
    std::vector<uint32_t> read_in; /* for each unit and warp: epoch of the last read */
    std::vector<issuer> issuers;
    std::vector<warp_group> groups;
    int unit_bytes = 4, lateness = 0;
    long failed_waits = 0; /* since anything else happened */

    size_t warps() const {
        return issuers.size();
    }
    uint32_t epoch(const warp &w) const {
        return knows[(size_t)w.index][(size_t)w.index];
    }
    /* barriers.cc */
    size_t find(const warp &w, const instruction &i, int lane, uint64_t at) const;
    void settle(mbarrier &m, size_t index);
    void land(size_t which);
    /* stages.cc */
    void check_known(const warp &w, const instruction &i, int lane, const unit &u, uint64_t at,
                     const char *what) const;
    void depart(const bulk_copy &c);
    void arrive_at(const bulk_copy &c);
    void hold(const warp &w, const instruction &i, uint64_t at);
    void let_go(const warp &w, uint64_t at);
    /* products.cc */
    void follow(const warp &w, const instruction &i, uint64_t a, uint64_t b);
    void begin_writing(warp &w, const instruction &i, const product_operands &o);
    void execute(warp &w, product &p);
    void finish(warp &w, const product &p);
    template <class F> void each_vector(const warp &w, const product &p, const F &f) const;

  public:
    void begin(block &b);
    /* Checks the state once all threads have ended. */
    void end();
    /* Called before a warp's turn. */
    void turn();
    /* Called when all threads of the block, or all lanes of a warp, have met. */
    void meet();
    void meet(const warp &w) {
        knows[(size_t)w.index][(size_t)w.index]++;
    }

    void init(const warp &w, const instruction &i, int lane, uint64_t at, int arrivals);
    void fence(const warp &w);
    void arrive(const warp &w, const instruction &i, int lane, uint64_t at, int bytes);
    /* Has the phase of that parity ended? */
    bool wait(warp &w, const instruction &i, int lane, uint64_t at, uint32_t parity);
    void copy(const warp &w, const instruction &i, int lane, uint64_t to, uint64_t from, int bytes,
              uint64_t barrier);

    void read(const warp &w, const instruction &i, int lane, uint64_t at, int bytes);

    /* Notes that an instruction other than a product uses registers. */
    void touch(const warp &w, const instruction &i, const std::vector<int> &registers);
    void fence_registers(warp &w);
    void multiply(warp &w, const instruction &i);
    void commit(warp &w);
    void wait_products(warp &w, const instruction &i);
    void set_registers(warp &w, const instruction &i, bool more);
};

/* Makes an entry of the list of registers that an instruction uses. */
inline int register_used(int at, bool writes) {
    return at / LANES * 2 + writes;
}
/* Returns the registers for a thread that nvcc assumes if a block has a multiprocessor for
 * itself. */
int launch_registers(int threads);

/* ---- actions ---- */

action init_barrier, fence_barriers, arrive_barrier, wait_barrier, copy_bulk;
action fence_products, issue_product, commit_products, wait_for_products, more_registers,
    fewer_registers;

} // namespace ptx

#endif
