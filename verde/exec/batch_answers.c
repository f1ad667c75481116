/* This file checks existing answers in few passes. As their tokens are known, steps need not wait
 * for each other: rows of all steps go through the layers together, and each step chooses from its
 * own row of logits. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/batch_answers.h"

typedef struct {
    vd_batch *b;
    const vd_batch_answer *answer;
    vd_batch_item **item; /* one per answer; owned */
    uint32_t count;
    vd_answer_plan plan;
    vd_err *err;
} checking;

/* ---- rows that choose tokens ---- */

static vd_status borrow(const vd_batch_rows *from, int64_t first, int64_t count,
                        vd_batch_rows *out) {
    *out = *from;
    out->row += first;
    out->rows = out->tokens = count;
    out->from = from;
    const vd_status status = vd_batch_rows_open(out);
    for (uint32_t v = 0; status == VD_OK && v < from->b->plan.count; v++)
        if (from->at[v])
            out->at[v] = from->at[v] + (size_t)first * from->b->plan.value[v].size;
    return status;
}

static void note_stops(const vd_batch_rows *p) {
    const vd_batch_plan *plan = &p->b->plan;
    const uint32_t value =
        plan->stopped == UINT32_MAX ? plan->token : p->graph->output[plan->stopped];
    if (plan->stopped == UINT32_MAX || !p->at[value] || p->from->at[value])
        return;
    for (int64_t r = 0; r < p->rows; r++) {
        const vd_batch_row *row = &p->row[r];
        int32_t stopped;
        memcpy(&stopped, p->at[value] + (size_t)r * sizeof stopped, sizeof stopped);
        if (stopped && row->step < row->item->first_stop)
            row->item->first_stop = row->step;
    }
}

static vd_status run_serial(const checking *c, const vd_batch_rows *from, int64_t r) {
    vd_batch_rows p = {0};
    vd_status status = borrow(from, r, 1, &p);
    for (uint32_t i = 0; status == VD_OK && i < c->b->plan.unit_count; i++) {
        if (!c->plan.serial[i])
            continue;
        status = vd_batch_rows_unit(&p, &c->b->plan.unit[i]);
        if (status == VD_OK)
            vd_batch_rows_free_after(&p, i, NULL);
    }
    if (status == VD_OK)
        note_stops(&p);
    vd_batch_rows_free(&p);
    return status;
}

static vd_status run_slice(const checking *c, const vd_batch_rows *from, int64_t first,
                           int64_t count) {
    vd_batch_rows p = {0};
    vd_status status = borrow(from, first, count, &p);
    for (uint32_t i = 0; status == VD_OK && i < c->b->plan.unit_count; i++) {
        if (c->b->plan.unit[i].every || c->plan.serial[i])
            continue;
        status = vd_batch_rows_unit(&p, &c->b->plan.unit[i]);
        if (status == VD_OK)
            vd_batch_rows_free_after(&p, i, c->plan.waited);
    }
    if (status == VD_OK)
        note_stops(&p);
    for (int64_t r = 0; status == VD_OK && r < count; r++)
        status = run_serial(c, &p, r);
    vd_batch_rows_free(&p);
    return status;
}

/* ---- a pass ---- */

static vd_status run_pass(const checking *c, const vd_batch_row *row, int64_t rows,
                          int64_t tokens) {
    vd_batch_rows p = {.b = c->b,
                       .graph = &c->b->exec.program->step,
                       .row = row,
                       .rows = rows,
                       .tokens = tokens,
                       .err = c->err};
    vd_status status = vd_batch_rows_open(&p);
    for (uint32_t i = 0; status == VD_OK && i < c->b->plan.unit_count; i++) {
        if (!c->b->plan.unit[i].every)
            continue;
        status = vd_batch_rows_unit(&p, &c->b->plan.unit[i]);
        if (status == VD_OK)
            vd_batch_rows_free_after(&p, i, c->plan.chosen);
    }
    for (int64_t r = 0; status == VD_OK && r < tokens; r += c->plan.slice)
        status = run_slice(c, &p, r, tokens - r < c->plan.slice ? tokens - r : c->plan.slice);
    vd_batch_rows_free(&p);
    for (uint32_t i = 0; i < c->count; i++)
        c->item[i]->written_count = 0; /* nothing is committed to */
    return status;
}

/* The row of a step, with the token that it reads: the prompt's last one, or one of the answer. */
static vd_batch_row step_row(const checking *c, uint32_t i, int64_t step) {
    vd_batch_item *item = c->item[i];
    return (vd_batch_row){item, (int32_t)step,
                          step ? c->answer[i].token[step - 1]
                               : item->prompt[item->prompt_count - 1]};
}

/* Takes the next `count` rows of an answer, from row `at` on; its prompt's rows come first. */
static void take_rows(const checking *c, uint32_t i, int64_t at, int64_t count,
                      vd_batch_row *prompts, int64_t *prompt_rows, vd_batch_row *steps,
                      int64_t *step_rows) {
    vd_batch_item *item = c->item[i];
    const int64_t last = item->prompt_count - 1;
    for (; count > 0; count--, at++) {
        if (at < last)
            prompts[(*prompt_rows)++] =
                (vd_batch_row){item, (int32_t)(at - last), item->prompt[at]};
        else
            steps[(*step_rows)++] = step_row(c, i, at - last);
    }
}

static int64_t rows_of(const checking *c, uint32_t i) {
    return c->item[i]->prompt_count - 1 + c->answer[i].rows;
}

/* Runs passes over all answers. A long answer continues in the next pass, by means of the
 * caches. */
static vd_status run_all(const checking *c, vd_batch_row *row) {
    vd_batch_row *const prompts = row + c->b->options.chunk;
    vd_status status = VD_OK;
    int64_t at = 0;
    for (uint32_t i = 0; status == VD_OK && i < c->count;) {
        int64_t room = c->b->options.chunk, prompt_rows = 0, tokens = 0;
        while (i < c->count && room > 0) {
            const int64_t left = rows_of(c, i) - at, count = left < room ? left : room;
            take_rows(c, i, at, count, prompts, &prompt_rows, row, &tokens);
            room -= count;
            at = count < left ? at + count : 0;
            i += count == left;
        }
        memmove(row + tokens, prompts, (size_t)prompt_rows * sizeof *row);
        status = run_pass(c, row, tokens + prompt_rows, tokens);
    }
    return status;
}

/* ---- all answers ---- */

static vd_status open_item(checking *c, uint32_t i) {
    const vd_batch_answer *a = &c->answer[i];
    vd_batch_item *item = c->item[i] = calloc(1, sizeof *item);
    if (!item)
        return vd_fail(c->err, VD_ERR_LOCAL, "out of memory");
    item->id = i, item->program = a->program, item->data = a->data;
    item->first_stop = INT64_MAX;
    if (a->rows < 1 || a->rows > a->program->steps)
        return vd_fail(c->err, VD_ERR_USAGE, "an answer of %lld steps must have 1 to %lld",
                       (long long)a->rows, (long long)a->program->steps);
    vd_status status = vd_batch_open_item(c->b, item, c->err);
    return status == VD_OK ? vd_batch_begin(c->b, item, c->err) : status;
}

static vd_status tell_all(const checking *c, vd_batch_answered answered, void *user) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < c->count; i++) {
        const vd_batch_item *item = c->item[i];
        const int64_t stop = item->first_stop == INT64_MAX ? -1 : item->first_stop;
        status = answered(user, i, &item->state, stop, c->err);
    }
    return status;
}

vd_status vd_batch_answers(vd_batch *b, const vd_batch_answer *answer, uint32_t count,
                           vd_batch_answered answered, void *user, vd_err *err) {
    checking c = {.b = b, .answer = answer, .count = count, .err = err};
    if (b->memory)
        return vd_fail(err, VD_ERR_LOCAL, "answers are checked in host memory");
    vd_batch_row *row = malloc(2 * (size_t)b->options.chunk * sizeof *row);
    vd_status status =
        row && b->count == 0
            ? vd_answer_plan_create(b, &c.plan, err)
            : vd_fail(err, VD_ERR_LOCAL, row ? "the batch is not empty" : "out of memory");
    c.item = calloc((size_t)count + 1, sizeof *c.item);
    if (status == VD_OK && !c.item)
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < count; i++)
        status = open_item(&c, i);
    if (status == VD_OK)
        status = run_all(&c, row);
    if (status == VD_OK)
        status = tell_all(&c, answered, user);
    for (uint32_t i = 0; c.item && i < count; i++)
        vd_batch_item_free(b, c.item[i]);
    free(c.item);
    vd_answer_plan_free(&c.plan);
    free(row);
    return status;
}
