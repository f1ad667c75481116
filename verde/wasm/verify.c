/* `verde verify` as a WebAssembly module. Exports: `reserve`, the buffer where the page puts a
 * verdict; `decide`, which returns the exit code of `verde verify`; and `said`, what that would
 * print: the outcome, or why the verdict does not hold. It imports one function, which gets each
 * line of the story. Text is passed as addresses; floating-point numbers are not passed. */
#include <jansson.h>
#include <stdlib.h>

#include "verde/commit/json.h"
#include "verde/exec/exec.h"
#include "verde/exec/source.h"
#include "verde/protocol/verdict.h"

__attribute__((export_name("reserve"))) char *reserve(uint32_t size);
__attribute__((export_name("decide"))) int decide(uint32_t size, uint32_t seed);
__attribute__((export_name("said"))) const char *said(void);

enum { HOLDS = 0, TROUBLE = 1, DOES_NOT_HOLD = 6, LATER = 8 }; /* exit codes: see README */

__attribute__((import_module("page"), import_name("tell"))) void page_tell(const char *line);

static char *input;
static vd_buf told;

char *reserve(uint32_t size) {
    free(input);
    return input = malloc((size_t)size + 1);
}

const char *said(void) {
    vd_put_u8(&told, 0);
    return vd_buf_ok(&told) ? (const char *)told.data : "out of memory";
}

static void tell_page(void *user, const char *line) {
    (void)user;
    page_tell(line);
}

static int code_of(vd_status status) {
    return status == VD_OK            ? HOLDS
           : status == VD_ERR_PEER    ? DOES_NOT_HOLD
           : status == VD_ERR_VERSION ? LATER
                                      : TROUBLE;
}

/* A random `seed` makes it hard to write JSON whose members collide in jansson's hash tables. */
int decide(uint32_t size, uint32_t seed) {
    vd_verdict verdict = {0};
    vd_err err = {0};
    vd_buf_free(&told);
    json_object_seed(seed);
    if (size && input[size - 1] == '\n')
        size--;
    vd_status status = vd_leaf_self_test(&err);
    if (status == VD_OK)
        status =
            vd_verdict_verify(input, size, NULL, vd_leaf_element, tell_page, NULL, &verdict, &err);
    if (status == VD_OK)
        vd_verdict_told(&verdict, &told);
    else
        vd_printf(&told, "%s\n", err.text);
    vd_verdict_free(&verdict);
    return code_of(status);
}

/* Replaces jansson's function, which asks an operating system for randomness and the time. */
volatile uint32_t hashtable_seed;

void json_object_seed(size_t seed) {
    if (hashtable_seed == 0)
        hashtable_seed = (uint32_t)seed | 1;
}
