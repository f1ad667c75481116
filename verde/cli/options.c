/* This file reads options and prints help, both from a command's table. Help names files of the
 * project by the paths where `make install` put them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/cli/cli.h"
#include "verde/tell/stop.h"

enum {
    OPTIONS_MAX = 48,
    NAME_SIZE = 32,
    FIRST = 256 /* getopt returns FIRST + i for row i */
};

/* ---- help ---- */

typedef struct {
    const char *text, *installed; /* path below the prefix */
} help_path;

static const help_path paths[] = {
    {"docs/jobs.md", "share/doc/verde/jobs.md"},
    {"models/jobs", "share/verde/jobs"},
};

/* Finds the prefix of PREFIX/bin/verde, this program, with a slash at its end; "" if unknown. */
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

/* Prints the path of a file where it is installed, or its name if it is not. */
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

static void print_command(const vd_command *command) {
    vd_print_help(stdout, command->usage);
    for (const vd_option *o = command->options; o->help; o++)
        if (!o->hidden)
            vd_print_help(stdout, o->help);
    vd_print_help(stdout, command->after);
}

/* ---- values ---- */

bool vd_parse_number(const char *name, const char *text, long lo, long hi, long *out) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if ((*text != '-' && (*text < '0' || *text > '9')) || *end != 0 || errno != 0 || value < lo ||
        value > hi) {
        fprintf(stderr, "verde: --%s must be %ld..%ld, got \"%s\"\n", name, lo, hi, text);
        return false;
    }
    *out = value;
    return true;
}

bool vd_take_int(void *to, const char *name, const char *text, const vd_option *option) {
    long number;
    if (!vd_parse_number(name, text, option->least, option->most, &number))
        return false;
    *(int *)to = (int)number;
    return true;
}

bool vd_take_word(void *to, const char *name, const char *text, const vd_option *option) {
    (void)option;
    if (!*text)
        fprintf(stderr, "verde: --%s must be a name, got \"\"\n", name);
    *(const char **)to = text;
    return *text != 0;
}

bool vd_take_url(void *to, const char *name, const char *text, const vd_option *option) {
    const char **url = to;
    if (*option->count < (uint32_t)option->most) {
        url[(*option->count)++] = text;
        return true;
    }
    fprintf(stderr, "verde: --%s takes %s%ld providers\n", name,
            option->least ? "2 to " : "at most ", option->most);
    return false;
}

/* ---- rows ---- */

/* Reads an option's name at the beginning of its help, and whether an argument follows. Returns
 * false if the row is a heading. */
static bool read_row(const vd_option *option, char name[NAME_SIZE], bool *argument) {
    const char *text = option->help;
    if (strncmp(text, "  --", 4) != 0)
        return false;
    const size_t size = strcspn(text + 4, " ,[");
    const char *next = text + 4 + size;
    snprintf(name, NAME_SIZE, "%.*s", (int)size, text + 4);
    *argument = *next == ' ' && next[1] != ' ';
    return true;
}

typedef struct {
    struct option list[OPTIONS_MAX + 1];
    char name[OPTIONS_MAX][NAME_SIZE];
    const vd_option *row[OPTIONS_MAX];
    bool given[OPTIONS_MAX];
    int count, out, help; /* rows of the options that have a short form, or -1 */
} option_list;

static void read_rows(const vd_option *options, option_list *x) {
    bool argument;
    x->out = x->help = -1;
    for (const vd_option *o = options; o->help && x->count < OPTIONS_MAX; o++) {
        char *name = x->name[x->count];
        if (!read_row(o, name, &argument))
            continue;
        /* Rows with one name are one option of getopt: else its abbreviation would be ambiguous. */
        int first = 0;
        while (first < x->count && strcmp(x->name[first], name) != 0)
            first++;
        x->list[x->count] =
            (struct option){name, argument ? required_argument : no_argument, NULL, FIRST + first};
        if (strcmp(name, "out") == 0)
            x->out = x->count;
        if (strcmp(name, "help") == 0)
            x->help = x->count;
        x->row[x->count++] = o;
    }
}

/* ---- taking them ---- */

static bool take_value(const vd_option *o, const char *name, const char *text) {
    if (o->take)
        return o->take(o->to, name, text, o);
    if (!text)
        *(bool *)o->to = true;
    else if (o->least < o->most)
        return vd_parse_number(name, text, o->least, o->most, o->to);
    else
        *(const char **)o->to = text;
    return true;
}

/* An option with an argument may be given once: else the last one would silently win. */
static bool take_row(option_list *x, int i, const char *command) {
    const bool argument = x->list[i].has_arg == required_argument;
    if (x->given[i] && argument && !x->row[i]->often) {
        fprintf(stderr, "%s: --%s is given twice, expected once\n", command, x->name[i]);
        return false;
    }
    x->given[i] = true;
    return take_value(x->row[i], x->name[i], argument ? optarg : NULL);
}

/* Finds the row of an option in the given form of the command. -1: the form has none, which was
 * printed. */
static int row_of_form(const option_list *x, int i, const vd_command *command) {
    for (int k = i; k < x->count; k++)
        if (strcmp(x->name[k], x->name[i]) == 0 &&
            (!x->row[k]->forms || command->allows(x->row[k])))
            return k;
    command->refuse(x->name[i]);
    return -1;
}

bool vd_take_options(const vd_command *command, int argc, char **argv, vd_exit *code) {
    static option_list x;
    x = (option_list){.count = 0};
    read_rows(command->options, &x);
    vd_stop_command(argc, argv);
    *code = VD_EXIT_USAGE;
    for (int o; (o = getopt_long(argc, argv, x.out < 0 ? "h" : "ho:", x.list, NULL)) != -1;) {
        const int i = o == 'h' ? x.help : o == 'o' ? x.out : o - FIRST;
        if (i == x.help) {
            print_command(command);
            *code = VD_EXIT_OK;
            return false;
        }
        if (i < 0) /* getopt has printed the error */
            return false;
        const int row = row_of_form(&x, i, command);
        if (row < 0 || !take_row(&x, row, argv[0]))
            return false;
    }
    return true;
}
