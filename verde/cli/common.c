/* This file prints the results of commands, as text or as JSON. */
#include "verde/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_json(const json_t *object) {
    char *text = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    if (text)
        puts(text);
    free(text);
}

/* Prints all of a text, or none of it if memory ran out. */
static void print_text(const vd_buf *text) {
    if (vd_is_terminal())
        fprintf(stderr, "\r\033[K");
    if (vd_buf_ok(text))
        fwrite(text->data, 1, text->size, stdout);
    else
        fprintf(stderr, "verde: out of memory in telling the outcome\n");
    fflush(stdout);
}

void vd_print_results(void) {
    vd_results_to(print_text, print_json);
}

void vd_print_json(json_t *object) {
    print_json(object);
    json_decref(object);
}

void vd_print_hex(const char *name, const uint8_t bytes[VD_HASH_SIZE]) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(bytes, VD_HASH_SIZE, hex);
    printf("%-12s %s\n", name, hex);
}
