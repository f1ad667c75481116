/* Reads result.json of an earlier run, for --render. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/determinism/determinism.h"

enum { PATH_MAX_SIZE = 1100 };

_Noreturn static void bad(const char *path, long line, const char *expected) {
    char why[PATH_MAX_SIZE + 256];
    if (line > 0)
        snprintf(why, sizeof why, "%s:%ld: %s", path, line, expected);
    else
        snprintf(why, sizeof why, "%s: %s", path, expected);
    die(why);
}

/* ---- result.json ---- */

static char json_path[PATH_MAX_SIZE];

/* Unpacks an object, or ends the program with a line that names what the file lacks. */
#define UNPACK(value, ...)                                                                         \
    do {                                                                                           \
        json_error_t lack;                                                                         \
        if (json_unpack_ex(value, &lack, 0, __VA_ARGS__) != 0)                                     \
            bad(json_path, 0, lack.text);                                                          \
    } while (0)

/* Reads losses and distances: lists with a number for each step that plots show, or null. */
static void read_lines(const benchmark *b, variant *v, const json_t *losses,
                       const json_t *distances) {
    size_t i = 0;
    for (long s = 0; s <= b->steps; s = next_shown(b, s), i++) {
        const json_t *loss = json_array_get(losses, i), *distance = json_array_get(distances, i);
        if (!json_is_number(loss))
            bad(json_path, 0, "`losses` of a way must be a number for each step that plots show");
        v->result[s].loss = (float)json_number_value(loss);
        v->distance[s] =
            json_is_number(distance) ? (double)(float)json_number_value(distance) : NAN;
    }
    if (json_array_size(losses) != i || (distances && json_array_size(distances) != i))
        bad(json_path, 0,
            "`losses` and `distances` of a way must have one value for each step "
            "that plots show");
}

static void read_way(benchmark *b, int index, json_t *from) {
    variant *v = &b->variant[index];
    const char *name, *error = NULL, *state = NULL;
    const char *encoding;
    json_t *losses, *distances = NULL;
    int kind;
    json_int_t peak = 0;
    summary *s = &v->sum;
    UNPACK(from, "{ss si ss si s?s si s?s}", "way", &name, "kind", &kind, "encoding", &encoding,
           "trainer", &v->trainer, "isa", &v->isa, "threads", &v->threads, "error", &error);
    if (kind < 1 || kind > WAY_KINDS)
        bad(json_path, 0, "`kind` of a way must be 1..5");
    if (strcmp(encoding, "calls") != 0 && strcmp(encoding, "symbols") != 0)
        bad(json_path, 0, "`encoding` of a way must be calls or symbols");
    if (v->trainer < 0 || v->trainer > index)
        bad(json_path, 0, "`trainer` of a way must be the number of an earlier way");
    if (strlen(name) >= sizeof v->name)
        bad(json_path, 0, "the name of a way must be below 80 bytes");
    strcpy(v->name, name);
    v->kind = (variant_kind)(kind - 1);
    v->encoding = *encoding == 's' ? VD_LOG_SYMBOLS : VD_LOG_CALLS;
    v->error = error && strcmp(error, not_run) == 0 ? not_run : error;
    v->result = calloc((size_t)b->steps + 1, sizeof *v->result);
    v->distance = calloc((size_t)b->steps + 1, sizeof *v->distance);
    if (!v->result || !v->distance)
        die("out of memory");
    if (v->error)
        return;
    UNPACK(from, "{sF sF sF sI sF sF sF sF sF ss si so s?o}", "seconds", &s->seconds,
           "ratio_to_f32", &s->ratio[0], "ratio_to_f64", &s->ratio[1], "peak_bytes", &peak,
           "log_bytes", &s->log_bytes, "elements", &s->elements, "decided", &s->decided, "escapes",
           &s->escapes, "corrected", &s->corrected, "state", &state, "same", &v->same, "losses",
           &losses, "distances", &distances);
    s->peak_bytes = (uint64_t)peak;
    if (!vd_unhex(state, v->result[b->steps].state.b, VD_HASH_SIZE))
        bad(json_path, 0, "`state` of a way must be 64 hexadecimal digits");
    if (v->same < 0 || v->same > index)
        bad(json_path, 0, "`same` of a way must be its own number or an earlier one");
    read_lines(b, v, losses, distances);
}

static int operator_of(const char *name) {
    for (int op = 1; op < RO_OP_END; op++)
        if (ro_op_describe(op) && strcmp(ro_op_describe(op)->name, name) == 0)
            return op;
    bad(json_path, 0, "`operator` must be the name of one");
}

static void read_operators(benchmark *b, json_t *from) {
    json_t *rows, *row;
    size_t i;
    int trainer;
    UNPACK(from, "{si so}", "trainer", &trainer, "rows", &rows);
    if (trainer < 0 || trainer >= b->variants || b->variant[trainer].kind != LOG_TRAINER)
        bad(json_path, 0, "`trainer` of operators must be the number of a trainer's way");
    operator_table *table = &b->operators[b->variant[trainer].encoding == VD_LOG_SYMBOLS];
    table->trainer = trainer;
    json_array_foreach(rows, i, row) {
        const char *name;
        operator_count c;
        UNPACK(row, "{ss sF sF sF sF}", "operator", &name, "elements", &c.elements, "decided",
               &c.decided, "escapes", &c.escapes, "corrected", &c.corrected);
        table->of[operator_of(name)] = c;
    }
}

static void set_base(benchmark *b, int base, variant_kind kind) {
    b->base[base] = first_of(b, kind, 0);
    if (b->base[base] < 0)
        bad(json_path, 0, "one way must be free binary32 and one free binary64");
}

/* Reads the file. Strings point into the document, which is never freed. */
static void read_json(benchmark *b) {
    json_error_t error;
    json_t *ways, *operators, *item;
    json_int_t steps, threads, batch, sequence, interval, peak;
    const char *clock;
    size_t i;
    json_t *root = json_load_file(json_path, 0, &error);
    if (!root)
        bad(json_path, error.line, error.text);
    UNPACK(root, "{ss ss ss sI sI sI sI si sI ss sI so so}", "model", &b->model, "size", &b->size,
           "machine", &b->machine, "threads", &threads, "steps", &steps, "batch", &batch,
           "sequence", &sequence, "bits", &b->bits, "interval", &interval, "clock", &clock,
           "peak_bytes", &peak, "ways", &ways, "operators", &operators);
    if (steps < 1 || steps >= STEPS_MAX || interval < 1 || interval >= STEPS_MAX)
        bad(json_path, 0, "`steps` and `interval` must be 1..999");
    if (json_array_size(ways) > VARIANTS_MAX)
        bad(json_path, 0, "`ways` must be at most 64");
    b->steps = (long)steps;
    b->threads = (long)threads;
    b->batch = (long)batch;
    b->sequence = (long)sequence;
    b->interval = (long)interval;
    b->cpu = strcmp(clock, "processor") == 0;
    b->peak = (uint64_t)peak;
    b->variants = (int)json_array_size(ways);
    json_array_foreach(ways, i, item) read_way(b, (int)i, item);
    b->operators[0].trainer = b->operators[1].trainer = -1;
    json_array_foreach(operators, i, item) read_operators(b, item);
    set_base(b, 0, FREE_F32);
    set_base(b, 1, FREE_F64);
}

void read_results(benchmark *b, const char *dir) {
    snprintf(json_path, sizeof json_path, "%s/result.json", dir);
    read_json(b);
}
