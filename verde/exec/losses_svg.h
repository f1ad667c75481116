/* The losses of a run as a picture. */
#ifndef VD_LOSSES_SVG_H
#define VD_LOSSES_SVG_H

#include "verde/base/base.h"

/* DIR/losses.jsonl as SVG, appended to `out`: of its last `tail` bytes, which bounds memory and
 * time, or whole if that is 0. VD_ERR_PEER: there is no loss, or what is there is none. */
VD_MUST_USE vd_status vd_losses_svg(const char *dir, uint64_t tail, vd_buf *out, vd_err *err);

/* The losses of DIR/losses.jsonl as a picture, to a file. */
VD_MUST_USE vd_status vd_plot_losses(const char *dir, const char *out, vd_err *err);

#endif
