/* Tables and sentences as text. */
#include <math.h>

#include "bench/determinism/determinism.h"

/* Returns the lowest-numbered way with the same final state. */
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
    const summary s = v->sum;
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

/* Prints a description of the run, above all tables. */
static void print_job(const benchmark *b, FILE *to) {
    fprintf(to,
            "%s, %s: %ld steps, batch %ld, b = %d; medians of %s time, every way in turn, %ld "
            "step%s at a "
            "time; profiles sim-* are simulated\n"
            "%s; %ld thread%s each, but for those of the fixed order that say another number\n\n",
            b->model, b->size, b->steps, b->batch, b->bits, b->cpu ? "processor" : "wall",
            b->interval, b->interval == 1 ? "" : "s", b->machine, b->threads,
            b->threads == 1 ? "" : "s");
}

static void print_short(const benchmark *b, const way_row *row, FILE *to) {
    fprintf(to, "%-21s", row->name);
    if (row->shown < 0) {
        fprintf(to, " %s\n", row->words);
        return;
    }
    const variant *v = &b->variant[row->shown];
    fprintf(to, " %-24s %9.*f %10.2f %9.0f", detail_of(v), v->sum.seconds < 0.1 ? 2 : 0,
            1e3 * v->sum.seconds, v->sum.ratio[1], (double)v->sum.peak_bytes / 1e6);
    if (v->sum.log_bytes > 0)
        fprintf(to, " %11.1f", v->sum.log_bytes / 1e3);
    else
        fprintf(to, " %11s", "none");
    if (isfinite(row->corrected))
        fprintf(to, " %11.3g", row->corrected);
    else
        fprintf(to, " %11s", "-");
    fprintf(to, "  %s\n", row->words);
}

void print_rows(const benchmark *b, FILE *to) {
    print_job(b, to);
    fprintf(to, "%-21s %-24s %9s %10s %9s %11s %11s  %s\n", "way", "run that is shown", "ms/step",
            "/binary64", "peak MB", "log kB/step", "corrections", "same state everywhere");
    for (int kind = 0; kind < WAY_KINDS; kind++) {
        const way_row row = row_of(b, (variant_kind)kind);
        print_short(b, &row, to);
    }
    if (b->peak) /* old results lack it */
        fprintf(to, "\nAt most %.2f GB at a time, all processes and this one together.\n",
                (double)b->peak / 1e9);
}

void print_ways(const benchmark *b, FILE *to) {
    fprintf(to, "\n   %-40s %9s %6s %6s %8s %12s %10s %10s %9s %8s %s\n", "way", "ms/step", "/(1)",
            "/(2)", "peak MB", "log B/step", "decided", "escapes", "corrected", "loss", "state");
    for (int i = 0; i < b->variants; i++) {
        fprintf(to, "%2d ", i + 1);
        print_row(b, i, to);
    }
}

/* ---- sentences ---- */

static void words_on_states(const benchmark *b, variant_kind kind, const char *what, FILE *to) {
    int ways, states;
    count_states(b, kind, &ways, &states);
    if (ways > 1)
        fprintf(to, "%s: %d ways to train ended in %d different state%s.\n", what, ways, states,
                states == 1 ? "" : "s");
}

static void words_on_log(const benchmark *b, vd_log_encoding encoding, const char *what, FILE *to) {
    const int t = first_of(b, LOG_TRAINER, encoding), a = shown_of(b, LOG_AUDITOR, encoding);
    if (t < 0)
        return;
    const summary s = b->variant[t].sum;
    fprintf(to,
            "%s: the trainer takes %.2f times the time of free f64 and writes %.3f MB a step for "
            "%.3g rounded elements",
            what, s.ratio[1], s.log_bytes / 1e6, s.elements);
    if (a >= 0) {
        const summary audit = b->variant[a].sum;
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
    const summary s = b->variant[fixed].sum;
    fprintf(to, "Order fixed: %.2f times the time of free f32, no log", s.ratio[0]);
    if (t >= 0)
        fprintf(to, "; %.2f times that of the trainer with a log",
                s.ratio[1] / b->variant[t].sum.ratio[1]);
    fputs(".\n", to);
}

/* Prints the mean of all auditors that follow close calls. */
static void words_on_corrections(const benchmark *b, FILE *to) {
    double corrected = 0;
    int auditors = 0;
    for (int i = 0; i < b->variants; i++) {
        if (b->variant[i].kind != LOG_AUDITOR || b->variant[i].error)
            continue;
        corrected += b->variant[i].sum.corrected;
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
          "would: the ratios to it are higher than they would be to training in f64 throughout.\n",
          to);
}
