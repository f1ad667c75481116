/* Writes what follows from operators.def where people read it: `operators header` prints
 * repops/operators.h, `operators table` the table of SPEC.md section 15. It uses neither, so that
 * they can be made again whatever they say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int number;
    const char *enumerator, *name, *inputs, *text, *reads;
} operators[] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, check, inputs, text,      \
                    reads)                                                                         \
    {number, #NAME, #name, inputs, text, reads},
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
    const char *family, *member;
} families[] = {
#define RO_FAMILY(FAMILY, NAME) {#FAMILY, #NAME},
#include "repops/src/operators.def"
};

enum {
    EXPERIMENTAL = 61440, /* SPEC.md section 15: rows from this number on */
    OPERATORS = sizeof operators / sizeof operators[0],
    ATTRIBUTES = sizeof attributes / sizeof attributes[0],
    FAMILIES = sizeof families / sizeof families[0]
};

static const char header[] =
    "/* The operators and their attributes: `make operators` writes this file from\n"
    " * repops/src/operators.def. SPEC.md has their formulas and special values. */\n"
    "#ifndef REPOPS_OPERATORS_H\n"
    "#define REPOPS_OPERATORS_H\n"
    "\n"
    "/* clang-format off */\n"
    "\n"
    "/* The inputs, as SPEC.md names them, and what is computed. The numbers are part of the "
    "canonical\n"
    " * encoding of graphs: never reuse one. */\n"
    "typedef enum {\n"
    "    RO_OP_NONE = 0,\n";

static int attribute_of(const char *owner, const char *enumerator) {
    for (int i = 0; i < ATTRIBUTES; i++)
        if (strcmp(attributes[i].owner, owner) == 0 &&
            strcmp(attributes[i].enumerator, enumerator) == 0)
            return i;
    return -1;
}

/* Whether all members have an attribute; then one that has it elsewhere than the first is a
 * mistake. */
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

static void print_family(const char *family, const char *first) {
    for (int i = 0; i < ATTRIBUTES; i++)
        if (strcmp(attributes[i].owner, first) == 0 && is_shared(family, i))
            printf("    RO_%s_%s = RO_%s_%s,\n", family, attributes[i].enumerator, first,
                   attributes[i].enumerator);
}

static int is_experimental(const char *enumerator) {
    for (int i = 0; i < OPERATORS; i++)
        if (strcmp(operators[i].enumerator, enumerator) == 0)
            return operators[i].number >= EXPERIMENTAL;
    return 0;
}

/* Returns how many there are. */
static int print_numbers(int experimental) {
    int count = 0;
    for (int i = 0; i < OPERATORS; i++) {
        const char *in = operators[i].inputs;
        const char *colon = *in && *operators[i].text ? ": " : "";
        char entry[80];
        if ((operators[i].number >= EXPERIMENTAL) != experimental)
            continue;
        if (experimental && count == 0)
            puts("#ifdef RO_EXPERIMENTAL");
        count++;
        snprintf(entry, sizeof entry, "RO_OP_%s = %d,", operators[i].enumerator,
                 operators[i].number);
        printf("    %-30s /* %s%s%s%s%s */\n", entry, *in ? "(" : "", in, *in ? ")" : "", colon,
               operators[i].text);
    }
    return count;
}

static void print_places(int experimental) {
    for (int i = 0; i < ATTRIBUTES; i++)
        if (is_experimental(attributes[i].owner) == experimental)
            printf("    RO_%s_%s = %d,%s\n", attributes[i].owner, attributes[i].enumerator,
                   attributes[i].place, attributes[i].kind == 'f' ? " /* f */" : "");
}

static void print_header(void) {
    fputs(header, stdout);
    print_numbers(0);
    const int experimental = print_numbers(1);
    if (experimental)
        printf("    RO_OP_END = %d\n#else\n", EXPERIMENTAL + 256);
    puts("    RO_OP_END = 256 /* numbers in between are free */");
    if (experimental)
        puts("#endif");
    fputs("} ro_op;\n\n"
          "/* Places in ro_call.attr; those of kind f hold the bits of a float (ro_attr_f32). */\n"
          "enum {\n",
          stdout);
    print_places(0);
    if (experimental)
        puts("#ifdef RO_EXPERIMENTAL");
    print_places(1);
    if (experimental)
        puts("#endif");
    fputs(
        "};\n\n/* The same places of attributes that all operators of a family have. */\nenum {\n",
        stdout);
    for (int i = 0; i < FAMILIES; i++)
        if (i == 0 || strcmp(families[i].family, families[i - 1].family) != 0)
            print_family(families[i].family, families[i].member);
    fputs("};\n\n/* clang-format on */\n\n#endif\n", stdout);
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
        if (operators[i].number >= EXPERIMENTAL)
            continue;
        printf("| %d | `%s` | %s | ", operators[i].number, operators[i].name, operators[i].inputs);
        print_attributes(operators[i].enumerator);
        if (*operators[i].reads)
            printf(" | `%s` |\n", operators[i].reads);
        else
            puts(" | nothing |");
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "header") == 0)
        print_header();
    else if (argc == 2 && strcmp(argv[1], "table") == 0)
        print_table();
    else
        return fputs("usage: operators header|table\n", stderr), 2;
    return fflush(stdout) != 0 || ferror(stdout);
}
