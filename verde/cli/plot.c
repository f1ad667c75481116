#include "verde/cli/cli.h"
#include "verde/exec/losses_svg.h"

vd_status vd_plot_losses(const char *dir, const char *out, vd_err *err) {
    vd_buf text = {0};
    vd_status status = vd_losses_svg(dir, 0, &text, err);
    if (status == VD_OK)
        status = vd_write_file(out, text.data, text.size, 0644, err);
    vd_buf_free(&text);
    return status;
}
