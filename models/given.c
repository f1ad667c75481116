/* Models that only compute, with all parameters given: as tensors of files, or of a state. */
#include <stdlib.h>
#include <string.h>

#include "models/model.h"

/* Renumbers data tensors to start from `first` instead of 1. */
static void number_from(uint32_t first, vd_parameters *all) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->parameter[i].data)
            all->parameter[i].data += first - 1;
}

vd_status vd_given_parameters(const vd_training *t, uint32_t first, vd_parameters *out,
                              vd_err *err) {
    vd_status status = vd_parameters_of(&t->model, out, err);
    if (status != VD_OK)
        return status;
    status = vd_freeze_all(out, err);
    if (status == VD_OK && t->file)
        status = vd_find_tensors(t, out, err);
    if (status == VD_OK)
        status = vd_freeze_start(t, out, err);
    number_from(first, out);
    return status;
}

vd_status vd_put_given(const vd_training *t, uint32_t first, const vd_parameters *all,
                       vd_program *out, vd_err *err) {
    const uint32_t given = vd_data_count(all), count = given > first ? given : first;
    vd_status status = vd_program_take_data(out, count, err);
    if (status != VD_OK)
        return status;
    vd_put_tensors(t, all, out);
    vd_put_start(t, count - t->start_count, out);
    return VD_OK;
}

void vd_given_pass_open(vd_builder *b, const vd_training *t, const vd_parameters *all,
                        vd_value tokens, vd_cache *cache, vd_given_pass *out) {
    *out = (vd_given_pass){.training = *t};
    const ro_shape *shape = vd_shape_of(b, tokens);
    out->training.sequence = shape->dim[shape->ndim - 1];
    out->parameter = calloc((size_t)all->count + 1, sizeof *out->parameter);
    if (!out->parameter) {
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
        return;
    }
    b->products.forward = t->products.forward; /* there is no backward pass */
    vd_frozen_values(b, all, out->parameter);
    out->in = (vd_forward){.training = &out->training,
                           .declared = all,
                           .parameter = out->parameter,
                           .tokens = tokens,
                           .buffer = out->parameter + all->taken,
                           .cache = cache};
    out->pass = (vd_pass){.b = b, .in = &out->in, .logits = VD_NONE};
}

void vd_given_pass_free(vd_given_pass *pass) {
    free(pass->parameter);
    pass->parameter = NULL;
}
