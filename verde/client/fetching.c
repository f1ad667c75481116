/* This file downloads a model from beginning to end, and prints the progress. */
#include "verde/client/fetching.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/losses_svg.h"
#include "verde/tell/stop.h"

enum { QUIET_SECONDS = 2 };

/* ---- progress ---- */

static void tell_line(void *user, const char *line) {
    (void)user;
    vd_say("%sverde fetch: %s", vd_is_terminal() ? "\r\033[K" : "", line);
}

static void fetch_progress(void *user, const vd_download_progress *p) {
    vd_fetching *x = user;
    char done[32], total[32], rate[32], time[32], left[48] = "";
    const bool terminal = vd_is_terminal(), last = p->done == p->total;
    const double fresh = (double)(p->done - p->found), per_s = fresh / (p->seconds + 1e-9);
    const bool same = !last && p->done == x->told_done;
    x->progress = *p;
    if (p->seconds < QUIET_SECONDS || (!terminal && (same || (!last && p->seconds - x->told < 2))))
        return;
    x->told = p->seconds;
    x->told_done = p->done;
    vd_print_size(p->done, done);
    vd_print_size(p->total, total);
    vd_print_size((uint64_t)per_s, rate);
    if (fresh > 0 && !last)
        vd_print_seconds((double)(p->total - p->done) / per_s, time);
    if (fresh > 0 && !last)
        snprintf(left, sizeof left, ", %s left", time);
    vd_tell_meanwhile(last, "fetched and checked %s of %s, %s/s%s", done, total, rate, left);
}

/* ---- the parts ---- */

vd_status vd_fetch_download(vd_fetching *x, int connections,
                            void (*progress)(void *user, const vd_download_progress *progress)) {
    const vd_fetch_options *o = x->o;
    const vd_download_options options = {.provider = o->provider,
                                         .provider_count = o->provider_count,
                                         .number = o->number,
                                         .ca = o->ca,
                                         .key = o->key,
                                         .job = o->id ? o->id : x->root_text,
                                         .connections = connections,
                                         .patience_s = o->patience_s,
                                         .tell = tell_line,
                                         .progress = progress,
                                         .user = x};
    return vd_download_create(&options, &x->download, x->err);
}

static vd_status fetch_begin(vd_fetching *x) {
    x->model = (vd_fetched){.out = x->o->out, .force = x->o->force, .lock = -1, .laid_fd = -1};
    vd_status status = vd_fetched_begin(&x->model, x->err);
    if (status == VD_OK)
        status = vd_fetch_download(x, x->o->connections, fetch_progress);
    vd_stop_line("stopped; what is checked stays in %s, and `%s` goes on from there",
                 x->model.partial, vd_command_line());
    return status;
}

static vd_status get_proof(vd_fetching *x) {
    vd_buf text = {0};
    bool found;
    vd_status status = vd_fetched_proof(&x->model, &x->o->run_root, &found, x->err);
    if (status == VD_OK && !found) {
        status = vd_download_proof(x->download, &x->o->run_root, &text, &x->model.proof, x->err);
        if (status == VD_OK)
            status = vd_fetched_keep_proof(&x->model, &text, x->err);
    }
    vd_buf_free(&text);
    if (status == VD_OK && x->o->program &&
        !vd_hash_equal(x->o->program, &x->model.proof.program_hash))
        status =
            vd_fail(x->err, VD_ERR_PEER, "run root %s is one of another program than that of %s",
                    x->root_text, x->o->program_of);
    return status;
}

/* Opens the model's files. Names of transformers come from the job: a provider's are unproven. */
static vd_status open_model(vd_fetching *x) {
    vd_buf config = {0};
    vd_status status = VD_OK;
    if (x->o->job)
        status = vd_config_save(x->model.partial, x->o->job, x->err);
    if (status == VD_OK && x->o->job)
        status =
            vd_config_load(x->model.partial, VD_WEIGHTS_CONFIG, &config, &x->has_config, x->err);
    if (status == VD_OK)
        status = vd_fetched_open(&x->model, x->has_config ? &config : NULL, x->err);
    vd_buf_free(&config);
    return status;
}

static vd_status fetch_write(const vd_fetching *x, const char *dir, const char *name,
                             const vd_buf *text) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return vd_write_file(path, text->data, text->size, 0644, x->err);
}

/* Gets the losses from one provider. They are unproven, and errors in them do not fail the
 * download. */
static vd_status get_losses(vd_fetching *x) {
    vd_buf text = {0}, table = {0};
    vd_err why = {0};
    char path[1100], line[900];
    vd_status status = VD_OK;
    if (vd_download_losses(x->download, &text, &x->losses_by)) {
        x->has_losses = vd_losses_csv(text.data, text.size, &table, &why) == VD_OK;
        if (x->has_losses)
            status = fetch_write(x, x->model.partial, "losses.jsonl", &text);
        snprintf(path, sizeof path, "%s/losses.svg", x->o->out);
        if (x->has_losses && status == VD_OK)
            x->has_losses = vd_plot_losses(x->model.partial, path, &why) == VD_OK;
        if (x->has_losses && status == VD_OK)
            status = fetch_write(x, x->o->out, "losses.csv", &table);
        snprintf(line, sizeof line, "losses of %s are left out: %s",
                 x->o->provider[x->losses_by].url, why.text);
        if (!x->has_losses)
            tell_line(NULL, line);
    }
    vd_buf_free(&text);
    vd_buf_free(&table);
    return status;
}

/* ---- the result ---- */

json_t *vd_fetch_providers(const vd_fetching *x) {
    const vd_fetch_options *o = x->o;
    json_t *list = json_array();
    for (uint32_t p = 0; p < o->provider_count; p++) {
        json_t *one = json_pack("{ss sI}", "url", o->provider[p].url, "bytes",
                                (json_int_t)vd_download_received(x->download, p));
        const char *dropped = vd_download_dropped(x->download, p);
        if (dropped)
            json_object_set_new(one, "dropped", json_string(dropped));
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *model_json(const vd_fetching *x) {
    const vd_state_proof *proof = &x->model.proof;
    return json_pack("{ss so so sI sI sI sI sf sb sb so}", "dir", x->o->out, "run_root",
                     vd_hash_text(&x->o->run_root), "program", vd_hash_text(&proof->program_hash),
                     "step", (json_int_t)proof->step, "tensors", (json_int_t)x->model.row_count,
                     "bytes", (json_int_t)x->progress.total, "found", (json_int_t)x->progress.found,
                     "seconds", x->progress.seconds, "config", x->has_config, "losses",
                     x->has_losses, "providers", vd_fetch_providers(x));
}

static uint32_t fetch_number(const vd_fetch_options *o, uint32_t p) {
    return o->number ? o->number[p] : p + 1;
}

static void print_providers(vd_buf *out, const vd_fetching *x) {
    const vd_fetch_options *o = x->o;
    char size[32];
    for (uint32_t p = 0; p < o->provider_count; p++) {
        const char *dropped = vd_download_dropped(x->download, p);
        vd_print_size(vd_download_received(x->download, p), size);
        vd_printf(out, "provider %u   gave %s%s%s\n", fetch_number(o, p), size,
                  dropped ? "; dropped: " : "", dropped ? dropped : "");
    }
}

static void print_model(vd_buf *out, const vd_fetching *x) {
    char size[32], found[32];
    vd_print_size(x->progress.total, size);
    vd_print_size(x->progress.found, found);
    vd_printf(out, "wrote        %s: %u tensor%s of step %lld, %s, every byte checked\n", x->o->out,
              x->model.row_count, vd_plural(x->model.row_count), (long long)x->model.proof.step,
              size);
    vd_printf(out, "run root     %s, to which proof.json leads\n", x->root_text);
    if (x->progress.found)
        vd_printf(out, "were there   %s, from an earlier download\n", found);
    print_providers(out, x);
    if (x->has_losses)
        vd_printf(
            out,
            "losses       losses.csv, losses.svg: as provider %u says, no root leads to them\n",
            fetch_number(x->o, x->losses_by));
}

json_t *vd_fetch_json(const vd_fetching *x) {
    return x->many ? vd_fetch_items_json(x) : model_json(x);
}

void vd_fetch_text(const vd_fetching *x) {
    vd_buf out = {0};
    if (x->many) {
        vd_fetch_items_text(&out, x);
        print_providers(&out, x);
    } else {
        print_model(&out, x);
    }
    vd_result_text(&out);
}

/* ---- all of it ---- */

static vd_status fetch_model(vd_fetching *x) {
    vd_status status = fetch_begin(x);
    if (status == VD_OK)
        status = get_proof(x);
    if (status == VD_OK)
        status = open_model(x);
    if (status == VD_OK)
        status = vd_download_tensors(x->download, &x->model.proof, x->model.target,
                                     x->model.row_count, x->err);
    if (status == VD_OK)
        status = get_losses(x);
    if (status == VD_OK)
        status = vd_fetched_finish(&x->model, x->has_config, x->err);
    if (status != VD_OK)
        vd_fetched_abandon(&x->model);
    return status;
}

vd_status vd_fetch_check(const char *out, bool many, bool force, vd_err *err) {
    return many ? vd_fetch_items_check(out, force, err) : vd_fetched_check(out, force, err);
}

vd_status vd_fetch(const vd_fetch_options *o, vd_fetching *x, vd_err *err) {
    *x = (vd_fetching){.o = o,
                       .many = o->job && vd_job_has_prompts(&o->job->job),
                       .fd = -1,
                       .ticker = {vd_seconds(), 0},
                       .err = err};
    vd_hex(o->run_root.b, VD_HASH_SIZE, x->root_text);
    return x->many ? vd_fetch_items(x) : fetch_model(x);
}

void vd_fetching_free(vd_fetching *x) {
    if (!x->o)
        return;
    if (x->many)
        vd_fetch_items_free(x);
    vd_download_destroy(x->download);
    if (!x->many)
        vd_fetched_free(&x->model);
}
