/* Runs a training job on a device, on that device again under other load, and on the
 * CPU: losses are equal in every step, state roots after the first one, in the middle and at the
 * end.
 *
 * Usage: training MODEL STEPS BATCH SEQUENCE [DEVICE]. Models: job.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repops/device.h"
#include "repops/op_product.h"
#include "tests/cuda/job.h"

enum { STEPS_MAX = 100 };

typedef struct {
    long steps;
    float loss[STEPS_MAX];
    vd_hash root[STEPS_MAX]; /* zeros for steps without a root */
    double seconds;          /* per step, without the first */
    size_t peak;
} history;

static bool is_committed(long step, long steps) {
    return step == 0 || step == steps / 2 || step == steps - 1;
}

static vd_status record(trainer *t, history *h, vd_err *err) {
    vd_status status = VD_OK;
    for (long i = 0; status == VD_OK && i < h->steps; i++) {
        const double start = vd_seconds();
        status = trainer_step(t, &h->loss[i], err);
        h->seconds += i > 0 ? vd_seconds() - start : 0;
        if (status == VD_OK && is_committed(i, h->steps))
            status = trainer_root(t, &h->root[i], err);
    }
    h->seconds /= h->steps > 1 ? (double)(h->steps - 1) : 1;
    h->peak = ro_ctx_peak(t->exec.ro);
    return status;
}

static vd_status run(const job *j, const char *backend, history *h, char *device, vd_err *err) {
    trainer t;
    vd_status status = trainer_create(j, backend, 0, &t, err);
    if (status == VD_OK) {
        snprintf(device, 96, "%s", ro_ctx_device(t.exec.ro));
        status = record(&t, h, err);
    }
    trainer_free(&t);
    return status;
}

/* ---- other load on the device ---- */

typedef struct {
    const char *backend;
    int64_t side;
    atomic_bool stop;
    atomic_long products;
} load;

static void multiply(load *l, ro_ctx *ctx, float *memory) {
    const int64_t n = l->side;
    ro_shape in[2] = {{RO_F32, 2, {n, n}}, {RO_F32, 2, {n, n}}};
    ro_call call = {RO_OP_MATMUL, 2, {0, 0, ro_attr_f32(1), 256, 0}, in};
    if (ro_infer(&call, NULL, 0) != RO_OK)
        return;
    while (!atomic_load(&l->stop)) {
        const void *data[] = {memory, memory + n * n};
        if (ro_run(ctx, &call, data, memory + 2 * n * n) != RO_OK || ro_wait(ctx) != RO_OK)
            return;
        atomic_fetch_add(&l->products, 1);
    }
}

static void *work(void *user) {
    load *l = user;
    ro_ctx *ctx;
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = l->backend}, &ctx) !=
        RO_OK)
        return NULL;
    float *memory = ro_alloc(ctx, (size_t)(3 * l->side * l->side) * sizeof *memory);
    if (memory)
        multiply(l, ctx, memory);
    ro_free(ctx, memory);
    ro_ctx_destroy(ctx);
    return NULL;
}

/* The shim runs one kernel at a time, in one thread: there the second run has no load. */
static vd_status run_loaded(const job *j, const char *backend, bool simulated, history *h,
                            char *device, vd_err *err) {
    load l = {.backend = backend, .side = 2048};
    pthread_t thread;
    bool started = !simulated && pthread_create(&thread, NULL, work, &l) == 0;
    vd_status status = run(j, backend, h, device, err);
    atomic_store(&l.stop, true);
    if (started)
        pthread_join(thread, NULL);
    if (status == VD_OK && !simulated && atomic_load(&l.products) == 0)
        return vd_fail(err, VD_ERR_LOCAL, "nothing else worked on the device");
    return status;
}

/* ---- comparing ---- */

static bool same(const history *want, const history *got, const char *what) {
    for (long i = 0; i < want->steps; i++)
        if (memcmp(&want->loss[i], &got->loss[i], sizeof want->loss[i]) != 0 ||
            memcmp(&want->root[i], &got->root[i], sizeof want->root[i]) != 0) {
            printf("%s: step %ld differs, loss %.9g, expected %.9g\n", what, i + 1,
                   (double)got->loss[i], (double)want->loss[i]);
            return false;
        }
    return true;
}

static int compare(const job *j, const job_size *size, long steps, const char *backend,
                   vd_err *err) {
    static history cpu, device, again;
    char name[96] = "";
    cpu.steps = device.steps = again.steps = steps;
    vd_status status = run(j, backend, &device, name, err); /* before the CPU, which is slow */
    const bool simulated = strstr(name, "simulated");
    if (status == VD_OK)
        status = run_loaded(j, backend, simulated, &again, name, err);
    if (status == VD_OK)
        status = run(j, "cpu", &cpu, name, err);
    if (status != VD_OK) {
        fprintf(stderr, "training: %s\n", err->text);
        return 2;
    }
    if (!same(&cpu, &device, "device") || !same(&cpu, &again, "under load"))
        return 1;
    printf(
        "%s, %ld steps of B=%lld T=%lld: equal roots; CPU %.3f s a step, device %.4f s, %.2f GB\n",
        size->name, steps, (long long)size->batch, (long long)size->sequence, cpu.seconds,
        device.seconds, 1e-9 * (double)device.peak);
    return 0;
}

int main(int argc, char **argv) {
    vd_err err = {0};
    job j;
    if (argc < 5) {
        fprintf(stderr, "usage: training MODEL STEPS BATCH SEQUENCE [DEVICE]\n");
        return 2;
    }
    const job_size size = {argv[1], atol(argv[3]), atol(argv[4]), 1};
    long steps = atol(argv[2]);
    steps = steps < 1 ? 1 : steps > STEPS_MAX ? STEPS_MAX : steps;
    int code = 2;
    if (job_create(&size, &j, &err) == VD_OK)
        code = compare(&j, &size, steps, argc > 5 ? argv[5] : "cuda:0", &err);
    else
        fprintf(stderr, "training: %s\n", err.text);
    job_free(&j);
    return code;
}
