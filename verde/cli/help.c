/* Help texts. They name files of the project: where `make install` put these, by their paths
 * there. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "verde/cli/cli.h"

typedef struct {
    const char *text, *installed; /* below the prefix */
} help_path;

static const help_path paths[] = {
    {"docs/jobs.md", "share/doc/verde/jobs.md"},
    {"models/jobs", "share/verde/jobs"},
};

/* The prefix of this program, PREFIX/bin/verde, with a slash at its end; "": it is not known. */
static void find_prefix(char prefix[PATH_MAX]) {
    static const char tail[] = "/bin/verde";
    const ssize_t got = readlink("/proc/self/exe", prefix, PATH_MAX - 1);
    const size_t length = got > 0 ? (size_t)got : 0, end = sizeof tail - 1;
    prefix[length] = 0;
    if (length >= end && strcmp(prefix + length - end, tail) == 0)
        prefix[length - end + 1] = 0;
    else
        prefix[0] = 0;
}

/* Prints the path of an installed file, or as it stands if it is not installed. */
static void print_path(FILE *out, const char *prefix, const help_path *path) {
    char installed[PATH_MAX];
    const int size = snprintf(installed, sizeof installed, "%s%s", prefix, path->installed);
    const bool there = *prefix && size < PATH_MAX && access(installed, R_OK) == 0;
    fputs(there ? installed : path->text, out);
}

static const help_path *path_at(const char *text) {
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strncmp(text, paths[i].text, strlen(paths[i].text)) == 0)
            return &paths[i];
    return NULL;
}

void vd_print_help(FILE *out, const char *text) {
    char prefix[PATH_MAX];
    find_prefix(prefix);
    while (*text) {
        const help_path *path = path_at(text);
        if (path)
            print_path(out, prefix, path);
        else
            fputc(*text, out);
        text += path ? strlen(path->text) : 1;
    }
}
