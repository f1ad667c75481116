/* Undefined behaviour inside a Criterion test: `make test-asan` must find it. */
#include <criterion/criterion.h>
#include <limits.h>

Test(planted, undefined) {
    volatile int big = INT_MAX;
    volatile int sum = big + 1;
    (void)sum;
}
