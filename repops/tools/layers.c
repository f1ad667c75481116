/* Prints verde/graph/functions.h: a function for each operator of one input whose gradient is a
 * single operator too. It includes no header that is generated from operators.def. */
#include <stdio.h>
#include <string.h>

/* Each section has an entry too, before its operators: only `text` is set, to its name. */
static const struct {
    const char *enumerator, *name, *inputs, *text;
} operators[] = {
#define RO_SECTION(section) {"", "", "", #section},
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, check, inputs, text,      \
                    reads)                                                                         \
    {#NAME, #name, inputs, text},
#include "repops/src/operators.def"
};

static const struct {
    const char *owner, *enumerator, *name;
    char kind;
} attributes[] = {
#define RO_ATTRIBUTE(NAME, place, ATTRIBUTE, attribute, kind) {#NAME, #ATTRIBUTE, #attribute, kind},
#include "repops/src/operators.def"
};

static const char *const with_gradient[] = {
#define RO_GRADIENT(NAME, GRAD, reads) #NAME,
#include "repops/src/operators.def"
};

enum {
    OPERATORS = sizeof operators / sizeof operators[0],
    ATTRIBUTES = sizeof attributes / sizeof attributes[0],
    WITH_GRADIENT = sizeof with_gradient / sizeof with_gradient[0]
};

static int has_gradient(const char *enumerator) {
    for (int i = 0; i < WITH_GRADIENT; i++)
        if (strcmp(with_gradient[i], enumerator) == 0)
            return 1;
    return 0;
}

/* Prints includes of the headers that define the operators' numbers. A section that occurs again
 * later is included again, which does no harm. */
static void print_includes(void) {
    const char *section = "", *printed = "";
    for (int i = 0; i < OPERATORS; i++) {
        if (!*operators[i].enumerator)
            section = operators[i].text;
        else if (has_gradient(operators[i].enumerator) && strcmp(section, printed) != 0)
            printf("#include \"repops/op_%s.h\"\n", printed = section);
    }
}

static void print_parameters(const char *owner) {
    for (int i = 0; i < ATTRIBUTES; i++)
        if (strcmp(attributes[i].owner, owner) == 0)
            printf(", %s %s", attributes[i].kind == 'f' ? "float" : "int64_t", attributes[i].name);
}

static void print_attributes(const char *owner) {
    for (int i = 0; i < ATTRIBUTES; i++) {
        if (strcmp(attributes[i].owner, owner) != 0)
            continue;
        printf("    op.attr[RO_%s_%s] = ", owner, attributes[i].enumerator);
        printf(attributes[i].kind == 'f' ? "ro_attr_f32(%s);\n" : "%s;\n", attributes[i].name);
    }
}

static void print_function(int i) {
    const char *in = operators[i].inputs;
    const int length = (int)strcspn(in, " ,");
    if (*operators[i].text)
        printf("\n/* %s */", operators[i].text);
    printf("\nstatic inline vd_value vd_%s(vd_builder *b, vd_value %.*s", operators[i].name, length,
           in);
    print_parameters(operators[i].enumerator);
    printf(") {\n    vd_op op = {.op = RO_OP_%s};\n", operators[i].enumerator);
    print_attributes(operators[i].enumerator);
    printf("    return VD_APPLY(b, \"%s\", op, %.*s);\n}\n", operators[i].name, length, in);
}

int main(void) {
    puts("/* Layers of the operators whose gradient is an operator too: `make operators` writes\n"
         " * this file from repops/src/operators.def. */\n"
         "#ifndef VD_FUNCTIONS_H\n"
         "#define VD_FUNCTIONS_H\n");
    print_includes();
    puts("#include \"verde/graph/build.h\"\n"
         "\n"
         "/* clang-format off */");
    for (int i = 0; i < OPERATORS; i++)
        if (has_gradient(operators[i].enumerator))
            print_function(i);
    puts("\n/* clang-format on */\n\n#endif");
    return fflush(stdout) != 0 || ferror(stdout);
}
