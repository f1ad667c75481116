#include "verde/cli/pages.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/cli/story.h"

enum { VERIFIER_BYTES_MAX = 8 << 20 }; /* of verify.html */

/* PREFIX/share/verde/verify.html, beside PREFIX/bin/verde. False: there is none. */
static bool find_verifier(char path[1024]) {
    const ssize_t length = readlink("/proc/self/exe", path, 900);
    if (length <= 0 || length >= 900)
        return false;
    path[length] = 0;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return false;
        *slash = 0;
    }
    strcat(path, "/share/verde/verify.html");
    return access(path, R_OK) == 0;
}

/* Without --verifier, a page may have none. */
static vd_status read_verifier(const char *given, vd_buf *text, vd_err *err) {
    char found[1024];
    if (!given && !find_verifier(found))
        return VD_OK;
    return vd_read_file(given ? given : found, VERIFIER_BYTES_MAX, text, err);
}

/* A page must not take the place of what it is about. */
static vd_status check_apart(const char *path, const char *out, vd_err *err) {
    struct stat of, at;
    if (stat(path, &of) == 0 && stat(out, &at) == 0 && of.st_dev == at.st_dev &&
        of.st_ino == at.st_ino)
        return vd_fail(err, VD_ERR_USAGE, "--html %s: that is what the page is about", out);
    return VD_OK;
}

vd_status vd_write_page(const char *path, const char *out, const char *verifier, vd_err *err) {
    vd_buf page = {0}, text = {0};
    vd_status status = check_apart(path, out, err);
    if (status == VD_OK)
        status = read_verifier(verifier, &text, err);
    if (status == VD_OK)
        status = vd_verdict_page(path, text.size ? &text : NULL, &page, err);
    if (status == VD_OK)
        status = vd_write_file(out, page.data, page.size, 0644, err);
    vd_buf_free(&text);
    vd_buf_free(&page);
    return status;
}
