/* An emulator of PTX: runs the kernels that nvcc compiled on a CPU, warp by warp, and
 * refuses what devices do not guarantee.
 *
 * - module.cc     files of PTX
 * - parse.cc      their kernels, as decoded instructions
 * - mnemonics.cc  the list of mnemonics, and what each does to the lanes of a warp
 * - memory.cc     global memory, parameters, constants: who may touch which bytes
 * - shared.cc     shared memory of a block: bounds, copies on their way, races
 * - asynchronous.h  asynchronous operations of sm_90a: copies, their barriers, products
 * - warp.cc       a warp: groups of lanes that diverge and reconverge
 * - block.cc      a block, its barriers, a launch
 * - runtime.cc    the functions of CUDA's runtime that objects of nvcc call */
#ifndef TESTS_PTX_PTX_H
#define TESTS_PTX_PTX_H

#include <stddef.h>
#include <stdint.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptx {

enum { LANES = 32, THREADS_MOST = 1024, OPERANDS = 15, NONE = -1 };
enum { PREDICATE_FALSE, PREDICATE_TRUE, PREDICATES_FIXED };
enum { THREAD, BLOCK_SIZE = 3, BLOCK = 6, GRID_SIZE = 9, SPECIAL_REGISTERS = 12 };
typedef uint32_t lane_mask; /* bit l is lane l */

struct extent {
    uint32_t x, y, z;
};

/* Ends the program with one line. After a fault an emulated program would compute nonsense. */
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- code ---- */

struct block;
struct warp;
struct instruction;

/* Executes an instruction for the lanes of a mask. */
typedef void action(block &b, warp &w, const instruction &i, lane_mask mask);

/* What decides which instruction is next: the warp, or others that take part. */
enum class flow : uint8_t {
    NEXT,
    BRANCH,
    RETURN,
    BLOCK_BARRIER, /* all threads of the block */
    WARP_EXCHANGE, /* the lanes that the last operand names */
};

enum class space : uint8_t { GENERIC, GLOBAL, SHARED, PARAMETER, CONSTANT };

/* The width of a register; 32 predicates are one word. */
enum class width : uint8_t { PREDICATE, WORD, DOUBLE };

/* A base register, if any, plus an offset. */
struct address {
    int base = NONE;
    width of = width::DOUBLE;
    uint64_t offset = 0;
};

struct range {
    uint64_t from = 0, to = 0;
    bool constant = false;
    uint64_t generation = 0; /* of the allocations at the lookup */
};

struct instruction {
    const char *mnemonic;
    action *run;
    flow kind;
    int line;
    int guard = NONE; /* a predicate register */
    bool guard_negated = false, source_negated = false;
    int operand[OPERANDS] = {}; /* registers; the first is the result */
    address at, from;   /* of a load, store or atomic; from: an asynchronous copy's source */
    address barrier;    /* of the barrier that a bulk copy signals */
    int count = 0;      /* a branch's target, a number of copy groups, or a copy's bytes */
    mutable range seen; /* the allocation accessed last */
};

/* ---- the list: mnemonics.cc ---- */

enum class form : uint8_t {
    VALUES,    /* d, a, b, ... */
    PACK,      /* d, {a, b} or {a, b}, d */
    LOAD,      /* d or {d, ...}, [at] */
    STORE,     /* [at], a or {a, ...} */
    ATOMIC,    /* d, [at], a */
    COPY,      /* [at], [from], bytes, size */
    GROUPS,    /* a number of groups, or none */
    TARGET,    /* a label */
    EXCHANGE,  /* d|p, a, b, c, mask */
    MATRIX,    /* {d, ...}, {a, ...}, {b, ...}, {c, ...} */
    VOTE,      /* d, p, mask */
    MEET_WARP, /* mask */
    REDUCE,    /* d, a, mask */
    INIT,      /* [at], a */
    ARRIVE,    /* _, [at] or _, [at], bytes */
    AWAIT,     /* p, [at], parity */
    BULK,      /* [at], [from], bytes, [barrier] */
    PRODUCT,   /* {d, ...}, a or {a, ...}, b, p; a and b descriptors */
    MEET,      /* barrier 0 */
    MEET_OR,   /* p, barrier 0, p */
    NOTHING,
};

struct operation {
    const char *mnemonic;
    action *run;
    form shape;
    flow kind;
    int count; /* number of operands, or of a vector's elements */
    width of[OPERANDS];
    action *pack = nullptr, *unpack = nullptr; /* the two directions of PACK */
};

/* Returns NULL if the mnemonic is not in the list. */
const operation *find_operation(const std::string &mnemonic);
/* Says why an unlisted mnemonic is refused. */
const char *refusal(const std::string &mnemonic);

/* ---- modules: module.cc, parse.cc ---- */

struct parameter {
    uint32_t offset, size;
};

struct constant_word {
    int at;
    uint32_t value;
};

struct module;

/* The registers of a product by a group of warps. */
struct product_operands {
    int columns = 0;
    std::vector<int> d;
    int a[4] = {NONE, NONE, NONE, NONE}, of_a = NONE, of_b = NONE; /* registers or descriptors */
    int adds = NONE;
};

struct kernel {
    std::string name;
    const module *home = nullptr;
    size_t text = 0; /* offset in the module's text */
    int line = 0;
    bool parsed = false;

    std::vector<parameter> parameters;
    std::vector<__uint128_t> parameter_memory; /* aligned; code contains its address */
    uint32_t parameter_size = 0;
    uint32_t threads_most = THREADS_MOST;
    std::vector<instruction> code;
    std::vector<product_operands> products;
    bool is_asynchronous = false;          /* it uses operations of asynchronous.h */
    std::vector<std::vector<int>> touches; /* if so: the registers that each instruction uses */
    int shared_unit = 4;                   /* bytes of the smallest access to shared memory */
    int words = 0, predicates = PREDICATES_FIXED; /* a warp's registers */
    int special[SPECIAL_REGISTERS];               /* registers of special registers, or NONE */
    std::vector<constant_word> constants;

    kernel() {
        for (int &s : special)
            s = NONE;
    }
};

struct module {
    std::string name, text;
    std::map<std::string, kernel> kernels;
    std::map<std::string, std::vector<uint32_t>> constants,
        tables;         /* in constant memory; in global memory */
    std::string shared; /* name of the launch's dynamic shared memory */
};

/* Reads a file and finds its kernels; each kernel is parsed when it is first asked for. */
std::unique_ptr<module> load_module(const std::string &file);
kernel *find_kernel(module &m, const std::string &name);

/* ---- memory.cc ---- */

class memory {
    std::map<uint64_t, uint64_t> blocks; /* begin and end of each block */
    uint64_t generation = 1;

  public:
    void *allocate(size_t size);
    /* Returns false if nothing was allocated there. */
    bool release(void *block);
    /* Are all these bytes in one block? */
    bool contains(const void *from, size_t size) const;
    /* Returns the block with this address, or an empty range. */
    range find(uint64_t at) const;
    bool is_current(const range &r) const {
        return r.generation == generation;
    }
};

memory &global_memory();

/* ---- shared.cc ---- */

/* The last accesses to a unit of shared memory. */
struct trace {
    uint32_t written_in = 0, read_in = 0;        /* the block's barriers before it; 0: no access */
    uint32_t write_syncs = 0, read_syncs = 0;    /* the warp's barriers before it */
    uint16_t writer = 0, reader = 0;             /* threads; of several readers the last one */
    bool many_lanes = false, many_warps = false; /* several lanes or warps have read it since */
    bool on_its_way = false;                     /* an asynchronous copy will write it */
};

/* Are races and the like faults (PTX_RACES)? */
bool watches();

class asynchronous;

class shared_memory {
    std::vector<__uint128_t> memory_;
    std::vector<trace> traces;
    size_t size = 0;
    int unit = 4;
    uint32_t barriers = 0;
    asynchronous *beside = nullptr; /* checks accesses in place of traces, if not NULL */

    void check(const warp &w, const instruction &i, int lane, uint64_t at, int bytes) const;
    void note_read(const warp &w, const instruction &i, int lane, trace &t) const;
    void note_write(const warp &w, const instruction &i, int lane, trace &t) const;
    char *bytes(uint64_t at) {
        return reinterpret_cast<char *>(memory_.data()) + at;
    }

  public:
    /* Sets the size for a launch's blocks. */
    void reserve(size_t bytes, int smallest, asynchronous *watcher);
    size_t bytes_of_block() const {
        return size;
    }
    /* Begins a block: bytes are 0xff, without accesses. */
    void begin();
    /* Notes the block's barrier: earlier accesses no longer matter. */
    void barrier() {
        barriers++;
    }
    char *read(const warp &w, const instruction &i, int lane, uint64_t at, int bytes);
    char *write(const warp &w, const instruction &i, int lane, uint64_t at, int bytes);
    char *atomic(const warp &w, const instruction &i, int lane, uint64_t at, int bytes);
    /* Returns bytes for a bulk copy, product or barrier; only bounds are checked. */
    char *reached(const warp &w, const instruction &i, int lane, uint64_t at, int bytes);
    /* From here until land() no thread may access these bytes. */
    void depart(const warp &w, const instruction &i, int lane, uint64_t at, int bytes);
    void land(const warp &w, const instruction &i, int lane, uint64_t at, int bytes,
              const void *from, int from_bytes);
};

/* ---- warp.cc ---- */

/* Lanes at the same instruction. */
struct group {
    enum state : uint8_t { READY, AT_BARRIER, AT_EXCHANGE };
    int at;
    lane_mask lanes;
    state is = READY;
};

/* An asynchronous copy that its thread has not yet waited for. */
struct departed {
    int lane, group, bytes, from_bytes;
    uint64_t to;
    const void *from;
    const instruction *by;
};

struct warp {
    std::vector<uint32_t> words; /* registers: for each lane a word, or two adjacent ones */
    std::vector<lane_mask> predicates;
    std::vector<group> groups;
    std::vector<departed> copies;
    int committed[LANES] = {};
    lane_mask live = 0;
    int index = 0;
    bool yields = false; /* its turn ends, as it waits */
    bool split = false;  /* lanes run in random groups; otherwise the hindmost group runs first */
    uint32_t syncs = 0;  /* barriers of the whole warp so far */
    const block *of = nullptr;
    const kernel *code = nullptr;

    int thread(int lane) const {
        return index * LANES + lane;
    }
};

/* Adds lanes as one group, or in a split warp as random groups. */
void add_groups(warp &w, int at, lane_mask lanes, std::mt19937_64 &dice);
/* Runs a group of a warp until it waits, ends or has had its turn. Returns false if none can
 * run. */
bool run_turn(block &b, warp &w);

/* ---- block.cc ---- */

struct block {
    const kernel *code = nullptr;
    extent grid = {}, size = {}, at = {};
    shared_memory shared;
    std::vector<warp> warps;
    std::mt19937_64 dice;
    asynchronous *beside = nullptr; /* for kernels with operations of asynchronous.h, else NULL */
    uint64_t instructions = 0;      /* of all threads in the launch */
};

/* Reports a fault of a lane (NONE: of the warp) with the instruction's place, and ends. */
[[noreturn]] void fault(const warp &w, const instruction &i, int lane, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Returns bytes that a lane reads or writes outside of shared memory. */
char *reach(const warp &w, const instruction &i, int lane, space s, uint64_t at, int bytes,
            bool writes);

/* Runs a kernel; returns the number of instructions that its threads executed. Arguments are as for
 * cudaLaunchKernel. */
uint64_t launch(kernel &k, extent grid, extent size, size_t shared_bytes,
                const void *const *arguments);

/* Returns the value of PTX_SEED, or 1. */
uint64_t seed();

} // namespace ptx

#endif
