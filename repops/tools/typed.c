/* Generates a typed call for every operator of operators.def: `typed header` prints repops/typed.h,
 * `typed source` repops/src/typed_ops.c, and `typed cases` a function for tests that turns a
 * ro_call into the typed call of its operator. It includes none of these, so that they can be
 * generated again whatever they contain. */
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *enumerator, *name, *shape, *inputs, *text;
} operator_entry;

static const operator_entry operators[] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, check, inputs, text,      \
                    reads)                                                                         \
    {#NAME, #name, #shape, inputs, text},
#include "repops/src/operators.def"
};

typedef struct {
    const char *owner, *name, *value; /* NULL: required, there is no default */
    int place;
    char kind;
} attribute_entry;

static const attribute_entry attributes[] = {
#define RO_ATTRIBUTE(NAME, place, ATTRIBUTE, attribute, kind)                                      \
    {#NAME, #attribute, NULL, place, kind},
#define RO_DEFAULTED(NAME, place, ATTRIBUTE, attribute, kind, value)                               \
    {#NAME, #attribute, #value, place, kind},
#include "repops/src/operators.def"
};

enum {
    OPERATORS = sizeof operators / sizeof operators[0],
    ATTRIBUTES = sizeof attributes / sizeof attributes[0],
    INPUTS = 8,
    NAME_SIZE = 16
};

/* ---- what an operator takes ---- */

typedef struct {
    char name[INPUTS][NAME_SIZE];
    int count, several; /* several: one input stands for any number of them */
} input_names;

static input_names names_of(const operator_entry *o) {
    input_names in = {.several = strstr(o->inputs, "...") != NULL};
    for (const char *at = o->inputs; *at && in.count < INPUTS; in.count++) {
        const size_t length = strcspn(at, " ,.");
        snprintf(in.name[in.count], NAME_SIZE, "%.*s", (int)length, at);
        at += strcspn(at, ",");
        at += strspn(at, ", ");
    }
    return in;
}

static const attribute_entry *attribute_of(const operator_entry *o, int place) {
    for (int i = 0; i < ATTRIBUTES; i++)
        if (attributes[i].place == place && strcmp(attributes[i].owner, o->enumerator) == 0)
            return &attributes[i];
    return NULL;
}

static int count_of(const operator_entry *o) {
    int count = 0;
    while (attribute_of(o, count))
        count++;
    return count;
}

static int is_zero(const attribute_entry *a) {
    return a->value && strcmp(a->value, "0") == 0;
}

/* Returns nonzero if an attribute is required, so that attrs may not be NULL. */
static int needs_attributes(const operator_entry *o) {
    for (int i = 0; i < count_of(o); i++)
        if (!attribute_of(o, i)->value)
            return 1;
    return 0;
}

/* ---- C ---- */

/* Prints `text` in lines of at most 100 columns, broken after commas. */
static void print_broken(const char *text) {
    enum { COLUMNS = 97, INDENT = 8 };
    for (size_t room = COLUMNS; *text; room = COLUMNS - INDENT) {
        size_t length = strlen(text);
        if (length > room)
            for (length = room; length > 0 && text[length - 1] != ',';)
                length--;
        printf("%.*s", (int)length, text);
        text += length;
        if (*text)
            printf("\n%*s", INDENT, ""), text++;
    }
}

static void print_prototype(const char *before, const operator_entry *o) {
    const input_names in = names_of(o);
    char text[600];
    size_t end =
        (size_t)snprintf(text, sizeof text, "%sro_status ro_op_%s(ro_ctx *ctx", before, o->name);
    for (int i = 0; i < in.count; i++)
        end += (size_t)snprintf(text + end, sizeof text - end, ", const ro_tensor *%s%s",
                                in.name[i], i == 0 && in.several ? ", int32_t count" : "");
    if (count_of(o))
        end += (size_t)snprintf(text + end, sizeof text - end, ", const ro_op_%s_attrs *attrs",
                                o->name);
    snprintf(text + end, sizeof text - end, ", ro_tensor *out)");
    print_broken(text);
}

static void print_struct(const operator_entry *o) {
    const int count = count_of(o);
    if (!count)
        return;
    puts("typedef struct {");
    for (int i = 0; i < count; i++) {
        const attribute_entry *a = attribute_of(o, i);
        printf("    %s %s;", a->kind == 'f' ? "float" : "int64_t", a->name);
        if (!a->value)
            printf(" /* required */");
        else if (strcmp(a->value, "LAST") == 0)
            printf(" /* 0: the last dimension of %s */", names_of(o).name[0]);
        else if (!is_zero(a))
            printf(" /* default: %s */", a->value);
        puts("");
    }
    printf("} ro_op_%s_attrs;\n", o->name);
}

static void print_comment(const operator_entry *o) {
    const char *in = *o->inputs ? o->inputs : "no input";
    printf("/* %s%s%s%s */\n", in, *o->text ? ": " : "", o->text,
           strcmp(o->shape, "DECLARED") == 0 ? " (out->shape is declared)" : "");
}

static void print_header(void) {
    puts(
        "/* A function for each operator, on tensors that carry their shapes. SPEC.md defines what "
        "each\n"
        " * computes, to the bit. `make operators` writes this file from "
        "repops/src/operators.def.\n"
        " *\n"
        " * ro_op_NAME runs ro_infer and ro_run for RO_OP_NAME: the same checks, bytes and errors, "
        "on CPUs\n"
        " * and on devices. Inputs are f32 where no type is given; \"...\" means `count` tensors "
        "that follow\n"
        " * each other in memory.\n"
        " *\n"
        " * attrs: a member that is 0 means the default in its comment, or 0 if there is none; a "
        "\"required\"\n"
        " * member is used as it is, even 0. NULL means a struct of zeros if no member is "
        "required, and is\n"
        " * RO_ERR_ARG otherwise.\n"
        " *\n"
        " * out: if out->shape.ndim is 0, the call fills in the shape, unless the shape must be "
        "declared,\n"
        " * which makes it part of the call. A shape that is set must be the right one. If "
        "out->data is NULL,\n"
        " * ro_tensor_alloc allocates the memory, and the caller frees it by ro_tensor_free. So "
        "the first\n"
        " * call makes a tensor from {0}, and later calls use it again. out may be an input where\n"
        " * ro_op_in_place says so. A call that fails leaves out unchanged.\n"
        " *\n"
        " * Errors are those of ro_infer and ro_run, with a sentence in ro_ctx_error. */\n"
        "#ifndef REPOPS_TYPED_H\n"
        "#define REPOPS_TYPED_H\n"
        "\n"
        "#include \"repops/repops.h\"\n"
        "\n"
        "#ifdef __cplusplus\n"
        "extern \"C\" {\n"
        "#endif\n"
        "\n"
        "/* Allocates memory of the context (ro_alloc) for t's shape, all bytes 0. t->data must be "
        "NULL. */\n"
        "RO_API RO_MUST_USE ro_status ro_tensor_alloc(ro_ctx *ctx, ro_tensor *t);\n"
        "/* Frees memory of ro_tensor_alloc, and sets all members of t to 0. Accepts NULL, and a t "
        "without\n"
        " * memory. */\n"
        "RO_API void ro_tensor_free(ro_ctx *ctx, ro_tensor *t);\n"
        "\n"
        "/* clang-format off */");
    for (int i = 0; i < OPERATORS; i++) {
        puts("");
        print_comment(&operators[i]);
        print_struct(&operators[i]);
        print_prototype("RO_API RO_MUST_USE ", &operators[i]);
        puts(";");
    }
    puts("\n/* clang-format on */\n\n#ifdef __cplusplus\n}\n#endif\n#endif");
}

/* ---- definitions ---- */

/* Prints the attribute as a word of ro_call.attr. */
static void print_word(const attribute_entry *a, const char *first) {
    char member[64];
    snprintf(member, sizeof member, "attrs->%s", a->name);
    printf(a->kind == 'f' ? "ro_attr_f32(" : "");
    if (!a->value || is_zero(a))
        printf("%s", member);
    else if (strcmp(a->value, "LAST") == 0)
        printf("%s ? %s : ro_last_of(%s)", member, member, first);
    else
        printf("%s != 0 ? %s : %s", member, member, a->value);
    printf(a->kind == 'f' ? ")" : "");
}

static void print_attributes(const operator_entry *o, const input_names *in) {
    const int count = count_of(o);
    if (needs_attributes(o))
        printf("    if (!attrs)\n        return ro_missing(ctx, \"%s\", \"attrs\");\n", o->name);
    else
        printf("    static const ro_op_%s_attrs zeros;\n    attrs = attrs ? attrs : &zeros;\n",
               o->name);
    puts("    const int64_t attr[RO_MAX_ATTRS] = {");
    for (int i = 0; i < count; i++) {
        printf("        ");
        print_word(attribute_of(o, i), in->name[0]);
        puts(",");
    }
    puts("    };");
}

static void print_definition(const operator_entry *o) {
    const input_names in = names_of(o);
    const int attributed = count_of(o) > 0;
    puts("");
    print_prototype("", o);
    puts(" {");
    if (attributed)
        print_attributes(o, &in);
    const char *attr = attributed ? "attr" : "NULL";
    if (in.several) {
        printf("    return ro_typed_row(ctx, RO_OP_%s, count, %s, %s%s, %s, out);\n}\n",
               o->enumerator, in.name[0], in.count > 1 ? "&" : "",
               in.count > 1 ? in.name[1] : "NULL", attr);
        return;
    }
    if (in.count) {
        printf("    const ro_tensor *const in[] = {");
        for (int i = 0; i < in.count; i++)
            printf("%s%s", i ? ", " : "", in.name[i]);
        puts("};");
    }
    printf("    return ro_typed_call(ctx, RO_OP_%s, %d, %s, %s, out);\n}\n", o->enumerator,
           in.count, in.count ? "in" : "NULL", attr);
}

static void print_source(void) {
    puts("/* Typed calls (repops/typed.h): `make operators` writes this file from\n"
         " * repops/src/operators.def. */\n"
         "#include \"repops/operators.h\"\n"
         "#include \"repops/src/typed.h\"\n"
         "\n"
         "/* clang-format off */");
    for (int i = 0; i < OPERATORS; i++)
        print_definition(&operators[i]);
    puts("\n/* clang-format on */");
}

/* ---- cases for tests ---- */

static void print_case(const operator_entry *o) {
    const input_names in = names_of(o);
    const int count = count_of(o);
    printf("    case RO_OP_%s: {\n", o->enumerator);
    if (count)
        printf("        const ro_op_%s_attrs attrs = {", o->name);
    for (int i = 0; i < count; i++)
        printf(attribute_of(o, i)->kind == 'f' ? "%sro_attr_to_f32(attr[%d])" : "%sattr[%d]",
               i ? ", " : "", i);
    printf("%s        return ro_op_%s(ctx", count ? "};\n" : "", o->name);
    for (int i = 0; i < in.count && !in.several; i++)
        printf(", &in[%d]", i);
    if (in.several)
        printf(in.count > 1 ? ", in, count - 1, &in[count - 1]" : ", in, count");
    printf("%s, out);\n    }\n", count ? ", &attrs" : "");
}

static void print_cases(void) {
    puts("static ro_status typed_case(ro_ctx *ctx, int op, const int64_t *attr, int32_t count,\n"
         "                            const ro_tensor *in, ro_tensor *out) {\n"
         "    (void)count;\n"
         "    switch (op) {");
    for (int i = 0; i < OPERATORS; i++)
        print_case(&operators[i]);
    puts("    default: return RO_ERR_UNSUPPORTED;\n    }\n}");
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "header") == 0)
        print_header();
    else if (argc == 2 && strcmp(argv[1], "source") == 0)
        print_source();
    else if (argc == 2 && strcmp(argv[1], "cases") == 0)
        print_cases();
    else
        return fputs("usage: typed header|source|cases\n", stderr), 2;
    return fflush(stdout) != 0 || ferror(stdout);
}
