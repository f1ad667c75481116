/* This file opens the folder that a command writes to. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/run/out_dir.h"
#include "verde/tell/tell.h"

enum { OUT_PATH_MAX = 900 }; /* limit in bytes; files' names are appended */

/* Files that `verde run` writes; a folder with one of them has a run. */
static const char *const run_files[] = {"run.json", "program", "results.jsonl*", NULL};
/* Files that `verde export`, `fetch` and `delegate` write, or wrote in older versions. */
static const char *const model_files[] = {"*.safetensors*",
                                          "config.json",
                                          "generation_config.json",
                                          "adapter_config.json",
                                          "proof.json",
                                          "losses.*",
                                          "results.*",
                                          "verdict.json*",
                                          "evaluation.json",
                                          "partial",
                                          "tokenizer*",
                                          "fraud.json*",
                                          "audit",
                                          NULL};

static bool is_one_of(const char *name, const char *const *pattern) {
    for (; *pattern; pattern++)
        if (fnmatch(*pattern, name, 0) == 0)
            return true;
    return false;
}

/* Counts files that are not of this kind; *example is one of them. */
static uint32_t count_others(const char *dir, const char *const *own, bool *any_own,
                             char example[256]) {
    DIR *list = opendir(dir);
    uint32_t count = 0;
    *any_own = false;
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (is_one_of(entry->d_name, own)) {
            *any_own = true;
        } else if (count++ == 0 || strcmp(entry->d_name, example) < 0) {
            snprintf(example, 256, "%s", entry->d_name);
        }
    }
    if (list)
        closedir(list);
    return count;
}

/* Reports other files, only once, because two parts of a command may look. */
static void tell_others(const char *dir, uint32_t count, const char *example) {
    static bool told;
    vd_err printable;
    if (told || count == 0)
        return;
    told = true;
    vd_fail(&printable, VD_ERR_IO, "%.200s", example);
    if (count == 1)
        fprintf(stderr, "%s: another file lies there, %s; it stays\n", dir, printable.text);
    else
        fprintf(stderr, "%s: %u other files lie there, such as %s; they stay\n", dir, count,
                printable.text);
}

vd_status vd_open_run_dir(const char *dir, uint32_t *made, vd_err *err) {
    char example[256] = "";
    bool is_run;
    vd_status status = vd_make_dirs(dir, made, err);
    const uint32_t others = count_others(dir, run_files, &is_run, example);
    if (status == VD_OK && !is_run)
        tell_others(dir, others, example);
    return status;
}

vd_status vd_open_model_dir(const char *dir, vd_err *err) {
    char example[256] = "";
    bool any;
    uint32_t made;
    if (strlen(dir) > OUT_PATH_MAX)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path longer than %d bytes", dir, OUT_PATH_MAX);
    vd_status status = vd_make_dirs(dir, &made, err);
    if (status == VD_OK && vd_lies_in(dir, "run.json"))
        status = vd_fail(err, VD_ERR_USAGE, "%s: a run lies there; give another directory", dir);
    if (status == VD_OK)
        tell_others(dir, count_others(dir, model_files, &any, example), example);
    return status;
}

vd_status vd_check_new(const char *path, bool force, vd_err *err) {
    struct stat info;
    if (!force && lstat(path, &info) == 0 && !S_ISDIR(info.st_mode))
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: exists already; give another name, or --force to overwrite it", path);
    return vd_check_writable(path, err);
}
