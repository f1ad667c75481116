/* Table, sentences, CSV and JSON. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/determinism/determinism.h"

bool same_state(const variant *a, const variant *b, long step) {
    return !a->error && !b->error && vd_hash_equal(&a->result[step].state, &b->result[step].state);
}

/* Initialisation is not a step. */
summary summary_of(const benchmark *b, int index) {
    const variant *v = &b->variant[index];
    static double seconds[STEPS_MAX];
    summary s = {0};
    if (v->error)
        return s;
    for (long i = 1; i <= b->steps; i++) {
        const step_result *r = &v->result[i];
        seconds[i - 1] = r->seconds;
        s.log_bytes += (double)r->log_bytes / (double)b->steps;
        s.decided += (double)r->count.decided / (double)b->steps;
        s.escapes += (double)r->count.escapes / (double)b->steps;
        s.corrected += (double)r->count.corrected / (double)b->steps;
        s.symbols = r->count.elements;
    }
    s.seconds = bench_median(seconds, (int)b->steps);
    s.ratio[0] = v->ratio[0];
    s.ratio[1] = v->ratio[1];
    s.peak_bytes = v->result[b->steps].peak_bytes;
    return s;
}

/* The lowest-numbered way with the same final state. */
static int twin_of(const benchmark *b, int index) {
    for (int i = 0; i < index; i++)
        if (same_state(&b->variant[i], &b->variant[index], b->steps))
            return i;
    return index;
}

static const char *short_hash(const vd_hash *hash, char *text) {
    vd_hex(hash->b, 4, text);
    return text;
}

static void print_row(const benchmark *b, int i, FILE *to) {
    const variant *v = &b->variant[i];
    const summary s = summary_of(b, i);
    char hash[9];
    if (v->error) {
        fprintf(to, "%-40s %s\n", v->name, v->error);
        return;
    }
    fprintf(to, "%-40s %9.1f %6.2f %6.2f %8.0f", v->name, 1e3 * s.seconds, s.ratio[0], s.ratio[1],
            (double)s.peak_bytes / 1e6);
    if (v->kind == LOG_TRAINER || v->kind == LOG_AUDITOR)
        fprintf(to, " %12.0f %10.1f %10.1f %9.1f", s.log_bytes, s.decided, s.escapes, s.corrected);
    else
        fprintf(to, " %12s %10s %10s %9s", "-", "-", "-", "-");
    fprintf(to, " %8.4f %s", (double)v->result[b->steps].loss,
            short_hash(&v->result[b->steps].state, hash));
    const int twin = twin_of(b, i);
    fprintf(to, twin == i ? "\n" : " = row %d\n", twin + 1);
}

void print_table(const benchmark *b, FILE *to) {
    fprintf(to,
            "%s, %s: %ld steps, batch %ld, b = %d; medians of %s time, every way in turn, %ld "
            "step%s at a "
            "time; profiles sim-* are simulated\n\n",
            b->model, b->size, b->steps, b->batch, b->bits, b->cpu ? "processor" : "wall",
            b->interval, b->interval == 1 ? "" : "s");
    fprintf(to, "   %-40s %9s %6s %6s %8s %12s %10s %10s %9s %8s %s\n", "way", "ms/step", "/(1)",
            "/(2)", "peak MB", "log B/step", "decided", "escapes", "corrected", "loss", "state");
    for (int i = 0; i < b->variants; i++) {
        fprintf(to, "%2d ", i + 1);
        print_row(b, i, to);
    }
    fprintf(to, "\nAt most %.2f GB at a time, all processes and this one together.\n",
            (double)b->peak / 1e9);
}

/* ---- sentences ---- */

int first_of(const benchmark *b, variant_kind kind, vd_log_encoding encoding) {
    for (int i = 0; i < b->variants; i++)
        if (b->variant[i].kind == kind && !b->variant[i].error &&
            (!encoding || b->variant[i].encoding == encoding))
            return i;
    return -1;
}

/* How many of this kind end in a state of their own. */
static void count_states(const benchmark *b, variant_kind kind, int *ways, int *states) {
    *ways = *states = 0;
    for (int i = 0; i < b->variants; i++) {
        if (b->variant[i].kind != kind || b->variant[i].error)
            continue;
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen |=
                b->variant[k].kind == kind && same_state(&b->variant[k], &b->variant[i], b->steps);
        *ways += 1;
        *states += !seen;
    }
}

static void words_on_states(const benchmark *b, variant_kind kind, const char *what, FILE *to) {
    int ways, states;
    count_states(b, kind, &ways, &states);
    if (ways > 1)
        fprintf(to, "%s: %d ways to train ended in %d different state%s.\n", what, ways, states,
                states == 1 ? "" : "s");
}

static void words_on_log(const benchmark *b, vd_log_encoding encoding, const char *what, FILE *to) {
    const int t = first_of(b, LOG_TRAINER, encoding), a = first_of(b, LOG_AUDITOR, encoding);
    if (t < 0)
        return;
    const summary s = summary_of(b, t);
    fprintf(to,
            "%s: the trainer takes %.2f times the time of free f64 and writes %.3f MB a step for "
            "%.3g rounded elements",
            what, s.ratio[1], s.log_bytes / 1e6, (double)s.symbols);
    if (a >= 0) {
        const summary audit = summary_of(b, a);
        fprintf(to,
                "; an auditor takes %.2f times and uses %.1f corrections a step out of %.0f logged "
                "(%.1f escapes)",
                audit.ratio[1], audit.corrected, s.decided, s.escapes);
    }
    fputs(".\n", to);
}

static void words_on_auditors(const benchmark *b, vd_log_encoding encoding, const char *what,
                              FILE *to) {
    int same = 0, all = 0, ended = 0;
    for (int i = 0; i < b->variants; i++) {
        const variant *v = &b->variant[i];
        if (v->kind != LOG_AUDITOR || v->encoding != encoding || v->error == not_run)
            continue;
        all++;
        ended += v->error != NULL;
        same += same_state(v, &b->variant[v->trainer], b->steps);
    }
    if (all > 0)
        fprintf(to,
                "%s: %d of %d auditors came to the state of their trainer; %d could not follow.\n",
                what, same, all, ended);
}

static void words_on_fixed(const benchmark *b, FILE *to) {
    const int fixed = first_of(b, ORDER_FIXED, 0);
    const int t = first_of(b, LOG_TRAINER, VD_LOG_CALLS);
    if (fixed < 0)
        return;
    const summary s = summary_of(b, fixed);
    fprintf(to, "Order fixed: %.2f times the time of free f32, no log", s.ratio[0]);
    if (t >= 0)
        fprintf(to, "; %.2f times that of the trainer with a log",
                s.ratio[1] / summary_of(b, t).ratio[1]);
    fputs(".\n", to);
}

/* The mean of all auditors of close calls. */
static void words_on_corrections(const benchmark *b, FILE *to) {
    double corrected = 0;
    int auditors = 0;
    for (int i = 0; i < b->variants; i++) {
        if (b->variant[i].kind != LOG_AUDITOR || b->variant[i].error)
            continue;
        corrected += summary_of(b, i).corrected;
        auditors++;
    }
    if (auditors > 0)
        fprintf(
            to,
            "Corrections: %.3g a step, the mean of %d auditors. The paper has 20 to 25 for GPT-2 "
            "and ResNet-50 at b = 32.\n",
            corrected / auditors, auditors);
}

void print_words(const benchmark *b, FILE *to) {
    fputc('\n', to);
    words_on_states(b, FREE_F32, "Free f32", to);
    words_on_states(b, FREE_F64, "Free f64", to);
    words_on_auditors(b, VD_LOG_CALLS, "Logs of close calls", to);
    words_on_auditors(b, VD_LOG_SYMBOLS, "Logs of symbols", to);
    words_on_states(b, ORDER_FIXED, "Order fixed", to);
    words_on_log(b, VD_LOG_CALLS, "Log of close calls", to);
    words_on_log(b, VD_LOG_SYMBOLS, "Log of symbols, as published", to);
    words_on_fixed(b, to);
    words_on_corrections(b, to);
    fputs("Free f64 keeps f32 tensors between operators, which moves less memory than f64 tensors "
          "would: the\n"
          "ratios to it are higher than they would be to training in f64 throughout.\n",
          to);
}

/* ---- files ---- */

bool write_csv(const benchmark *b, const char *path) {
    FILE *to = fopen(path, "w");
    char hash[2 * VD_HASH_SIZE + 1];
    if (!to)
        return false;
    fputs("way,step,seconds,loss,log_bytes,decided,escapes,corrected,distance,state\n", to);
    for (int i = 0; i < b->variants; i++)
        for (long s = 0; s <= b->steps && !b->variant[i].error; s++) {
            const step_result *r = &b->variant[i].result[s];
            vd_hex(r->state.b, 8, hash); /* enough to compare */
            fprintf(to, "\"%s\",%ld,%.6f,%.9g,%llu,%llu,%llu,%llu,%.9g,%s\n", b->variant[i].name, s,
                    r->seconds, (double)r->loss, (unsigned long long)r->log_bytes,
                    (unsigned long long)r->count.decided, (unsigned long long)r->count.escapes,
                    (unsigned long long)r->count.corrected, b->variant[i].distance[s], hash);
        }
    return fclose(to) == 0;
}

static json_t *way_json(const benchmark *b, int i) {
    const variant *v = &b->variant[i];
    const summary s = summary_of(b, i);
    char hash[2 * VD_HASH_SIZE + 1];
    if (v->error)
        return json_pack("{ss ss}", "way", v->name, "error", v->error);
    vd_hex(v->result[b->steps].state.b, VD_HASH_SIZE, hash);
    return json_pack("{ss sf sf sf sI sf sf sf sf sf ss sf}", "way", v->name, "seconds", s.seconds,
                     "ratio_to_f32", s.ratio[0], "ratio_to_f64", s.ratio[1], "peak_bytes",
                     (json_int_t)s.peak_bytes, "log_bytes", s.log_bytes, "decided", s.decided,
                     "escapes", s.escapes, "corrected", s.corrected, "loss",
                     (double)v->result[b->steps].loss, "state", hash, "distance",
                     v->distance[b->steps]);
}

bool write_json(const benchmark *b, const char *path) {
    json_t *ways = json_array();
    for (int i = 0; i < b->variants; i++)
        json_array_append_new(ways, way_json(b, i));
    json_t *root = json_pack("{ss ss sI sI sI si so}", "model", b->model, "size", b->size, "steps",
                             (json_int_t)b->steps, "batch", (json_int_t)b->batch, "sequence",
                             (json_int_t)b->sequence, "bits", (int)b->bits, "ways", ways);
    const bool written = root && json_dump_file(root, path, JSON_INDENT(1)) == 0;
    json_decref(root);
    return written;
}
