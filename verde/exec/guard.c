/* This file opens and closes a guard of products, and keeps what it finds. */
#include "verde/exec/guard.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "repops/device.h"
#include "verde/base/base.h"

const char *vd_guard_kind_name(vd_guard_kind kind) {
    static const char *const names[] = {"sums", "packed", "rows"};
    return kind >= VD_GUARD_SUMS && kind <= VD_GUARD_ROWS ? names[kind - VD_GUARD_SUMS] : NULL;
}

/* ---- findings ---- */

void vd_guard_note(vd_guard *g, const vd_guard_finding *f) {
    g->found_all++;
    if (g->tell)
        g->tell(g->user, f);
    if (g->found_count < VD_GUARD_FOUND_MAX)
        g->found[g->found_count++] = *f;
}

static void note_sums(void *user, const ro_guard_finding *f) {
    vd_guard *g = user;
    vd_guard_finding own = g->at;
    own.kind = f->kind == RO_GUARD_PACKED ? VD_GUARD_PACKED : VD_GUARD_SUMS;
    own.again = f->again, own.product = f->product, own.chunk = f->chunk;
    own.row = f->row, own.col = f->col, own.rows = f->rows, own.cols = f->cols;
    vd_guard_note(g, &own);
}

void vd_guard_forget(vd_guard *g, uint32_t count) {
    g->found_count -= count;
    memmove(g->found, g->found + count, g->found_count * sizeof *g->found);
}

void vd_guard_begin(vd_guard *g, int64_t step, const char *node, bool flips) {
    g->flips = flips;
    g->at = (vd_guard_finding){.step = step, .machine = -1};
    snprintf(g->at.node, sizeof g->at.node, "%s", node);
}

/* ---- opening and closing ---- */

static void alter(void *user, ro_guard_place place, void *data, size_t size) {
    vd_guard *g = user;
    if (place == RO_GUARD_AT_SUMS && atomic_exchange(&g->flips, false))
        ((uint8_t *)data)[1] ^= 2;
    if (g->alter)
        g->alter(g->user, place, data, size);
}

/* Opens kernels of a narrower instruction set; a scalar context has none. A device has other
 * kernels itself, which guard_rows.c selects. */
static vd_status open_other(vd_guard *g, vd_err *err) {
    if (!ro_ctx_in_host_memory(g->ro)) {
        g->other = g->ro;
        return VD_OK;
    }
    const char *own = ro_ctx_backend(g->ro);
    const ro_options options = {.size = sizeof options,
                                .threads = ro_ctx_threads(g->ro),
                                .backend = strcmp(own, "avx512") == 0 ? "avx2" : "scalar"};
    if (strcmp(own, "scalar") == 0 || ro_ctx_create(&options, &g->other) == RO_OK)
        return VD_OK;
    return vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(NULL));
}

vd_status vd_guard_open(vd_guard *g, ro_ctx *ro, vd_err *err) {
    const ro_guard guard = {sizeof guard, 0, note_sums, g->alter || g->plants ? alter : NULL, g};
    g->ro = ro;
    g->found = calloc(VD_GUARD_FOUND_MAX, sizeof *g->found);
    if (!g->found)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (g->seed == 0 && getrandom(&g->seed, sizeof g->seed, 0) != sizeof g->seed)
        return vd_fail(err, VD_ERR_LOCAL, "--guard: the kernel has no random numbers");
    if (ro_ctx_guard(ro, &guard) != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
    return open_other(g, err);
}

void vd_guard_close(vd_guard *g) {
    if (!g->ro)
        return;
    if (ro_ctx_guard(g->ro, NULL) != RO_OK) /* cannot happen: removing a guard is never refused */
        return;
    if (g->other != g->ro)
        ro_ctx_destroy(g->other);
    free(g->found);
    g->ro = g->other = NULL, g->found = NULL;
}
