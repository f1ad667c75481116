/* Learning rates, SPEC 9. Private to repops. */
#ifndef RO_SCHEDULE_H
#define RO_SCHEDULE_H

#include "repops/op_optimizer.h"
#include "repops/src/math.h"

/* SPEC 9: computes lr_schedule; attr holds kind, base, min, warmup and total. */
RO_INLINE float ro_learning_rate(const int64_t *attr, int32_t step) {
    float base = ro_from_bits((uint32_t)attr[RO_LR_SCHEDULE_BASE]),
          low = ro_from_bits((uint32_t)attr[RO_LR_SCHEDULE_MIN]);
    int64_t warmup = attr[RO_LR_SCHEDULE_WARMUP], total = attr[RO_LR_SCHEDULE_TOTAL], s = step;
    if (s < 0)
        return 0.0f;
    if (s < warmup)
        return base * ((float)(s + 1) / (float)warmup);
    if (attr[RO_LR_SCHEDULE_KIND] == RO_LR_CONSTANT)
        return base;
    if (s >= total)
        return low;
    if (attr[RO_LR_SCHEDULE_KIND] == RO_LR_LINEAR)
        return ro_fma(low - base, (float)(s - warmup) / (float)(total - warmup), base);
    uint32_t turn = (uint32_t)(((s - warmup) << 23) / (total - warmup));
    return ro_fma(base - low, 0.5f * (1.0f + ro_cos_turn(turn)), low);
}

#endif
