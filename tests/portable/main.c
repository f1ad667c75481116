#include "portable.h"

int portable_failures;

int main(void) {
    check_arithmetic();
    check_operators();
    check_programs();
    return portable_failures ? 1 : 0;
}
