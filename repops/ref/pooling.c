/* Pooling. SPEC.md section 12.2. */
#include "repops/ref/ref.h"
#include "repops/src/conv.h"
#include "repops/op_image.h"

/* The position of element e in a [N, H, W, C] tensor. */
typedef struct {
    int64_t n, h, w, c;
} pool_place;

static pool_place pool_place_of(int64_t e, const int64_t size[2], int64_t channels) {
    return (pool_place){e / channels / size[1] / size[0], e / channels / size[1] % size[0],
                        e / channels % size[1], e % channels};
}

/* Returns the element of x under tap t of window p, or -1 outside. */
static int64_t element_under(const ro_pooling *v, const pool_place *p, int64_t t) {
    const int64_t h = p->h * v->stride[0] - v->pad[0] + t / v->kernel[1];
    const int64_t w = p->w * v->stride[1] - v->pad[1] + t % v->kernel[1];
    const int inside = h >= 0 && h < v->in[0] && w >= 0 && w < v->in[1];
    return inside ? ((p->n * v->in[0] + h) * v->in[1] + w) * v->channels + p->c : -1;
}

/* Returns the largest rank in the window. Sets *tap to the first tap that has it. */
static int32_t greatest(const ro_call *call, int64_t e, const ro_access *in, int64_t *tap) {
    const ro_pooling v = ro_pooling_of(call);
    const pool_place p = pool_place_of(e, v.out, v.channels);
    int32_t most = INT32_MIN;
    *tap = -1;
    for (int64_t t = 0; t < v.kernel[0] * v.kernel[1]; t++) {
        const int64_t x = element_under(&v, &p, t);
        const int32_t rank = x < 0 ? INT32_MIN : ro_rank(loadf(in, 0, x));
        if (x >= 0 && (*tap < 0 || rank > most))
            most = rank, *tap = t;
    }
    return most;
}

RO_LOADS(pool_loads, call->attr[RO_POOL_KERNEL_H] * call->attr[RO_POOL_KERNEL_W])

static uint32_t max_pool2d(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t tap;
    (void)acc;
    return ro_unrank(greatest(call, e, in, &tap));
}
RO_REFERENCE(max_pool2d, .finish = max_pool2d, .loads = pool_loads)

static uint32_t max_pool2d_index(const ro_call *call, int64_t e, const ro_acc *acc,
                                 const ro_access *in) {
    int64_t tap;
    (void)acc;
    greatest(call, e, in, &tap);
    return (uint32_t)tap;
}
RO_REFERENCE(max_pool2d_index, .finish = max_pool2d_index, .loads = pool_loads)

int64_t ro_ref_pool_tap(const ro_pooling *v, int64_t e, int64_t t) {
    const pool_place p = pool_place_of(e, v->out, v->channels);
    return element_under(v, &p, t);
}

int64_t ro_ref_pool_divisor(const ro_pooling *v, int64_t e) {
    const pool_place p = pool_place_of(e, v->out, v->channels);
    return ro_pool_count(v, p.h, p.w);
}

static uint32_t avg_pool2d(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    const ro_pooling v = ro_pooling_of(call);
    const pool_place p = pool_place_of(e, v.out, v.channels);
    float total = 0, sum = 0;
    (void)acc;
    for (int64_t t = 0; t < v.kernel[0] * v.kernel[1]; t++) {
        const int64_t x = element_under(&v, &p, t);
        if (t % RO_POOL_GROUP == 0)
            total = total + sum, sum = 0;
        if (x >= 0)
            sum = sum + loadf(in, 0, x);
    }
    return result((total + sum) / (float)ro_pool_count(&v, p.h, p.w));
}
RO_REFERENCE(avg_pool2d, .finish = avg_pool2d, .loads = pool_loads)

/* Finds the window that has tap t at this pixel. Returns 0 if there is none. */
static int window_over(const ro_pooling *v, const pool_place *p, int64_t t, pool_place *window) {
    const int64_t y = p->h + v->pad[0] - t / v->kernel[1];
    const int64_t x = p->w + v->pad[1] - t % v->kernel[1];
    *window = (pool_place){p->n, y / v->stride[0], x / v->stride[1], p->c};
    return y >= 0 && x >= 0 && y % v->stride[0] == 0 && x % v->stride[1] == 0 &&
           window->h < v->out[0] && window->w < v->out[1];
}

int64_t ro_ref_pool_window(const ro_pooling *v, int64_t e, int64_t t, int64_t *divisor) {
    const pool_place p = pool_place_of(e, v->in, v->channels);
    pool_place w;
    if (!window_over(v, &p, t, &w))
        return -1;
    *divisor = ro_pool_count(v, w.h, w.w);
    return ((w.n * v->out[0] + w.h) * v->out[1] + w.w) * v->channels + w.c;
}

/* Returns, for both gradients, what tap t of window w receives. */
static float share_of(const ro_call *call, int64_t w, int64_t t, int64_t divisor,
                      const ro_access *in, float sum) {
    if (call->op == RO_OP_MAX_POOL2D_GRAD)
        return (int32_t)load(in, 1, w) == t ? sum + loadf(in, 0, w) : sum;
    return sum + loadf(in, 0, w) / (float)divisor;
}

static uint32_t pool2d_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    const ro_pooling v = ro_pooling_of(call);
    float total = 0, sum = 0;
    (void)acc;
    for (int64_t t = 0; t < v.kernel[0] * v.kernel[1]; t++) {
        int64_t divisor;
        const int64_t w = ro_ref_pool_window(&v, e, t, &divisor);
        if (t % RO_POOL_GROUP == 0)
            total = total + sum, sum = 0;
        if (w >= 0)
            sum = share_of(call, w, t, divisor, in, sum);
    }
    return result(total + sum);
}

static int64_t covering_loads(const ro_call *call) {
    const ro_pooling v = ro_pooling_of(call);
    return ro_pool_covering(&v) * call->input_count;
}
RO_REFERENCE(max_pool2d_grad, .finish = pool2d_grad, .loads = covering_loads)
RO_REFERENCE(avg_pool2d_grad, .finish = pool2d_grad, .loads = covering_loads)
