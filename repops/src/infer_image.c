/* Valid calls of operators on images. SPEC.md section 12. */
#include "repops/src/conv.h"
#include "repops/src/infer.h"

/* ---- convolution ---- */

static ro_status ro_check_conv_attrs(ro_check *c) {
    for (int i = 0; i < 2; i++) {
        TRY(ro_want_range(c, i, 1, RO_CONV_MOST));
        TRY(ro_want_range(c, 2 + i, 0, RO_CONV_MOST));
        TRY(ro_want_range(c, 4 + i, 1, RO_CONV_MOST));
    }
    return ro_want_range(c, 6, 1, INT32_MAX);
}

static ro_status ro_check_conv_sizes(ro_check *c, const ro_conv *v) {
    if (v->filters % v->groups != 0 || v->channels % v->groups != 0 ||
        v->depth != v->channels / v->groups)
        return ro_refuse(c,
                         "weights must be [KH, KW, channels / groups, filters]: %lld of %lld "
                         "channels, %lld filters, %lld groups",
                         (long long)v->depth, (long long)v->channels, (long long)v->filters,
                         (long long)v->groups);
    if (v->out[0] < 1 || v->out[1] < 1)
        return ro_refuse(c, "the kernel does not fit into the padded image");
    return RO_OK;
}

ro_status ro_check_conv2d(ro_check *c) {
    const int op = c->call->op;
    TRY(ro_all_f32(c));
    if (op != RO_OP_CONV2D)
        TRY(ro_declared(c, RO_F32));
    if (c->in[0].ndim != 4 || c->in[1].ndim != 4 ||
        (op != RO_OP_CONV2D && c->call->output.ndim != 4))
        return ro_refuse(c,
                         "images are [N, H, W, C], weights [KH, KW, channels / groups, filters]");
    TRY(ro_check_conv_attrs(c));
    const ro_conv v = ro_conv_of(c->call);
    TRY(ro_check_conv_sizes(c, &v));
    c->want = (ro_shape){RO_F32, 4, {v.batch, v.out[0], v.out[1], v.filters}};
    if (op != RO_OP_CONV2D && !ro_shape_equal(&c->in[op == RO_OP_CONV2D_DW], &c->want))
        return ro_refuse(c, "dy must be [%lld, %lld, %lld, %lld]", (long long)v.batch,
                         (long long)v.out[0], (long long)v.out[1], (long long)v.filters);
    return RO_OK;
}
