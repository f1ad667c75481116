/* Plots of a run's losses. */
#ifndef VD_LOSSES_SVG_H
#define VD_LOSSES_SVG_H

#include "verde/base/base.h"

/* Appends a plot of DIR/losses.jsonl as SVG to `out`. Reads its last `tail` bytes, which bounds
 * memory and time; 0: all. VD_ERR_PEER: the file has no loss, or is malformed. */
VD_MUST_USE vd_status vd_losses_svg(const char *dir, uint64_t tail, vd_buf *out, vd_err *err);

/* Writes a plot of DIR/losses.jsonl to a file. */
VD_MUST_USE vd_status vd_plot_losses(const char *dir, const char *out, vd_err *err);

#endif
