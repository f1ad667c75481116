/* Attributes for operators that tests only know by number. */
#ifndef TEST_SAMPLE_H
#define TEST_SAMPLE_H

#include "repops/repops.h"

/* Sets 1/8 for floats and 1 for integers. An operator that needs others is handled here. */
static inline void test_sample_attributes(int op, int64_t *attr) {
    const ro_op_info *info = ro_op_describe(op);
    for (int i = 0; i < info->attr_count; i++)
        attr[i] = info->attr[i].kind == 'f' ? ro_attr_f32(0.125f) : 1;
}

#endif
