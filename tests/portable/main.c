#include "portable.h"

int portable_failures;

/* Arguments are folders of jobs to run, whose states are printed; without arguments all checks
 * run. */
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        run_folder(argv[i]);
    if (argc > 1)
        return portable_failures ? 1 : 0;
    check_arithmetic();
    check_operators();
    check_fixed_products();
    check_programs();
    check_finetunings();
    check_generations();
    return portable_failures ? 1 : 0;
}
