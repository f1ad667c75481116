/* Reads tests/vectors/commit_*.txt: lines "key value", # for comments, %HH for bytes. */
#ifndef COMMIT_VECTORS_H
#define COMMIT_VECTORS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char key[96];
    char value[2048];
    size_t size; /* of value, which may contain NUL */
} vector_line;

static inline size_t vector_unescape(char *text) {
    char *out = text;
    for (const char *in = text; *in; in++, out++) {
        char digits[3] = "";
        if (*in == '%')
            memcpy(digits, in + 1, 2);
        *out = *in == '%' ? (char)strtol(digits, NULL, 16) : *in;
        in += *in == '%' ? 2 : 0;
    }
    *out = 0;
    return (size_t)(out - text);
}

static inline bool vector_next(FILE *file, vector_line *line) {
    char text[2200];
    while (fgets(text, sizeof text, file)) {
        if (text[0] == '#')
            continue;
        text[strcspn(text, "\n")] = 0;
        char *space = strchr(text, ' ');
        cr_assert(space && (size_t)(space - text) < sizeof line->key);
        *space = 0;
        strcpy(line->key, text);
        strcpy(line->value, space + 1);
        line->size = vector_unescape(line->value);
        return true;
    }
    return false;
}

static inline FILE *vector_open(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "tests/vectors/%s", name);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s: run the tests from the root of the repository", path);
    return file;
}

#endif
