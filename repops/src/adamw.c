/* ro_adamw and ro_adamw_all: checks. */
#include <stdlib.h>

#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/operands.h"
#include "repops/src/sized.h"

enum {
    TENSORS = 11, /* tensors of a parameter, including those of one element */
    OUTPUTS = 8,  /* index of the first output */
    PARAMETERS_MAX = 1 << 24,
};

static void list(const ro_adamw_job *p, ro_operand operands[TENSORS]) {
    const int64_t n = p->count, one = n > 0;
    const ro_operand all[TENSORS] = {{"w", ro_words(p->w, n), RO_READ},
                                     {"m", ro_words(p->m, n), RO_READ},
                                     {"v", ro_words(p->v, n), RO_READ},
                                     {"gradient", ro_words(p->gradient, n), RO_READ},
                                     {"clip", ro_words(p->clip, one), RO_READ},
                                     {"c1", ro_words(p->c1, one), RO_READ},
                                     {"c2", ro_words(p->c2, one), RO_READ},
                                     {"rate", ro_words(p->rate, one), RO_READ},
                                     {"w_out", ro_words(p->w_out, n), RO_WRITTEN, 1 << 0},
                                     {"m_out", ro_words(p->m_out, n), RO_WRITTEN, 1 << 1},
                                     {"v_out", ro_words(p->v_out, n), RO_WRITTEN, 1 << 2}};
    for (int i = 0; i < TENSORS; i++)
        operands[i] = all[i];
}

static ro_status adamw_check(ro_ctx *ctx, const ro_adamw_job *p) {
    ro_operand operands[TENSORS];
    if (p->count < 0 || p->count > RO_MAX_NUMEL)
        return ro_fail(ctx, RO_ERR_ARG, "adamw: count must be 0..2^40, got %lld",
                       (long long)p->count);
    list(p, operands);
    return ro_check_operands(ctx, "adamw", operands, TENSORS);
}

/* ---- memory of different parameters ---- */

/* The memory of one output, bytes [first, end). */
typedef struct {
    uintptr_t first, end;
    int64_t parameter;
} range;

static int by_address(const void *a, const void *b) {
    const range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static range range_of(const ro_operand *o, int64_t parameter) {
    const uintptr_t at = (uintptr_t)o->memory.at;
    return (range){at, at + (uintptr_t)o->memory.width, parameter};
}

static int64_t list_outputs(int64_t count, const ro_adamw_job *job, range *out) {
    ro_operand operands[TENSORS];
    int64_t found = 0;
    for (int64_t p = 0; p < count; p++) {
        list(&job[p], operands);
        for (int i = OUTPUTS; i < TENSORS && job[p].count > 0; i++)
            out[found++] = range_of(&operands[i], p);
    }
    qsort(out, (size_t)found, sizeof *out, by_address);
    return found;
}

/* Returns whether an output of another parameter overlaps r. `out` ascends without overlaps, so if
 * any output overlaps r, the last one that begins before r's end does. */
static int is_overwritten(const range *r, const range *out, int64_t count) {
    int64_t low = 0;
    for (int64_t high = count; low < high;) {
        const int64_t mid = (low + high) / 2;
        if (out[mid].first < r->end)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && out[low - 1].end > r->first && out[low - 1].parameter != r->parameter;
}

/* Returns a parameter whose memory an output of another one overlaps; -1 if there is none. */
static int64_t overlapped(int64_t count, const ro_adamw_job *job, range *out) {
    const int64_t outputs = list_outputs(count, job, out);
    ro_operand operands[TENSORS];
    for (int64_t i = 1; i < outputs; i++)
        if (out[i - 1].end > out[i].first)
            return out[i].parameter;
    for (int64_t p = 0; p < count; p++) {
        list(&job[p], operands);
        for (int i = 0; i < OUTPUTS && job[p].count > 0; i++) {
            const range r = range_of(&operands[i], p);
            if (is_overwritten(&r, out, outputs))
                return p;
        }
    }
    return -1;
}

static ro_status check_apart(ro_ctx *ctx, int64_t count, const ro_adamw_job *job) {
    range *out = ro_host_alloc(ctx, (size_t)count * (TENSORS - OUTPUTS) * sizeof *out);
    if (!out)
        return ro_fail(ctx, RO_ERR_MEMORY, "adamw: no memory to check %lld parameters",
                       (long long)count);
    const int64_t bad = overlapped(count, job, out);
    ro_host_free(ctx, out);
    return bad < 0 ? RO_OK
                   : ro_fail(ctx, RO_ERR_ARG,
                             "adamw: an output of another parameter overlaps memory of number %lld",
                             (long long)bad);
}

static ro_status run(ro_ctx *ctx, int64_t count, const ro_adamw_job *job) {
    ro_status status = RO_OK;
    for (int64_t i = 0; i < count && status == RO_OK; i++)
        status = adamw_check(ctx, &job[i]);
    if (status == RO_OK && count > 1)
        status = check_apart(ctx, count, job);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = ro_ctx_table(ctx)->adamw(ctx, count, job);
    ro_fpenv_leave(env);
    return status;
}

/* ---- what callers give ---- */

static ro_status take_step(ro_ctx *ctx, const ro_adamw_step *given, ro_adamw_job *job) {
    ro_adamw_step s;
    if (!given)
        return ro_missing(ctx, "adamw", "step");
    const ro_status status = ro_take(ctx, &ro_sized_adamw_step, given, &s);
    if (status == RO_OK)
        *job = (ro_adamw_job){.count = s.count,
                              .beta1 = s.beta1,
                              .beta2 = s.beta2,
                              .eps = s.eps,
                              .decay = s.decay,
                              .clip = s.clip,
                              .c1 = s.c1,
                              .c2 = s.c2,
                              .rate = s.rate};
    return status;
}

static ro_status take_parameter(ro_ctx *ctx, const void *given, ro_adamw_job *job) {
    ro_adamw_parameter p;
    ro_status status = ro_take(ctx, &ro_sized_adamw_parameter, given, &p);
    if (status == RO_OK)
        status = take_step(ctx, p.step, job);
    if (status != RO_OK)
        return status;
    job->w = p.w, job->m = p.m, job->v = p.v, job->gradient = p.gradient;
    job->w_out = p.w_out, job->m_out = p.m_out, job->v_out = p.v_out;
    return RO_OK;
}

/* Copies the parameters. All elements of the caller's array have the size in the first one. */
static ro_status take_all(ro_ctx *ctx, int64_t count, const ro_adamw_parameter *parameter,
                          ro_adamw_job *job) {
    const uint32_t size = parameter->size;
    ro_status status = ro_take_size(ctx, &ro_sized_adamw_parameter, parameter);
    for (int64_t i = 0; i < count && status == RO_OK; i++) {
        const void *at = (const char *)parameter + (size_t)i * size;
        if (ro_size_of(at) != size)
            return ro_fail(ctx, RO_ERR_ARG,
                           "adamw: the size of parameter %lld must be that of the first one, %u",
                           (long long)i, (unsigned)size);
        status = take_parameter(ctx, at, &job[i]);
    }
    return status;
}

ro_status ro_adamw_all(ro_ctx *ctx, int64_t count, const ro_adamw_parameter *parameter) {
    if (!ctx || (count > 0 && !parameter))
        return ro_missing(ctx, "adamw", ctx ? "parameter" : "ctx");
    if (count < 0 || count > PARAMETERS_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "adamw: a call takes 0..%d parameters, got %lld",
                       PARAMETERS_MAX, (long long)count);
    if (count == 0)
        return RO_OK;
    ro_adamw_job *job = ro_host_alloc(ctx, (size_t)count * sizeof *job);
    if (!job)
        return ro_fail(ctx, RO_ERR_MEMORY, "adamw: no memory for %lld parameters",
                       (long long)count);
    ro_status status = take_all(ctx, count, parameter, job);
    if (status == RO_OK)
        status = run(ctx, count, job);
    ro_host_free(ctx, job);
    return status;
}

ro_status ro_adamw(ro_ctx *ctx, const ro_adamw_step *step, const float *w, const float *m,
                   const float *v, const float *gradient, float *w_out, float *m_out,
                   float *v_out) {
    ro_adamw_job job;
    if (!ctx)
        return ro_missing(ctx, "adamw", "ctx");
    const ro_status status = take_step(ctx, step, &job);
    if (status != RO_OK)
        return status;
    job.w = w, job.m = m, job.v = v, job.gradient = gradient;
    job.w_out = w_out, job.m_out = m_out, job.v_out = v_out;
    return run(ctx, 1, &job);
}
