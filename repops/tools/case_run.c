#include "repops/tools/case_run.h"

void *case_upload(ro_ctx *ctx, void *host, size_t size) {
    if (ro_ctx_in_host_memory(ctx))
        return host;
    void *block = ro_alloc(ctx, size);
    if (block && ro_write(ctx, block, host, size) != RO_OK) {
        ro_free(ctx, block);
        return NULL;
    }
    return block;
}

void case_drop(ro_ctx *ctx, void *host, void *uploaded) {
    if (uploaded != host)
        ro_free(ctx, uploaded);
}

static size_t input_bytes(const op_case *c, int i) {
    return (size_t)ro_shape_numel(&c->in[i]) * ro_dtype_size(c->in[i].dtype);
}

ro_status case_run(ro_ctx *ctx, const op_case *c) {
    const void *in[CASE_INPUTS] = {0};
    const size_t size = case_out_bytes(c);
    ro_status status = RO_ERR_MEMORY;
    int uploaded = 0;
    memset(c->out, 0x5a, size);
    void *out = case_upload(ctx, c->out, size);
    while (uploaded < c->call.input_count &&
           (in[uploaded] = case_upload(ctx, c->data[uploaded], input_bytes(c, uploaded))))
        uploaded++;
    if (out && uploaded == c->call.input_count)
        status = ro_run(ctx, &c->call, in, out);
    if (status == RO_OK && out != c->out)
        status = ro_read(ctx, c->out, out, size);
    for (int i = 0; i < uploaded; i++)
        case_drop(ctx, c->data[i], (void *)(uintptr_t)in[i]);
    if (out)
        case_drop(ctx, c->out, out);
    return status;
}
