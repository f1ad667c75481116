/* This file maps the data files that a job names; patterns stand for all files that match. */
#include "verde/job/data.h"
#include "verde/job/fields.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

static vd_status open_one(const vd_job *job, const char *path, vd_dataset *out, vd_err *err) {
    if (out->file_count == VD_DATA_FILES_MAX)
        return vd_fail(err, VD_ERR_USAGE, "%s: `data.files` must be at most %d files", job->path,
                       VD_DATA_FILES_MAX);
    const char *key = job->data_files.count ? "data.files" : "data.file";
    char place[VD_JOB_PLACE_SIZE];
    vd_err why = {0};
    vd_status status = vd_map_file(path, &out->file[out->file_count], &why);
    out->file_count += status == VD_OK;
    return status == VD_OK
               ? VD_OK
               : vd_fail(err, status, "%s: `%s`: %s", vd_job_place(job, key, place), key, why.text);
}

/* Escapes the job's own directory, which is no pattern even if its name looks like one. */
static void quote(const char *path, size_t directory, char *out) {
    for (size_t i = 0; path[i]; i++) {
        if (i < directory && strchr("*?[\\", path[i]))
            *out++ = '\\';
        *out++ = path[i];
    }
    *out = 0;
}

/* Maps the files that match, sorted by the bytes of their names: `verde` sets no locale. */
static vd_status open_matches(const vd_job *job, const char *path, const char *name,
                              vd_dataset *out, vd_err *err) {
    char pattern[2 * VD_JOB_PATH_SIZE];
    char place[VD_JOB_PLACE_SIZE];
    glob_t found = {0};
    quote(path, strlen(path) - strlen(name), pattern);
    const int code = glob(pattern, GLOB_ERR, NULL, &found);
    vd_status status = VD_OK;
    if (code == GLOB_NOSPACE)
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    else if (code != 0)
        status = vd_fail(err, VD_ERR_USAGE, "%s: no file is like `%s` of `data.files`",
                         vd_job_place(job, "data.files", place), name);
    for (size_t i = 0; status == VD_OK && i < found.gl_pathc; i++)
        status = open_one(job, found.gl_pathv[i], out, err);
    globfree(&found);
    return status;
}

vd_status vd_data_open(const vd_job *job, vd_dataset *out, vd_err *err) {
    const vd_job_names *names = &job->data_files;
    const char *name = names->text;
    vd_status status = VD_OK;
    out->file = calloc(VD_DATA_FILES_MAX, sizeof *out->file);
    if (!out->file)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (names->count == 0)
        return open_one(job, job->data_path, out, err);
    for (int64_t i = 0; status == VD_OK && i < names->count; i++, name += strlen(name) + 1) {
        char path[VD_JOB_PATH_SIZE];
        status = vd_field_path(name, job->path, path);
        if (status == VD_OK)
            status = strpbrk(name, "*?[") ? open_matches(job, path, name, out, err)
                                          : open_one(job, path, out, err);
    }
    return status;
}
