#include "portable.h"
#include "verde/exec/exec.h"

#include <stdlib.h>
#include <string.h>

static vd_err err;

#define TRY(call) CHECK((call) == VD_OK, "%s", err.text)

static const size_t FILE_BYTES_MAX = (size_t)1 << 30;

static vd_buf file_of(const char *folder, const char *name) {
    char path[4096];
    vd_buf bytes = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    TRY(vd_read_file(path, FILE_BYTES_MAX, &bytes, &err));
    return bytes;
}

/* Returns what follows the next `"key": ` in data.json, which lists files in the order of the
 * program's data. */
static const char *member(const char **at, const char *key) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "\"%s\": ", key);
    const char *found = *at ? strstr(*at, wanted) : NULL;
    *at = found ? found + strlen(wanted) : NULL;
    return *at ? *at : "";
}

/* Reads a data tensor's elements, and compares their hash with the program's. */
static void *elements(const char *folder, const vd_data *data, const char **at) {
    char name[64] = "";
    vd_hash byte_root, root = {0};
    sscanf(member(at, "file"), "\"%63[^\"]", name);
    const size_t offset = strtoul(member(at, "offset"), NULL, 10);
    const size_t size = vd_shape_bytes(&data->tensor.shape);
    vd_buf file = file_of(folder, name);
    void *out = calloc(1, size);
    CHECK(out && file.size >= offset && file.size - offset >= size, "%s is too short", name);
    if (out && file.size >= offset && file.size - offset >= size) {
        memcpy(out, file.data + offset, size);
        vd_from_little(out, size, ro_dtype_size(data->tensor.shape.dtype));
        TRY(vd_tensor_hash(NULL, &data->tensor.shape, out, &byte_root, &root, &err));
    }
    CHECK(memcmp(root.b, data->root, VD_HASH_SIZE) == 0, "%s/%s has other elements", folder, name);
    vd_buf_free(&file);
    return out;
}

static void print_state(const vd_exec *exec, const vd_hash *program, const vd_state *state) {
    char text[2 * VD_HASH_SIZE + 1] = "";
    vd_hash hash;
    TRY(vd_state_hash(exec->ro, exec->program, program, state, NULL, &hash, &err));
    vd_hex(hash.b, VD_HASH_SIZE, text);
    printf("state %lld %s\n", (long long)state->step, text);
}

static void run(vd_exec *exec) {
    vd_state state = {0};
    vd_hash program;
    TRY(vd_program_hash(exec->program, &program, &err));
    TRY(vd_exec_init(exec, NULL, &state, &err));
    if (!portable_failures)
        print_state(exec, &program, &state);
    while (!portable_failures && state.step < exec->program->steps) {
        TRY(vd_exec_step(exec, NULL, &state, NULL, &err));
        print_state(exec, &program, &state);
    }
    vd_state_free(&state);
}

void run_folder(const char *folder) {
    vd_program program = {0};
    vd_buf bytes = file_of(folder, "program"), list = file_of(folder, "data.json");
    TRY(vd_program_decode(bytes.data, bytes.size, &program, &err));
    vd_put_u8(&list, 0);
    const char *at = (const char *)list.data;
    const void **data = calloc(program.data_count + 1, sizeof *data);
    vd_exec exec = {.program = &program, .data = data};
    for (uint32_t i = 0; data && !portable_failures && i < program.data_count; i++)
        data[i] = elements(folder, &program.data[i], &at);
    CHECK(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &exec.ro) == RO_OK,
          "%s", ro_ctx_error(NULL));
    if (data && !portable_failures) {
        printf("%s %s\n", ro_ctx_backend(exec.ro), folder);
        run(&exec);
    }
    ro_ctx_destroy(exec.ro);
    for (uint32_t i = 0; data && i < program.data_count; i++)
        free((void *)data[i]);
    free(data);
    vd_buf_free(&list);
    vd_buf_free(&bytes);
    vd_program_free(&program);
}
