/* Contexts on a device: their kernel table, and their memory. */
#include "repops/device.h"
#include "repops/src/backend.h"
#include "repops/src/operands.h"
#include "repops/src/packed.h"

#include <string.h>

/* ---- the table ---- */

static ro_status pass(ro_ctx *ctx, ro_status status) {
    return status == RO_OK ? RO_OK : ro_fail(ctx, status, "%s", ro_ctx_on(ctx)->error);
}

static ro_status device_run(const ro_job *job) {
    ro_device *device = ro_ctx_on(job->ctx);
    return pass(job->ctx, device->functions->run(device, job->call, job->in, job->out));
}

static ro_status sgemm(ro_ctx *ctx, const ro_products *products) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->sgemm(device, products));
}

static ro_status linear(ro_ctx *ctx, const ro_linear_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->linear(device, job));
}

static ro_status attention_forward(ro_ctx *ctx, const ro_attention_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->attention_forward(device, job));
}

static ro_status attention_backward(ro_ctx *ctx, const ro_attention_grad_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->attention_backward(device, job));
}

static ro_status cross_entropy(ro_ctx *ctx, const ro_cross_entropy_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->cross_entropy(device, job));
}

static ro_status adamw(ro_ctx *ctx, int64_t count, const ro_adamw_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->adamw(device, count, job));
}

static ro_status adamw_bf16(ro_ctx *ctx, const ro_adamw_bf16_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->adamw_bf16(device, job));
}

static ro_status sgd(ro_ctx *ctx, const ro_sgd_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->sgd(device, job));
}

static ro_status layer_norm(ro_ctx *ctx, const ro_row_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->layer_norm(device, job));
}

static ro_status layer_norm_backward(ro_ctx *ctx, const ro_row_grad_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->layer_norm_backward(device, job));
}

static ro_status softmax(ro_ctx *ctx, const ro_row_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->softmax(device, job));
}

static ro_status softmax_backward(ro_ctx *ctx, const ro_row_grad_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->softmax_backward(device, job));
}

static ro_status log_softmax(ro_ctx *ctx, const ro_row_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->log_softmax(device, job));
}

static ro_status log_softmax_backward(ro_ctx *ctx, const ro_row_grad_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->log_softmax_backward(device, job));
}

static ro_status embedding_backward(ro_ctx *ctx, const ro_embedding_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->embedding_backward(device, job));
}

static ro_status rotary(ro_ctx *ctx, const ro_rotary_job *job) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->rotary(device, job));
}

/* ---- operands that stay packed ---- */

static size_t packed_size(ro_ctx *ctx, const ro_linear_layer *l, ro_packed_operand side) {
    ro_device *device = ro_ctx_on(ctx);
    return l->fixed_bits ? device->functions->packed_size(device, l, side) : 0;
}

static ro_status pack(ro_ctx *ctx, const ro_linear_layer *l, ro_packed_operand side,
                      const ro_linear_operands *in, void *to) {
    ro_device *device = ro_ctx_on(ctx);
    const ro_pack_job job = {*l, side, side == RO_PACKED_X ? in->x : in->w, in->transposed_x, to};
    return pass(ctx, device->functions->pack(device, &job));
}

/* Returns 1, as the host cannot read a device's memory to check it. */
static int packed_fits(const ro_linear_layer *l, ro_packed_operand side, const void *packed) {
    (void)l, (void)side, (void)packed;
    return 1;
}

static ro_status linear_of_packed(ro_ctx *ctx, const ro_linear_job *job,
                                  const ro_linear_operands *in) {
    ro_device *device = ro_ctx_on(ctx);
    return pass(ctx, device->functions->linear_of_packed(device, job, in));
}

const ro_packing ro_packing_device = {
    .size = packed_size, .pack = pack, .fits = packed_fits, .run = linear_of_packed};

/* ---- the whole table ---- */

void ro_table_device(ro_table *table) {
    *table = (ro_table){0}; /* no entry that would read device memory from the host */
    for (int op = 1; op < RO_OP_END; op++)
        table->kernel[op] = ro_op_describe(op) ? (ro_kernel){.run = device_run} : (ro_kernel){0};
    table->sgemm = sgemm;
    table->linear = linear;
    table->attention_forward = attention_forward;
    table->attention_backward = attention_backward;
    table->cross_entropy = cross_entropy;
    table->adamw = adamw;
    table->adamw_bf16 = adamw_bf16;
    table->sgd = sgd;
    table->layer_norm = table->rms_norm = layer_norm; /* a row job without beta is an RMS norm */
    table->layer_norm_backward = layer_norm_backward;
    table->softmax = softmax;
    table->softmax_backward = softmax_backward;
    table->log_softmax = log_softmax;
    table->log_softmax_backward = log_softmax_backward;
    table->embedding_backward = embedding_backward;
    table->rotary = rotary;
}

/* ---- memory ---- */

const char *ro_ctx_device(const ro_ctx *ctx) {
    const ro_device *device = ro_ctx_on(ctx);
    return device ? device->name : ro_ctx_backend(ctx);
}

const char *ro_ctx_device_uuid(const ro_ctx *ctx) {
    const ro_device *device = ro_ctx_on(ctx);
    return device ? device->uuid : "";
}

int ro_ctx_in_host_memory(const ro_ctx *ctx) {
    return !ro_ctx_on(ctx);
}

void *ro_alloc(ro_ctx *ctx, size_t size) {
    void *block = NULL;
    if (!ctx && ro_missing(ctx, "alloc", "ctx") != RO_OK)
        return NULL;
    ro_device *device = ro_ctx_on(ctx);
    if (device)
        return pass(ctx, device->functions->alloc(device, size, &block)) == RO_OK ? block : NULL;
    block = ro_host_alloc(ctx, size ? size : 1);
    if (!block)
        (void)ro_fail(ctx, RO_ERR_MEMORY, "no memory for %zu bytes", size);
    return block;
}

void ro_free(ro_ctx *ctx, void *block) {
    ro_device *device = ro_ctx_on(ctx);
    if (block && device)
        device->functions->free(device, block);
    else if (block)
        ro_host_free(ctx, block);
}

static ro_status check_copy(ro_ctx *ctx, const char *function, void *to, const void *from,
                            size_t size) {
    const ro_pieces a = {to, 1, (int64_t)size, (int64_t)size}, b = {from, 1, a.step, a.width};
    if (!ctx || (size > 0 && (!to || !from)))
        return ro_missing(ctx, function, !ctx ? "ctx" : to ? "from" : "to");
    if (size > (size_t)RO_MAX_NUMEL * 4)
        return ro_fail(ctx, RO_ERR_ARG, "%s: `size` must be at most 2^42, got %zu", function, size);
    if (ro_pieces_meet(&a, &b))
        return ro_fail(ctx, RO_ERR_ARG, "%s: the memory of `to` overlaps that of `from`", function);
    return RO_OK;
}

static ro_status host_copy(void *to, const void *from, size_t size) {
    if (size > 0)
        memcpy(to, from, size);
    return RO_OK;
}

ro_status ro_write(ro_ctx *ctx, void *to, const void *from, size_t size) {
    const ro_status status = check_copy(ctx, "write", to, from, size);
    if (status != RO_OK)
        return status;
    ro_device *device = ro_ctx_on(ctx);
    return device ? pass(ctx, device->functions->write(device, to, from, size))
                  : host_copy(to, from, size);
}

ro_status ro_read(ro_ctx *ctx, void *to, const void *from, size_t size) {
    const ro_status status = check_copy(ctx, "read", to, from, size);
    if (status != RO_OK)
        return status;
    ro_device *device = ro_ctx_on(ctx);
    return device ? pass(ctx, device->functions->read(device, to, from, size))
                  : host_copy(to, from, size);
}

ro_status ro_copy(ro_ctx *ctx, void *to, const void *from, size_t size) {
    const ro_status status = check_copy(ctx, "copy", to, from, size);
    if (status != RO_OK)
        return status;
    ro_device *device = ro_ctx_on(ctx);
    return device ? pass(ctx, device->functions->copy(device, to, from, size))
                  : host_copy(to, from, size);
}

ro_status ro_wait(ro_ctx *ctx) {
    if (!ctx)
        return ro_missing(ctx, "wait", "ctx");
    ro_device *device = ro_ctx_on(ctx);
    return device ? pass(ctx, device->functions->wait(device)) : RO_OK;
}

size_t ro_ctx_peak(ro_ctx *ctx) {
    ro_device *device = ro_ctx_on(ctx);
    return device ? device->functions->peak(device) : 0;
}

size_t ro_ctx_available(ro_ctx *ctx) {
    ro_device *device = ro_ctx_on(ctx);
    return device ? device->functions->available(device) : 0;
}

ro_status ro_tree_roots(ro_ctx *ctx, int64_t count, const void *const *data, const size_t *size,
                        uint8_t *root) {
    if (!ctx || (count > 0 && (!data || !size || !root)))
        return ro_missing(ctx, "tree_roots",
                          !ctx    ? "ctx"
                          : !data ? "data"
                          : !size ? "size"
                                  : "root");
    ro_device *device = ro_ctx_on(ctx);
    if (!device)
        return ro_fail(ctx, RO_ERR_UNSUPPORTED, "tree_roots: backend %s computes in host memory",
                       ro_ctx_backend(ctx));
    if (count < 0 || count > INT32_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "tree_roots: `count` must be 0..2^31 - 1, got %lld",
                       (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (size[i] == 0 || size[i] > (size_t)RO_MAX_NUMEL * 4)
            return ro_fail(ctx, RO_ERR_ARG, "tree_roots: `size` must be 1..2^42, got %zu", size[i]);
        else if (!data[i])
            return ro_fail(ctx, RO_ERR_ARG, "tree_roots: tensor %lld must not be NULL",
                           (long long)i);
    return count ? pass(ctx, device->functions->tree_roots(device, count, data, size, root))
                 : RO_OK;
}
