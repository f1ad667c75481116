#include "verde/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- options ---- */

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

bool vd_take_common(const vd_command *command, int option, vd_common *common, bool *exit_now) {
    long number;
    switch (option) {
    case 't':
        if (!vd_parse_number("threads", optarg, 0, 1024, &number))
            return false;
        common->threads = (int)number;
        return true;
    case 'b':
        if (!*optarg)
            fprintf(stderr, "verde: --backend must be a name, got \"\"\n");
        common->backend = optarg;
        return *optarg != 0;
    case 'j': common->json = true; return true;
    case 'h':
        vd_print_help(stdout, command->help);
        *exit_now = true;
        return true;
    default: return false; /* getopt has printed what it was */
    }
}

/* ---- printing ---- */

static void print_json(const json_t *object) {
    char *text = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    if (text)
        puts(text);
    free(text);
}

/* All of it or none. */
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
