/* librepops_blas: the single-precision products of CBLAS and of the Fortran BLAS in the order of
 * SPEC.md section 3.1. Private to repops/blas.
 *
 * Every routine is a ro_sgemm, and its bits are those: the order of storage, transposition,
 * increments and the triangle change which element meets which, never how they are added. */
#ifndef REPOPS_BLAS_BLAS_H
#define REPOPS_BLAS_BLAS_H

#include "repops/repops.h"

#include <stdbool.h>

/* The values of CBLAS's enumerations. */
enum { ROW_MAJOR = 101, COL_MAJOR = 102 };
enum { NO_TRANS = 111, TRANS = 112, CONJ_TRANS = 113, CONJ_NO_TRANS = 114 };
enum { UPPER = 121, LOWER = 122 };

/* The routine that the caller called. Positions of parameters are those of CBLAS plus `shift`: the
 * Fortran routines have no order. */
typedef struct {
    const char *name;
    int shift;
    bool row_major; /* set by the routine: the caller's matrices are row-major */
} caller;

void blas_sgemm(caller by, int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
void blas_sgemv(caller by, int order, int trans, int m, int n, float alpha, const float *a, int lda,
                const float *x, int incx, float beta, float *y, int incy);
void blas_ssyrk(caller by, int order, int uplo, int trans, int n, int k, float alpha,
                const float *a, int lda, float beta, float *c, int ldc);
float blas_sdot(caller by, int n, const float *x, int incx, const float *y, int incy);

/* ---- count.c ---- */

typedef enum { BLAS_SGEMM, BLAS_SGEMV, BLAS_SSYRK, BLAS_SDOT, BLAS_ROUTINES } blas_routine;

void blas_count(blas_routine routine); /* counts a call of the routine, for REPOPS_VERBOSE */
void blas_forget_counts(void); /* sets all counts to 0: a child of fork counts its own calls */

/* ---- context.c ---- */

/* Returns a context for one call. The first caller gets the one with REPOPS_THREADS threads;
 * callers that come while it is in use get one thread each. Returns NULL, after a line on standard
 * error, if there is none. */
ro_ctx *blas_take(caller by);
void blas_give(ro_ctx *ctx); /* accepts NULL */

/* ---- check.c: each reports a wrong parameter and returns false ---- */

bool blas_check_order(caller by, int order);
bool blas_check_trans(caller by, int position, const char *name, int trans);
bool blas_check_uplo(caller by, int position, int uplo);
bool blas_check_least(caller by, int position, const char *name, int value, int least);
bool blas_check_increment(caller by, int position, const char *name, int value);

/* Says on standard error why a call cannot be served. Its result is then to be filled with NaN. */
void blas_complain(caller by, const char *why);

#endif
