/* The table of element definitions, and folds over them. */
#include "repops/ref/ref.h"
#include "repops/src/fpenv.h"

#include <stdio.h>

#define RO_OPERATOR(number, NAME, name, ...) extern RO_HIDDEN const ro_ref_op ro_ref_op_##name;
#include "repops/src/operators.def"

static const ro_ref_op *const table[RO_OP_END] = {
#define RO_OPERATOR(number, NAME, name, ...) [number] = &ro_ref_op_##name,
#include "repops/src/operators.def"
#include "repops/op_product.h"
};

const ro_ref_op *ro_ref_row(int op) {
    return table[op];
}

int64_t ro_ref_steps(const ro_call *call) {
    const ro_ref_op *op = table[call->op];
    return op && op->steps ? op->steps(call) : 0;
}

size_t ro_ref_state_size(const ro_call *call) {
    return ro_ref_steps(call) > 0 ? 4 * (size_t)table[call->op]->words : 0;
}

void ro_ref_step_range(int64_t step, int64_t count, int64_t *from, int64_t *to) {
    *from = step * RO_REF_TERMS;
    *to = *from + RO_REF_TERMS < count ? *from + RO_REF_TERMS : count;
}

/* Every fold starts from zeros: +0, and a count of 0. */
void ro_ref_begin(const ro_call *call, int64_t element, ro_acc *acc) {
    (void)call, (void)element;
    memset(acc, 0, sizeof *acc);
}

void ro_ref_step(const ro_call *call, int64_t element, int64_t step, ro_acc *acc,
                 const ro_access *in) {
    const ro_fpenv env = ro_fpenv_enter();
    table[call->op]->step(call, element, step, acc, in);
    ro_fpenv_leave(env);
}

uint32_t ro_ref_finish(const ro_call *call, int64_t element, const ro_acc *acc,
                       const ro_access *in) {
    const ro_fpenv env = ro_fpenv_enter();
    const uint32_t bits = table[call->op]->finish(call, element, acc, in);
    ro_fpenv_leave(env);
    return bits;
}

uint32_t ro_ref_element(const ro_call *call, int64_t element, const ro_access *in) {
    ro_acc acc;
    int64_t steps = ro_ref_steps(call);
    ro_ref_begin(call, element, &acc);
    for (int64_t j = 0; j < steps; j++)
        ro_ref_step(call, element, j, &acc, in);
    return ro_ref_finish(call, element, &acc, in);
}

int64_t ro_ref_step_loads(const ro_call *call) {
    if (call->op == RO_OP_MATMUL)
        return 2 * call->attr[RO_MATMUL_CHUNK];
    return ro_ref_steps(call) ? RO_STEP_LOADS : 0;
}

int64_t ro_ref_finish_loads(const ro_call *call) {
    const ro_ref_op *op = table[call->op];
    if (op && op->loads)
        return op->loads(call);
    return op && op->steps ? 0 : call->input_count;
}

uint32_t ro_ref_load_memory(void *ro_ref_memory_ptr, int input, int64_t index) {
    const ro_ref_memory *memory = ro_ref_memory_ptr;
    switch (memory->call->input[input].dtype) {
    case RO_U8:
    case RO_I8: return ((const uint8_t *)memory->data[input])[index];
    case RO_U16:
    case RO_BF16:
    case RO_F16: return ((const uint16_t *)memory->data[input])[index];
    default: return ((const uint32_t *)memory->data[input])[index];
    }
}
