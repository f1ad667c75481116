/* matmul and ro_linear (SPEC.md section 3.1), and attn_av (section 8): a batch of products, shared
 * among threads by output. */
#include "repops/cpu/gemm/fixed.h"
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/gemm/gemm_packed.h"
#include "repops/src/call.h"
#include "repops/op_attention.h"
#include "repops/src/matmul.h"

enum {
    PIECE_WORK = 1 << 17, /* multiply-adds from which a product is cut up: about two microseconds */
    WORK_US = 1 << 16,    /* multiply-adds of one microsecond */
    LARGE = 1 << 21,      /* elements of c per thread from which two pieces still repay packing */
};

typedef struct {
    gemm first; /* the first product of the batch */
    int64_t batch, a_size, b_size, c_size;
    int64_t rows, cols;   /* size of a piece */
    int64_t down, across; /* pieces of one product: down its rows, and across its columns */
    float *workspace;
    int64_t workspace_size; /* floats for each thread */
} batch;

static void run_pieces(void *user, int64_t first, int64_t last, int worker) {
    const batch *b = user;
    for (int64_t i = first; i < last; i++) {
        const int64_t product = i / b->across / b->down;
        const int64_t row = i / b->across % b->down * b->rows, col = i % b->across * b->cols;
        gemm g = b->first;
        g.m = min_i64(b->rows, g.m - row);
        g.n = min_i64(b->cols, g.n - col);
        g.row0 += row;
        g.a += product * b->a_size + row * g.a_row;
        const int64_t b_at = product * b->b_size + col * (g.b_col ? g.b_col : g.k);
        g.b = g.b ? g.b + b_at : NULL;
        g.narrow.data = g.narrow.data ? g.narrow.data + b_at : NULL;
        g.c += product * b->c_size + row * g.c_row + col;
        g.y = g.y ? g.y + row * g.c_row + col : NULL;
        g.bias = g.bias ? g.bias + col : NULL;
        run_kernel(choose_kernel(&g), &g, b->workspace + worker * b->workspace_size);
    }
}

/* Returns the size of the largest part when `size` is cut into `parts`: all but the last are
 * multiples of `unit`. */
static int64_t part_of(int64_t size, int64_t parts, int64_t unit) {
    return min_i64(size, ceil_div(ceil_div(size, parts), unit) * unit);
}

/* Cuts every product into about `pieces` pieces, as square as possible unless another cut makes the
 * largest piece an eighth smaller. Sizes are multiples of a tile, or of a vector where nothing is
 * packed. A single column is cut like one row, since as_row makes it one. */
static void cut(batch *b, int64_t pieces) {
    const int64_t m = b->first.m, n = b->first.n;
    const int small = RO_NAME(ro_gemm_small).takes(&b->first);
    const int64_t row = n == 1 ? NR : small ? 1 : MR, col = small ? VW : NR;
    int64_t down = 1, across = 1;
    while (down * across < pieces && (m > down * MR || n > across * NR)) {
        const int64_t wide = part_of(m, down, row) * part_of(n, 2 * across, col);
        const int64_t tall = part_of(m, 2 * down, row) * part_of(n, across, col);
        if (8 * wide <= (n / across >= m / down ? 9 : 7) * tall)
            across *= 2;
        else
            down *= 2;
    }
    b->rows = part_of(m, down, row);
    b->cols = part_of(n, across, col);
    b->down = ceil_div(m, b->rows);
    b->across = ceil_div(n, b->cols);
}

static double work_of(const batch *b) {
    return (double)b->batch * (double)b->first.m * (double)b->first.n * (double)b->first.k;
}

/* Returns how many pieces each thread gets. More than one lets threads finish together, though rows
 * differ in length under a mask, and the system may suspend a thread. */
static int pieces_per_thread(const batch *b, int threads) {
    const gemm *g = &b->first;
    if (g->mask != RO_MASK_NONE)
        return 4;
    return b->batch == 1 && (double)g->m * (double)g->n < LARGE * (double)threads ? 1 : 2;
}

static int64_t pieces_wanted(ro_ctx *ctx, const batch *b) {
    const double work = work_of(b);
    const int threads = work < PIECE_WORK ? 1 : ro_pool_threads(ro_ctx_pool(ctx), work / WORK_US);
    if (threads == 1)
        return 1;
    const int64_t most = threads * pieces_per_thread(b, threads);
    return work < PIECE_WORK * (double)most ? max_i64(2, (int64_t)(work / PIECE_WORK)) : most;
}

/* Returns the largest workspace of all pieces: whole ones, and those cut off at the edges. */
static int64_t most_workspace(const batch *b) {
    const gemm *g = &b->first;
    const int64_t rows[] = {min_i64(b->rows, g->m), g->m - (b->down - 1) * b->rows};
    const int64_t cols[] = {min_i64(b->cols, g->n), g->n - (b->across - 1) * b->cols};
    int64_t most = 16;
    for (int i = 0; i < 4; i++) {
        gemm piece = *g;
        piece.m = rows[i / 2], piece.n = cols[i % 2];
        most = max_i64(most, kernel_workspace(choose_kernel(&piece), &piece));
    }
    return ceil_div(most, 16) *
           16; /* multiples of 16 floats, so that each thread's part is aligned */
}

RO_INLINE ro_status run_one(ro_ctx *ctx, const gemm *g) {
    const gemm_kernel *kernel = choose_kernel(g);
    const int64_t size = kernel_workspace(kernel, g);
    float *workspace = size ? ro_workspace(ctx, (size_t)size * sizeof(float)) : NULL;
    if (size && !workspace)
        return RO_ERR_MEMORY;
    run_kernel(kernel, g, workspace);
    return RO_OK;
}

static ro_status run_batch(ro_ctx *ctx, batch *b) {
    const int threads = ro_ctx_threads(ctx);
    const int64_t wanted = pieces_wanted(ctx, b);
    if (b->batch == 1 && wanted == 1)
        return run_one(ctx, &b->first);
    b->first.a_all = (b->a_size ? b->batch : 1) * b->first.m * b->first.k;
    cut(b, ceil_div(wanted, b->batch));
    b->workspace_size = most_workspace(b);
    b->workspace = ro_workspace(ctx, (size_t)(b->workspace_size * threads) * sizeof(float));
    if (!b->workspace)
        return RO_ERR_MEMORY;
    const int64_t count = b->batch * b->down * b->across;
    ro_pool_for(ro_ctx_pool(ctx), count, ceil_div(count, wanted), run_pieces, b);
    return RO_OK;
}

ro_status RO_NAME(ro_gemm_shared)(ro_ctx *ctx, const gemm *g) {
    batch b = {.first = *g, .batch = 1};
    return run_batch(ctx, &b);
}

static ro_status matmul(const ro_job *job) {
    const ro_matmul v = ro_matmul_of(job->call);
    batch b = {.batch = v.batch, .a_size = v.m * v.k, .b_size = v.k * v.n, .c_size = v.m * v.n};
    b.first = (gemm){.m = v.m, .n = v.n, .k = v.k, .a = job->in[0], .c = job->out};
    if (job->call->input[1].dtype == RO_F32)
        b.first.b = job->in[1];
    else
        b.first.narrow = (narrow_matrix){job->in[1], job->call->input[1].dtype};
    b.first.a_row = v.trans_a ? 1 : v.k;
    b.first.a_col = v.trans_a ? v.m : 1;
    b.first.b_row = v.trans_b ? 1 : v.n;
    b.first.b_col = v.trans_b ? v.k : 1;
    b.first.c_row = v.n;
    b.first.chunk = v.chunk;
    b.first.mask = v.mask;
    b.first.window = v.window;
    b.first.alpha = v.alpha;
    return run_batch(job->ctx, &b);
}
RO_KERNEL(matmul, .run = matmul)

static ro_status sgemm(ro_ctx *ctx, const ro_products *p) {
    gemm g = {.m = p->m, .n = p->n, .k = p->k, .chunk = RO_DOT_CHUNK};
    g.a = p->a, g.a_row = p->a_row, g.a_col = p->a_col;
    g.b = p->b, g.b_row = p->b_row, g.b_col = p->b_col;
    g.c = p->c, g.c_row = p->c_row;
    g.alpha = p->alpha, g.beta = p->beta;
    if (p->batch == 1 && (double)p->m * (double)p->n * (double)p->k < PIECE_WORK)
        return run_one(ctx, &g);
    batch b = {g, p->batch, p->a_next, p->b_next, p->c_next};
    return run_batch(ctx, &b);
}
RO_FUSED(sgemm, sgemm)

/* The product is stored in y directly if the caller keeps no z. */
ro_status RO_NAME(ro_linear_kept)(ro_ctx *ctx, const ro_linear_job *j,
                                  const ro_linear_operands *in) {
    const ro_linear_layer *l = &j->layer;
    gemm g = {.m = l->rows, .n = l->out, .k = l->in, .alpha = 1.0f, .chunk = RO_DOT_CHUNK};
    g.a = j->x, g.a_row = in->transposed_x ? 1 : l->in, g.a_col = in->transposed_x ? l->rows : 1;
    g.b = j->w, g.b_row = l->transposed ? 1 : l->out, g.b_col = l->transposed ? l->in : 1;
    g.c = j->z ? j->z : j->y, g.c_row = l->out;
    if (in->packed_w)
        g.b = RO_NAME(ro_gemm_panels)(in->packed_w), g.b_row = NR, g.b_col = 0;
    g.y = j->y, g.bias = j->bias, g.activation = l->activation;
    return RO_NAME(ro_gemm_shared)(ctx, &g);
}

static ro_status linear(ro_ctx *ctx, const ro_linear_job *j) {
    const ro_linear_operands none = {.size = sizeof none};
    return j->layer.fixed_bits ? RO_NAME(ro_linear_fixed)(ctx, j)
                               : RO_NAME(ro_linear_kept)(ctx, j, &none);
}
RO_FUSED(linear, linear)

/* Every block of keys is a chunk with its own result: out is [..., T, nb, D]. */
static ro_status attn_av(const ro_job *job) {
    const ro_shape *e = &job->call->input[0], *out = &job->call->output;
    const int64_t queries = e->dim[e->ndim - 2], keys = e->dim[e->ndim - 1];
    const int64_t width = out->dim[out->ndim - 1], blocks = out->dim[out->ndim - 2];
    batch b = {.batch = in_numel(job, 0) / queries / keys,
               .a_size = queries * keys,
               .b_size = keys * width,
               .c_size = queries * blocks * width};
    b.first = (gemm){.m = queries, .n = width, .k = keys, .alpha = 1.0f, .chunk = RO_ATTN_BLOCK};
    b.first.a = job->in[0], b.first.a_row = keys, b.first.a_col = 1;
    b.first.b = job->in[1], b.first.b_row = width, b.first.b_col = 1;
    b.first.c = job->out, b.first.c_row = blocks * width, b.first.c_chunk = width;
    b.first.mask = job->call->attr[RO_ATTN_AV_CAUSAL] ? RO_MASK_UPTO_ROW : RO_MASK_NONE;
    b.first.window = job->call->attr[RO_ATTN_AV_WINDOW];
    return run_batch(job->ctx, &b);
}
RO_KERNEL(attn_av, .run = attn_av)
