/* A leak inside a Criterion test, which Criterion alone passes: `make test-asan` must see it. */
#include <criterion/criterion.h>
#include <stdlib.h>

Test(planted, leak) {
    char *volatile lost = malloc(1000);
    cr_assert(lost != NULL);
    lost = NULL;
}
