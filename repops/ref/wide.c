/* Functions that compute in binary64: SPEC.md section 2.9. */
#include "repops/op_number.h"
#include "repops/ref/ref.h"
#include "repops/src/wide_functions.h"

#define FUNCTION(name)                                                                             \
    static uint32_t name##_of(const ro_call *call, int64_t e, const ro_acc *acc,                   \
                              const ro_access *in) {                                               \
        (void)call, (void)acc;                                                                     \
        return ro_to_bits(ro_##name(loadf(in, 0, e)));                                             \
    }                                                                                              \
    RO_REFERENCE(name, .finish = name##_of)
RO_TURNED_FUNCTIONS(FUNCTION)
RO_WIDE_FUNCTIONS(FUNCTION)

#define FUNCTION_OF_TWO(name)                                                                      \
    static uint32_t name##_of(const ro_call *call, int64_t e, const ro_acc *acc,                   \
                              const ro_access *in) {                                               \
        (void)acc;                                                                                 \
        return ro_to_bits(ro_##name(loadf(in, 0, e), loadf(in, 1, e % numel(call, 1))));           \
    }                                                                                              \
    RO_REFERENCE(name, .finish = name##_of)
FUNCTION_OF_TWO(atan2)
FUNCTION_OF_TWO(pow)
