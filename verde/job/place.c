/* This file finds the line of a key in a job that was read. */
#include <string.h>

#include "verde/job/fields.h"

const char *vd_job_place(const vd_job *job, const char *key, char place[VD_JOB_PLACE_SIZE]) {
    const int field = vd_field_find(key);
    const uint32_t line = field < 0 ? 0 : job->line[field];
    const int size = snprintf(place, VD_JOB_PLACE_SIZE, "%s", job->path);
    if (line)
        snprintf(place + size, VD_JOB_PLACE_SIZE - (size_t)size, ":%u", line);
    return place;
}

void vd_job_take_evaluate(vd_job *job) {
    memcpy(job->data_path, job->evaluate.path, sizeof job->data_path);
    memcpy(job->data_sha256, job->evaluate.sha256, sizeof job->data_sha256);
    job->data_files = (vd_job_names){0};
    job->line[vd_field_find("data.file")] = job->line[vd_field_find("evaluate.file")];
    job->line[vd_field_find("data.sha256")] = job->line[vd_field_find("evaluate.sha256")];
}
