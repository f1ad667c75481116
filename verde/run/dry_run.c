/* This file estimates what a run will take, from its program and a few of its steps. */
#include "verde/run/dry_run.h"

#include "verde/run/run_items.h"

/* Timing ends after TIMED_STEPS steps or TIMED_S seconds. */
enum { TIMED_STEPS = 4, TIMED_S = 10 };

/* Estimates for a run. Sums that overflow are UINT64_MAX. */
typedef struct {
    uint32_t prompts; /* 0: the job is one program */
    int64_t steps;
    uint64_t memory, state, data, disk;
    uint32_t largest; /* the prompt that needs most */
    double init_s, step_s;
    int timed; /* number of timed steps; 0: there was no time */
} dry_run;

static uint64_t sum(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* ---- sizes ---- */

static vd_status add_program(dry_run *r, const vd_program *p, uint32_t prompt, int64_t keep,
                             vd_err *err) {
    uint64_t memory = 0, data = 0;
    vd_status status = vd_estimate_memory(p, &memory, err);
    if (status != VD_OK)
        return status;
    for (uint32_t i = 0; i < p->data_count; i++)
        data = sum(data, vd_shape_bytes(&p->data[i].tensor.shape));
    r->steps += p->steps;
    r->data = data > r->data ? data : r->data;
    r->disk = sum(r->disk, vd_estimate_disk(p, keep));
    if (memory < r->memory)
        return VD_OK;
    r->memory = memory;
    r->state = vd_state_bytes(p);
    r->largest = prompt;
    return VD_OK;
}

static vd_status add_prompts(dry_run *r, const vd_dry_run_options *o, vd_loaded *l, vd_err *err) {
    vd_status status = VD_OK;
    r->prompts = vd_prompt_count(l);
    for (uint32_t i = 0; i < r->prompts && status == VD_OK; i++) {
        vd_items_drop(l);
        status = vd_load_prompt(l, i, err);
        if (status == VD_OK)
            status = add_program(r, &l->program, i, VD_KEEP_MIN, err);
        if (status == VD_OK)
            r->disk = sum(r->disk, vd_estimate_journal(&l->program));
    }
    const uint64_t together = o->together < r->prompts ? o->together : r->prompts;
    if (__builtin_mul_overflow(r->memory, together, &r->memory))
        r->memory = UINT64_MAX;
    vd_items_drop(l);
    return status == VD_OK ? vd_load_prompt(l, r->largest, err) : status;
}

/* ---- time ---- */

/* Times a few steps. The first takes longer, so it counts only if it is the last one too. */
static vd_status time_steps(dry_run *r, const vd_exec *exec, vd_state *state, vd_err *err) {
    const double start = vd_seconds();
    double second = 0;
    vd_status status = VD_OK;
    for (; status == VD_OK && r->timed < TIMED_STEPS && r->timed < exec->program->steps;
         r->timed++) {
        if (r->timed && vd_seconds() - start > TIMED_S)
            break;
        if (r->timed == 1)
            second = vd_seconds();
        status = vd_exec_step(exec, NULL, state, NULL, err);
    }
    r->step_s = r->timed > 1 ? (vd_seconds() - second) / (r->timed - 1) : vd_seconds() - start;
    return status;
}

static vd_status time_run(dry_run *r, vd_loaded *l, vd_err *err) {
    vd_state state = {0};
    const double start = vd_seconds();
    vd_status status = r->prompts ? vd_exec_place(&l->exec, err) : VD_OK;
    if (status == VD_OK)
        status = vd_exec_init(&l->exec, NULL, &state, err);
    r->init_s = vd_seconds() - start;
    if (status == VD_OK)
        status = time_steps(r, &l->exec, &state, err);
    vd_state_free(&state);
    return status;
}

static double seconds_of(const dry_run *r) {
    return r->init_s * (r->prompts ? r->prompts : 1) + r->step_s * (double)r->steps;
}

/* ---- output ---- */

static void print_sizes(const dry_run *r, const vd_dry_run_options *o, const vd_loaded *l) {
    vd_buf told = {0}, *out = &told;
    char a[32], b[32], c[32];
    uint64_t all, left;
    if (r->prompts)
        vd_printf(out, "%-12s %u, with %lld steps at most\n", vd_prompt_word(l, 0), r->prompts,
                  (long long)r->steps);
    else
        vd_printf(out, "steps        %lld, a checkpoint after every %lld\n", (long long)r->steps,
                  (long long)l->program.checkpoint_interval);
    vd_print_size(r->memory, a);
    vd_print_size(r->state, b);
    vd_print_size(vd_machine_memory(), c);
    vd_printf(out, "memory       %s at most, of which %s are a state; this machine has %s\n", a, b,
              c);
    vd_print_size(r->data, a);
    vd_printf(out, "data         %s, read from files\n", a);
    vd_print_size(r->disk, a);
    vd_printf(out, "disk         %s", a);
    if (vd_disk_of(o->dir, &all, &left)) {
        vd_print_size(left, b);
        vd_printf(out, "; %s are free", b);
    }
    vd_printf(out, "\n");
    vd_print_size(o->upload, a);
    if (o->upload)
        vd_printf(out, "upload       %s to each provider\n", a);
    vd_result_text(out);
}

static void print_time(const dry_run *r, const vd_loaded *l) {
    vd_buf told = {0}, *out = &told;
    char whole[32];
    if (!r->timed) {
        vd_printf(out, "time         not known: it may take more memory than this machine has\n");
        vd_result_text(out);
        return;
    }
    if (seconds_of(r) < 1)
        snprintf(whole, sizeof whole, "a second");
    else
        vd_print_seconds(seconds_of(r), whole);
    vd_printf(out, "time         %s%s here: %.3g s a step, of %d that %s timed (%s, %d thread%s)\n",
              r->prompts || seconds_of(r) < 1 ? "at most " : "about ", whole, r->step_s, r->timed,
              r->timed == 1 ? "was" : "were", ro_ctx_backend(l->ro), ro_ctx_threads(l->ro),
              vd_plural((uint64_t)ro_ctx_threads(l->ro)));
    vd_result_text(out);
}

static json_t *bytes_json(uint64_t bytes) {
    return bytes > INT64_MAX ? json_null() : json_integer((json_int_t)bytes);
}

static void print_json(const dry_run *r, const vd_dry_run_options *o, const vd_loaded *l) {
    uint64_t all, left;
    const bool disk = vd_disk_of(o->dir, &all, &left);
    json_t *out = json_pack("{sI sI so so so so so so si so so ss si}", "steps",
                            (json_int_t)r->steps, vd_prompt_word(l, 0), (json_int_t)r->prompts,
                            "memory_bytes", bytes_json(r->memory), "machine_memory_bytes",
                            bytes_json(vd_machine_memory()), "state_bytes", bytes_json(r->state),
                            "data_bytes", bytes_json(r->data), "disk_bytes", bytes_json(r->disk),
                            "disk_free_bytes", disk ? bytes_json(left) : json_null(), "steps_timed",
                            r->timed, "step_seconds", r->timed ? json_real(r->step_s) : json_null(),
                            "seconds", r->timed ? json_real(seconds_of(r)) : json_null(), "backend",
                            ro_ctx_backend(l->ro), "threads", ro_ctx_threads(l->ro));
    if (o->upload)
        json_object_set_new(out, "upload_bytes", bytes_json(o->upload));
    vd_result_json(out);
}

vd_status vd_dry_run(const vd_dry_run_options *o, vd_loaded *l, vd_err *err) {
    dry_run r = {0};
    vd_status status = vd_job_has_prompts(&l->job) ? add_prompts(&r, o, l, err)
                                                   : add_program(&r, &l->program, 0, o->keep, err);
    if (status == VD_OK && !o->json)
        print_sizes(&r, o, l);
    if (status == VD_OK)
        status = vd_check_memory(o->job, l, err);
    if (status == VD_OK && o->dir && !r.prompts)
        status = vd_check_disk(o->job, o->dir, &l->program, o->keep, err);
    if (status == VD_OK && r.memory <= vd_machine_memory())
        status = time_run(&r, l, err);
    if (status == VD_OK && o->json)
        print_json(&r, o, l);
    else if (status == VD_OK)
        print_time(&r, l);
    return status;
}
