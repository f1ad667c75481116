#include "portable.h"

int portable_failures;

int main(void) {
    check_arithmetic();
    check_operators();
    check_fixed_products();
    check_programs();
    check_finetunings();
    check_generations();
    return portable_failures ? 1 : 0;
}
