#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verde/job/job.h"

void fuzz_need(bool holds, const char *sentence) {
    if (holds)
        return;
    fprintf(stderr, "%s\n", sentence);
    abort();
}

const char *fuzz_file(const uint8_t *data, size_t size) {
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("input", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    fuzz_need(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size,
              "no room for the input");
    return path;
}

static char folder[64], folder_file[128];

static void remove_folder(void) {
    unlink(folder_file);
    rmdir(folder);
}

const char *fuzz_folder(const char *name, const uint8_t *data, size_t size) {
    if (!*folder) {
        /* The folder is in memory if possible, since each input is written to a file. */
        strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuzz-XXXXXX" : "/tmp/fuzz-XXXXXX");
        fuzz_need(mkdtemp(folder) != NULL, "no folder for inputs");
        atexit(remove_folder);
    }
    unlink(folder_file);
    snprintf(folder_file, sizeof folder_file, "%s/%s", folder, name);
    FILE *file = fopen(folder_file, "wb");
    fuzz_need(file && fwrite(data, 1, size, file) == size && fclose(file) == 0,
              "no room for the input");
    return folder;
}

const vd_key *fuzz_key(void) {
    static const uint8_t seed[32] = {7};
    static vd_key *key;
    if (!key)
        fuzz_need(vd_key_from_seed(seed, &key, NULL) == VD_OK, "no key");
    return key;
}

const vd_program *fuzz_program(void) {
    static vd_program program;
    static vd_job job;
    vd_err err;
    if (program.leaf_count)
        return &program;
    fuzz_need(vd_job_read("models/jobs/toy.yaml", &job, &err) == VD_OK, "no models/jobs/toy.yaml");
    job.training.data_dtype = RO_U8;
    job.training.data_count = 4096;
    fuzz_need(vd_job_program(&job, &program, &err) == VD_OK, "no program");
    return &program;
}

bool fuzz_equal(const vd_buf *a, const void *bytes, size_t size) {
    return !a->failed && a->size == size && (size == 0 || memcmp(a->data, bytes, size) == 0);
}
