/* Positions sorted by the ids that they carry. */
#ifndef REPOPS_CUDA_EMBEDDING_CUH
#define REPOPS_CUDA_EMBEDDING_CUH

#include "repops/cuda/cuda.cuh"

#define ID_END (INT64_C(1) << 31) /* ids are below */

struct keyed {
    uint32_t key, position;
};

/* Positions sorted by id, ascending for each id; ids outside the table come last. */
struct ro_sorted_ids {
    const keyed *list;
    int64_t rows; /* of the table, ID_END at most: they are these ids */
    void *memory; /* for ro_cuda_free */
};

/* count > 0. */
ro_status ro_cuda_sort_ids(ro_cuda *d, const int32_t *ids, int64_t count, int64_t rows,
                           ro_sorted_ids *out);

#endif
