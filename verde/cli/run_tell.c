/* This file prints what `verde run` is about to do, and its results. */
#include <stdlib.h>
#include <sys/statvfs.h>

#include "verde/cli/cli.h"
#include "verde/cli/run_command.h"
#include "verde/exec/source.h"
#include "verde/run/run_items.h"
#include "verde/tell/stop.h"

static void announce_start(const vd_loaded *loaded) {
    const vd_training *t = &loaded->job.training;
    if (loaded->job.start.dir[0])
        fprintf(stderr, "begins with the tensors in %s: ", loaded->job.start.dir);
    else
        fprintf(stderr, "goes on from step %lld of the run in %s: ", (long long)loaded->start.step,
                loaded->job.start.run);
    fputs(t->evaluates                           ? "its weights are evaluated"
          : t->start_bare && loaded->job.program ? "weights alone; what the optimizer keeps starts "
                                                   "anew"
          : t->start_bare                        ? "weights alone"
                                                 : "weights and what the optimizer keeps",
          stderr);
    if (t->first_step)
        fprintf(stderr, "; rates, data and dropout are those of steps %lld to %lld",
                (long long)t->first_step, (long long)(t->first_step + t->steps - 1));
    if (loaded->start.left_out)
        fprintf(stderr, "; %u tensor%s of the files %s no part of the state",
                loaded->start.left_out, vd_plural(loaded->start.left_out),
                loaded->start.left_out == 1 ? "is" : "are");
    fputs("\n", stderr);
}

/* Names tensors that are ignored: the files may be of a model with another head, or with BERT's
 * pooler. */
static void announce_left_out(const vd_loaded *loaded) {
    enum { NAMED = 4 };
    const char **name = NULL;
    uint32_t count = 0;
    if (vd_training_left_out(&loaded->job.training, &name, &count, NULL) == VD_OK && count > 0) {
        fprintf(stderr,
                "%s: %u tensor%s of its files %s neither read nor exported:", loaded->job.model_dir,
                count, vd_plural(count), count == 1 ? "is" : "are");
        for (uint32_t i = 0; i < count && i < NAMED; i++)
            fprintf(stderr, "%s %s", i ? "," : "", name[i]);
        fputs(count > NAMED ? ", ...\n" : "\n", stderr);
    }
    free(name);
}

/* Ends the line about the job by the backend and its threads. */
static void announce_machine(const vd_loaded *loaded) {
    const int threads = ro_ctx_threads(loaded->ro);
    fprintf(stderr, ", backend %s, %d thread%s\n", ro_ctx_backend(loaded->ro), threads,
            vd_plural((uint64_t)threads));
}

static void announce_program(const char *job, const vd_loaded *loaded) {
    const vd_program *p = &loaded->program;
    char size[32];
    vd_print_size(vd_state_bytes(p), size);
    fprintf(stderr, "%s: a state of %u tensor%s, %s, %lld step%s of %u nodes", job, p->leaf_count,
            vd_plural(p->leaf_count), size, (long long)p->steps, vd_plural((uint64_t)p->steps),
            p->step.node_count);
}

static void announce_model(const char *job, const vd_loaded *loaded) {
    const vd_training *t = &loaded->job.training;
    const int64_t trained = vd_model_trained(&t->model);
    char frozen[64] = "";
    if (!t->evaluates && trained < vd_model_parameters(&t->model))
        snprintf(frozen, sizeof frozen, ", of which %lld are trained", (long long)trained);
    announce_left_out(loaded);
    fprintf(stderr, "%s: %lld parameters%s, %lld step%s of %lld %s", job,
            (long long)vd_model_parameters(&t->model), frozen, (long long)t->steps,
            vd_plural((uint64_t)t->steps), (long long)(t->batch * t->sequence),
            vd_samples_name(&loaded->job));
}

void vd_announce_run(const char *job, const vd_loaded *loaded) {
    vd_announce_fault(loaded);
    if (loaded->start.present)
        announce_start(loaded);
    if (loaded->job.program)
        announce_program(job, loaded);
    else
        announce_model(job, loaded);
    announce_machine(loaded);
}

/* Lists the tokens at which an answer ends, which the job or the model names. */
static void announce_stops(const vd_generation *g) {
    for (int64_t i = 0; i < g->stop_count; i++)
        fprintf(stderr, "%s%lld", i ? ", " : ", which end at ", (long long)g->stop[i]);
}

void vd_announce_prompts(const char *job, uint32_t count, const vd_loaded *loaded) {
    const vd_job *j = &loaded->job;
    if (j->packed) {
        fprintf(stderr, "%s: %u %s of %u nodes", job, count, vd_prompt_word(loaded, count),
                loaded->given.pack.first.step.node_count);
    } else {
        fprintf(stderr, "%s: %lld parameters, %u prompt%s, ", job,
                (long long)vd_model_parameters(&j->training.model), count, vd_plural(count));
        if (j->task == VD_JOB_GENERATES) {
            fprintf(stderr, "up to %lld tokens each", (long long)j->generation.max_tokens);
            announce_stops(&j->generation);
        } else {
            fputs("scored", stderr);
        }
    }
    announce_machine(loaded);
}

/* With --keep, one more checkpoint is on disk while it is written. */
void vd_tell_disk(const char *dir, const vd_program *p, long keep) {
    const uint64_t leaves = vd_run_leaves(p), bytes = vd_state_bytes(p);
    const uint64_t kept = keep && (uint64_t)keep < leaves ? (uint64_t)keep + 1 : leaves;
    struct statvfs disk;
    vd_run_log log = {0};
    char each[32], all[32], left[32];
    const bool resumes = vd_store_load_log(dir, &log, NULL) == VD_OK;
    const uint64_t there = resumes ? vd_run_log_kept_count(&log) : 0;
    const double needs = there < kept ? (double)(kept - there) * (double)bytes : 0;
    vd_run_log_free(&log);
    vd_print_size(bytes, each);
    vd_print_size(kept * bytes, all);
    fprintf(stderr, "%llu checkpoint%s of %s: %s on disk\n", (unsigned long long)kept,
            vd_plural(kept), each, all);
    if (statvfs(dir, &disk) != 0)
        return;
    const double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    vd_print_size((uint64_t)free_bytes, left);
    if (needs > free_bytes)
        fprintf(stderr,
                "warning: %s has %s left, which is less; --keep N keeps at most N checkpoints\n",
                dir, left);
}

/* A step that trains nothing has no loss. */
static json_t *loss_json(const vd_loaded *loaded, float loss) {
    return vd_has_loss(&loaded->program) ? vd_loss_json(loss) : json_null();
}

void vd_print_result(const vd_run_result *r, const vd_loaded *loaded, const vd_common *common,
                     const vd_run_backend *backend, const vd_score *score) {
    char root[2 * VD_HASH_SIZE + 1], state[2 * VD_HASH_SIZE + 1];
    vd_hex(r->run_root.b, VD_HASH_SIZE, root);
    vd_hex(r->final_state.b, VD_HASH_SIZE, state);
    if (common->json) {
        json_t *object = json_pack(
            "{ss ss sI sI sf so so ss ss si sI sI}", "run_root", root, "final_state_root", state,
            "steps", (json_int_t)r->steps, "resumed_at", (json_int_t)r->resumed_at, "seconds",
            r->seconds, "loss_first", loss_json(loaded, r->loss_first), "loss_last",
            loss_json(loaded, r->loss_last), "backend", ro_ctx_backend(loaded->ro), "device",
            ro_ctx_device(loaded->ro), "threads", ro_ctx_threads(loaded->ro), "peak_bytes",
            (json_int_t)vd_peak_bytes(), "device_peak_bytes", (json_int_t)ro_ctx_peak(loaded->ro));
        if (backend)
            json_object_set_new(object, "rounded", vd_rounded_json(backend));
        if (score)
            json_object_set_new(object, "evaluation", vd_loss_json(score->loss));
        if (score && score->has_accuracy)
            json_object_set_new(object, "accuracy", json_real((double)score->accuracy));
        vd_print_json(object);
        return;
    }
    if (score)
        printf("evaluation   %.6f, the mean loss of %lld batch%s, %.1f s\n", (double)score->loss,
               (long long)r->steps, r->steps == 1 ? "" : "es", r->seconds);
    else if (!vd_has_loss(&loaded->program))
        printf("steps        %lld, %.1f s\n", (long long)r->steps, r->seconds);
    else
        printf("loss         %.4f -> %.4f in %lld step%s, %.1f s\n", (double)r->loss_first,
               (double)r->loss_last, (long long)r->steps, vd_plural((uint64_t)r->steps),
               r->seconds);
    if (score && score->has_accuracy && loaded->job.program)
        printf("accuracy     %.6f, the mean of them\n", (double)score->accuracy);
    else if (score && score->has_accuracy)
        printf("accuracy     %.6f of %lld\n", (double)score->accuracy,
               (long long)(r->steps * loaded->job.training.batch));
    if (!ro_ctx_in_host_memory(loaded->ro))
        printf("device       %s, peak %.1f MB\n", ro_ctx_device(loaded->ro),
               1e-6 * (double)ro_ctx_peak(loaded->ro));
    printf("final state  %s\nrun root     %s\n", state, root);
}

/* ---- results of prompts ---- */

/* Returns whether void choices are to be mentioned: with log-probabilities the results show them.
 */
static bool tells_choices(const vd_prompts_result *r, const vd_loaded *loaded) {
    return r->void_choices > 0 && loaded->job.generation.best < 0;
}

static void prompts_json(const vd_prompts_result *r, const vd_loaded *loaded) {
    json_t *out = json_pack("{so so sI sf}", "job_root", vd_hash_text(&r->job_root), "collection",
                            vd_hash_text(&r->collection), vd_prompt_word(loaded, 0),
                            (json_int_t)r->items->count, "seconds", r->seconds);
    vd_score_json(r->score, out);
    if (tells_choices(r, loaded))
        json_object_set_new(out, "not_finite", json_integer((json_int_t)r->void_choices));
    vd_print_json(out);
}

static void prompts_text(const vd_prompts_result *r, const vd_loaded *loaded) {
    vd_buf out = {0};
    const bool answers = vd_program_answers(&loaded->program); /* the last prompt's program */
    vd_printf(&out, "results      %s/%s, %u %s, %.1f s\n", r->dir,
              answers ? VD_ANSWERS_FOLDER : "results.jsonl", r->items->count,
              vd_prompt_word(loaded, r->items->count), r->seconds);
    vd_score_text(&out, r->score);
    vd_put_hex(&out, "collection", r->collection.b);
    vd_put_hex(&out, "job root", r->job_root.b);
    vd_result_text(&out);
}

void vd_print_prompts(const vd_prompts_result *r, const vd_loaded *loaded, bool json) {
    if (tells_choices(r, loaded))
        fprintf(stderr,
                "warning: %lld token%s made here do%s not follow from the logits, the largest of "
                "which is not finite; with `log_probabilities: 0` results.jsonl tells of which "
                "prompts\n",
                (long long)r->void_choices, vd_plural((uint64_t)r->void_choices),
                r->void_choices == 1 ? "es" : "");
    if (json)
        prompts_json(r, loaded);
    else
        prompts_text(r, loaded);
}
