/* Positions sorted by the ids that they carry. */
#ifndef REPOPS_CUDA_EMBEDDING_CUH
#define REPOPS_CUDA_EMBEDDING_CUH

#include "repops/cuda/cuda.cuh"

#define ID_END (INT64_C(1) << 31) /* all ids are below */

struct keyed {
    uint32_t key, position;
};

/* Positions sorted by id, and ascending for each id; ids outside the table come last. */
struct ro_sorted_ids {
    const keyed *list;
    int64_t rows; /* rows of the table, ID_END at most, and so the ids */
    void *memory; /* for ro_cuda_free */
};

/* Adds dy's rows into the rows of `out` that their ids name; `out` is overwritten. */
ro_status ro_cuda_add_by_id(ro_cuda *d, const ro_embedding_job &j, float *out);

/* ---- levels of K, SPEC.md section 3.3 ---- */

enum { ID_LEVELS = 6 }; /* 64^6 > 2^31 positions */

/* Adds a group's sum to the levels above groups: level l has the sum of its unfinished group. A sum
 * that starts from +0 is never -0, so an empty level changes nothing. */
RO_DEVICE void ro_push_group(float level[ID_LEVELS], int64_t groups, float sum) {
    bool carry = true;
#pragma unroll
    for (int l = 0; l < ID_LEVELS; l++) {
        if (!carry)
            continue;
        level[l] = level[l] + sum;
        groups /= l > 0 ? RO_COLUMN_GROUP : 1;
        carry = groups % RO_COLUMN_GROUP == 0 && l < ID_LEVELS - 1;
        sum = level[l];
        level[l] = carry ? 0.0f : level[l];
    }
}

RO_DEVICE float ro_sum_levels(const float level[ID_LEVELS]) {
    float sum = level[0];
#pragma unroll
    for (int l = 1; l < ID_LEVELS; l++)
        sum = level[l] + sum;
    return sum;
}

/* ---- sorting ---- */

/* Sorts `count` ids; count > 0. */
ro_status ro_cuda_sort_ids(ro_cuda *d, const int32_t *ids, int64_t count, int64_t rows,
                           ro_sorted_ids *out);

#endif
