/* Generates from operators.def what people read: `operators headers FOLDER` writes the headers
 * op_*.h and operators.h, `operators table` prints the table of SPEC.md section 15, `operators
 * golden` what is final of each (tests/golden/operators.txt). It includes none of these, so that
 * they can be generated again whatever they contain. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each section has an entry too, before its operators: only `text` is set, to its name. */
static const struct {
    int number;
    const char *enumerator, *name, *inputs, *text, *reads, *least, *most, *order;
} operators[] = {
#define RO_SECTION(section) {0, "", "", "", #section, "", "", "", ""},
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, check, inputs, text,      \
                    reads)                                                                         \
    {number, #NAME, #name, inputs, text, reads, #least, #most, #order},
#include "repops/src/operators.def"
};

static const struct {
    const char *owner, *enumerator, *name;
    int place;
    char kind;
} attributes[] = {
#define RO_ATTRIBUTE(NAME, place, ATTRIBUTE, attribute, kind)                                      \
    {#NAME, #ATTRIBUTE, #attribute, place, kind},
#include "repops/src/operators.def"
};

static const struct {
    const char *owner, *name, *value;
} defaults[] = {
#define RO_DEFAULTED(NAME, place, ATTRIBUTE, attribute, kind, value) {#NAME, #attribute, #value},
#include "repops/src/operators.def"
};

static const struct {
    const char *family, *member;
} families[] = {
#define RO_FAMILY(FAMILY, NAME) {#FAMILY, #NAME},
#include "repops/src/operators.def"
};

enum {
    EXPERIMENTAL = 61440, /* SPEC.md section 15: operators from this number on are experimental */
    OPERATORS = sizeof operators / sizeof operators[0],
    ATTRIBUTES = sizeof attributes / sizeof attributes[0],
    DEFAULTS = sizeof defaults / sizeof defaults[0],
    FAMILIES = sizeof families / sizeof families[0]
};

static int attribute_of(const char *owner, const char *enumerator) {
    for (int i = 0; i < ATTRIBUTES; i++)
        if (strcmp(attributes[i].owner, owner) == 0 &&
            strcmp(attributes[i].enumerator, enumerator) == 0)
            return i;
    return -1;
}

/* Returns whether all members of a family have this attribute. If one has it at another place, that
 * is a mistake in operators.def. */
static int is_shared(const char *family, int attribute) {
    int elsewhere = -1;
    for (int i = 0; i < FAMILIES; i++) {
        if (strcmp(families[i].family, family) != 0)
            continue;
        const int other = attribute_of(families[i].member, attributes[attribute].enumerator);
        if (other < 0)
            return 0;
        if (attributes[other].place != attributes[attribute].place)
            elsewhere = other;
    }
    if (elsewhere >= 0) {
        fprintf(stderr, "operators.def: family %s has %s at place %d in %s, at %d in %s\n", family,
                attributes[elsewhere].name, attributes[elsewhere].place,
                attributes[elsewhere].owner, attributes[attribute].place,
                attributes[attribute].owner);
        exit(1);
    }
    return 1;
}

/* ---- headers ---- */

static int is_section(int i) {
    return operators[i].number == 0;
}

static const char *section_of(const char *enumerator) {
    const char *section = "";
    for (int i = 0; i < OPERATORS; i++)
        if (is_section(i))
            section = operators[i].text;
        else if (strcmp(operators[i].enumerator, enumerator) == 0)
            return section;
    return "";
}

static int is_experimental(const char *enumerator) {
    for (int i = 0; i < OPERATORS; i++)
        if (!is_section(i) && strcmp(operators[i].enumerator, enumerator) == 0)
            return operators[i].number >= EXPERIMENTAL;
    return 0;
}

static void print_family(FILE *to, const char *family, const char *first) {
    for (int i = 0; i < ATTRIBUTES; i++)
        if (strcmp(attributes[i].owner, first) == 0 && is_shared(family, i))
            fprintf(to, "    RO_%s_%s = RO_%s_%s,\n", family, attributes[i].enumerator, first,
                    attributes[i].enumerator);
}

static void print_number(FILE *to, int i) {
    const char *in = operators[i].inputs;
    const char *colon = *in && *operators[i].text ? ": " : "";
    char entry[80];
    snprintf(entry, sizeof entry, "RO_OP_%s = %d,", operators[i].enumerator, operators[i].number);
    fprintf(to, "    %-30s /* %s%s%s%s%s */\n", entry, *in ? "(" : "", in, *in ? ")" : "", colon,
            operators[i].text);
}

static void print_numbers(FILE *to, const char *section, int experimental) {
    for (int i = 0; i < OPERATORS; i++)
        if (!is_section(i) && strcmp(section_of(operators[i].enumerator), section) == 0 &&
            (operators[i].number >= EXPERIMENTAL) == experimental)
            print_number(to, i);
}

static void print_places(FILE *to, const char *section, int experimental) {
    for (int i = 0; i < ATTRIBUTES; i++)
        if (strcmp(section_of(attributes[i].owner), section) == 0 &&
            is_experimental(attributes[i].owner) == experimental)
            fprintf(to, "    RO_%s_%s = %d,%s\n", attributes[i].owner, attributes[i].enumerator,
                    attributes[i].place, attributes[i].kind == 'f' ? " /* float */" : "");
}

static int has_experimental(const char *section) {
    int any = 0;
    for (int i = 0; i < OPERATORS; i++)
        any |= operators[i].number >= EXPERIMENTAL &&
               (!section || strcmp(section_of(operators[i].enumerator), section) == 0);
    return any;
}

static FILE *open_header(const char *folder, const char *name, char *guard) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.h", folder, name);
    FILE *to = fopen(path, "w");
    if (!to) {
        perror(path);
        exit(1);
    }
    for (; *name; name++)
        *guard++ = (char)toupper((unsigned char)*name);
    *guard = 0;
    return to;
}

static void close_header(FILE *to) {
    fputs("\n#endif\n", to);
    if (fclose(to) != 0) {
        perror("operators");
        exit(1);
    }
}

/* Prints a section; a family's attributes follow in the section of its first member. */
static void print_section(FILE *to, const char *section) {
    const int experimental = has_experimental(section);
    fputs("/* clang-format off */\n\n"
          "/* Each operator with its inputs, as SPEC.md names them, and what it computes. The "
          "numbers are part\n * of the canonical encoding of graphs: never reuse one. */\nenum {\n",
          to);
    print_numbers(to, section, 0);
    if (experimental)
        fputs("#ifdef RO_EXPERIMENTAL\n", to);
    print_numbers(to, section, 1);
    if (experimental)
        fputs("#endif\n", to);
    fputs("};\n\n/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a "
          "float (ro_attr_f32).\n * The last names stand for attributes that several operators "
          "share. */\n"
          "enum {\n",
          to);
    print_places(to, section, 0);
    if (experimental)
        fputs("#ifdef RO_EXPERIMENTAL\n", to);
    print_places(to, section, 1);
    if (experimental)
        fputs("#endif\n", to);
    for (int i = 0; i < FAMILIES; i++)
        if ((i == 0 || strcmp(families[i].family, families[i - 1].family) != 0) &&
            strcmp(section_of(families[i].member), section) == 0)
            print_family(to, families[i].family, families[i].member);
    fputs("};\n\n/* clang-format on */\n", to);
}

static int is_first(int section) {
    for (int i = 0; i < section; i++)
        if (is_section(i) && strcmp(operators[i].text, operators[section].text) == 0)
            return 0;
    return 1;
}

static void write_section(const char *folder, const char *section) {
    char name[64], guard[64];
    snprintf(name, sizeof name, "op_%s", section);
    FILE *to = open_header(folder, name, guard);
    fprintf(to,
            "/* Operators of section `%s` and their attributes, whose formulas are in SPEC.md.\n"
            " * `make operators` writes this file from repops/src/operators.def. */\n"
            "#ifndef REPOPS_%s_H\n#define REPOPS_%s_H\n\n",
            section, guard, guard);
    print_section(to, section);
    close_header(to);
}

static void write_headers(const char *folder) {
    char guard[64];
    FILE *to = open_header(folder, "operators", guard);
    fprintf(to,
            "/* All operators and their attributes: `make operators` writes this file from\n"
            " * repops/src/operators.def. */\n"
            "#ifndef REPOPS_%s_H\n#define REPOPS_%s_H\n\n",
            guard, guard);
    for (int i = 0; i < OPERATORS; i++)
        if (is_section(i) && is_first(i)) {
            write_section(folder, operators[i].text);
            fprintf(to, "#include \"repops/op_%s.h\"\n", operators[i].text);
        }
    close_header(to);
}

static void print_attributes(const char *owner) {
    for (int i = 0; i < ATTRIBUTES; i++)
        if (strcmp(attributes[i].owner, owner) == 0)
            printf("%s%s%s", attributes[i].place ? ", " : "", attributes[i].name,
                   attributes[i].kind == 'f' ? " f" : "");
}

static void print_table(void) {
    puts("| Number | Operator | Inputs | Attributes | Element e reads |\n"
         "| --- | --- | --- | --- | --- |");
    for (int i = 0; i < OPERATORS; i++) {
        if (is_section(i) || operators[i].number >= EXPERIMENTAL)
            continue;
        printf("| %d | `%s` | %s | ", operators[i].number, operators[i].name, operators[i].inputs);
        print_attributes(operators[i].enumerator);
        if (*operators[i].reads)
            printf(" | `%s` |\n", operators[i].reads);
        else
            puts(" | nothing |");
    }
}

/* Prints what no later version changes: inputs with their types and number, attributes in order,
 * whether rounding logs may have the operator (SPEC.md 14.1), and what a typed call takes for an
 * attribute that is left out. */
static void print_golden(void) {
    for (int i = 0; i < OPERATORS; i++) {
        if (is_section(i) || operators[i].number >= EXPERIMENTAL)
            continue;
        printf("%d %s(%s) [", operators[i].number, operators[i].name, operators[i].inputs);
        print_attributes(operators[i].enumerator);
        printf("] %s..%s %s\n", operators[i].least, operators[i].most, operators[i].order);
        for (int k = 0; k < DEFAULTS; k++)
            if (strcmp(defaults[k].owner, operators[i].enumerator) == 0)
                printf("%d %s: without %s, %s\n", operators[i].number, operators[i].name,
                       defaults[k].name, defaults[k].value);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "headers") == 0)
        write_headers(argv[2]);
    else if (argc == 2 && strcmp(argv[1], "table") == 0)
        print_table();
    else if (argc == 2 && strcmp(argv[1], "golden") == 0)
        print_golden();
    else
        return fputs("usage: operators headers FOLDER|table|golden\n", stderr), 2;
    return fflush(stdout) != 0 || ferror(stdout);
}
