/* Options, as commands take them one after the other. */
#include <string.h>

#include "verde/cli/cli.h"

/* By its letter, which is that of both ways to write it; NULL: there is no long one. */
static const struct option *find(const struct option *options, int letter) {
    for (; options->name; options++)
        if (options->val == letter)
            return options;
    return NULL;
}

/* Paths, keys and counts, of which the last one would silently count. With another --threads or
 * --timeout the result is the same: who has a command with them may give others. */
static bool is_given_once(const struct option *option, const char *often) {
    return option && option->has_arg != no_argument && !strchr(often, option->val) &&
           strcmp(option->name, "threads") != 0 && strcmp(option->name, "timeout") != 0;
}

int vd_next_option(int argc, char **argv, const char *letters, const struct option *options,
                   const char *often) {
    static bool given[128];
    if (optind <= 1)
        memset(given, 0, sizeof given);
    const int letter = getopt_long(argc, argv, letters, options, NULL);
    const struct option *option = letter > 0 ? find(options, letter) : NULL;
    if (letter >= (int)sizeof given || !is_given_once(option, often))
        return letter;
    if (given[letter]) {
        fprintf(stderr, "%s: --%s is given twice, expected once\n", argv[0], option->name);
        return '?';
    }
    given[letter] = true;
    return letter;
}
