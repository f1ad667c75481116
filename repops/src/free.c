/* ro_free_run: prepares an emitter for each worker, runs the kernel, and collects the reports,
 * SPEC.md section 14. */
#include "repops/src/free.h"

#include <stdlib.h>
#include <string.h>

#include "repops/src/fpenv.h"
#include "repops/src/operands.h"
#include "repops/src/sized.h"

/* ---- reports ---- */

static int by_element(const void *a, const void *b) {
    const ro_close_call *x = a, *y = b;
    return (x->element > y->element) - (x->element < y->element);
}

/* Room for so many calls is kept for the next run; larger arrays are freed. */
enum { KEPT_CALLS = 1 << 16 };

static void drop_calls(ro_emitter *t) {
    if (t->call)
        ro_host_free(t->ctx, t->call);
    t->call = NULL;
    t->room = 0;
}

/* Returns one emitter for each worker, and one more that collects the calls of all. */
static ro_emitter *take_emitters(ro_ctx *ctx) {
    ro_emitter **emitter = ro_ctx_emitters(ctx);
    const size_t size = ((size_t)ro_ctx_threads(ctx) + 1) * sizeof **emitter;
    if (!*emitter && (*emitter = ro_host_alloc(ctx, size)))
        memset(*emitter, 0, size);
    return *emitter;
}

void ro_free_close(ro_ctx *ctx) {
    ro_emitter *emitter = *ro_ctx_emitters(ctx);
    for (int i = 0; emitter && i <= ro_ctx_threads(ctx); i++)
        drop_calls(&emitter[i]);
    if (emitter)
        ro_host_free(ctx, emitter);
}

static void open_emitters(const ro_free_job *job, const ro_rounding *r, void *out) {
    const int bits = r->bits ? r->bits : RO_ROUND_BITS_MAX;
    for (int i = 0; i <= ro_ctx_threads(job->ctx); i++) {
        ro_emitter *t = &job->emitter[i];
        if (t->room > KEPT_CALLS)
            drop_calls(t);
        *t = (ro_emitter){.rounding = r,
                          .out = out,
                          .magic = ro_magic(bits),
                          .half = 0.5 * ro_grid(bits),
                          .ctx = job->ctx,
                          .call = t->call,
                          .room = t->room};
    }
}

static void sort(ro_close_call *call, int64_t count) {
    int64_t i = 1;
    while (i < count && call[i - 1].element < call[i].element)
        i++;
    if (i < count) /* out of order if several workers or tiles emitted them */
        qsort(call, (size_t)count, sizeof *call, by_element);
}

/* Returns the calls of all workers in one array; NULL: no memory. If one worker has all calls, its
 * array is returned without copying. */
static ro_close_call *collect(const ro_free_job *job, int64_t count) {
    const int threads = ro_ctx_threads(job->ctx);
    ro_emitter *all = &job->emitter[threads];
    for (int i = 0; i < threads; i++)
        if (job->emitter[i].calls == count)
            return job->emitter[i].call;
    if (!ro_emit_room(all, count))
        return NULL;
    for (int i = 0; i < threads; i++) {
        const ro_emitter *t = &job->emitter[i];
        if (t->calls > 0)
            memcpy(all->call + all->calls, t->call, (size_t)t->calls * sizeof *t->call);
        all->calls += t->calls;
    }
    return all->call;
}

static ro_status gather(const ro_free_job *job, ro_free_report *report) {
    int failed = 0;
    for (int i = 0; i < ro_ctx_threads(job->ctx); i++) {
        const ro_emitter *t = &job->emitter[i];
        report->call_count += t->calls;
        report->escapes += t->escapes;
        report->decided += t->decided;
        report->corrected += t->corrected;
        failed |= t->failed;
    }
    ro_close_call *all = report->call_count > 0 ? collect(job, report->call_count) : NULL;
    if (failed || (report->call_count > 0 && !all))
        return ro_fail(job->ctx, RO_ERR_MEMORY, "no memory for the close calls of an operator");
    sort(all, report->call_count);
    report->call = all;
    return RO_OK;
}

/* ---- running ---- */

static ro_status take_profile(ro_ctx *ctx, const ro_profile *profile, ro_profile *own) {
    char why[200];
    const ro_status status = ro_take(ctx, &ro_sized_profile, profile, own);
    if (status != RO_OK || ro_profile_check(own, why, sizeof why) == RO_OK)
        return status;
    return ro_fail(ctx, RO_ERR_ARG, "profile %.31s: %s", own->name, why);
}

/* *device is NULL if the profile computes on this processor. */
static ro_status find_device(ro_ctx *ctx, const ro_profile *profile, ro_device **device) {
    *device = NULL;
    if (ro_ctx_on(ctx))
        return ro_fail(ctx, RO_ERR_UNSUPPORTED,
                       "free kernels take tensors in host memory, not on backend %s",
                       ro_ctx_backend(ctx));
    return profile->device ? ro_ctx_free_device(ctx, device) : RO_OK;
}

ro_status ro_free_open(ro_ctx *ctx, const ro_profile *profile) {
    ro_device *device;
    ro_profile own;
    if (!ctx || !profile)
        return ro_missing(ctx, "free_open", ctx ? "profile" : "ctx");
    ro_status status = take_profile(ctx, profile, &own);
    return status == RO_OK ? find_device(ctx, &own, &device) : status;
}

/* Elements that make a piece of work worth handing to another thread. An element takes several
 * times as long as that of an order-fixed operator. */
enum { PIECE_ELEMENTS = 4096 };

typedef struct {
    const ro_free_job *job;
    const ro_free_kernel *kernel;
} range_task;

static void run_range(void *user, int64_t first, int64_t last, int worker) {
    const range_task *task = user;
    task->kernel->range(task->job, first, last, &task->job->emitter[worker]);
}

static ro_status run_kernel(const ro_free_job *job) {
    const int f32 = job->emitter->rounding->mode == RO_FREE_F32;
    ro_free_find *find = ro_free_kernels(ro_ctx_backend(job->ctx), f32);
    const ro_free_kernel *kernel = find ? find(job->call->op) : NULL;
    if (!kernel)
        return ro_fail(job->ctx, RO_ERR_UNSUPPORTED, "this build has no free kernels on %s",
                       ro_ctx_backend(job->ctx));
    if (kernel->run)
        return kernel->run(job);
    const int64_t items =
        kernel->items ? kernel->items(job->call) : ro_shape_numel(&job->call->output);
    range_task task = {job, kernel};
    ro_pool_for(ro_ctx_pool(job->ctx), items,
                ro_grain_of(job->ctx, job->call, items,
                            PIECE_ELEMENTS / (kernel->weight ? kernel->weight : 1)),
                run_range, &task);
    return RO_OK;
}

static ro_status check_rounding(ro_ctx *ctx, const ro_rounding *r) {
    if (r->mode < RO_FREE_F32 || r->mode > RO_FREE_VALUES)
        return ro_fail(ctx, RO_ERR_ARG, "there is no rounding mode %d", (int)r->mode);
    if (r->mode != RO_FREE_F32 && r->mode != RO_FREE_VALUES &&
        (r->bits < RO_ROUND_BITS_MIN || r->bits > RO_ROUND_BITS_MAX))
        return ro_fail(ctx, RO_ERR_ARG, "`bits` must be 16..32, got %d", (int)r->bits);
    if (r->call_count < 0)
        return ro_fail(ctx, RO_ERR_ARG, "`call_count` must be at least 0, got %lld",
                       (long long)r->call_count);
    return RO_OK;
}

static ro_pieces dense(const void *at, int64_t size) {
    return (ro_pieces){at, 1, size, size};
}

/* Checks the arrays that `r` points to, which may not overlap the tensors. */
static ro_status check_beside(ro_ctx *ctx, const ro_rounding *r, const ro_call *call,
                              const void *const *input, void *output) {
    const int64_t n = ro_shape_numel(&call->output);
    const int values = r->mode == RO_FREE_VALUES, symbols = r->mode == RO_FREE_SYMBOLS;
    const int64_t calls = r->mode == RO_FREE_REPLAY ? r->call_count : 0;
    ro_operand o[6] = {
        {"call", dense(r->call, calls * (int64_t)sizeof *r->call), RO_READ},
        {"symbol", dense(r->symbol, symbols || r->mode == RO_FREE_FOLLOW ? n : 0),
         symbols ? RO_WRITTEN : RO_READ},
        {"value", dense(r->value, values ? n * 8 : 0), RO_WRITTEN},
        {"bound", dense(r->bound, values ? n * 8 : 0), RO_WRITTEN | RO_OPTIONAL},
        {"output", dense(output, values ? 0 : n * 4), RO_READ},
    };
    ro_status status = ro_check_operands(ctx, "free_run", o, 5);
    for (int i = 0; i < call->input_count && n > 0 && status == RO_OK; i++) {
        const ro_shape *in = &call->input[i];
        const int64_t size = ro_shape_numel(in) * (int64_t)ro_dtype_size(in->dtype);
        o[5] = (ro_operand){"input", dense(input[i], size), RO_READ};
        status = ro_check_operands(ctx, "free_run", o, 6);
    }
    return status;
}

static ro_status run_checked(ro_ctx *ctx, const ro_profile *profile, const ro_rounding *rounding,
                             const ro_call *call, const void *const *input, void *output,
                             ro_free_report *report) {
    ro_status status = check_rounding(ctx, rounding);
    if (status != RO_OK)
        return status;
    if (!ro_op_is_free(call->op))
        return ro_fail(ctx, RO_ERR_ARG, "operator %d has no free kernel", (int)call->op);
    const int values = rounding->mode == RO_FREE_VALUES; /* the output is then `value` */
    if (values && !rounding->value && ro_shape_numel(&call->output) != 0)
        return ro_missing(ctx, "free_run", "value");
    status = ro_check_tensors(ctx, call, input, values ? (void *)rounding->value : output);
    if (status == RO_OK)
        status = check_beside(ctx, rounding, call, input, output);
    if (status != RO_OK)
        return status;
    ro_device *device;
    if ((status = find_device(ctx, profile, &device)) != RO_OK)
        return status;
    ro_free_job job = {.ctx = ctx, .call = call, .in = input, .profile = profile};
    job.emitter = take_emitters(ctx);
    if (!job.emitter)
        return ro_fail(ctx, RO_ERR_MEMORY, "no memory for %d emitters", ro_ctx_threads(ctx));
    open_emitters(&job, rounding, output);
    const ro_fpenv env = ro_fpenv_enter();
    if (ro_shape_numel(&call->output) > 0)
        status = device ? ro_free_on_device(&job, device) : run_kernel(&job);
    if (status == RO_OK)
        status = gather(&job, report);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_free_run(ro_ctx *ctx, const ro_profile *profile, const ro_rounding *rounding,
                      const ro_call *call, const void *const *input, void *output,
                      ro_free_report *report) {
    ro_profile own_profile;
    ro_rounding own_rounding;
    ro_free_report own_report = {0};
    ro_status status = report ? ro_take_size(ctx, &ro_sized_free_report, report) : RO_OK;
    if (status != RO_OK)
        return status;
    if (report)
        ro_give(&ro_sized_free_report, &own_report, report);
    if (!ctx || !profile || !rounding || !call)
        return ro_missing(ctx, "free_run",
                          !ctx        ? "ctx"
                          : !profile  ? "profile"
                          : !rounding ? "rounding"
                                      : "call");
    status = take_profile(ctx, profile, &own_profile);
    if (status == RO_OK)
        status = ro_take(ctx, &ro_sized_rounding, rounding, &own_rounding);
    if (status == RO_OK)
        status = run_checked(ctx, &own_profile, &own_rounding, call, input, output, &own_report);
    if (report)
        ro_give(&ro_sized_free_report, &own_report, report);
    return status;
}
