#include "repops/src/backend.h"
#include "repops/src/cuda.h"
#include "repops/src/fixed.h"
#include "repops/src/fpenv.h"
#include "repops/src/guard.h"
#include "repops/src/operands.h"
#include "repops/src/packed.h"
#include "repops/src/sized.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 1024, ALIGNMENT = 64 };

/* Elements that make a piece of work worth handing to another thread: tens of microseconds. */
enum { PIECE_ELEMENTS = 16384, PIECES_PER_THREAD = 8 };

struct ro_ctx {
    ro_options options;
    const char *backend;
    const ro_packing *packing;
    ro_guard guard; /* size 0: nothing is checked */
    ro_table table;
    ro_device *device;      /* NULL: the CPU; owned */
    ro_device *free_device; /* owned */
    ro_pool pool;
    void *workspace;
    size_t workspace_size;
    struct ro_emitter *emitter;
    char error[256];
};

/* The text of ro_ctx_error(NULL): why this thread's last call without a context failed. */
static _Thread_local char create_error[256];

static ro_status fail_create(ro_status status, const char *format, const char *detail) {
    snprintf(create_error, sizeof create_error, format, detail);
    return status;
}

ro_status ro_fail(ro_ctx *ctx, ro_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (ctx)
        vsnprintf(ctx->error, sizeof ctx->error, format, args);
    else
        vsnprintf(create_error, sizeof create_error, format, args);
    va_end(args);
    return status;
}

/* ---- backends ---- */

typedef struct {
    const char *name;
    bool (*available)(void);
    void (*fill)(ro_table *table); /* replaces entries of the scalar table */
    const ro_packing *packing;
} backend_entry;

/* The compiler's baseline instructions are always available. */
static bool always(void) {
    return true;
}
#if defined(__x86_64__)
static bool have_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static bool have_avx512(void) {
    return have_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#endif

#if defined(__x86_64__)
#define BACKEND_NAMES "cpu, scalar, avx2, avx512 or cuda:0"
#elif defined(__aarch64__)
#define BACKEND_NAMES "cpu, scalar, neon or cuda:0"
#else
#define BACKEND_NAMES "cpu, scalar or cuda:0"
#endif

static const backend_entry backends[] = {
#if defined(__x86_64__)
    {"avx512", have_avx512, ro_table_avx512, &ro_packing_avx512},
    {"avx2", have_avx2, ro_table_avx2, &ro_packing_avx2},
#elif defined(__aarch64__)
    {"neon", always, ro_table_neon, &ro_packing_neon},
#endif
    {"scalar", always, ro_table_scalar, &ro_packing_scalar},
};
static const backend_entry cuda = {"cuda", always, ro_table_device, &ro_packing_device};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

static const backend_entry *best_backend(void) {
    int i = 0;
    while (!backends[i].available())
        i++;
    return &backends[i];
}

/* Returns the index of "cuda" or "cuda:N"; -1 for another backend. */
static int cuda_index(const char *name) {
    char *end;
    if (strcmp(name, "cuda") == 0)
        return 0;
    if (strncmp(name, "cuda:", 5) != 0 || name[5] < '0' || name[5] > '9')
        return -1;
    const unsigned long index = strtoul(name + 5, &end, 10);
    return *end == '\0' && index < 1024 ? (int)index : -1;
}

/* *device is the CUDA device's index, or -1 on the CPU. */
static ro_status find_backend(const char *name, const backend_entry **out, int *device) {
    *device = -1;
    if (name == NULL)
        name = getenv("REPOPS_CPU");
    if (name == NULL || *name == '\0' || strcmp(name, "cpu") == 0) {
        *out = best_backend();
        return RO_OK;
    }
    *device = cuda_index(name);
    if (*device >= 0) {
        *out = &cuda;
        return RO_OK;
    }
    for (int i = 0; i < BACKENDS; i++) {
        *out = &backends[i];
        if (strcmp(name, backends[i].name) == 0)
            return backends[i].available()
                       ? RO_OK
                       : fail_create(RO_ERR_ARG, "this processor cannot run backend \"%.32s\"",
                                     name);
    }
    return fail_create(RO_ERR_ARG, "unknown backend \"%.32s\": expected " BACKEND_NAMES, name);
}

/* ---- allocation ---- */

static void *default_alloc(void *user, size_t size, size_t alignment) {
    (void)user;
    return size > SIZE_MAX - alignment
               ? NULL
               : aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void default_free(void *user, void *block) {
    (void)user;
    free(block);
}

static void release(ro_ctx *ctx, void *block) {
    if (block)
        ctx->options.free(ctx->options.user, block);
}

void *ro_host_alloc(ro_ctx *ctx, size_t size) {
    return ctx->options.alloc(ctx->options.user, size, ALIGNMENT);
}

void ro_host_free(ro_ctx *ctx, void *block) {
    ctx->options.free(ctx->options.user, block);
}

void *ro_workspace(ro_ctx *ctx, size_t size) {
    if (size <= ctx->workspace_size)
        return ctx->workspace;
    release(ctx, ctx->workspace);
    ctx->workspace_size = 0;
    ctx->workspace = ctx->options.alloc(ctx->options.user, size, ALIGNMENT);
    if (ctx->workspace)
        ctx->workspace_size = size;
    else
        ro_fail(ctx, RO_ERR_MEMORY, "no memory for a workspace of %zu bytes", size);
    return ctx->workspace;
}

/* ---- life ---- */

static int available_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 1)
        return 1;
    return CPU_COUNT(&set) < MAX_THREADS ? CPU_COUNT(&set) : MAX_THREADS;
}

static ro_status check_options(ro_options *options) {
    if (options->threads < 0 || options->threads > MAX_THREADS)
        return fail_create(RO_ERR_ARG, "`threads` must be 0..1024%s", "");
    if (!options->alloc != !options->free)
        return fail_create(RO_ERR_ARG, "`alloc` and `free` come together%s", "");
    if (!options->device_alloc != !options->device_free)
        return fail_create(RO_ERR_ARG, "`device_alloc` and `device_free` come together%s", "");
    if (options->device_alloc && !options->stream)
        return fail_create(RO_ERR_ARG, "`device_alloc` needs `stream`, whose order it follows%s",
                           "");
    if (options->threads == 0)
        options->threads = available_cores();
    if (!options->alloc) {
        options->alloc = default_alloc;
        options->free = default_free;
    }
    return RO_OK;
}

ro_status ro_ctx_create(const ro_options *wanted, ro_ctx **out) {
    ro_options options = {0};
    const backend_entry *backend;
    if (!out)
        return ro_missing(NULL, "ctx_create", "out");
    *out = NULL;
    int index;
    ro_device *device = NULL;
    ro_status status = wanted ? ro_take(NULL, &ro_sized_options, wanted, &options) : RO_OK;
    if (status == RO_OK)
        status = check_options(&options);
    if (status == RO_OK)
        status = find_backend(options.backend, &backend, &index);
    if (status == RO_OK && index < 0 && options.stream)
        status = fail_create(RO_ERR_ARG, "`stream` is a CUDA device's: backend \"%s\" has none",
                             backend->name);
    if (status == RO_OK && index >= 0)
        status = ro_cuda_open(index, &options, &device, create_error, sizeof create_error);
    if (status != RO_OK)
        return status;

    /* The pool's array of workers lies behind the context, in the same block. */
    const size_t size = sizeof(ro_ctx) + (size_t)options.threads * sizeof(ro_pool_worker);
    ro_ctx *ctx = options.alloc(options.user, size, ALIGNMENT);
    if (!ctx) {
        if (device)
            device->functions->close(device);
        return fail_create(RO_ERR_MEMORY, "no memory for a context%s", "");
    }
    memset(ctx, 0, sizeof *ctx);
    ctx->options = options;
    ctx->options.backend = NULL; /* borrowed only for this call */
    ctx->backend = backend->name;
    ctx->packing = backend->packing;
    ctx->device = device;
    if (options.parallel)
        ro_pool_borrow(&ctx->pool, options.threads, options.parallel);
    else
        ro_pool_init(&ctx->pool, options.threads, (ro_pool_worker *)(ctx + 1));
    ro_table_scalar(&ctx->table);
    backend->fill(&ctx->table);
    *out = ctx;
    return RO_OK;
}

void ro_ctx_destroy(ro_ctx *ctx) {
    if (!ctx)
        return;
    if (ctx->device)
        ctx->device->functions->close(ctx->device);
    if (ctx->free_device)
        ctx->free_device->functions->close(ctx->free_device);
    ro_pool_stop(&ctx->pool);
    release(ctx, ctx->workspace);
    ro_free_close(ctx);
    release(ctx, ctx);
}

const char *ro_ctx_error(const ro_ctx *ctx) {
    return ctx ? ctx->error : create_error;
}

const char *ro_ctx_backend(const ro_ctx *ctx) {
    return ctx->backend;
}

int ro_ctx_threads(const ro_ctx *ctx) {
    return ctx->options.threads;
}

ro_pool *ro_ctx_pool(ro_ctx *ctx) {
    return &ctx->pool;
}

ro_device *ro_ctx_on(const ro_ctx *ctx) {
    return ctx->device;
}

ro_status ro_ctx_free_device(ro_ctx *ctx, ro_device **out) {
    char why[sizeof ctx->error];
    ro_status status = RO_OK;
    if (!ctx->free_device)
        status = ro_cuda_open(0, &(ro_options){0}, &ctx->free_device, why, sizeof why);
    *out = ctx->free_device;
    return status == RO_OK ? RO_OK : ro_fail(ctx, status, "%s", why);
}

struct ro_emitter **ro_ctx_emitters(ro_ctx *ctx) {
    return &ctx->emitter;
}

const ro_packing *ro_ctx_packing(const ro_ctx *ctx) {
    return ctx->packing;
}

const ro_table *ro_ctx_table(const ro_ctx *ctx) {
    return &ctx->table;
}

/* ---- checks ---- */

ro_status ro_ctx_guard(ro_ctx *ctx, const ro_guard *guard) {
    ro_guard own = {0};
    if (!ctx)
        return ro_missing(ctx, "ctx_guard", "ctx");
    const ro_status status = guard ? ro_take(ctx, &ro_sized_guard, guard, &own) : RO_OK;
    if (status == RO_OK && guard && !own.found)
        return ro_missing(ctx, "ctx_guard", "found");
    if (status != RO_OK)
        return status;
    ctx->guard = own;
    if (ctx->device)
        ctx->device->functions->check(ctx->device, guard ? &own : NULL);
    return RO_OK;
}

const ro_guard *ro_ctx_guarding(const ro_ctx *ctx) {
    return ctx->guard.size ? &ctx->guard : NULL;
}

int ro_ctx_guards(const ro_ctx *ctx, int bits) {
    if (ctx->device)
        return ro_fixed_has(bits);
    return ctx->packing && ctx->packing->checks && ctx->packing->checks(bits);
}

int ro_ctx_plain(ro_ctx *ctx, int on) {
    if (!ctx || !ctx->device)
        return 0;
    ctx->device->functions->plain(ctx->device, on);
    return 1;
}

/* ---- running ---- */

typedef struct {
    const ro_job *job;
    void (*range)(const ro_job *job, int64_t first, int64_t last);
} range_task;

static void run_range(void *user, int64_t first, int64_t last, int worker) {
    const range_task *task = user;
    (void)worker;
    task->range(task->job, first, last);
}

static int64_t total_elements(const ro_call *call) {
    int64_t total = ro_shape_numel(&call->output);
    for (int i = 0; i < call->input_count; i++)
        total += ro_shape_numel(&call->input[i]);
    return total;
}

int64_t ro_grain(ro_ctx *ctx, const ro_call *call, int64_t items) {
    return ro_grain_of(ctx, call, items, PIECE_ELEMENTS);
}

int64_t ro_grain_of(ro_ctx *ctx, const ro_call *call, int64_t items, int64_t elements) {
    int64_t pieces = total_elements(call) / elements;
    const int64_t most = (int64_t)ctx->pool.threads * PIECES_PER_THREAD;
    pieces = pieces < 1 ? 1 : pieces < most ? pieces : most;
    const int64_t grain = (items + pieces - 1) / pieces;
    return grain >= 64 ? (grain + 63) / 64 * 64 /* no cache line of f32 has two writers */ : grain;
}

void ro_for_items(const ro_job *job, int64_t items,
                  void (*range)(const ro_job *job, int64_t first, int64_t last)) {
    range_task task = {job, range};
    ro_pool_for(ro_ctx_pool(job->ctx), items, ro_grain(job->ctx, job->call, items), run_range,
                &task);
}

void ro_parallel_for(ro_ctx *ctx, int64_t count, int64_t grain, double us, ro_task task,
                     void *user) {
    const ro_fpenv env = ro_fpenv_enter();
    if (ro_pool_threads(&ctx->pool, us) == 1)
        grain = count;
    ro_pool_for(&ctx->pool, count, grain, task, user);
    ro_fpenv_leave(env);
}

ro_status ro_run(ro_ctx *ctx, const ro_call *call, const void *const *input, void *output) {
    if (!ctx || !call)
        return ro_missing(ctx, "run", ctx ? "call" : "ctx");
    if (!ro_op_describe(call->op))
        return ro_fail(ctx, RO_ERR_ARG, "there is no operator %d", (int)call->op);
    ro_status status = ro_check_tensors(ctx, call, input, output);
    if (status != RO_OK || ro_shape_numel(&call->output) == 0) /* kernels get no empty output */
        return status;
    const ro_kernel *kernel = &ctx->table.kernel[call->op];
    const ro_job job = {ctx, call, input, output};
    const ro_fpenv env = ro_fpenv_enter();
    if (kernel->run)
        status = kernel->run(&job);
    else
        ro_for_items(&job, kernel->items ? kernel->items(call) : ro_shape_numel(&call->output),
                     kernel->range);
    ro_fpenv_leave(env);
    return status;
}
