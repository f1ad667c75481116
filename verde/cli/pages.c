/* This file writes a page for people about a run, a verdict or a report. */
#include "verde/cli/pages.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/cli/cli.h"
#include "verde/client/story.h"
#include "verde/commit/json.h"
#include "verde/page/page.h"

enum {
    VERIFIER_BYTES_MAX = 8 << 20, /* size of verify.html */
    REPORT_BYTES_MAX = 16 << 20,
    REPORT_ELEMENT_BYTES = 4,
    LOSSES_BYTES = 64 << 20, /* the end of losses.jsonl that is drawn */
};

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Finds PREFIX/share/verde/verify.html, if this program is PREFIX/bin/verde. */
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

/* Reads the verifier. Without --verifier it may be missing: then the text is empty. */
static vd_status read_verifier(const char *given, vd_buf *text, vd_err *err) {
    char found[1024];
    if (!given && !find_verifier(found))
        return VD_OK;
    return vd_read_file(given ? given : found, VERIFIER_BYTES_MAX, text, err);
}

/* Refuses to write the page over the file that it is about. */
static vd_status check_apart(const char *path, const char *out, vd_err *err) {
    struct stat of, at;
    if (stat(path, &of) == 0 && stat(out, &at) == 0 && of.st_dev == at.st_dev &&
        of.st_ino == at.st_ino)
        return vd_fail(err, VD_ERR_USAGE, "--html %s: that is what the page is about", out);
    return VD_OK;
}

/* ---- of a report ---- */

/* Returns whether a file may be a report of audit or diff: small, JSON, and no signed note. */
static bool may_be_report(const char *path) {
    static const char type[] = "\"payloadType\"";
    vd_buf text = {0};
    const bool read = vd_read_file(path, REPORT_BYTES_MAX, &text, NULL) == VD_OK;
    const bool may = read && text.size > 0 && text.data[0] == '{' &&
                     !memmem(text.data, text.size, type, sizeof type - 1);
    vd_buf_free(&text);
    return may;
}

static vd_status report_page(const char *path, vd_buf *page, vd_err *err) {
    json_t *values = NULL;
    vd_page_report report = {.name = base_name(path)};
    vd_status status = vd_json_load(path, REPORT_BYTES_MAX, REPORT_ELEMENT_BYTES, &values, err);
    if (status == VD_OK && !vd_page_known_report(values, &report))
        status =
            vd_fail(err, VD_ERR_USAGE,
                    "%s: is no verdict, and not what `verde audit` or `verde diff` writes with "
                    "--json",
                    path);
    if (status == VD_OK)
        status = vd_page_of_report(&report, page, err);
    json_decref(values);
    return status;
}

/* Refuses to overwrite a file that is not a page, so that a mistyped name loses nothing. */
static vd_status check_replaces(const char *out, vd_err *err) {
    static const char first[] = "<!doctype html>";
    char text[sizeof first - 1] = {0};
    struct stat info;
    FILE *f = stat(out, &info) == 0 && info.st_size > 0 ? fopen(out, "rb") : NULL;
    if (!f)
        return VD_OK;
    const bool page = fread(text, sizeof text, 1, f) == 1 && !memcmp(text, first, sizeof text);
    fclose(f);
    return page ? VD_OK
                : vd_fail(err, VD_ERR_USAGE, "%s: exists, and is no page to be replaced", out);
}

vd_status vd_write_page(const char *path, const char *out, const char *verifier, vd_err *err) {
    vd_buf page = {0}, text = {0};
    vd_status status = check_apart(path, out, err);
    if (status == VD_OK)
        status = check_replaces(out, err);
    const bool report = status == VD_OK && may_be_report(path);
    if (report && verifier)
        status = vd_fail(err, VD_ERR_USAGE,
                         "--verifier goes with a verdict or a proof of fraud: the page of a report "
                         "has none");
    if (status == VD_OK && report)
        status = report_page(path, &page, err);
    if (status == VD_OK && !report)
        status = read_verifier(verifier, &text, err);
    if (status == VD_OK && !report)
        status = vd_verdict_page(path, text.size ? &text : NULL, &page, err);
    if (status == VD_OK)
        status = vd_write_file(out, page.data, page.size, 0644, err);
    vd_buf_free(&text);
    vd_buf_free(&page);
    return status;
}

/* ---- of a run ---- */

/* Writes the page if all went well, and frees it. */
static vd_status put_page(vd_status status, const char *out, vd_buf *page, vd_err *err) {
    if (status == VD_OK)
        status = vd_write_file(out, page->data, page->size, 0644, err);
    vd_buf_free(page);
    return status;
}

vd_status vd_write_run_page(const char *dir, const vd_loaded *loaded, const vd_run_log *log,
                            json_t *values, const char *out, vd_err *err) {
    vd_buf page = {0};
    vd_status status = check_replaces(out, err);
    if (status == VD_OK)
        status = vd_page_of_run(dir, &loaded->program, log, values, LOSSES_BYTES, &page, err);
    else
        json_decref(values);
    return put_page(status, out, &page, err);
}

vd_status vd_write_prompts_page(const char *dir, const char *out, vd_err *err) {
    vd_buf page = {0};
    vd_status status = check_replaces(out, err);
    if (status == VD_OK)
        status = vd_page_of_prompts(dir, &page, err);
    return put_page(status, out, &page, err);
}
