#include "repops/cpu/isa.h"

void RO_NAME(ro_table)(ro_table *table) {
    RO_NAME(ro_add_copies)(table);
    RO_NAME(ro_add_random)(table);
    RO_NAME(ro_add_embedding)(table);
    RO_NAME(ro_add_axes)(table);
    RO_NAME(ro_add_put_rows)(table);
    RO_NAME(ro_add_transpose)(table);
    RO_NAME(ro_add_cast)(table);
    RO_NAME(ro_add_rope)(table);
    RO_NAME(ro_add_arithmetic)(table);
    RO_NAME(ro_add_choice)(table);
    RO_NAME(ro_add_functions)(table);
    RO_NAME(ro_add_products)(table);
    RO_NAME(ro_add_fixed)(table);
    RO_NAME(ro_add_rows)(table);
    RO_NAME(ro_add_columns)(table);
    RO_NAME(ro_add_norm)(table);
    RO_NAME(ro_add_entropy)(table);
    RO_NAME(ro_add_softmax)(table);
    RO_NAME(ro_add_axis_reduce)(table);
    RO_NAME(ro_add_sampling)(table);
    RO_NAME(ro_add_rms)(table);
    RO_NAME(ro_add_attention)(table);
    RO_NAME(ro_add_attend)(table);
    RO_NAME(ro_add_cross_entropy)(table);
    RO_NAME(ro_add_optimizer)(table);
    RO_NAME(ro_add_adamw_bf16)(table);
    RO_NAME(ro_add_conv)(table);
    RO_NAME(ro_add_conv_weight)(table);
    RO_NAME(ro_add_conv_fixed)(table);
    RO_NAME(ro_add_pooling)(table);
    RO_NAME(ro_add_batchnorm)(table);
    RO_NAME(ro_add_images)(table);
}
