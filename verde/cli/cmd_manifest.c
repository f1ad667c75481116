/* This file is `verde manifest`, which lists the tensors of a folder with their hashes. */
#include <string.h>

#include "verde/cli/cli.h"
#include "verde/tell/stop.h"
#include "verde/weights/weights.h"

typedef struct {
    const char *dir, *out, *against;
    vd_common common;
} arguments;

typedef struct {
    const arguments *a;
    vd_weights weights;
    vd_manifest manifest;
    ro_ctx *ro;
    vd_hash hash;
    vd_err *err;
} making;

static uint64_t weights_bytes(const vd_weights *w) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < w->count; i++)
        total += w->tensor[i].size;
    return total;
}

static vd_status open_threads(making *m) {
    const ro_options options = {
        .size = sizeof options, .threads = m->a->common.threads, .backend = m->a->common.backend};
    const ro_status status = ro_ctx_create(&options, &m->ro);
    if (status == RO_OK)
        return VD_OK;
    return vd_fail(m->err, status == RO_ERR_ARG ? VD_ERR_USAGE : VD_ERR_LOCAL, "%s",
                   ro_ctx_error(NULL));
}

/* Compares the folder with the given manifest. Names and shapes come before hashes, which take
 * longer. */
static vd_status manifest_compare(making *m, const vd_weights_hashing *how) {
    vd_status status = vd_manifest_read(m->a->against, &m->manifest, m->err);
    return status == VD_OK ? vd_manifest_compare(&m->manifest, &m->weights, how, m->err) : status;
}

static vd_status write_text(const making *m) {
    vd_buf text = {0};
    vd_manifest_put(&m->manifest, &text);
    vd_status status = VD_OK;
    if (!vd_buf_ok(&text))
        status = vd_fail(m->err, VD_ERR_LOCAL, "manifest: out of memory");
    else if (m->a->out)
        status = vd_write_file(m->a->out, text.data, text.size, 0644, m->err);
    else if (!m->a->common.json && !m->a->against)
        fwrite(text.data, 1, text.size, stdout);
    vd_buf_free(&text);
    return status;
}

static vd_status manifest_make(making *m) {
    vd_ticker hashing = {.start = vd_seconds()};
    vd_stop_line("stopped before all was hashed; `%s` begins again", vd_command_line());
    vd_status status = m->a->out ? vd_check_writable(m->a->out, m->err) : VD_OK;
    if (status == VD_OK)
        status = vd_weights_open(m->a->dir, &m->weights, m->err);
    if (status == VD_OK)
        status = open_threads(m);
    const vd_weights_hashing how = {m->ro, vd_tell_hashing, &hashing};
    if (status == VD_OK)
        status = m->a->against ? manifest_compare(m, &how)
                               : vd_manifest_make(&m->weights, &how, &m->manifest, m->err);
    if (status == VD_OK)
        status = vd_manifest_hash(&m->manifest, &m->hash, m->err);
    return status == VD_OK ? write_text(m) : status;
}

static void manifest_tell(const making *m) {
    char hex[2 * VD_HASH_SIZE + 1], size[32];
    vd_hex(m->hash.b, VD_HASH_SIZE, hex);
    vd_print_size(weights_bytes(&m->weights), size);
    if (m->a->common.json)
        vd_print_json(json_pack(
            "{ss so sI sI sI sb}", "dir", m->a->dir, "sha256", vd_hash_text(&m->hash), "tensors",
            (json_int_t)m->weights.count, "files", (json_int_t)m->weights.file_count, "bytes",
            (json_int_t)weights_bytes(&m->weights), "config", m->weights.has_config));
    else
        vd_say("verde: %u tensor%s in %u file%s, %s%s; SHA-256 of the manifest: %s",
               m->weights.count, vd_plural(m->weights.count), m->weights.file_count,
               vd_plural(m->weights.file_count), size,
               m->a->against ? ", as the manifest says" : "", hex);
}

static arguments given;

static vd_exit manifest(int argc, char **argv) {
    vd_exit code;
    vd_err err = {0};
    if (!vd_take_options(&vd_cmd_manifest, argc, argv, &code))
        return code;
    if (argc - optind != 1) {
        fprintf(stderr,
                "verde: manifest takes one folder of a model, or one safetensors file, got "
                "%d arguments\n",
                argc - optind);
        return VD_EXIT_USAGE;
    }
    given.dir = argv[optind];
    making m = {.a = &given, .err = &err};
    const vd_status status = manifest_make(&m);
    if (status == VD_OK)
        manifest_tell(&m);
    vd_manifest_free(&m.manifest);
    vd_weights_close(&m.weights);
    ro_ctx_destroy(m.ro);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static const vd_option options[] = {
    {"  --out FILE       write the manifest there instead\n", &given.out},
    {"  --against FILE   compare DIR with this manifest, every byte, and print nothing\n",
     &given.against},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_manifest = {
    "manifest",
    "hash a model's weights; print what a job pins of them",
    "Usage: verde manifest DIR [options]\n\n"
    "Prints the manifest of a model in DIR, a folder of Hugging Face: config.json and\n"
    "model.safetensors, or shards and model.safetensors.index.json. A manifest is a text that "
    "names\n"
    "every tensor's type, shape and commitment, and holds config.json. Its SHA-256, which is told\n"
    "on standard error, is what a job pins: whoever has the manifest knows what the weights must\n"
    "be without having them. Nothing in DIR is executed; pickles (pytorch_model.bin) are not "
    "read.\n\n",
    options,
    "\n"
    "Exit code 0: done, or DIR is what the manifest says. 6: it is not; one line names the file\n"
    "and the tensor. 2: a file is not what it must be.\n\n"
    "Examples:\n"
    "  verde manifest smollm > smollm.manifest\n"
    "  verde manifest smollm --against smollm.manifest\n" VD_EXIT_HELP,
    manifest};
