/* This file computes single elements by the reference, and tests the reference on this machine. */
#include "repops/ref.h"
#include "verde/exec/source.h"

vd_status vd_leaf_element(const ro_call *call, int64_t element, vd_load load, void *user,
                          uint32_t *out, vd_err *err) {
    if (element < 0 || element >= ro_shape_numel(&call->output))
        return vd_fail(err, VD_ERR_LOCAL, "element %lld is not in the output", (long long)element);
    ro_access in = {load, user};
    *out = ro_ref_element(call, element, &in);
    return VD_OK;
}

vd_status vd_leaf_bounded(const ro_call *call, int64_t element, vd_load load, void *user,
                          ro_bounded *out, vd_err *err) {
    if (element < 0 || element >= ro_shape_numel(&call->output))
        return vd_fail(err, VD_ERR_LOCAL, "element %lld is not in the output", (long long)element);
    const ro_access in = {load, user};
    *out = ro_ref_bounded(call, element, &in);
    return VD_OK;
}

vd_status vd_leaf_self_test(vd_err *err) {
    char why[256];
    if (ro_ref_self_test(why, sizeof why) == RO_OK)
        return VD_OK;
    return vd_fail(err, VD_ERR_LOCAL, "%s", why);
}
