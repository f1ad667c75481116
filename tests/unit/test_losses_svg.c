/* Pictures of the losses from a run, or from a stranger's file. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/losses_svg.h"

static vd_status draw_losses(const char *lines, uint64_t tail, vd_buf *out) {
    char dir[] = "/tmp/verde-losses-XXXXXX", path[64];
    cr_assert(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/losses.jsonl", dir);
    cr_assert(vd_write_file(path, lines, strlen(lines), 0644, NULL) == VD_OK);
    vd_status status = vd_losses_svg(dir, tail, out, NULL);
    vd_put_u8(out, 0);
    unlink(path);
    rmdir(dir);
    return status;
}

static bool shows(const vd_buf *svg, const char *words) {
    return strstr((const char *)svg->data, words) != NULL;
}

Test(losses_svg, the_last_bytes_are_drawn_from_their_first_whole_line_on) {
    vd_buf lines = {0}, svg = {0};
    for (int step = 1; step <= 1000; step++)
        vd_printf(&lines, "{\"step\":%d,\"loss\":%d}\n", step, 2000 - step);
    vd_put_u8(&lines, 0);
    cr_assert(draw_losses((const char *)lines.data, 0, &svg) == VD_OK);
    cr_expect(shows(&svg, "means of 2 steps") && shows(&svg, ">0</text>"));
    vd_buf_free(&svg);
    cr_assert(draw_losses((const char *)lines.data, 245, &svg) == VD_OK);
    cr_expect(shows(&svg, ">996</text>") && !shows(&svg, "means") && !shows(&svg, ">0</text>"));
    vd_buf_free(&svg);
    cr_assert(draw_losses((const char *)lines.data, 1 << 20, &svg) == VD_OK);
    cr_expect(shows(&svg, "means of 2 steps"));
    vd_buf_free(&svg);
    vd_buf_free(&lines);
}

Test(losses_svg, a_line_that_is_being_written_is_none_yet) {
    vd_buf svg = {0};
    cr_expect(draw_losses("{\"step\":1,\"loss\":2}\n{\"step\":2,\"lo", 0, &svg) == VD_OK);
    vd_buf_free(&svg);
    cr_expect(draw_losses("{\"step\":1,\"loss\":2}\n{\"step\":2,\"lo\n", 0, &svg) == VD_ERR_PEER);
    vd_buf_free(&svg);
    cr_expect(draw_losses("", 0, &svg) == VD_ERR_PEER);
    vd_buf_free(&svg);
}

/* Numbers between which no double can be a tick. */
Test(losses_svg, an_axis_ends_whatever_the_numbers, .timeout = 20) {
    static const char *const lines[] = {
        "{\"step\":1,\"loss\":100000000000000000}\n{\"step\":2,\"loss\":100000000000000016}\n",
        "{\"step\":1,\"loss\":-1e308}\n{\"step\":2,\"loss\":1e308}\n",
        "{\"step\":9223372036854775806,\"loss\":1}\n{\"step\":9223372036854775807,\"loss\":2}\n",
        "{\"step\":9223372036854775807,\"loss\":0}\n{\"step\":1,\"loss\":5e-324}\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (uint64_t tail = 0; tail <= 50; tail += 50) {
            vd_buf svg = {0};
            cr_expect(draw_losses(lines[i], tail, &svg) == VD_OK, "%zu", i);
            cr_expect(svg.size < 10000, "%zu", i);
            vd_buf_free(&svg);
        }
}
