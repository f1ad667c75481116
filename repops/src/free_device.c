/* Runs free operators on a device for tensors in host memory: copies the inputs to the device, and
 * values and bounds back to be rounded and reported on the host. */
#include "repops/src/free.h"
#include "repops/src/half.h"

#include <string.h>

enum { PIECE = 1 << 20 }; /* values that are copied back at a time */

typedef struct {
    const ro_free_job *job;
    ro_device *device;
    int f32, bounds;
    void *block[RO_MAX_INPUTS];
    const void *in[RO_MAX_INPUTS];
    void *value;
    double *bound;
} placed;

static ro_status pass(const placed *p, ro_status status) {
    return status == RO_OK ? RO_OK : ro_fail(p->job->ctx, status, "%s", p->device->error);
}

static ro_status new_block(const placed *p, size_t size, void **out) {
    return pass(p, p->device->functions->alloc(p->device, size ? size : 1, out));
}

/* If an earlier input is the same memory, returns its copy on the device; else NULL. */
static const void *found(const placed *p, int input) {
    const ro_shape *shape = p->job->call->input;
    for (int i = 0; i < input; i++)
        if (p->job->in[i] == p->job->in[input] && shape[i].dtype == shape[input].dtype &&
            ro_shape_numel(&shape[i]) >= ro_shape_numel(&shape[input]))
            return p->in[i];
    return NULL;
}

/* A device's free kernels read f32, so 16-bit elements are converted while they are copied. */
static int is_narrow(const ro_shape *shape) {
    return shape->dtype == RO_BF16 || shape->dtype == RO_F16;
}

static ro_status write_widened(const placed *p, int i) {
    const ro_shape *shape = &p->job->call->input[i];
    const uint16_t *from = p->job->in[i];
    const int64_t count = ro_shape_numel(shape);
    float *buffer = ro_workspace(p->job->ctx, PIECE * sizeof *buffer);
    ro_status status = buffer ? RO_OK : RO_ERR_MEMORY;
    for (int64_t first = 0; first < count && status == RO_OK; first += PIECE) {
        const int64_t n = count - first < PIECE ? count - first : PIECE;
        for (int64_t j = 0; j < n; j++)
            buffer[j] = ro_number_of(shape->dtype, from[first + j]);
        status = pass(p, p->device->functions->write(p->device, (float *)p->block[i] + first,
                                                     buffer, (size_t)n * sizeof *buffer));
    }
    return status;
}

static ro_status place_input(placed *p, int i) {
    const ro_shape *shape = &p->job->call->input[i];
    const size_t element = is_narrow(shape) ? sizeof(float) : ro_dtype_size(shape->dtype);
    const size_t size = (size_t)ro_shape_numel(shape) * element;
    p->in[i] = found(p, i);
    if (p->in[i])
        return RO_OK;
    ro_status status = new_block(p, size, &p->block[i]);
    p->in[i] = p->block[i];
    if (status != RO_OK || size == 0)
        return status;
    if (is_narrow(shape))
        return write_widened(p, i);
    return pass(p, p->device->functions->write(p->device, p->block[i], p->job->in[i], size));
}

static ro_status place(placed *p) {
    const size_t count = (size_t)ro_shape_numel(&p->job->call->output);
    ro_status status = RO_OK;
    for (int i = 0; i < p->job->call->input_count && status == RO_OK; i++)
        status = place_input(p, i);
    if (status == RO_OK)
        status = new_block(p, count * (p->f32 ? sizeof(float) : sizeof(double)), &p->value);
    if (status == RO_OK && p->bounds) {
        void *bound = NULL;
        status = new_block(p, count * sizeof(double), &bound);
        p->bound = bound;
    }
    return status;
}

static void drop(placed *p) {
    for (int i = 0; i < p->job->call->input_count; i++)
        if (p->block[i])
            p->device->functions->free(p->device, p->block[i]);
    if (p->value)
        p->device->functions->free(p->device, p->value);
    if (p->bound)
        p->device->functions->free(p->device, p->bound);
}

/* ---- what comes back ---- */

typedef struct {
    const placed *p;
    int64_t first; /* first element in the output */
    const void *value;
    const double *bound; /* NULL: not wanted */
} piece;

static void round_range(void *user, int64_t first, int64_t last, int worker) {
    const piece *x = user;
    ro_emitter *t = &x->p->job->emitter[worker];
    for (int64_t i = first; i < last; i += RO_EMIT_MAX) {
        const int64_t n = last - i < RO_EMIT_MAX ? last - i : RO_EMIT_MAX;
        if (x->p->f32)
            ro_emit_f32(t, x->first + i, (const float *)x->value + i, n);
        else
            ro_emit_f64(t, x->first + i, (const double *)x->value + i,
                        x->bound ? x->bound + i : NULL, n);
    }
}

static ro_status read_part(const placed *p, void *to, const void *from, int64_t first, int64_t n,
                           size_t width) {
    return pass(p, p->device->functions->read(p->device, to, (const char *)from + first * width,
                                              (size_t)n * width));
}

static ro_status round_all(const placed *p) {
    const int64_t count = ro_shape_numel(&p->job->call->output);
    const int64_t most = count < PIECE ? count : PIECE;
    double *value = ro_workspace(p->job->ctx, (size_t)most * 2 * sizeof *value);
    if (!value)
        return RO_ERR_MEMORY;
    piece x = {.p = p, .value = value, .bound = p->bounds ? value + most : NULL};
    for (; x.first < count; x.first += PIECE) {
        const int64_t n = count - x.first < PIECE ? count - x.first : PIECE;
        ro_status status =
            read_part(p, value, p->value, x.first, n, p->f32 ? sizeof(float) : sizeof(double));
        if (status == RO_OK && p->bounds)
            status = read_part(p, value + most, p->bound, x.first, n, sizeof(double));
        if (status != RO_OK)
            return status;
        ro_pool_for(ro_ctx_pool(p->job->ctx), n, 16 * RO_EMIT_MAX, round_range, &x);
    }
    return RO_OK;
}

ro_status ro_free_on_device(const ro_free_job *job, ro_device *device) {
    static const placed nothing;
    placed *p = ro_host_alloc(job->ctx, sizeof *p);
    if (!p)
        return ro_fail(job->ctx, RO_ERR_MEMORY, "no memory to run a free operator");
    *p = nothing;
    p->job = job;
    p->device = device;
    p->f32 = job->emitter->rounding->mode == RO_FREE_F32;
    p->bounds = !p->f32 && ro_emit_wants_bounds(job->emitter);
    ro_status status = place(p);
    if (status == RO_OK) {
        const ro_free_values values = {job->call, p->in, p->f32, p->value, p->bound};
        status = pass(p, device->functions->free_values(device, &values));
    }
    if (status == RO_OK)
        status = round_all(p);
    drop(p);
    ro_host_free(job->ctx, p);
    return status;
}
