/* Runs kernels as fibers, see cuda_runtime.h. Compiled without -fsanitize=thread even if kernels
 * are compiled with it (SIMT_TSAN): the sanitizer sees the kernels' accesses, and barriers as
 * announced to it. */
#include "cuda_runtime.h"
#include "traffic.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <string>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(SIMT_TSAN)
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *object);
void __tsan_release(void *object);
void __tsan_write_range(void *address, unsigned long size);
void __tsan_read_range(void *address, unsigned long size);
}
enum { NO_SYNC = 1 };
#else
#define __tsan_acquire(object)            ((void)(object))
#define __tsan_release(object)            ((void)(object))
#define __tsan_write_range(address, size) ((void)(address))
#define __tsan_read_range(address, size)  ((void)(address))
#endif

namespace simt {

enum { WARP = 32, STACK = 128 << 10, MOST_THREADS = 1024, MOST_COPIES = 1024 };
enum state { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };

struct copy {
    char *to;
    const char *from;
    size_t size, from_size;
    int group;
};

struct fiber {
#if defined(__x86_64__)
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    state at;
    unsigned index; /* in the block */
    uint64_t given; /* value given to the warp */
    unsigned mask;
    std::vector<copy> copies; /* not yet landed */
    int group;
    void *sanitizer;
};

/* Successive barriers use two objects in turn: with one, a thread's accesses after the first
 * barrier would seem to happen before others' accesses before the second. */
struct barrier {
    char object[2];
    int phase;
};

static std::vector<fiber> fibers;
static std::vector<char *> stacks;
static fiber *current;
static const std::function<void()> *body;
static dim3 grid, block;
static uint3 block_at;
static barrier block_barrier, warp_barrier[MOST_THREADS / WARP];
static char started, ended;
static char *shared;
static uint64_t random_state;
#if defined(__x86_64__)
static void *scheduler_stack;
#else
static ucontext_t scheduler_context;
#endif
#if defined(SIMT_TSAN)
static void *scheduler_fiber;
#endif

[[noreturn]] static void stop(const char *why) {
    fprintf(stderr, "simt: block (%u, %u, %u): %s\n", block_at.x, block_at.y, block_at.z, why);
    abort();
}

/* ---- random order ---- */

static unsigned below(unsigned count) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 33) % count);
}

template <class T> static void shuffle(std::vector<T> &list) {
    for (size_t i = list.size(); i > 1; i--)
        std::swap(list[i - 1], list[below((unsigned)i)]);
}

static uint64_t launch_count;
long launched() {
    return (long)launch_count;
}
/* Seeds by SIMT_SEED and the launch's number. */
static void seed_launch() {
    const char *text = getenv("SIMT_SEED");
    const uint64_t seed = text ? strtoull(text, nullptr, 10) : 1;
    random_state = (seed * 1000003 + ++launch_count) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    below(1);
}

/* ---- memory accesses hidden from the sanitizer ---- */

/* The sanitizer would see memcpy and memset as the scheduler's accesses. */
static void fill_bytes(void *to, uint8_t value, size_t size) {
    volatile uint8_t *p = static_cast<volatile uint8_t *>(to);
    for (size_t i = 0; i < size; i++)
        p[i] = value;
}

static void copy_bytes(void *to, const void *from, size_t size) {
    volatile uint8_t *p = static_cast<volatile uint8_t *>(to);
    for (size_t i = 0; i < size; i++)
        p[i] = static_cast<const uint8_t *>(from)[i];
}

/* ---- switching ---- */

#if defined(__x86_64__)
extern "C" void simt_switch(void **save, void *to);
asm(R"(.text
.globl simt_switch
simt_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp,(%rdi)
  mov %rsi,%rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
#endif

static void to_scheduler() {
#if defined(SIMT_TSAN)
    __tsan_switch_to_fiber(scheduler_fiber, NO_SYNC);
#endif
#if defined(__x86_64__)
    simt_switch(&current->stack_pointer, scheduler_stack);
#else
    swapcontext(&current->context, &scheduler_context);
#endif
}

static void to_fiber(fiber *f) {
    current = f;
#if defined(SIMT_TSAN)
    __tsan_switch_to_fiber(f->sanitizer, NO_SYNC);
#endif
#if defined(__x86_64__)
    simt_switch(&scheduler_stack, f->stack_pointer);
#else
    swapcontext(&scheduler_context, &f->context);
#endif
}

static void land(fiber *f, size_t i);

static void fiber_main() {
    __tsan_acquire(&started);
    (*body)();
    if (!current->copies.empty())
        stop("a thread ended before its asynchronous copies landed");
    current->at = DONE;
    __tsan_release(&ended);
    to_scheduler();
    abort();
}

/* Maps a stack, at `old` if that is given: a fresh mapping in its place, so that the sanitizer
 * reports no race with the thread that used it before. */
static char *new_stack(void *old) {
    void *memory = mmap(old, STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (old ? MAP_FIXED : 0), -1, 0);
    if (memory == MAP_FAILED)
        stop("no memory for a stack");
    return static_cast<char *>(memory);
}

static void prepare(fiber *f, unsigned index) {
    if (stacks.size() <= index)
        stacks.push_back(new_stack(nullptr));
#if defined(SIMT_TSAN)
    else
        new_stack(stacks[index]);
#endif
    f->at = READY;
    f->index = index;
    f->group = 0;
    f->copies.clear();
#if defined(SIMT_TSAN)
    f->sanitizer = __tsan_create_fiber(0);
#endif
#if defined(__x86_64__)
    void **top = reinterpret_cast<void **>(stacks[index] + STACK - 64);
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(fiber_main);
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    f->stack_pointer = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stacks[index];
    f->context.uc_stack.ss_size = STACK;
    makecontext(&f->context, fiber_main, 0);
#endif
}

/* ---- asynchronous copies ---- */

static void land(fiber *f, size_t i) {
    const copy c = f->copies[i];
    copy_bytes(c.to, c.from, c.from_size);
    fill_bytes(c.to + c.from_size, 0, c.size - c.from_size);
    f->copies[i] = f->copies.back(); /* erase would call memmove, which the sanitizer sees */
    f->copies.pop_back();
}

static void land_some() {
    for (size_t i = current->copies.size(); i-- > 0;)
        if (below(4) == 0)
            land(current, i);
}

void copy_async(void *to, const void *from, size_t size, size_t from_size) {
    const uintptr_t both =
        reinterpret_cast<uintptr_t>(to) | (from_size ? reinterpret_cast<uintptr_t>(from) : 0);
    if ((size != 4 && size != 8 && size != 16) || from_size > size || both % size != 0)
        stop("an asynchronous copy of a size or at an address that devices do not offer");
    fill_bytes(to, 0xff, size);
    __tsan_write_range(to, size);
    if (from_size)
        __tsan_read_range(const_cast<void *>(from), from_size);
    traffic::access(__builtin_return_address(0), from, from_size);
    traffic::access(__builtin_return_address(0), to, size);
    if (current->copies.size() == MOST_COPIES)
        stop("more copies on their way than the shim keeps");
    current->copies.push_back({static_cast<char *>(to), static_cast<const char *>(from), size,
                               from_size, current->group});
    land_some();
}

void commit_copies() {
    current->group++;
}

void wait_copies(int groups_left) {
    for (size_t i = current->copies.size(); i-- > 0;)
        if (current->copies[i].group < current->group - groups_left) {
            __tsan_write_range(current->copies[i].to, current->copies[i].size);
            land(current, i);
        }
}

/* ---- barriers ---- */

static void wait_at(state at, barrier *b) {
    char *object = &b->object[b->phase & 1];
    land_some();
    current->at = at;
    __tsan_release(object);
    to_scheduler();
    __tsan_acquire(object);
}

void sync_block() {
    wait_at(AT_BLOCK_BARRIER, &block_barrier);
}

void sync_warp(unsigned mask) {
    current->mask = mask;
    wait_at(AT_WARP_BARRIER, &warp_barrier[current->index / WARP]);
}

/* Lets lanes meet without a memory barrier, as a shuffle does not order accesses. */
static void meet(unsigned mask) {
    current->mask = mask;
    current->at = AT_WARP_BARRIER;
    to_scheduler();
}

uint64_t exchange(unsigned mask, uint64_t value, unsigned from) {
    current->given = value;
    meet(mask);
    const uint64_t taken = fibers[(current->index & ~(WARP - 1u)) + (from & (WARP - 1))].given;
    meet(mask);
    return taken;
}

static int dot_of_bytes(uint64_t a, uint64_t b) {
    int sum = 0;
    for (int i = 0; i < 64; i += 8)
        sum += (int8_t)(a >> i) * (int8_t)(b >> i);
    return sum;
}

/* Four lanes each have a row of a and a column of b. */
void multiply_bytes(int (&c)[4], const uint4 &a, unsigned low, unsigned high) {
    const unsigned row = lane() / 4 * 4, column = lane() % 4 * 8;
    for (unsigned q = 0; q < 4; q++) {
        const uint64_t above = exchange(~0u, (uint64_t)a.y << 32 | a.x, row + q);
        const uint64_t below = exchange(~0u, (uint64_t)a.w << 32 | a.z, row + q);
        const uint64_t left = exchange(~0u, (uint64_t)high << 32 | low, column + q);
        const uint64_t right = exchange(~0u, (uint64_t)high << 32 | low, column + 4 + q);
        c[0] += dot_of_bytes(above, left), c[1] += dot_of_bytes(above, right);
        c[2] += dot_of_bytes(below, left), c[3] += dot_of_bytes(below, right);
    }
}

unsigned ballot(unsigned mask, int predicate) {
    unsigned votes = 0;
    current->given = predicate != 0;
    meet(mask);
    const unsigned first = current->index & ~(WARP - 1u);
    for (unsigned i = 0; i < WARP; i++)
        if (mask >> i & 1)
            votes |= (unsigned)fibers[first + i].given << i;
    meet(mask);
    return votes;
}

int any_of_block(int predicate) {
    int any = 0;
    current->given = predicate != 0;
    sync_block();
    for (unsigned i = 0; i < block.x * block.y * block.z; i++)
        any |= (int)fibers[i].given;
    sync_block();
    return any;
}

unsigned lane() {
    return current->index % WARP;
}
uint3 thread_index() {
    const unsigned i = current->index;
    return uint3{i % block.x, i / block.x % block.y, i / (block.x * block.y)};
}
uint3 block_index() {
    return block_at;
}
dim3 block_size() {
    return block;
}
dim3 grid_size() {
    return grid;
}
void *shared_memory() {
    return shared;
}

/* ---- the scheduler ---- */

static void end_fiber(fiber *f) {
#if defined(SIMT_TSAN)
    __tsan_destroy_fiber(f->sanitizer);
#endif
    f->sanitizer = nullptr;
}

/* Lets lanes of a warp pass their barrier once all lanes that they name have arrived. */
static void release_warp(fiber *warp, unsigned lanes) {
    unsigned waiting = 0, passed = 0;
    for (unsigned i = 0; i < lanes; i++)
        waiting |= (unsigned)(warp[i].at == AT_WARP_BARRIER) << i;
    for (unsigned i = 0; i < lanes; i++)
        if ((waiting >> i & 1) && (warp[i].mask >> i & 1) && (warp[i].mask & ~waiting) == 0)
            passed |= 1u << i;
    if (waiting && !passed)
        stop("a warp's barrier, shuffle or vote without some of the lanes in its mask");
    warp_barrier[warp->index / WARP].phase += passed != 0;
    for (unsigned i = 0; i < lanes; i++)
        if (passed >> i & 1)
            warp[i].at = READY;
}

/* Runs the ready lanes of a warp to their next barrier; returns how many ended. */
static unsigned run_warp(fiber *warp, unsigned lanes) {
    std::vector<unsigned> order(lanes);
    unsigned done = 0;
    for (unsigned i = 0; i < lanes; i++)
        order[i] = i;
    shuffle(order);
    for (unsigned i : order) {
        if (warp[i].at != READY)
            continue;
        traffic::run(i);
        to_fiber(&warp[i]);
        if (warp[i].at == DONE) {
            end_fiber(&warp[i]);
            done++;
        }
    }
    traffic::meet();
    return done;
}

static bool any_ready(const fiber *warp, unsigned lanes) {
    return std::any_of(warp, warp + lanes, [](const fiber &f) { return f.at == READY; });
}

static void release_block(unsigned threads, unsigned done) {
    if (done > 0)
        stop("__syncthreads, but some threads of the block have ended");
    for (unsigned i = 0; i < threads; i++)
        if (fibers[i].at != AT_BLOCK_BARRIER)
            stop("__syncthreads without some threads of the block");
    block_barrier.phase++;
    for (unsigned i = 0; i < threads; i++)
        fibers[i].at = READY;
}

/* Warps take turns; a turn lasts from one barrier to the next. */
static void run_block(unsigned threads) {
    unsigned done = 0;
    std::vector<unsigned> ready;
    for (unsigned i = 0; i < threads; i++)
        prepare(&fibers[i], i);
    while (done < threads) {
        ready.clear();
        for (unsigned first = 0; first < threads; first += WARP)
            if (any_ready(&fibers[first], std::min<unsigned>(WARP, threads - first)))
                ready.push_back(first);
        if (ready.empty()) {
            release_block(threads, done);
            continue;
        }
        const unsigned first = ready[below((unsigned)ready.size())];
        const unsigned lanes = std::min<unsigned>(WARP, threads - first);
        done += run_warp(&fibers[first], lanes);
        release_warp(&fibers[first], lanes);
    }
}

/* Allocates memory that ends at an inaccessible page. */
static char *guarded(size_t size, size_t alignment, void **mapping, size_t *mapped) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t used = (size + alignment - 1) / alignment * alignment;
    const size_t pages = (used + page - 1) / page * page;
    *mapped = pages + page;
    *mapping = mmap(nullptr, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*mapping == MAP_FAILED)
        return nullptr;
    char *start = static_cast<char *>(*mapping);
    mprotect(start + pages, page, PROT_NONE);
    return start + pages - used;
}

/* ---- records of launches ---- */

struct launches {
    std::string name;
    long count;
};

/* Functions of different files may have the same name. */
static std::list<launches> &known() {
    static std::list<launches> list;
    return list;
}

static void write_known() {
    const char *name = getenv("SIMT_LAUNCHES");
    FILE *file = name ? fopen(name, "a") : nullptr;
    if (!file)
        return;
    std::map<std::string, int> times;
    for (const launches &l : known())
        fprintf(file, "%ld %s #%d\n", l.count, l.name.c_str(), ++times[l.name]);
    fclose(file);
}

long *known_launch(const char *name) {
    if (known().empty())
        atexit(write_known);
    known().push_back({name, 0});
    return &known().back().count;
}

static size_t shared_most() {
    const char *kib = getenv("SIMT_SHARED");
    return (size_t)(kib ? atoi(kib) : 227) << 10;
}

static std::map<const void *, int> allowed;
static cudaError_t last_error;

/* ---- memory of devices ---- */

} // namespace simt

struct simt_pool {
    size_t in_use, most_in_use, blocks;
};
struct simt_stream {
    int device;
};

namespace simt {

struct allocation {
    void *mapping;
    size_t mapped, size;
    simt_pool *pool;
};
static std::map<void *, allocation> allocations;
static thread_local int device_now;

static void protect(const allocation &a, int how) {
    if (mprotect(a.mapping, a.mapped - (size_t)sysconf(_SC_PAGESIZE), how) != 0)
        stop("memory could not be protected");
}

/* Makes device memory accessible during its lifetime. */
struct open_memory {
    open_memory() {
        for (const auto &[start, a] : allocations)
            protect(a, PROT_READ | PROT_WRITE);
    }
    ~open_memory() {
        for (const auto &[start, a] : allocations)
            protect(a, PROT_NONE);
    }
};

bool on_device(const void *address) {
    auto next = allocations.upper_bound(const_cast<void *>(address));
    if (next == allocations.begin())
        return false;
    const auto &[start, a] = *--next;
    return static_cast<const char *>(address) < static_cast<const char *>(start) + a.size;
}

/* Has the launch anything to run? Sets the last error if it is invalid. */
static bool launches(dim3 g, dim3 b, size_t shared_size, const void *kernel) {
    const uint64_t threads = (uint64_t)b.x * b.y * b.z;
    if (g.x == 0 || g.y == 0 || g.z == 0) {
        last_error = cudaErrorInvalidConfiguration;
        return false;
    }
    if (threads == 0 || threads > MOST_THREADS || g.x > INT32_MAX || g.y > 65535 || g.z > 65535 ||
        shared_size > shared_most())
        stop("a launch that devices do not offer");
    if (shared_size > 48 << 10 && shared_size > (size_t)allowed[kernel])
        stop("more shared memory than the kernel was allowed");
    return true;
}

void launch(dim3 g, dim3 b, size_t shared_size, simt_stream *stream, const void *name,
            const std::function<void()> &kernel) {
    const unsigned threads = b.x * b.y * b.z;
    void *mapping;
    size_t mapped;
    grid = g, block = b, body = &kernel;
    if (!launches(g, b, shared_size, name))
        return;
    if (stream && stream != cudaStreamLegacy && stream->device != device_now)
        stop("a launch on another device than the thread's");
    const open_memory open;
    seed_launch();
    shared = guarded(shared_size, 16, &mapping, &mapped);
    fibers.resize(threads);
    for (fiber &f : fibers)
        f.copies.reserve(MOST_COPIES);
    std::vector<uint64_t> blocks((size_t)g.x * g.y * g.z);
    for (size_t i = 0; i < blocks.size(); i++)
        blocks[i] = i;
    shuffle(blocks);
#if defined(SIMT_TSAN)
    scheduler_fiber = __tsan_get_current_fiber();
#endif
    __tsan_release(&started);
    traffic::begin(shared, shared_size);
    for (uint64_t i : blocks) {
        block_at = uint3{(unsigned)(i % g.x), (unsigned)(i / g.x % g.y),
                         (unsigned)(i / ((uint64_t)g.x * g.y))};
#if defined(SIMT_TSAN) /* another block's use of the same addresses is not a race */
        mmap(mapping, mapped - (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
#endif
        fill_bytes(shared, 0xff, shared_size);
        run_block(threads);
    }
    traffic::end();
    __tsan_acquire(&ended);
    munmap(mapping, mapped);
}

} // namespace simt

/* ---- the runtime's functions ---- */

using simt::allocation;
using simt::allocations;

/* ---- planted failures: SIMT_FAULT is none, driver, no_driver, version, architecture, pools,
 * occupied, memory@N or lost@N ---- */

/* Returns N if the failure is `kind`@N, else 0. */
static long planted(const char *kind) {
    const char *text = getenv("SIMT_FAULT");
    const size_t length = strlen(kind);
    if (!text || strncmp(text, kind, length) != 0)
        return 0;
    return text[length] == '@' ? atol(text + length + 1) : 1;
}

/* Is the device lost? Then every call from the N-th launch on fails, as on a real device. */
static cudaError_t lost() {
    const long at = planted("lost");
    return at && simt::launched() >= at ? cudaErrorLaunchFailure : cudaSuccess;
}

static int devices() {
    const char *count = getenv("SIMT_DEVICES");
    return count ? atoi(count) : 1;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = planted("no_driver") ? 0 : planted("version") || planted("driver") ? 12000 : 13000;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count) {
    *count = devices();
    return planted("none")                             ? cudaErrorNoDevice
           : planted("driver") || planted("no_driver") ? cudaErrorInsufficientDriver
                                                       : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= devices())
        return cudaErrorInvalidDevice;
    if (planted("occupied"))
        return cudaErrorDevicesUnavailable;
    simt::device_now = device;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
    *device = simt::device_now;
    return cudaSuccess;
}
/* Describes a large GPU with SIMT_SMS multiprocessors and SIMT_SHARED KiB of shared memory for a
 * block, which is all that a multiprocessor has apart from the system's share. */
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int) {
    const char *sms = getenv("SIMT_SMS");
    *out = cudaDeviceProp{};
    strcpy(out->name, "simulated on this CPU");
    for (int i = 0; i < 16; i++)
        out->uuid.bytes[i] = (char)(16 * i + i);
    out->major = planted("architecture") ? 7 : 9;
    out->multiProcessorCount = sms ? atoi(sms) : 4;
    out->sharedMemPerBlockOptin = simt::shared_most();
    out->memoryPoolsSupported = !planted("pools");
    out->reservedSharedMemPerBlock = 1 << 10;
    out->sharedMemPerMultiprocessor = simt::shared_most() + out->reservedSharedMemPerBlock;
    out->l2CacheSize = 50 << 20;
    out->totalGlobalMem = (size_t)1 << 34;
    return cudaSuccess;
}
cudaError_t simt_allow_shared(const void *kernel, int bytes) {
    if (bytes < 0 || (size_t)bytes > simt::shared_most())
        return cudaErrorInvalidValue;
    if (bytes < simt::allowed[kernel])
        simt::stop("a kernel was allowed less shared memory than before");
    simt::allowed[kernel] = bytes;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) {
    *out = new simt_stream{simt::device_now};
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return lost();
}
/* SIMT_AVAILABLE sets the bytes available. */
cudaError_t cudaMemGetInfo(size_t *available, size_t *all) {
    const char *said = getenv("SIMT_AVAILABLE");
    *all = (size_t)1 << 34;
    *available = said ? strtoull(said, nullptr, 10) : *all;
    return lost();
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const cudaMemPoolProps *properties) {
    if (properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice ||
        properties->location.id != simt::device_now)
        return cudaErrorInvalidValue;
    *out = new simt_pool{};
    return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    if (pool->blocks > 0) {
        fprintf(stderr, "simt: %zu blocks of memory were never freed\n", pool->blocks);
        abort();
    }
    delete pool;
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) {
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void *value) {
    const uint64_t most = pool->most_in_use;
    memcpy(value, &most, sizeof most);
    return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t pool, cudaStream_t) {
    static long asked;
    allocation a = {nullptr, 0, size, pool};
    if (lost() != cudaSuccess)
        return lost();
    asked++;
    if (size > (size_t)1 << 34 || asked == planted("memory"))
        return simt::last_error = cudaErrorMemoryAllocation;
    *out = simt::guarded(size ? size : 1, 64, &a.mapping, &a.mapped);
    if (!*out)
        return cudaErrorMemoryAllocation;
    memset(*out, 0xff, size);
    protect(a, PROT_NONE);
    allocations[*out] = a;
    pool->blocks++;
    pool->in_use += size;
    pool->most_in_use = std::max(pool->most_in_use, pool->in_use);
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void *block, cudaStream_t) {
    const auto found = allocations.find(block);
    if (found == allocations.end())
        return cudaErrorInvalidValue;
    found->second.pool->blocks--;
    found->second.pool->in_use -= found->second.size;
    munmap(found->second.mapping, found->second.mapped);
    allocations.erase(found);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t) {
    const simt::open_memory open;
    memcpy(to, from, size);
    return lost();
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *) {
    *out = {cudaMemoryTypeUnregistered};
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t) {
    const simt::open_memory open;
    memset(to, value, size);
    return lost();
}
cudaError_t cudaGetLastError() {
    const cudaError_t error = lost() != cudaSuccess ? lost() : simt::last_error;
    simt::last_error = cudaSuccess;
    return error;
}
/* The runtime's own texts. */
const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorDevicesUnavailable: return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return "invalid value";
    }
}
