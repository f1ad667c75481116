/* This file is `verde export`, which writes a state of a run as a model that others load. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/cli/cli.h"
#include "verde/load/export.h"
#include "verde/run/out_dir.h"
#include "verde/tell/stop.h"

/* transformers, too, begins another file after so many bytes of tensors. */
#define SHARD_BYTES (UINT64_C(5) * 1000 * 1000 * 1000)

typedef struct {
    const char *run, *out;
    long step; /* -1: the last one */
    bool narrow, force;
    long shard_bytes;
    vd_common common;
} arguments;

typedef struct {
    const arguments *a;
    vd_loaded loaded;
    vd_run_log log;
    uint32_t index; /* of the checkpoint in the run log */
    vd_export_row *row;
    uint32_t row_count;
    vd_weights state; /* the checkpoint's file */
    vd_buf config;    /* config.json of the run */
    bool has_config;
    vd_hash *commitment;
    bool proven; /* the run is finished: `proof` leads to its root */
    vd_state_proof proof;
    vd_err *err;
} exporting;

/* ---- the state ---- */

static vd_status find_step(exporting *e) {
    const vd_run_log *log = &e->log;
    if (log->count == 0)
        return vd_fail(e->err, VD_ERR_USAGE, "%s: the run has no checkpoint yet", e->a->run);
    e->index = log->count - 1;
    if (e->a->step < 0)
        return VD_OK;
    for (e->index = 0; e->index < log->count; e->index++)
        if (log->step[e->index] == e->a->step)
            return VD_OK;
    return vd_fail(e->err, VD_ERR_USAGE,
                   "%s: no checkpoint at step %ld; there is one each %lld step%s, up to %lld",
                   e->a->run, e->a->step, (long long)e->loaded.program.checkpoint_interval,
                   vd_plural((uint64_t)e->loaded.program.checkpoint_interval),
                   (long long)log->step[log->count - 1]);
}

static vd_status open_run(exporting *e) {
    vd_status status = vd_load_run(e->a->run, &e->loaded, &e->log, e->err);
    if (status == VD_OK && vd_is_evaluation(&e->loaded.program))
        status = vd_fail(e->err, VD_ERR_USAGE,
                         "%s: the run is an evaluation, whose state is a score and no model; "
                         "export the run whose weights it evaluates",
                         e->a->run);
    if (status == VD_OK && vd_is_of_prompt(&e->loaded.program))
        status =
            vd_fail(e->err, VD_ERR_USAGE,
                    "%s: the run's state is what a model said of a prompt, and no model; export "
                    "the run whose weights it has",
                    e->a->run);
    if (status == VD_OK)
        status = find_step(e);
    if (status == VD_OK)
        status = vd_config_load(e->a->run, VD_WEIGHTS_CONFIG, &e->config, &e->has_config, e->err);
    if (status == VD_OK)
        status = vd_export_rows(&e->loaded.program, e->has_config ? &e->config : NULL, &e->row,
                                &e->row_count, e->err);
    e->proven = status == VD_OK && e->log.count == vd_run_leaves(&e->loaded.program);
    return status;
}

/* Opens the state, and checks that it is what the run commits to. */
static vd_status open_state(exporting *e) {
    const vd_program *program = &e->loaded.program;
    const ro_options options = {
        .size = sizeof options, .threads = e->a->common.threads, .backend = e->a->common.backend};
    vd_ticker hashing = {.start = vd_seconds()};
    if (ro_ctx_create(&options, &e->loaded.ro) != RO_OK)
        return vd_fail(e->err, VD_ERR_USAGE, "%s", ro_ctx_error(NULL));
    const vd_weights_hashing how = {e->loaded.ro, vd_tell_hashing, &hashing};
    e->commitment = calloc(program->leaf_count, sizeof *e->commitment);
    vd_status status = e->commitment ? vd_open_state(e->a->run, program, &e->log, e->index, &how,
                                                     &e->state, e->commitment, e->err)
                                     : vd_fail(e->err, VD_ERR_LOCAL, "out of memory");
    return status == VD_OK && e->proven ? vd_state_proof_make(&e->loaded.exec, &e->log, e->index,
                                                              e->commitment, &e->proof, e->err)
                                        : status;
}

/* ---- the files ---- */

static vd_status prepare(const exporting *e) {
    char path[1100];
    vd_status status = vd_open_model_dir(e->a->out, e->err);
    if (status == VD_OK)
        status = vd_weights_clear(e->a->out, !e->a->force, e->err);
    snprintf(path, sizeof path, "%s/proof.json", e->a->out);
    if (status == VD_OK && unlink(path) != 0 && errno != ENOENT)
        status = vd_fail(e->err, VD_ERR_LOCAL, "cannot remove %s: %s", path, strerror(errno));
    return status;
}

static vd_status write_tensors(const exporting *e) {
    const vd_state_proof *p = &e->proof;
    char program[2 * VD_HASH_SIZE + 1], root[2 * VD_HASH_SIZE + 1], step[24];
    vd_hex(e->log.program.b, VD_HASH_SIZE, program);
    vd_hex(p->run_root.b, VD_HASH_SIZE, root);
    snprintf(step, sizeof step, "%lld", (long long)e->log.step[e->index]);
    /* transformers refuses a file without a format. */
    const vd_weight_note note[] = {{"format", "pt"},
                                   {"verde.program", program},
                                   {"verde.step", step},
                                   {"verde.run_root", root}};
    const vd_weights_writing how = {.note = note,
                                    .note_count = e->proven ? 4 : 3,
                                    .adapter = vd_is_adapter(&e->loaded.program),
                                    .shard_bytes = (uint64_t)e->a->shard_bytes};
    vd_weight_out *out = calloc(e->row_count, sizeof *out);
    if (!out)
        return vd_fail(e->err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < e->row_count; i++) {
        const vd_export_row *row = &e->row[i];
        out[i] = (vd_weight_out){.form = row->form,
                                 .leaf = e->loaded.program.leaf[row->leaf].shape,
                                 .layout = row->layout,
                                 .data = e->state.tensor[row->leaf].data};
        out[i].narrow = e->a->narrow && row->form.type == VD_WEIGHT_F32;
        if (out[i].narrow)
            out[i].form.type = VD_WEIGHT_BF16;
    }
    vd_status status = vd_weights_write(e->a->out, out, e->row_count, &how, e->err);
    free(out);
    return status;
}

static vd_status write_proof(const exporting *e) {
    char path[1024];
    snprintf(path, sizeof path, "%s/proof.json", e->a->out);
    return e->proven ? vd_state_proof_write(&e->proof, path, e->err) : VD_OK;
}

static vd_status export_all(exporting *e) {
    vd_stop_line("stopped before all was written; `%s` begins again", vd_command_line());
    vd_status status = open_run(e);
    if (status == VD_OK)
        status = open_state(e);
    if (status == VD_OK)
        status = prepare(e);
    if (status == VD_OK)
        status = write_tensors(e);
    if (status == VD_OK)
        status = vd_config_export(e->a->run, e->a->out, e->a->narrow, e->err);
    return status == VD_OK ? write_proof(e) : status;
}

/* ---- telling ---- */

static uint64_t bytes_written(const exporting *e) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < e->row_count; i++)
        total += vd_weight_bytes(&e->row[i].form) /
                 (e->a->narrow && e->row[i].form.type == VD_WEIGHT_F32 ? 2 : 1);
    return total;
}

static void tell_json(const exporting *e) {
    json_t *out = json_pack("{ss sI so sI sI sb}", "dir", e->a->out, "step",
                            (json_int_t)e->log.step[e->index], "program",
                            vd_hash_text(&e->log.program), "tensors", (json_int_t)e->row_count,
                            "bytes", (json_int_t)bytes_written(e), "proof", e->proven);
    if (e->proven)
        json_object_set_new(out, "run_root", vd_hash_text(&e->proof.run_root));
    vd_print_json(out);
}

static void tell_text(const exporting *e) {
    char size[32], root[2 * VD_HASH_SIZE + 1];
    vd_print_size(bytes_written(e), size);
    printf("wrote        %s: %u tensor%s of step %lld, %s%s\n", e->a->out, e->row_count,
           vd_plural(e->row_count), (long long)e->log.step[e->index], size,
           e->a->narrow ? ", rounded to BF16" : "");
    vd_hex(e->proof.run_root.b, VD_HASH_SIZE, root);
    if (e->proven)
        printf("run root     %s, to which proof.json leads\n", root);
    else
        printf("proof        none: the run is not finished, so that nobody can have accepted it\n");
    if (e->proven && e->a->narrow)
        printf("             not from rounded weights: keep the run, or export F32 as well\n");
}

/* ---- the command ---- */

static bool take_dtype(void *to, const char *name, const char *text, const vd_option *option) {
    bool *narrow = to;
    (void)option;
    *narrow = strcmp(text, "bf16") == 0;
    if (*narrow || strcmp(text, "f32") == 0)
        return true;
    fprintf(stderr, "verde: --%s must be f32 or bf16, got \"%s\"\n", name, text);
    return false;
}

static void export_free(exporting *e) {
    vd_state_proof_free(&e->proof);
    free(e->commitment);
    vd_buf_free(&e->config);
    free(e->row);
    vd_weights_close(&e->state);
    vd_run_log_free(&e->log);
    vd_loaded_free(&e->loaded);
}

static arguments given;

static vd_exit export(int argc, char **argv) {
    given = (arguments){.step = -1, .shard_bytes = SHARD_BYTES};
    vd_exit code;
    vd_err err = {0};
    if (!vd_take_options(&vd_cmd_export, argc, argv, &code))
        return code;
    if (argc - optind != 1 || !given.out) {
        fprintf(stderr, "verde: export takes one directory of a run and --out DIR\n");
        return VD_EXIT_USAGE;
    }
    given.run = argv[optind];
    exporting e = {.a = &given, .err = &err};
    const vd_status status = export_all(&e);
    if (status == VD_OK && given.common.json)
        tell_json(&e);
    else if (status == VD_OK)
        tell_text(&e);
    export_free(&e);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static const vd_option options[] = {
    {"  --out DIR        made if it is not there\n", &given.out},
    {"  --step N         the checkpoint after step N (default: the last one)\n", &given.step,
     .least = 0, .most = INT32_MAX},
    {"  --dtype TYPE     f32 (default), or bf16: rounded to nearest, ties to even. What is "
     "rounded\n"
     "                   cannot be checked against a verdict\n",
     &given.narrow, take_dtype},
    {"  --shard-size N   bytes of tensors in a file (default: 5000000000); more files get an "
     "index\n",
     &given.shard_bytes, .least = 1, .most = 1L << 62},
    {"  --force          overwrite a model in DIR\n", &given.force},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_export = {
    "export",
    "write a run's weights as safetensors, with a proof",
    "Usage: verde export RUN --out DIR [options]\n\n"
    "Writes the weights of the run in RUN as DIR/model.safetensors, with the config.json and names "
    "of\n"
    "transformers where it has such a model; adapters as PEFT has them; without what the "
    "optimizer\n"
    "keeps. Before that, every byte of the state is hashed and compared with run.json. Beside the\n"
    "weights, proof.json leads from them to the run root: `verde check DIR --verdict FILE` then\n"
    "says whether DIR is the model that a verdict accepts. A run that is not finished gets "
    "none.\n\n",
    options,
    "\n"
    "Examples:\n"
    "  verde export run --out tuned\n"
    "  verde export run --step 400 --dtype bf16 --out tuned-400\n" VD_EXIT_HELP,
    export};
