/* Results of blocks of keys that were computed separately, SPEC.md section 8: attn_l and
 * attn_out. */
#ifndef REPOPS_CUDA_ATTEND_MERGE_CUH
#define REPOPS_CUDA_ATTEND_MERGE_CUH

#include "repops/cuda/attention/attend.cuh"

/* Results per query and block: ac [..., blocks, D], mc and lc [..., blocks]. */
struct attend_blocks {
    float *ac, *mc, *lc;
    int64_t blocks;
};

/* Most blocks: three numbers of each are in shared memory, of which any kernel may have 48 KiB. */
enum { MERGE_MOST = 4000 };

/* Results for `rows` queries of all heads, which have `tokens` each; m and l may be NULL. */
struct attend_merged {
    int64_t rows, size;
    float *out;
    attend_rows out_rows;
    ro_divider tokens;
    float *m, *l;
};

/* Merges at most MERGE_MOST blocks. */
ro_status ro_cuda_attend_merge(ro_cuda *d, const attend_blocks &from, const attend_merged &to);

#endif
