/* Options, as commands take them one after the other. */
#include <string.h>

#include "verde/cli/cli.h"

/* What getopt gave is the option's letter, by which both ways to write it are one. */
static const char *name_of(const struct option *options, int letter) {
    for (; options->name; options++)
        if (options->val == letter)
            return options->name;
    return NULL;
}

static bool takes_value(const struct option *options, int letter) {
    for (; options->name; options++)
        if (options->val == letter)
            return options->has_arg != no_argument;
    return false;
}

int vd_next_option(int argc, char **argv, const char *letters, const struct option *options,
                   const char *often) {
    static bool given[128];
    if (optind <= 1)
        memset(given, 0, sizeof given);
    const int letter = getopt_long(argc, argv, letters, options, NULL);
    if (letter <= 0 || letter >= (int)sizeof given || !takes_value(options, letter) ||
        strchr(often, letter) || letter == 't') /* the bits are those of any --threads */
        return letter;
    if (given[letter]) {
        fprintf(stderr, "%s: --%s is given twice, expected once\n", argv[0],
                name_of(options, letter));
        return '?';
    }
    given[letter] = true;
    return letter;
}
