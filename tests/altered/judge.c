/* Decides verdicts from standard input, one after the other, in one process, for
 * tests/independent/altered.py. Input: for each verdict its size as a little-endian u32, then the
 * bytes of a verdict's file. Output: for each a line with the exit code of `verde verify`, a space,
 * and the reason. */
#include <stdio.h>
#include <stdlib.h>

#include "verde/exec/exec.h"
#include "verde/exec/source.h"
#include "verde/protocol/verdict.h"

/* Remembers signatures that held, since most are the same in each verdict. The linker puts this in
 * place of the real function (tests/tests.mk). */
vd_status __real_vd_signature_verify(const vd_public_key *key, const void *message, size_t size,
                                     const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);
vd_status __wrap_vd_signature_verify(const vd_public_key *key, const void *message, size_t size,
                                     const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);

vd_status __wrap_vd_signature_verify(const vd_public_key *key, const void *message, size_t size,
                                     const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    enum { PLACES = 1 << 16 };
    static vd_hash held[PLACES];
    vd_hash name;
    vd_sha *sha = vd_sha_create();
    if (!sha)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_sha_put(sha, key->b, sizeof key->b);
    vd_sha_put(sha, signature, VD_SIGNATURE_SIZE);
    vd_sha_put(sha, message, size);
    const bool hashed = vd_sha_finish(sha, &name);
    vd_sha_destroy(sha);
    vd_hash *place = &held[name.b[0] | name.b[1] << 8];
    if (hashed && vd_hash_equal(place, &name))
        return VD_OK;
    const vd_status status = __real_vd_signature_verify(key, message, size, signature, err);
    if (status == VD_OK && hashed)
        *place = name;
    return status;
}

static void judge(const uint8_t *bytes, size_t size) {
    vd_verdict verdict;
    vd_err err = {0};
    if (size && bytes[size - 1] == '\n')
        size--;
    const vd_status status =
        vd_verdict_verify(bytes, size, NULL, vd_leaf_element, NULL, NULL, &verdict, &err);
    if (status == VD_OK)
        vd_verdict_free(&verdict);
    printf("%d %s\n",
           status == VD_OK            ? 0
           : status == VD_ERR_PEER    ? 6
           : status == VD_ERR_VERSION ? 8
                                      : 1,
           status == VD_OK ? "verified" : err.text);
    fflush(stdout);
}

/* Returns false at the end of the input. */
static bool judge_next(void) {
    uint8_t head[4];
    if (fread(head, 1, sizeof head, stdin) != sizeof head)
        return false;
    const size_t size =
        head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    uint8_t *bytes = malloc(size + 1); /* of its own, so that a sanitizer sees overruns */
    const bool whole = bytes && fread(bytes, 1, size, stdin) == size;
    if (whole)
        judge(bytes, size);
    free(bytes);
    return whole;
}

int main(void) {
    vd_err err = {0};
    if (vd_leaf_self_test(&err) != VD_OK) {
        fprintf(stderr, "judge: %s\n", err.text);
        return 1;
    }
    while (judge_next())
        ;
    return 0;
}
