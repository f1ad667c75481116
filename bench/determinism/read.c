/* result.json and steps.csv of a run that is over, for --render. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/determinism/determinism.h"

enum { PATH_MAX_SIZE = 1100, LINE_SIZE = 512, FIELDS = 9 };

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

/* json_unpack, or an end with what the file lacks. */
#define UNPACK(value, ...)                                                                         \
    do {                                                                                           \
        json_error_t lack;                                                                         \
        if (json_unpack_ex(value, &lack, 0, __VA_ARGS__) != 0)                                     \
            bad(json_path, 0, lack.text);                                                          \
    } while (0)

static void read_way(benchmark *b, int index, json_t *from) {
    variant *v = &b->variant[index];
    const char *name, *error = NULL, *state = NULL;
    const char *encoding;
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
    UNPACK(from, "{sF sF sF sI sF sF sF sF sF ss}", "seconds", &s->seconds, "ratio_to_f32",
           &s->ratio[0], "ratio_to_f64", &s->ratio[1], "peak_bytes", &peak, "log_bytes",
           &s->log_bytes, "elements", &s->elements, "decided", &s->decided, "escapes", &s->escapes,
           "corrected", &s->corrected, "state", &state);
    s->peak_bytes = (uint64_t)peak;
    if (!vd_unhex(state, v->result[b->steps].state.b, VD_HASH_SIZE))
        bad(json_path, 0, "`state` of a way must be 64 hexadecimal digits");
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

/* The strings stay the document's, which is never freed. */
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

/* ---- steps.csv ---- */

/* Splits what follows a way's name at its commas. */
static bool split(char *text, char *field[FIELDS]) {
    int count = 0;
    for (char *at; (at = strsep(&text, ",")); count++) {
        if (count == FIELDS)
            return false;
        field[count] = at;
    }
    return count == FIELDS;
}

/* The next way of this name: names of auditors come again for each trainer. */
static int way_after(const benchmark *b, int way, const char *name) {
    for (int i = way + 1; i < b->variants; i++)
        if (!b->variant[i].error && strcmp(b->variant[i].name, name) == 0)
            return i;
    return -1;
}

/* One step of one way, whose number is kept in *way. False: the line is not of this form. */
static bool read_line(benchmark *b, char *line, int *way) {
    char *field[FIELDS], *end = line[0] == '"' ? strchr(line + 1, '"') : NULL;
    line[strcspn(line, "\n")] = 0;
    if (!end || end[1] != ',')
        return false;
    *end = 0;
    if (!split(end + 2, field))
        return false;
    if (strcmp(field[0], "0") == 0)
        *way = way_after(b, *way, line + 1);
    if (*way < 0 || strcmp(b->variant[*way].name, line + 1) != 0)
        return false;
    variant *v = &b->variant[*way];
    const long step = strtol(field[0], NULL, 10);
    if (step < 0 || step > b->steps)
        return false;
    step_result *r = &v->result[step];
    vd_hash state = {{0}};
    r->step = step - 1;
    r->seconds = strtod(field[1], NULL);
    r->loss = strtof(field[2], NULL);
    r->log_bytes = strtoull(field[3], NULL, 10);
    r->count.decided = strtoull(field[4], NULL, 10);
    r->count.escapes = strtoull(field[5], NULL, 10);
    r->count.corrected = strtoull(field[6], NULL, 10);
    v->distance[step] = *field[7] ? strtod(field[7], NULL) : NAN;
    if (!vd_unhex(field[8], state.b, 8) ||
        (step == b->steps && memcmp(state.b, r->state.b, 8) != 0))
        return false;
    if (step < b->steps) /* the last one is known in full */
        r->state = state;
    return true;
}

static void read_csv(benchmark *b, const char *path) {
    FILE *from = fopen(path, "r");
    char line[LINE_SIZE];
    long number = 1;
    int way = -1;
    if (!from || !fgets(line, sizeof line, from))
        bad(path, 0, "cannot be read");
    while (fgets(line, sizeof line, from)) {
        number++;
        if (!read_line(b, line, &way))
            bad(path, number,
                "a line must be the next step of a way of result.json, with nine values");
    }
    fclose(from);
}

void read_results(benchmark *b, const char *dir) {
    char path[PATH_MAX_SIZE];
    snprintf(json_path, sizeof json_path, "%s/result.json", dir);
    snprintf(path, sizeof path, "%s/steps.csv", dir);
    read_json(b);
    read_csv(b, path);
}
