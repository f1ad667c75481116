/* Roots of RFC 6962 trees over tensors in leaves of RO_TREE_LEAF bytes: SHA-256 (FIPS 180-4), a
 * thread for each leaf, then for each node, for all tensors of a state in one launch per level. A
 * level pairs the nodes of the one below from the left and passes an odd last one up unchanged,
 * which is RFC 6962's split at the largest power of two. */
#include <stdlib.h>

#include "repops/cuda/ptx.cuh"
#include "repops/device.h"

enum { LEAF = RO_TREE_LEAF, TREE_THREADS = 128 };

struct alignas(16) digest {
    uint32_t word[8];
};

/* ---- SHA-256 ---- */

__constant__ uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

RO_DEVICE digest initial() {
    return digest{{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                   0x1f83d9ab, 0x5be0cd19}};
}

RO_DEVICE uint32_t rotate(uint32_t x, int by) {
    return __funnelshift_r(x, x, (unsigned)by);
}

/* Compression, FIPS 180-4 section 6.2.2. The schedule is a ring of 16 words in registers: indices
 * are constants once the loop is unrolled. Shifts and logic fill the unit for additions; `one` is
 * 1, for additions by the multiplication unit. */
RO_DEVICE void compress(digest *hash, uint32_t w[16], uint32_t one) {
    const auto add = [one](uint32_t x, uint32_t y) { return ro_add_as_product(one, x, y); };
    uint32_t s[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        s[i] = hash->word[i];
#pragma unroll
    for (int t = 0; t < 64; t++) {
        if (t >= 16) {
            const uint32_t x = w[(t + 1) & 15], y = w[(t + 14) & 15];
            const uint32_t s0 = rotate(x, 7) ^ rotate(x, 18) ^ x >> 3;
            const uint32_t s1 = rotate(y, 17) ^ rotate(y, 19) ^ y >> 10;
            w[t & 15] = add(s1, add(s0, add(w[t & 15], w[(t + 9) & 15])));
        }
        const uint32_t e = s[4], a = s[0];
        const uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        const uint32_t choice = (e & s[5]) ^ (~e & s[6]);
        const uint32_t given = add(s[7], add(w[t & 15], round_constants[t]));
        const uint32_t t1 = add(sum1, add(choice, given));
        const uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        const uint32_t majority = (a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]);
        s[7] = s[6], s[6] = s[5], s[5] = s[4], s[4] = add(t1, s[3]);
        s[3] = s[2], s[2] = s[1], s[1] = s[0], s[0] = add(t1, add(majority, sum0));
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        hash->word[i] += s[i];
}

/* Returns H(0x00 || LEAF bytes): the prefix shifts everything by one byte. */
RO_DEVICE digest whole_leaf(const uint4 *data, uint32_t one) {
    digest hash = initial();
    uint32_t w[16], before = 0;
    for (int block = 0; block < LEAF / 64; block++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint4 x = data[4 * block + i];
            /* the last byte of one word, then three of the next, in the order of memory */
            w[4 * i] = __byte_perm(before, x.x, 0x3456);
            w[4 * i + 1] = __byte_perm(x.x, x.y, 0x3456);
            w[4 * i + 2] = __byte_perm(x.y, x.z, 0x3456);
            w[4 * i + 3] = __byte_perm(x.z, x.w, 0x3456);
            before = x.w;
        }
        compress(&hash, w, one);
    }
#pragma unroll
    for (int i = 0; i < 16; i++)
        w[i] = 0;
    w[0] = (before >> 24) << 24 | 0x800000;
    w[15] = (LEAF + 1) * 8;
    compress(&hash, w, one);
    return hash;
}

/* Returns H(0x00 || size bytes), for bytes at any address. */
RO_DEVICE digest any_leaf(const uint8_t *data, int size, uint32_t one) {
    digest hash = initial();
    uint32_t w[16];
    const int message = size + 1, blocks = (message + 9 + 63) / 64;
    for (int block = 0; block < blocks; block++) {
#pragma unroll
        for (int i = 0; i < 16; i++) {
            w[i] = 0;
            for (int b = 0; b < 4; b++) {
                const int at = 64 * block + 4 * i + b;
                const uint32_t byte = at == 0 || at > message ? 0
                                      : at == message         ? 0x80
                                                              : data[at - 1];
                w[i] = w[i] << 8 | byte;
            }
        }
        if (block == blocks - 1)
            w[15] = (uint32_t)message * 8;
        compress(&hash, w, one);
    }
    return hash;
}

/* Returns H(0x01 || left || right). */
RO_DEVICE digest node(const digest *pair, uint32_t one) {
    const digest left = pair[0], right = pair[1];
    digest hash = initial();
    uint32_t w[16], x[16];
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = left.word[i], x[8 + i] = right.word[i];
    w[0] = 0x01000000 | x[0] >> 8;
#pragma unroll
    for (int i = 1; i < 16; i++)
        w[i] = x[i - 1] << 24 | x[i] >> 8;
    compress(&hash, w, one);
#pragma unroll
    for (int i = 0; i < 16; i++)
        w[i] = 0;
    w[0] = x[15] << 24 | 0x800000;
    w[15] = 65 * 8;
    compress(&hash, w, one);
    return hash;
}

/* ---- kernels ---- */

struct tensor_bytes {
    const uint8_t *data;
    uint64_t size;
};

/* Returns the tree that item i of a level belongs to: first[t] <= i < first[t + 1]. */
RO_DEVICE int tree_of(const int64_t *first, int trees, int64_t i) {
    int low = 0, high = trees;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

__global__ void __launch_bounds__(TREE_THREADS)
    leaves_kernel(const tensor_bytes *tensor, const int64_t *first, int trees, digest *out,
                  uint32_t one) {
    const int64_t i = (int64_t)blockIdx.x * TREE_THREADS + threadIdx.x;
    if (i >= first[trees])
        return;
    const int t = tree_of(first, trees, i);
    const uint64_t at = (uint64_t)(i - first[t]) * LEAF, left = tensor[t].size - at;
    const uint8_t *data = tensor[t].data + at;
    out[i] = left >= LEAF && (uintptr_t)data % 16 == 0
                 ? whole_leaf(reinterpret_cast<const uint4 *>(data), one)
                 : any_leaf(data, left < LEAF ? (int)left : LEAF, one);
}

__global__ void __launch_bounds__(TREE_THREADS)
    nodes_kernel(const int64_t *below, const int64_t *first, int trees, const digest *in,
                 digest *out, uint32_t one) {
    const int64_t i = (int64_t)blockIdx.x * TREE_THREADS + threadIdx.x;
    if (i >= first[trees])
        return;
    const int t = tree_of(first, trees, i);
    const int64_t left = below[t] + 2 * (i - first[t]);
    out[i] = left + 1 < below[t + 1] ? node(in + left, one) : in[left];
}

/* ---- the function ---- */

/* In host memory: the first item of each tree in each level, and the tensors. */
struct plan {
    int trees, levels;
    int64_t *first; /* [levels][trees + 1] */
    tensor_bytes *tensor;
    size_t size; /* bytes of `first` and `tensor`, which are contiguous */
};

static bool make_plan(plan *p, int64_t count, const void *const *data, const size_t *size) {
    size_t largest = 0;
    for (int64_t t = 0; t < count; t++)
        largest = size[t] > largest ? size[t] : largest;
    p->trees = (int)count;
    p->levels = 1;
    for (size_t n = (largest + LEAF - 1) / LEAF; n > 1; n = (n + 1) / 2)
        p->levels++;
    const size_t numbers = (size_t)p->levels * (size_t)(count + 1);
    p->size = numbers * sizeof(int64_t) + (size_t)count * sizeof(tensor_bytes);
    p->first = static_cast<int64_t *>(malloc(p->size));
    if (!p->first)
        return false;
    p->tensor = reinterpret_cast<tensor_bytes *>(p->first + numbers);
    for (int l = 0; l < p->levels; l++) {
        int64_t *first = p->first + (size_t)l * (size_t)(count + 1);
        first[0] = 0;
        for (int64_t t = 0; t < count; t++) {
            const int64_t below = l > 0 ? first[t - count] - first[t - count - 1] : 0;
            const int64_t leaves = (int64_t)((size[t] + LEAF - 1) / LEAF);
            first[t + 1] = first[t] + (l > 0 ? (below + 1) / 2 : leaves);
        }
    }
    for (int64_t t = 0; t < count; t++)
        p->tensor[t] = tensor_bytes{static_cast<const uint8_t *>(data[t]), size[t]};
    return true;
}

/* `table` is the plan in device memory; `even` has room for the leaves, `odd` for half as many and
 * one per tree. Returns where the roots are. */
static digest *climb(cudaStream_t stream, const plan *p, const int64_t *table, digest *even,
                     digest *odd) {
    const int trees = p->trees;
    const size_t step = (size_t)trees + 1;
    const tensor_bytes *tensor =
        reinterpret_cast<const tensor_bytes *>(table + (size_t)p->levels * step);
    RO_LAUNCH(leaves_kernel, ro_grid(ceil_div(p->first[trees], TREE_THREADS)), dim3(TREE_THREADS),
              0, stream, tensor, table, trees, even, 1u);
    digest *in = even, *out = odd;
    for (int l = 1; l < p->levels; l++) {
        const int64_t *below = table + (size_t)(l - 1) * step, *first = table + (size_t)l * step;
        const int64_t nodes = p->first[(size_t)l * step + (size_t)trees];
        RO_LAUNCH(nodes_kernel, ro_grid(ceil_div(nodes, TREE_THREADS)), dim3(TREE_THREADS), 0,
                  stream, below, first, trees, in, out, 1u);
        digest *other = in;
        in = out;
        out = other;
    }
    return in;
}

static ro_status read_roots(ro_cuda *d, const digest *roots, int64_t count, uint8_t *root) {
    uint32_t *word = reinterpret_cast<uint32_t *>(malloc((size_t)count * sizeof(digest)));
    if (!word)
        return ro_cuda_fail(d, RO_ERR_MEMORY, "no memory for the roots");
    ro_status status = ro_cuda_check(d,
                                     cudaMemcpyAsync(word, roots, (size_t)count * sizeof(digest),
                                                     cudaMemcpyDeviceToHost, d->stream),
                                     "tree_roots");
    if (status == RO_OK)
        status = ro_cuda_check(d, cudaStreamSynchronize(d->stream), "tree_roots");
    for (int64_t i = 0; status == RO_OK && i < 8 * count; i++)
        for (int b = 0; b < 4; b++)
            root[4 * i + b] = (uint8_t)(word[i] >> (24 - 8 * b));
    free(word);
    return status;
}

ro_status ro_cuda_tree_roots(ro_cuda *d, int64_t count, const void *const *data, const size_t *size,
                             uint8_t *root) {
    plan p;
    void *memory;
    if (!make_plan(&p, count, data, size))
        return ro_cuda_fail(d, RO_ERR_MEMORY, "no memory for %lld trees", (long long)count);
    const size_t leaves = (size_t)p.first[count], nodes = leaves / 2 + (size_t)count;
    const size_t table = (p.size + sizeof(digest) - 1) / sizeof(digest);
    ro_status status = ro_cuda_alloc(d, (table + leaves + nodes) * sizeof(digest), &memory);
    if (status == RO_OK) {
        digest *even = static_cast<digest *>(memory) + table;
        status = ro_cuda_check(
            d, cudaMemcpyAsync(memory, p.first, p.size, cudaMemcpyHostToDevice, d->stream),
            "tree_roots");
        if (status == RO_OK) {
            digest *roots =
                climb(d->stream, &p, static_cast<int64_t *>(memory), even, even + leaves);
            status = ro_cuda_launched(d, "tree_roots");
            if (status == RO_OK)
                status = read_roots(d, roots, count, root);
        }
        if (status != RO_OK && cudaStreamSynchronize(d->stream) != cudaSuccess)
            (void)cudaGetLastError(); /* waited for: the plan may still be in transfer */
        ro_cuda_free(d, memory);
    }
    free(p.first);
    return status;
}
