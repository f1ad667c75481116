/* Complaints, one line each on standard error. Like cblas_xerbla, but nothing exits. */
#include "repops/blas/blas.h"

#include <stdio.h>

void blas_complain(caller by, const char *why) {
    fprintf(stderr, "%s: %s\n", by.name, why);
}

static bool refuse(caller by, int position, const char *name, const char *expected) {
    fprintf(stderr, "%s: parameter %d (%s) must be %s\n", by.name, position + by.shift, name,
            expected);
    return false;
}

bool blas_check_order(caller by, int order) {
    return order == ROW_MAJOR || order == COL_MAJOR ||
           refuse(by, 1, "order", "CblasRowMajor or CblasColMajor");
}

bool blas_check_trans(caller by, int position, const char *name, int trans) {
    return (trans >= NO_TRANS && trans <= CONJ_TRANS) ||
           refuse(by, position, name,
                  by.shift ? "N, T or C" : "CblasNoTrans, CblasTrans or CblasConjTrans");
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
