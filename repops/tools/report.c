/* Prints the output of repops-conform: a table for people, one object for machines. */
#include "repops/device.h"
#include "repops/tools/conform.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Gives the CPU's model name from /proc/cpuinfo where there is one; else the architecture. */
static void find_cpu(char *out, size_t size) {
    char line[256];
    struct utsname system;
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "%s", uname(&system) == 0 ? system.machine : "unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strstr(line, ": ");
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        snprintf(out, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (file)
        fclose(file);
}

static void print_json_string(const char *text) {
    putchar('"');
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < ' ' || c == 127)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_json_begin(const report *r) {
    printf("{\"version\":\"%s\",\"spec\":%d,\"cpu\":", ro_version(), RO_SPEC_VERSION);
    print_json_string(r->cpu);
    printf(",\"gpus\":[");
    for (int d = 0, gpus = 0; d < r->device_count; d++)
        if (!ro_ctx_in_host_memory(r->device[d].ctx)) {
            printf(gpus++ ? "," : "");
            print_json_string(ro_ctx_device(r->device[d].ctx));
        }
    printf("],\"threads\":%d,\"devices\":[", ro_ctx_threads(r->device[0].ctx));
    for (int d = 0; d < r->device_count; d++) {
        printf(d ? "," : "");
        print_json_string(ro_ctx_backend(r->device[d].ctx));
    }
    printf("],\"items\":[");
}

void report_begin(report *r) {
    find_cpu(r->cpu, sizeof r->cpu);
    r->terminal = isatty(STDERR_FILENO);
    if (r->json) {
        print_json_begin(r);
        return;
    }
    printf("%-24s %5s", "operator", "cases");
    for (int d = 0; d < r->device_count; d++)
        printf("  %-10s", ro_ctx_backend(r->device[d].ctx));
    printf("\n");
}

void report_progress(const report *r, const item *it, const char *name) {
    if (r->terminal)
        fprintf(stderr, "\r\033[K%s on %s", it->name, name);
}

static void print_json_item(const report *r, const item *it) {
    printf("%s{\"name\":\"%s\",\"kind\":\"%s\",\"cases\":%d",
           r->conform + r->differ + r->absent ? "," : "", it->name,
           it->function ? "function" : "operator", it->cases);
    for (int d = 0; d < r->device_count; d++) {
        const tally *t = &it->tally[d];
        printf("%s{\"device\":\"%s\",\"same\":%d,\"other\":%d,\"absent\":%d}",
               d ? "," : ",\"results\":[", ro_ctx_backend(r->device[d].ctx), t->same, t->other,
               t->absent);
    }
    printf("]}");
}

static void print_item(const report *r, const item *it) {
    printf("%s%-*s %5d", it->name, 24 - (int)strlen(it->name), it->function ? "()" : "", it->cases);
    for (int d = 0; d < r->device_count; d++) {
        const tally *t = &it->tally[d];
        char text[32] = "ok";
        if (t->other)
            snprintf(text, sizeof text, "%d DIFFER", t->other);
        else if (t->absent)
            snprintf(text, sizeof text, t->same ? "%d absent" : "-", t->absent);
        printf("  %-10s", text);
    }
    printf("\n");
}

void report_item(report *r, const item *it) {
    int same = 0, other = 0;
    for (int d = 0; d < r->device_count; d++)
        same += it->tally[d].same, other += it->tally[d].other;
    if (r->terminal)
        fprintf(stderr, "\r\033[K");
    (r->json ? print_json_item : print_item)(r, it);
    fflush(stdout);
    *(other ? &r->differ : same ? &r->conform : &r->absent) += 1;
}

void report_failure(report *r, failure f) {
    if (r->failure_count < FAILURES_MAX)
        r->failure[r->failure_count++] = f;
}

static void print_json_end(const report *r) {
    printf("],\"failures\":[");
    for (int i = 0; i < r->failure_count; i++) {
        const failure *f = &r->failure[i];
        printf("%s{\"name\":\"%s\",\"case\":\"%s\",\"device\":\"%s\",\"want\":\"%s\",\"got\":",
               i ? "," : "", f->item, f->name, f->device, f->want);
        print_json_string(f->got);
        printf("}");
    }
    printf("],\"conform\":%d,\"differ\":%d,\"absent\":%d}\n", r->conform, r->differ, r->absent);
}

void report_end(const report *r) {
    if (r->json) {
        print_json_end(r);
        return;
    }
    for (int i = 0; i < r->failure_count; i++) {
        const failure *f = &r->failure[i];
        printf("%s%s, case %s on %s: %s\n%*s specified: %s\n", i ? "" : "\n", f->item, f->name,
               f->device, f->got, 9, "", f->want);
    }
    printf("\nrepops %s, spec %d, %s,", ro_version(), RO_SPEC_VERSION, r->cpu);
    for (int d = 0; d < r->device_count; d++)
        if (!ro_ctx_in_host_memory(r->device[d].ctx))
            printf(" %s,", ro_ctx_device(r->device[d].ctx));
    for (int d = 0; d < r->device_count; d++)
        printf(" %s", ro_ctx_backend(r->device[d].ctx));
    printf(", %d threads: %d operators and functions conform, %d do not",
           ro_ctx_threads(r->device[0].ctx), r->conform, r->differ);
    if (r->absent)
        printf(", %d not offered", r->absent);
    printf("\n");
}
