/* Writes every step, a page, and the results from which the page can be made again (read.c). */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "bench/determinism/determinism.h"

/* Writes every step of every way as CSV. Fields that were not measured are empty. */
static bool write_csv(const benchmark *b, const char *path) {
    FILE *to = fopen(path, "w");
    char hash[2 * VD_HASH_SIZE + 1], distance[32];
    if (!to)
        return false;
    fputs("way,step,seconds,loss,log_bytes,decided,escapes,corrected,distance,state\n", to);
    for (int i = 0; i < b->variants; i++)
        for (long s = 0; s <= b->steps && !b->variant[i].error; s++) {
            const step_result *r = &b->variant[i].result[s];
            const double d = b->variant[i].distance[s];
            vd_hex(r->state.b, 8, hash); /* 8 bytes are enough to compare */
            snprintf(distance, sizeof distance, isfinite(d) ? "%.9g" : "", d);
            fprintf(to, "\"%s\",%ld,%.6f,%.9g,%llu,%llu,%llu,%llu,%s,%s\n", b->variant[i].name, s,
                    r->seconds, (double)r->loss, (unsigned long long)r->log_bytes,
                    (unsigned long long)r->count.decided, (unsigned long long)r->count.escapes,
                    (unsigned long long)r->count.corrected, distance, hash);
        }
    return fclose(to) == 0;
}

/* ---- result.json ---- */

static json_t *real_or_null(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

/* Identifies a way by properties that the file's numbers do not show. */
static json_t *identity(const variant *v) {
    return json_pack("{ss si ss si ss* si}", "way", v->name, "kind", (int)v->kind + 1, "encoding",
                     v->encoding == VD_LOG_SYMBOLS ? "symbols" : "calls", "trainer", v->trainer,
                     "isa", v->isa, "threads", v->threads);
}

/* Adds losses and distances of the steps that plots show. */
static void add_lines(json_t *way, const benchmark *b, const variant *v) {
    json_t *losses = json_array(), *distances = json_array();
    bool measured = false;
    for (long s = 0; s <= b->steps; s = next_shown(b, s)) {
        json_array_append_new(losses, json_real((double)v->result[s].loss));
        json_array_append_new(distances, real_or_null(v->distance[s]));
        measured |= isfinite(v->distance[s]);
    }
    json_object_set_new(way, "losses", losses);
    if (measured)
        json_object_set(way, "distances", distances);
    json_decref(distances);
}

static json_t *way_json(const benchmark *b, const variant *v) {
    const summary *s = &v->sum;
    char hash[2 * VD_HASH_SIZE + 1];
    json_t *way = identity(v);
    if (v->error) {
        json_object_set_new(way, "error", json_string(v->error));
        return way;
    }
    vd_hex(v->result[b->steps].state.b, VD_HASH_SIZE, hash);
    json_t *results =
        json_pack("{sf sf sf sI sf sf sf sf sf ss si}", "seconds", s->seconds, "ratio_to_f32",
                  s->ratio[0], "ratio_to_f64", s->ratio[1], "peak_bytes", (json_int_t)s->peak_bytes,
                  "log_bytes", s->log_bytes, "elements", s->elements, "decided", s->decided,
                  "escapes", s->escapes, "corrected", s->corrected, "state", hash, "same", v->same);
    json_object_update(way, results);
    json_decref(results);
    add_lines(way, b, v);
    return way;
}

static json_t *operators_json(const operator_table *table) {
    json_t *rows = json_array();
    for (int op = 1; op < RO_OP_END; op++) {
        const operator_count *c = &table->of[op];
        if (c->elements > 0)
            json_array_append_new(rows, json_pack("{ss sf sf sf sf}", "operator",
                                                  ro_op_describe(op)->name, "elements", c->elements,
                                                  "decided", c->decided, "escapes", c->escapes,
                                                  "corrected", c->corrected));
    }
    return json_pack("{si so}", "trainer", table->trainer, "rows", rows);
}

/* 12 digits show every float, count and size exactly enough to read it back. */
static bool dump(const json_t *value, FILE *to) {
    return json_dumpf(value, to, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)) == 0;
}

/* Writes each member on a line of its own, and so each element of an array. */
static bool dump_lines(json_t *root, FILE *to) {
    const char *name, *comma = "{";
    json_t *value, *element;
    size_t i;
    bool written = true;
    json_object_foreach(root, name, value) {
        fprintf(to, "%s\n\"%s\": %s", comma, name, json_is_array(value) ? "[" : "");
        written &= json_is_array(value) || dump(value, to);
        json_array_foreach(value, i, element) {
            fputs(i ? ",\n" : "\n", to);
            written &= dump(element, to);
        }
        fputs(json_is_array(value) ? "]" : "", to);
        comma = ",";
    }
    fputs("\n}\n", to);
    return written;
}

static bool write_json(const benchmark *b, const char *path) {
    json_t *ways = json_array(), *operators = json_array();
    for (int i = 0; i < b->variants; i++)
        json_array_append_new(ways, way_json(b, &b->variant[i]));
    for (int k = 0; k < 2; k++)
        if (b->operators[k].trainer >= 0)
            json_array_append_new(operators, operators_json(&b->operators[k]));
    json_t *root = json_pack(
        "{ss ss ss sI sI sI sI si sI ss sI so so}", "model", b->model, "size", b->size, "machine",
        b->machine, "threads", (json_int_t)b->threads, "steps", (json_int_t)b->steps, "batch",
        (json_int_t)b->batch, "sequence", (json_int_t)b->sequence, "bits", (int)b->bits, "interval",
        (json_int_t)b->interval, "clock", b->cpu ? "processor" : "wall", "peak_bytes",
        (json_int_t)b->peak, "ways", ways, "operators", operators);
    FILE *to = root ? fopen(path, "w") : NULL;
    bool written = to && dump_lines(root, to);
    if (to)
        written &= fclose(to) == 0;
    json_decref(root);
    return written;
}

/* ---- all ---- */

typedef bool (*writer)(const benchmark *b, const char *path);

static void write_one(const benchmark *b, const char *dir, const char *name, writer write) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!write(b, path)) {
        perror(path);
        exit(1);
    }
}

void write_rendered(const benchmark *b, const char *dir) {
    write_one(b, dir, "page.html", write_page);
}

void write_files(const benchmark *b) {
    write_one(b, b->out, "steps.csv", write_csv);
    write_one(b, b->out, "result.json", write_json);
    write_rendered(b, b->out);
}
