#include "bench/peers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#if DNNL_VERSION_MAJOR == 2
#define HAVE_DNNL_HEADER 1
#endif
#endif
#endif

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void cblas_sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c,
                            int ldc);

static cblas_sgemm_fn *openblas_sgemm, *blis_sgemm;

static void run_cblas(cblas_sgemm_fn *sgemm, const product *p) {
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    for (int64_t i = 0; i < p->batch; i++)
        sgemm(ROW_MAJOR, p->trans_a ? TRANS : NO_TRANS, p->trans_b ? TRANS : NO_TRANS, m, n, k, 1,
              p->a + i * p->m * p->k, p->trans_a ? m : k, p->b + i * p->k * p->n,
              p->trans_b ? k : n, 0, p->c + i * p->m * p->n, n);
}

static void run_openblas(const product *p) {
    run_cblas(openblas_sgemm, p);
}

static void run_blis(const product *p) {
    run_cblas(blis_sgemm, p);
}

/* ISO C cannot convert object pointers to function pointers, but POSIX requires that it works. */
static void *symbol(void *library, const char *name, void *function) {
    void *found = library ? dlsym(library, name) : NULL;
    memcpy(function, &found, sizeof found);
    return found;
}

static void *open_library(peer *p, const char *const *names) {
    for (; *names; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    snprintf(p->detail, sizeof p->detail, "not installed: %s", dlerror());
    return NULL;
}

static void load_openblas(peer *p) {
    void *library = open_library(p, (const char *const[]){"libopenblas.so.0", NULL});
    char *(*core)(void);
    if (!symbol(library, "cblas_sgemm", &openblas_sgemm) ||
        !symbol(library, "openblas_set_num_threads", &p->threads))
        return;
    if (symbol(library, "openblas_get_corename", &core))
        snprintf(p->detail, sizeof p->detail, "core %s", core());
    p->run = run_openblas;
    p->loaded = 1;
}

static void (*blis_threads)(int64_t count); /* dim_t */

static void set_blis_threads(int count) {
    blis_threads(count);
}

static void load_blis(peer *p) {
    void *library =
        open_library(p, (const char *const[]){"/usr/lib/x86_64-linux-gnu/blis-openmp/libblis.so.4",
                                              "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4",
                                              "libblis.so.4", NULL});
    void (*init)(void);
    int (*id)(void);
    char *(*name)(int);
    if (!symbol(library, "cblas_sgemm", &blis_sgemm) || !symbol(library, "bli_init", &init) ||
        !symbol(library, "bli_thread_set_num_threads", &blis_threads))
        return;
    init();
    if (symbol(library, "bli_arch_query_id", &id) && symbol(library, "bli_arch_string", &name))
        snprintf(p->detail, sizeof p->detail, "core %s", name(id()));
    p->threads = set_blis_threads;
    p->run = run_blis;
    p->loaded = 1;
}

#ifdef HAVE_DNNL_HEADER

/* oneDNN: a single product uses dnnl_sgemm, a batch the matmul primitive that `prepare` builds. */
static struct {
    void *library;
    dnnl_status_t (*sgemm)(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float, const float *,
                           dnnl_dim_t, const float *, dnnl_dim_t, float, float *, dnnl_dim_t);
    dnnl_status_t (*execute)(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t *);
    dnnl_status_t (*set_data)(dnnl_memory_t, void *, dnnl_stream_t);
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
} dnnl;

#define DNNL(name, ...)                                                                            \
    (symbol(dnnl.library, "dnnl_" #name, &call.name) ? (int)call.name(__VA_ARGS__) : -1)

static int describe(dnnl_memory_desc_t *md, const product *p, int64_t rows, int64_t cols,
                    int transposed) {
    const dnnl_dims_t dims = {p->batch, rows, cols};
    const dnnl_dims_t strides = {rows * cols, transposed ? 1 : cols, transposed ? rows : 1};
    union {
        dnnl_status_t (*memory_desc_init_by_strides)(dnnl_memory_desc_t *, int, const dnnl_dims_t,
                                                     dnnl_data_type_t, const dnnl_dims_t);
    } call;
    return DNNL(memory_desc_init_by_strides, md, 3, dims, dnnl_f32, strides);
}

static int prepare_dnnl(const product *p) {
    dnnl_memory_desc_t md[3];
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t pd;
    union {
        dnnl_status_t (*engine_create)(dnnl_engine_t *, dnnl_engine_kind_t, size_t);
        dnnl_status_t (*stream_create)(dnnl_stream_t *, dnnl_engine_t, unsigned);
        dnnl_status_t (*matmul_desc_init)(dnnl_matmul_desc_t *, const dnnl_memory_desc_t *,
                                          const dnnl_memory_desc_t *, const dnnl_memory_desc_t *,
                                          const dnnl_memory_desc_t *);
        dnnl_status_t (*primitive_desc_create)(dnnl_primitive_desc_t *, const_dnnl_op_desc_t,
                                               const_dnnl_primitive_attr_t, dnnl_engine_t,
                                               const_dnnl_primitive_desc_t);
        dnnl_status_t (*primitive_create)(dnnl_primitive_t *, const_dnnl_primitive_desc_t);
        dnnl_status_t (*memory_create)(dnnl_memory_t *, const dnnl_memory_desc_t *, dnnl_engine_t,
                                       void *);
    } call;
    if (p->batch == 1)
        return 1;
    if (!dnnl.engine && (DNNL(engine_create, &dnnl.engine, dnnl_cpu, 0) ||
                         DNNL(stream_create, &dnnl.stream, dnnl.engine, 0)))
        return 0;
    if (describe(&md[0], p, p->m, p->k, p->trans_a) ||
        describe(&md[1], p, p->k, p->n, p->trans_b) || describe(&md[2], p, p->m, p->n, 0) ||
        DNNL(matmul_desc_init, &desc, &md[0], &md[1], NULL, &md[2]) ||
        DNNL(primitive_desc_create, &pd, &desc, NULL, dnnl.engine, NULL) ||
        DNNL(primitive_create, &dnnl.primitive, pd))
        return 0;
    for (int i = 0; i < 3; i++)
        if (DNNL(memory_create, &dnnl.memory[i], &md[i], dnnl.engine,
                 i == 0   ? (void *)p->a
                 : i == 1 ? (void *)p->b
                          : (void *)p->c))
            return 0;
    return 1;
}

static void run_dnnl(const product *p) {
    if (p->batch == 1) {
        dnnl.sgemm(p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', p->m, p->n, p->k, 1, p->a,
                   p->trans_a ? p->m : p->k, p->b, p->trans_b ? p->k : p->n, 0, p->c, p->n);
        return;
    }
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, dnnl.memory[0]},
                                    {DNNL_ARG_WEIGHTS, dnnl.memory[1]},
                                    {DNNL_ARG_DST, dnnl.memory[2]}};
    dnnl.execute(dnnl.primitive, dnnl.stream, 3, args);
}

static void load_dnnl(peer *p) {
    dnnl.library = open_library(p, (const char *const[]){"libdnnl.so.2", NULL});
    void *openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!symbol(dnnl.library, "dnnl_sgemm", &dnnl.sgemm) ||
        !symbol(dnnl.library, "dnnl_primitive_execute", &dnnl.execute) ||
        !symbol(openmp, "omp_set_num_threads", &p->threads))
        return;
    const char *isa = getenv("ONEDNN_MAX_CPU_ISA");
    snprintf(p->detail, sizeof p->detail, "at most %s", isa ? isa : "what it finds");
    p->prepare = prepare_dnnl;
    p->run = run_dnnl;
    p->loaded = 1;
}

#else

static void load_dnnl(peer *p) {
    snprintf(p->detail, sizeof p->detail, "its header was missing when this was built");
}

#endif

peer peers[PEERS] = {{.name = "OpenBLAS"}, {.name = "BLIS"}, {.name = "oneDNN"}};

void peers_environment(const char *isa) {
    const int wide = strcmp(isa, "avx512") == 0;
    /* These replace what the environment says, since the table names the kernels that ran. */
    setenv("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell", 1);
    unsetenv("OPENBLAS_L2_SIZE");
    setenv("BLIS_ARCH_TYPE", wide ? "0" : "3", 1);
    setenv("ONEDNN_MAX_CPU_ISA", wide ? "ALL" : "AVX2", 1);
}

void peers_load(void) {
    load_openblas(&peers[PEER_OPENBLAS]);
    load_blis(&peers[PEER_BLIS]);
    load_dnnl(&peers[PEER_ONEDNN]);
}
