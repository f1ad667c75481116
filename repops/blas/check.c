/* Reports wrong arguments to the program's own handler, as netlib's BLAS does: to xerbla_ from a
 * Fortran routine, to cblas_xerbla from one of CBLAS. Without a handler, writes a line to standard
 * error. Nothing is computed, and the process ends only if a handler ends it. */
#include "repops/blas/blas.h"

#include <stdio.h>
#include <string.h>

/* The handlers, which the program or a BLAS that it is linked with may define. */
extern void xerbla_(const char *routine, const int *info, size_t routine_length)
    __attribute__((weak));
extern void cblas_xerbla(int info, const char *routine, const char *format, ...)
    __attribute__((weak));
/* If this is set, netlib's own cblas_xerbla maps the positions of a row-major call back. */
extern int RowMajorStrg __attribute__((weak));

void blas_complain(caller by, const char *why) {
    fprintf(stderr, "%s: %s\n", by.name, why);
}

/* netlib computes a row-major product as a column-major one, with its matrices exchanged, and m and
 * n. Handlers get the positions in that call, and map them back. */
static int swapped(caller by, int position) {
    static const int gemm[][2] = {{4, 5}, {5, 4}, {9, 11}, {11, 9}}, gemv[][2] = {{3, 4}, {4, 3}};
    const bool is_gemm = strstr(by.name, "gemm") != NULL;
    const int(*pair)[2] = is_gemm ? gemm : gemv;
    const int count = !by.row_major ? 0 : is_gemm ? 4 : strstr(by.name, "gemv") ? 2 : 0;
    for (int i = 0; i < count; i++)
        if (pair[i][0] == position)
            return pair[i][1];
    return position;
}

static bool tell_fortran(caller by, int info) {
    char routine[6];
    if (!xerbla_)
        return false;
    for (size_t i = 0; i < sizeof routine; i++) { /* such as "SGEMM " */
        const char letter = i < strlen(by.name) ? by.name[i] : ' ';
        routine[i] = letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
    }
    xerbla_(routine, &info, sizeof routine);
    return true;
}

static bool tell_c(caller by, int info) {
    if (!cblas_xerbla)
        return false;
    const int before = &RowMajorStrg ? RowMajorStrg : 0;
    if (&RowMajorStrg)
        RowMajorStrg = by.row_major;
    cblas_xerbla(swapped(by, info), by.name, "");
    if (&RowMajorStrg)
        RowMajorStrg = before;
    return true;
}

static bool refuse(caller by, int position, const char *name, const char *expected) {
    const int info = position + by.shift;
    if (by.shift ? !tell_fortran(by, info) : !tell_c(by, info))
        fprintf(stderr, "%s: parameter %d (%s) must be %s\n", by.name, info, name, expected);
    return false;
}

bool blas_check_order(caller by, int order) {
    return order == ROW_MAJOR || order == COL_MAJOR ||
           refuse(by, 1, "order", "CblasRowMajor or CblasColMajor");
}

bool blas_check_trans(caller by, int position, const char *name, int trans) {
    return (trans >= NO_TRANS && trans <= CONJ_NO_TRANS) ||
           refuse(by, position, name,
                  by.shift ? "N, T or C"
                           : "CblasNoTrans, CblasTrans, CblasConjTrans or CblasConjNoTrans");
}

bool blas_check_uplo(caller by, int position, int uplo) {
    return uplo == UPPER || uplo == LOWER ||
           refuse(by, position, "uplo", by.shift ? "U or L" : "CblasUpper or CblasLower");
}

bool blas_check_least(caller by, int position, const char *name, int value, int least) {
    char expected[60];
    snprintf(expected, sizeof expected, "at least %d, got %d", least, value);
    return value >= least || refuse(by, position, name, expected);
}

bool blas_check_increment(caller by, int position, const char *name, int value) {
    return value != 0 || refuse(by, position, name, "an increment other than 0");
}
