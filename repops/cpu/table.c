/* Builds the table of the instruction set from the entries that RO_KERNEL and RO_FUSED define below
 * kernels. */
#include "repops/cpu/isa.h"

#define RO_OPERATOR(number, NAME, name, ...)                                                       \
    extern RO_HIDDEN const ro_kernel RO_NAME(ro_kernel_##name);
#include "repops/src/operators.def"

#define FUSED(member)                                                                              \
    do {                                                                                           \
        extern RO_HIDDEN RO_FUSED_TYPE(member) RO_NAME(ro_fused_##member);                         \
        table->member = RO_NAME(ro_fused_##member);                                                \
    } while (0)

void RO_NAME(ro_table)(ro_table *table) {
#define RO_OPERATOR(number, NAME, name, ...) table->kernel[number] = RO_NAME(ro_kernel_##name);
#include "repops/src/operators.def"
    FUSED(sgemm);
    FUSED(linear);
    FUSED(attention_forward);
    FUSED(attention_backward);
    FUSED(cross_entropy);
    FUSED(adamw);
    FUSED(layer_norm);
    FUSED(layer_norm_backward);
    FUSED(softmax);
    FUSED(softmax_backward);
    FUSED(log_softmax);
    FUSED(log_softmax_backward);
    FUSED(sgd);
    FUSED(adamw_bf16);
    FUSED(embedding_backward);
    FUSED(rms_norm);
    FUSED(rms_norm_backward);
    FUSED(rotary);
    FUSED(stages);
}
