/* A leak inside a Criterion test, which passes in Criterion alone: `make test-asan` must find
 * it. */
#include <criterion/criterion.h>
#include <stdlib.h>

Test(planted, leak) {
    char *volatile lost = malloc(1000);
    cr_assert(lost != NULL);
    lost = NULL;
}
