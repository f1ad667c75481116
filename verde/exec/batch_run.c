/* This file runs a pass: every unit of the plan over its rows. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/batch_internal.h"
#include "verde/exec/choice.h"

static vd_status failed(const vd_batch_rows *p, const char *name) {
    return vd_fail(p->err, VD_ERR_LOCAL, "%s: %s", name, ro_ctx_error(p->b->exec.ro));
}

int64_t vd_batch_rows_count(const vd_batch_rows *p, bool every) {
    return every ? p->rows : p->tokens;
}

const void *vd_batch_of_row(const vd_batch_rows *p, uint32_t value, int64_t r) {
    const vd_batch_value *v = &p->b->plan.value[value];
    return v->held == VD_HELD_ROWS ? p->at[value] + (size_t)r * v->size
                                   : vd_batch_held(p->b, p->row[r].item, value);
}

static vd_status make_rows(vd_batch_rows *p, uint32_t value, bool every) {
    const size_t size = p->b->plan.value[value].size * (size_t)vd_batch_rows_count(p, every);
    p->at[value] = vd_memory_alloc(p->b->memory, size ? size : 1);
    return p->at[value] ? VD_OK
                        : vd_fail(p->err, VD_ERR_LOCAL, "out of memory for %lld rows",
                                  (long long)vd_batch_rows_count(p, every));
}

const void *vd_batch_row_in_host(vd_batch_rows *p, uint32_t value, int64_t r) {
    const vd_batch_value *v = &p->b->plan.value[value];
    const bool rows = v->held == VD_HELD_ROWS;
    if (!p->b->memory)
        return vd_batch_of_row(p, value, r);
    if (p->host[value])
        return p->host[value] + (size_t)r * v->size;
    const int64_t count = vd_batch_rows_count(p, v->every || !rows), apart = rows ? count : 1;
    uint8_t *to = p->host[value] = malloc((size_t)count * v->size + 1);
    vd_status status = to ? VD_OK : vd_fail(p->err, VD_ERR_LOCAL, "out of memory");
    for (int64_t i = 0; status == VD_OK && i < count; i += apart)
        status = vd_memory_read(p->b->memory, to + (size_t)i * v->size,
                                vd_batch_of_row(p, value, i), (size_t)apart * v->size, p->err);
    return status == VD_OK ? to + (size_t)r * v->size : NULL;
}

/* ---- one call for all rows ---- */

/* Returns the rows of a value contiguously, perhaps in *copy, which the caller frees. NULL:
 * p->err. */
static const void *gathered(const vd_batch_rows *p, uint32_t value, int64_t rows, void **copy) {
    const vd_batch_value *v = &p->b->plan.value[value];
    if (v->held == VD_HELD_ROWS)
        return p->at[value];
    *copy = vd_memory_alloc(p->b->memory, v->size * (size_t)rows + 1);
    vd_status status =
        *copy ? VD_OK
              : vd_fail(p->err, VD_ERR_LOCAL, "out of memory for %lld rows", (long long)rows);
    for (int64_t r = 0; status == VD_OK && r < rows; r++)
        status = vd_memory_copy(p->b->memory, (uint8_t *)*copy + (size_t)r * v->size,
                                vd_batch_of_row(p, value, r), v->size, p->err);
    return status == VD_OK ? *copy : NULL;
}

static void scale_shape(ro_shape *shape, vd_batch_input input, int64_t rows) {
    if (input == VD_INPUT_POSITION && rows > 1) /* a single row's position is a vector */
        *shape = (ro_shape){RO_I32, 2, {rows, 1}};
    else
        shape->dim[0] *= rows;
}

/* Returns the dimensions of `dims` with the element type of `shape`. */
static ro_shape with_dims(const ro_shape *shape, const ro_shape *dims) {
    ro_shape out = *dims;
    out.dtype = shape->dtype;
    return out;
}

static vd_status run_together(vd_batch_rows *p, const vd_unit *u) {
    const vd_node *n = vd_node_stored(p->graph, u->index);
    const int64_t rows = vd_batch_rows_count(p, u->every);
    const void *input[RO_MAX_INPUTS];
    void *copy[RO_MAX_INPUTS] = {0};
    ro_shape shapes[RO_MAX_INPUTS];
    ro_call call;
    vd_node_call(p->b->exec.program, p->graph, u->index, &call, shapes);
    call.output.dim[0] *= rows;
    vd_status status = make_rows(p, p->b->plan.sources + u->index, u->every);
    for (int32_t i = 0; status == VD_OK && i < n->input_count; i++) {
        const uint32_t value = vd_node_input(p->graph, u->index, i);
        const vd_batch_input kind = vd_batch_input_of(n->op, i);
        const bool shared = p->b->plan.value[value].held == VD_HELD_SHARED;
        if (kind == VD_INPUT_SHARED || (kind == VD_INPUT_REPEATED && shared)) {
            input[i] = p->b->shared[value];
            continue;
        }
        input[i] = gathered(p, value, rows, &copy[i]);
        if (kind == VD_INPUT_REPEATED)
            shapes[i] = with_dims(&shapes[i], &shapes[0]);
        else
            scale_shape(&shapes[i], kind, rows);
        status = input[i] ? status : VD_ERR_LOCAL;
    }
    if (status == VD_OK &&
        ro_run(p->b->exec.ro, &call, input, p->at[p->b->plan.sources + u->index]) != RO_OK)
        status = failed(p, vd_node_name(p->graph, u->index).text);
    for (int32_t i = 0; i < n->input_count; i++)
        vd_memory_free(p->b->memory, copy[i]);
    return status;
}

/* ---- row by row ---- */

static vd_status run_each(vd_batch_rows *p, const vd_unit *u) {
    const uint32_t to = p->b->plan.sources + u->index;
    const void *input[RO_MAX_INPUTS];
    ro_shape shapes[RO_MAX_INPUTS];
    ro_call call;
    vd_status status = make_rows(p, to, u->every);
    for (int64_t r = 0; status == VD_OK && r < vd_batch_rows_count(p, u->every); r++) {
        const vd_program *program = p->row[r].item->program;
        const vd_node *n = vd_node_stored(&program->step, u->index);
        vd_node_call(program, &program->step, u->index, &call, shapes);
        for (int32_t i = 0; i < n->input_count; i++)
            input[i] = vd_batch_of_row(p, vd_node_input(&program->step, u->index, i), r);
        if (ro_run(p->b->exec.ro, &call, input,
                   p->at[to] + (size_t)r * p->b->plan.value[to].size) != RO_OK)
            status = failed(p, vd_node_name(&program->step, u->index).text);
    }
    return status;
}

/* ---- groups ---- */

/* Scales a group to `rows` rows. Each row has its own position unless positions are shared. */
static void scale_group(const vd_batch_rows *p, vd_fused *g, int64_t rows) {
    g->linear.rows *= rows;
    g->rows *= rows;
    g->rotary.batch *= rows;
    g->rotary.each |= p->b->plan.value[g->input[1]].held != VD_HELD_SHARED;
}

static vd_status run_group(vd_batch_rows *p, const vd_unit *u) {
    vd_fused g = p->b->plan.plan.group[u->index];
    const int64_t rows = vd_batch_rows_count(p, u->every);
    vd_fused_memory at = {.operand = {NULL, NULL}};
    void *copy[VD_FUSED_INPUTS] = {NULL};
    vd_status status = VD_OK;
    scale_group(p, &g, rows);
    for (uint32_t i = 0; i < g.input_count; i++) {
        at.in[i] = p->b->plan.value[g.input[i]].held == VD_HELD_SHARED
                       ? p->b->shared[g.input[i]]
                       : gathered(p, g.input[i], rows, &copy[i]);
        status = at.in[i] ? status : VD_ERR_LOCAL;
    }
    for (uint32_t i = 0; status == VD_OK && i < g.output_count; i++) {
        status = make_rows(p, g.output[i], u->every);
        at.out[i] = p->at[g.output[i]];
    }
    if (status == VD_OK)
        status = vd_fused_run(&g, &at, 1, p->b->exec.ro, p->b->exec.kept, 0, p->err);
    for (uint32_t i = 0; i < g.input_count; i++)
        vd_memory_free(p->b->memory, copy[i]);
    return status;
}

/* Runs attention for rows r to r + count - 1: consecutive tokens of one program. */
static vd_status attend(const vd_batch_rows *p, const vd_unit *u, int64_t r, int64_t count) {
    const vd_batch_item *item = p->row[r].item;
    const vd_fused *g = &item->plan.group[u->index];
    const vd_batch_value *q = &p->b->plan.value[g->input[0]];
    const vd_batch_value *out = &p->b->plan.value[g->output[0]];
    ro_attention a = g->attention;
    a.queries = count;
    a.keys = (int64_t)p->row[r].step + g->first_key + count;
    a.q_row = (int64_t)(q->size / sizeof(float));
    a.out_row = (int64_t)(out->size / sizeof(float));
    const float *k = vd_batch_held(p->b, item, g->input[1]);
    const float *v = vd_batch_held(p->b, item, g->input[2]);
    const float *query = (const float *)vd_batch_of_row(p, g->input[0], r);
    float *to = (float *)(void *)(p->at[g->output[0]] + (size_t)r * out->size);
    if (a.keys < count || a.keys > a.kv_rows ||
        ro_attention_forward(p->b->exec.ro, &a, query + g->first[0], k + g->first[1],
                             v + g->first[2], to, NULL, NULL) != RO_OK)
        return failed(p, "attention");
    return VD_OK;
}

/* Returns whether a row is the next token after `count` rows. Rows that make tokens stand before
 * all rows of prompts, so that a program's rows may be in two places. */
static bool goes_on(const vd_batch_row *first, const vd_batch_row *row, int64_t count) {
    return row->item == first->item && row->step == first->step + count;
}

static vd_status run_attention(vd_batch_rows *p, const vd_unit *u) {
    const int64_t rows = vd_batch_rows_count(p, u->every);
    vd_status status = make_rows(p, p->b->plan.plan.group[u->index].output[0], u->every);
    int64_t count;
    for (int64_t r = 0; status == VD_OK && r < rows; r += count) {
        for (count = 1; r + count < rows && goes_on(&p->row[r], &p->row[r + count], count);)
            count++;
        status = attend(p, u, r, count);
    }
    return status;
}

/* ---- all units ---- */

vd_status vd_batch_rows_unit(vd_batch_rows *p, const vd_unit *u) {
    if (vd_batch_rows_count(p, u->every) == 0)
        return VD_OK;
    switch (u->kind) {
    case VD_UNIT_TOGETHER: return run_together(p, u);
    case VD_UNIT_EACH: return run_each(p, u);
    case VD_UNIT_PUT: return vd_batch_put(p, u);
    case VD_UNIT_GROUP: return run_group(p, u);
    case VD_UNIT_ATTENTION: return run_attention(p, u);
    }
    return VD_OK;
}

static vd_status put_sources(vd_batch_rows *p) {
    const uint32_t token = p->b->plan.token, step = p->b->plan.sources - 1;
    const size_t size = (size_t)p->rows * sizeof(int32_t);
    int32_t *word = malloc(2 * size + 1);
    vd_status status = word ? VD_OK : vd_fail(p->err, VD_ERR_LOCAL, "out of memory");
    for (int64_t r = 0; word && r < p->rows; r++)
        word[r] = p->row[r].token, word[p->rows + r] = p->row[r].step;
    if (status == VD_OK)
        status = make_rows(p, token, true);
    if (status == VD_OK)
        status = make_rows(p, step, true);
    if (status == VD_OK)
        status = vd_memory_write(p->b->memory, p->at[token], word, size, p->err);
    if (status == VD_OK)
        status = vd_memory_write(p->b->memory, p->at[step], word + p->rows, size, p->err);
    free(word);
    return status;
}

static void free_rows(vd_batch_rows *p, uint32_t value) {
    if (!p->from || !p->from->at[value])
        vd_memory_free(p->b->memory, p->at[value]);
    p->at[value] = NULL;
}

void vd_batch_rows_free_after(vd_batch_rows *p, uint32_t i, const bool *kept) {
    const vd_value_list in = vd_batch_inputs(&p->b->plan, p->graph, &p->b->plan.unit[i]);
    for (uint32_t k = 0; k < in.count; k++)
        if (p->at[in.value[k]] && p->b->plan.value[in.value[k]].last == i &&
            !(kept && kept[in.value[k]]))
            free_rows(p, in.value[k]);
}

/* Checks whether chosen tokens follow from their logits, after the unit that chooses. */
static vd_status note_choices(vd_batch_rows *p, const vd_unit *u) {
    const uint32_t to = p->b->plan.sources + u->index;
    for (int64_t r = 0; r < p->tokens; r++) {
        const void *from = vd_batch_row_in_host(p, vd_node_input(p->graph, u->index, 0), r);
        const void *chosen = from ? vd_batch_row_in_host(p, to, r) : NULL;
        if (!chosen)
            return VD_ERR_LOCAL;
        p->row[r].item->void_choice =
            !vd_choice_follows(p->b->exec.program, u->index, from, chosen);
    }
    return VD_OK;
}

static vd_status run_units(vd_batch_rows *p) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < p->b->plan.unit_count; i++) {
        const vd_unit *u = &p->b->plan.unit[i];
        status = vd_batch_rows_unit(p, u);
        if (status == VD_OK && u->index == p->b->plan.choice &&
            (u->kind == VD_UNIT_TOGETHER || u->kind == VD_UNIT_EACH))
            status = note_choices(p, u);
        if (status == VD_OK)
            vd_batch_rows_free_after(p, i, p->stays);
    }
    return status;
}

/* Copies the new values of leaves that are not changed in place, for the program of row r. */
static vd_status take_leaves(vd_batch_rows *p, int64_t r) {
    vd_batch_item *item = p->row[r].item;
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < item->program->leaf_count; i++) {
        const uint32_t value = p->graph->output[i];
        const size_t size = vd_shape_bytes(&item->program->leaf[i].shape);
        if (p->b->plan.value[value].held == VD_HELD_STATE)
            continue;
        const void *bytes = vd_batch_row_in_host(p, value, r);
        if (!bytes)
            return VD_ERR_LOCAL;
        if (memcmp(item->state.tensor[i], bytes, size) == 0)
            continue;
        memcpy(item->state.tensor[i], bytes, size);
        status = vd_batch_wrote(item, i, 0, size, p->err);
        if (status == VD_OK && item->mirror)
            status = vd_memory_copy(p->b->memory, item->mirror[i], vd_batch_of_row(p, value, r),
                                    size, p->err);
    }
    if (status == VD_OK)
        item->state.step++;
    return status;
}

vd_status vd_batch_rows_open(vd_batch_rows *p) {
    p->at = calloc(p->b->plan.count, sizeof *p->at);
    if (p->b->memory) {
        p->host = calloc(p->b->plan.count, sizeof *p->host);
        p->stays = calloc(p->b->plan.count, sizeof *p->stays);
    }
    if (!p->at || (p->b->memory && (!p->host || !p->stays)))
        return vd_fail(p->err, VD_ERR_LOCAL, "out of memory");
    return p->from ? VD_OK : put_sources(p);
}

void vd_batch_rows_free(vd_batch_rows *p) {
    for (uint32_t v = 0; p->at && v < p->b->plan.count; v++)
        if (p->at[v])
            free_rows(p, v);
    for (uint32_t v = 0; p->host && v < p->b->plan.count; v++)
        free(p->host[v]);
    free(p->at);
    free(p->host);
    free(p->stays);
    p->at = p->host = NULL;
    p->stays = NULL;
}

vd_status vd_batch_run(vd_batch *b, const vd_batch_row *row, int64_t rows, int64_t tokens,
                       vd_err *err) {
    vd_batch_rows p = {.b = b,
                       .graph = &b->exec.program->step,
                       .row = row,
                       .rows = rows,
                       .tokens = tokens,
                       .err = err};
    vd_status status = vd_batch_rows_open(&p);
    if (status == VD_OK)
        status = run_units(&p);
    if (status == VD_OK)
        status = vd_batch_put_in_host(&p);
    for (int64_t r = 0; status == VD_OK && r < tokens; r++)
        status = take_leaves(&p, r);
    vd_batch_rows_free(&p);
    return status;
}
