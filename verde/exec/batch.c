/* This file manages the programs of a batch, and chooses the rows of each pass. */
#include "verde/exec/batch.h"

#include <stdlib.h>
#include <string.h>

#include "repops/device.h"
#include "verde/exec/batch_internal.h"
#include "verde/exec/kept_weights.h"

/* ---- the batch ---- */

static vd_status open_shared(vd_batch *b, vd_err *err) {
    const vd_program *program = b->exec.program;
    vd_status status = VD_OK;
    b->shared = calloc(b->plan.count, sizeof *b->shared);
    if (!b->shared)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = b->plan.own_data; status == VD_OK && i < program->data_count; i++) {
        void **at = &b->shared[program->leaf_count + i];
        if (b->memory)
            status = vd_batch_copy(b, b->exec.data[i],
                                   vd_shape_bytes(&program->data[i].tensor.shape), at, err);
        else
            *at = (void *)(uintptr_t)b->exec.data[i];
    }
    if (status == VD_OK)
        b->exec.kept =
            vd_kept_weights_create(program, b->memory); /* of the memory that data leave */
    return status == VD_OK ? vd_batch_compute_once(b, NULL, err) : status;
}

vd_status vd_batch_create(const vd_exec *exec, const vd_batch_options *options, vd_batch **out,
                          vd_err *err) {
    *out = NULL;
    if (options->chunk < 1 || options->chunk > VD_BATCH_ROWS_MAX || options->own_data < 1 ||
        options->own_data > exec->program->data_count)
        return vd_fail(err, VD_ERR_LOCAL, "a batch needs a chunk of 1 to %d rows and a prompt",
                       VD_BATCH_ROWS_MAX);
    vd_batch *b = calloc(1, sizeof *b);
    if (!b)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    b->exec = *exec;
    b->exec.kept = NULL;
    b->memory = vd_exec_memory(exec);
    b->options = *options;
    vd_status status = vd_batch_plan_create(exec->program, options->own_data, &b->plan, err);
    if (status == VD_OK)
        status = open_shared(b, err);
    if (status == VD_OK)
        *out = b;
    else
        vd_batch_destroy(b);
    return status;
}

void vd_batch_destroy(vd_batch *b) {
    if (!b)
        return;
    for (uint32_t i = 0; i < b->count; i++)
        vd_batch_item_free(b, b->item[i]);
    for (uint32_t i = b->memory ? 0 : b->plan.sources; b->shared && i < b->plan.count; i++)
        vd_memory_free(b->memory, b->shared[i]);
    free(b->item);
    free(b->shared);
    vd_kept_weights_destroy(b->exec.kept);
    vd_batch_plan_free(&b->plan);
    free(b);
}

uint32_t vd_batch_count(const vd_batch *b) {
    return b->count;
}

/* ---- states ---- */

static vd_status tell(vd_batch *b, vd_batch_item *item, vd_err *err) {
    vd_hash commitment;
    vd_status status = vd_live_commit(&item->live, item->state.step, &commitment, err);
    if (status != VD_OK)
        return status;
    const vd_batch_state reached = {.item = item->id,
                                    .program = item->program,
                                    .state = &item->state,
                                    .commitment = &commitment,
                                    .live = &item->live,
                                    .written = item->written,
                                    .written_count = item->written_count,
                                    .last = item->state.step == item->program->steps,
                                    .void_choice = item->void_choice};
    status = b->options.reached ? b->options.reached(b->options.user, &reached, err) : VD_OK;
    item->written_count = 0;
    item->void_choice = false;
    return status;
}

/* Hashes a whole state: S_0, or the state that a program joins with. */
static vd_status commit_whole(vd_batch *b, vd_batch_item *item, vd_err *err) {
    vd_hash program;
    vd_status status = vd_program_hash(item->program, &program, err);
    return status == VD_OK ? vd_live_create(b->memory ? NULL : b->exec.ro, item->program, &program,
                                            &item->state, &item->live, err)
                           : status;
}

static bool is_stopped(const vd_batch *b, const vd_batch_item *item) {
    int32_t word = 0;
    if (b->plan.stopped != UINT32_MAX)
        memcpy(&word, item->state.tensor[b->plan.stopped], sizeof word);
    return word != 0;
}

/* Reports the states after a stop, which differ only in their step. */
static vd_status tell_stopped(vd_batch *b, vd_batch_item *item, vd_err *err) {
    vd_status status = VD_OK;
    while (status == VD_OK && item->state.step < item->program->steps && is_stopped(b, item)) {
        item->state.step++;
        status = tell(b, item, err);
    }
    return status;
}

static vd_status begin_steps(vd_batch *b, vd_batch_item *item, vd_err *err) {
    item->state.step = 0;
    vd_status status = commit_whole(b, item, err);
    if (status == VD_OK)
        status = tell(b, item, err);
    return status == VD_OK ? tell_stopped(b, item, err) : status;
}

static vd_status end_step(vd_batch *b, vd_batch_item *item, vd_err *err) {
    vd_status status =
        vd_live_update(&item->live, &item->state, item->written, item->written_count, err);
    if (status == VD_OK)
        status = tell(b, item, err);
    return status == VD_OK ? tell_stopped(b, item, err) : status;
}

/* ---- joining ---- */

static vd_status check_prompt(const vd_batch *b, const vd_batch_item *item, vd_err *err) {
    const ro_shape *shape = &item->program->data[0].tensor.shape;
    if (shape->dtype != RO_I32 || shape->ndim != 1 || shape->dim[0] < 1)
        return vd_fail(err, VD_ERR_USAGE,
                       "the first data tensor must be a prompt, i32 [P], P >= 1");
    for (uint32_t i = 0; i < b->plan.unit_count; i++) {
        const vd_unit *u = &b->plan.unit[i];
        if (u->kind == VD_UNIT_ATTENTION &&
            item->plan.group[u->index].first_key != shape->dim[0] - 1)
            return vd_fail(err, VD_ERR_USAGE,
                           "the first step's token must stand behind the %lld before it",
                           (long long)shape->dim[0] - 1);
    }
    return VD_OK;
}

static vd_status plan_item(const vd_batch *b, vd_batch_item *item, vd_err *err) {
    const vd_program *program = item->program;
    vd_status status = vd_plan_create(program, &program->step, VD_FUSE_LAYERS, &item->plan, err);
    if (status == VD_OK)
        status = vd_batch_plan_fits(&b->plan, b->exec.program, program, &item->plan, err);
    if (status == VD_OK)
        status = vd_batch_check_stop(program, b->plan.stopped, err);
    return status == VD_OK ? check_prompt(b, item, err) : status;
}

vd_status vd_batch_takes(const vd_batch *b, const vd_program *program, vd_err *err) {
    vd_batch_item item = {.program = program};
    const vd_status status = plan_item(b, &item, err);
    vd_plan_free(&item.plan);
    return status;
}

vd_status vd_batch_open_item(vd_batch *b, vd_batch_item *item, vd_err *err) {
    const vd_program *program = item->program;
    vd_status status = plan_item(b, item, err);
    if (status != VD_OK)
        return status;
    item->prompt = item->data[0];
    item->prompt_count = program->data[0].tensor.shape.dim[0];
    item->value = calloc(b->plan.count, sizeof *item->value);
    if (!item->value)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < b->plan.own_data; i++) {
        void **at = &item->value[program->leaf_count + i];
        if (b->memory)
            status = vd_batch_copy(b, item->data[i], vd_shape_bytes(&program->data[i].tensor.shape),
                                   at, err);
        else
            *at = (void *)(uintptr_t)item->data[i];
    }
    return status == VD_OK ? vd_batch_compute_once(b, item, err) : status;
}

static vd_status join(vd_batch *b, vd_batch_item *item, vd_state *from, vd_err *err) {
    vd_status status = vd_batch_open_item(b, item, err);
    if (status != VD_OK)
        return status;
    if (!from && b->options.strange) {
        item->filled = item->prompt_count - 1;
        status = vd_batch_begin_strange(b, item, err);
        if (status == VD_OK)
            status = vd_batch_mirror(b, item, err);
        return status == VD_OK ? begin_steps(b, item, err) : status;
    }
    if (!from) {
        status = vd_batch_begin(b, item, err);
        if (status == VD_OK)
            status = vd_batch_mirror(b, item, err);
        return status == VD_OK && item->prompt_count == 1 ? begin_steps(b, item, err) : status;
    }
    item->state = *from;
    item->filled = item->prompt_count - 1;
    status = vd_batch_mirror(b, item, err);
    if (status == VD_OK)
        status = commit_whole(b, item, err);
    if (status == VD_OK)
        status = tell_stopped(b, item, err);
    if (status == VD_OK)
        *from = (vd_state){0};
    else
        item->state = (vd_state){0};
    return status;
}

static bool has_room(vd_batch *b) {
    if (b->count < b->capacity)
        return true;
    const uint32_t capacity = b->capacity ? 2 * b->capacity : 8;
    vd_batch_item **grown = realloc(b->item, capacity * sizeof *grown);
    if (!grown)
        return false;
    b->item = grown;
    b->capacity = capacity;
    return true;
}

static bool is_done(const vd_batch_item *item) {
    return item->state.step == item->program->steps;
}

vd_status vd_batch_add(vd_batch *b, uint64_t id, const vd_program *program, const void *const *data,
                       vd_state *from, vd_err *err) {
    if (b->count == VD_BATCH_PROGRAMS_MAX)
        return vd_fail(err, VD_ERR_USAGE, "a batch has at most %d programs", VD_BATCH_PROGRAMS_MAX);
    vd_batch_item *item = has_room(b) ? calloc(1, sizeof *item) : NULL;
    if (!item)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    item->id = id, item->program = program, item->data = data;
    const vd_status status = join(b, item, from, err);
    if (status == VD_OK && !is_done(item))
        b->item[b->count++] = item;
    else
        vd_batch_item_free(b, item);
    return status;
}

/* ---- passes ---- */

static int32_t token_of(const vd_batch *b, const vd_batch_item *item) {
    int32_t token;
    memcpy(&token, item->state.tensor[b->plan.token], sizeof token);
    return token;
}

/* Takes one row for each program whose prompt is in its caches. */
static int64_t take_tokens(const vd_batch *b, vd_batch_row *row) {
    int64_t rows = 0;
    for (uint32_t i = 0; i < b->count; i++)
        if (b->item[i]->state.step >= 0)
            row[rows++] = (vd_batch_row){b->item[i], (int32_t)b->item[i]->state.step,
                                         token_of(b, b->item[i])};
    return rows;
}

/* Takes rows of prompts in the order of joining. A prompt's last token is left to step 0. */
static int64_t take_prompts(const vd_batch *b, vd_batch_row *row) {
    int64_t rows = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        vd_batch_item *item = b->item[i];
        const int64_t last = item->prompt_count - 1;
        for (; rows < b->options.chunk && item->filled < last; item->filled++)
            row[rows++] =
                (vd_batch_row){item, (int32_t)(item->filled - last), item->prompt[item->filled]};
    }
    return rows;
}

static vd_status end_pass(vd_batch *b, vd_err *err) {
    vd_status status = VD_OK;
    uint32_t left = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        vd_batch_item *item = b->item[i];
        if (status == VD_OK && item->state.step > 0)
            status = end_step(b, item, err);
        else if (status == VD_OK && item->filled == item->prompt_count - 1)
            status = begin_steps(b, item, err);
        if (status == VD_OK && is_done(item))
            vd_batch_item_free(b, item);
        else
            b->item[left++] = item;
    }
    b->count = left;
    return status;
}

vd_status vd_batch_pass(vd_batch *b, vd_err *err) {
    vd_batch_row *row = malloc((size_t)(b->count + b->options.chunk) * sizeof *row);
    if (!row)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    const double start = vd_seconds();
    const int64_t tokens = take_tokens(b, row), prompts = take_prompts(b, row + tokens);
    vd_status status = vd_batch_run(b, row, tokens + prompts, tokens, err);
    const double ran = vd_seconds();
    if (status == VD_OK)
        status = end_pass(b, err);
    b->commit_s += vd_seconds() - ran;
    b->pass_s += vd_seconds() - start;
    free(row);
    return status;
}

void vd_batch_seconds(const vd_batch *b, double *passes, double *commitments) {
    *passes = b->pass_s;
    *commitments = b->commit_s;
}
