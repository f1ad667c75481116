/* Parts of repops-conform: what is compared (conform.c) and how it is shown (report.c). */
#ifndef REPOPS_TOOLS_CONFORM_H
#define REPOPS_TOOLS_CONFORM_H

#include "repops/repops.h"
#include "repops/tools/functions.h"

#include <stdbool.h>

enum { DEVICES_MAX = 8, FAILURES_MAX = 64 };

typedef struct {
    ro_ctx *ctx;
    const elementary *function; /* NULL: only operators are tested on this device */
} device;

/* How the cases of one operator or function went on one device. */
typedef struct {
    int same, other, absent; /* absent: the device does not offer it */
} tally;

typedef struct {
    char name[48];
    bool function;
    int cases;
    tally tally[DEVICES_MAX];
} item;

/* A case that gave wrong bits, or none at all. */
typedef struct {
    char item[48], name[64], device[32];
    char want[65], got[65]; /* `got` is a sentence if nothing could be computed */
} failure;

typedef struct {
    bool json, terminal; /* terminal: standard error shows what runs */
    char cpu[128];
    device device[DEVICES_MAX];
    int device_count;
    failure failure[FAILURES_MAX]; /* the first ones */
    int failure_count;
    /* Items that conform on all devices that offer them; that differ on one; that none offers. */
    int conform, differ, absent;
} report;

void report_begin(report *r);
void report_progress(const report *r, const item *it, const char *name);
void report_item(report *r, const item *it);
void report_failure(report *r, failure f);
void report_end(const report *r);

#endif
