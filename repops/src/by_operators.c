#include "repops/src/by_operators.h"

/* ---- levels of a reduction ---- */

typedef struct {
    int64_t attr[2];
    ro_shape output;
    int64_t left; /* blocks, or groups, that the level leaves */
} level;

static level level_of_rows(const ro_reduction *r, int64_t left) {
    const int64_t block = left < RO_REDUCE_BLOCK ? left : RO_REDUCE_BLOCK;
    const int64_t blocks = ro_blocks_of(left, block);
    return (level){{left, block}, {RO_F32, 2, {r->rows, blocks}}, blocks};
}

static level level_of_columns(const ro_reduction *r, int64_t left) {
    const int64_t groups = ro_blocks_of(left, RO_COLUMN_GROUP);
    return (level){{r->cols, 0}, {RO_F32, 2, {groups, r->cols}}, groups};
}

static ro_status reduce(ro_ctx *ctx, const ro_reduction *r, int64_t left,
                        level (*level_of)(const ro_reduction *r, int64_t left), float *room,
                        float *out) {
    ro_reduction now = *r;
    for (;;) {
        const level l = level_of(r, left);
        float *to = l.left > 1 ? room : out;
        const ro_call call = {now.op, now.inputs, {l.attr[0], l.attr[1]}, now.in, l.output};
        const ro_status status = ro_run(ctx, &call, now.data, to);
        if (status != RO_OK || l.left == 1)
            return status;
        now.op = r->next, now.inputs = 1, now.in[0] = l.output, now.data[0] = to;
        room += ro_shape_numel(&l.output), left = l.left;
    }
}

ro_status ro_reduce_rows(ro_ctx *ctx, const ro_reduction *r, float *room, float *out) {
    return reduce(ctx, r, r->cols, level_of_rows, room, out);
}

ro_status ro_reduce_columns(ro_ctx *ctx, const ro_reduction *r, float *room, float *out) {
    return reduce(ctx, r, r->rows, level_of_columns, room, out);
}
