/* Derives medians, states and the five rows of the short table from the results of all ways. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/determinism/determinism.h"

bool same_state(const variant *a, const variant *b, long step) {
    return !a->error && !b->error && vd_hash_equal(&a->result[step].state, &b->result[step].state);
}

bool is_checkpoint(const benchmark *b, long step) {
    return step == b->steps || step % b->interval == 0;
}

long next_shown(const benchmark *b, long step) {
    const long checkpoints = (b->steps + b->interval - 1) / b->interval;
    const long every = (checkpoints + 49) / 50 * b->interval;
    return step < b->steps && step + every > b->steps ? b->steps : step + every;
}

bool same_states(const variant *a, const variant *b) {
    return !a->error && !b->error && a->same == b->same;
}

static bool same_at_checkpoints(const benchmark *b, const variant *a, const variant *c) {
    bool same = true;
    for (long s = 0; s <= b->steps && same; s++)
        same = !is_checkpoint(b, s) || same_state(a, c, s);
    return same;
}

static void find_same(benchmark *b) {
    for (int i = 0; i < b->variants; i++) {
        int first = 0;
        while (first < i && !same_at_checkpoints(b, &b->variant[first], &b->variant[i]))
            first++;
        b->variant[i].same = first;
    }
}

/* Sums up steps 1 to the last; step 0 is initialisation. */
static void sum_up(const benchmark *b, variant *v) {
    static double seconds[STEPS_MAX];
    const double steps = (double)b->steps;
    summary s = {.ratio = {v->sum.ratio[0], v->sum.ratio[1]}};
    for (long i = 1; i <= b->steps; i++) {
        const step_result *r = &v->result[i];
        seconds[i - 1] = r->seconds;
        s.log_bytes += (double)r->log_bytes;
        s.decided += (double)r->count.decided;
        s.escapes += (double)r->count.escapes;
        s.corrected += (double)r->count.corrected;
        s.elements = (double)r->count.elements;
    }
    s.log_bytes /= steps;
    s.decided /= steps;
    s.escapes /= steps;
    s.corrected /= steps;
    s.seconds = bench_median(seconds, (int)b->steps);
    s.peak_bytes = v->result[b->steps].peak_bytes;
    v->sum = s;
}

void summarise(benchmark *b) {
    for (int i = 0; i < b->variants; i++)
        if (!b->variant[i].error)
            sum_up(b, &b->variant[i]);
    find_same(b);
    count_operators(b);
}

/* ---- the way that stands for a kind ---- */

int first_of(const benchmark *b, variant_kind kind, vd_log_encoding encoding) {
    for (int i = 0; i < b->variants; i++)
        if (b->variant[i].kind == kind && !b->variant[i].error &&
            (!encoding || b->variant[i].encoding == encoding))
            return i;
    return -1;
}

static int by_ratio(const void *a, const void *b) {
    const variant *const *x = a, *const *y = b;
    return ((*x)->sum.ratio[1] > (*y)->sum.ratio[1]) - ((*x)->sum.ratio[1] < (*y)->sum.ratio[1]);
}

/* Returns the auditor of a trainer with the median time, the lower one of two. */
static int median_auditor(const benchmark *b, int trainer) {
    const variant *found[VARIANTS_MAX];
    int count = 0;
    for (int i = 0; i < b->variants; i++) {
        const variant *v = &b->variant[i];
        if (v->kind == LOG_AUDITOR && v->trainer == trainer && !v->error)
            found[count++] = v;
    }
    qsort(found, (size_t)count, sizeof *found, by_ratio);
    return count ? (int)(found[(count - 1) / 2] - b->variant) : -1;
}

int shown_of(const benchmark *b, variant_kind kind, vd_log_encoding encoding) {
    const int trainer = kind == LOG_AUDITOR ? first_of(b, LOG_TRAINER, encoding) : -1;
    return trainer >= 0 ? median_auditor(b, trainer) : first_of(b, kind, encoding);
}

/* ---- states ---- */

/* Returns whether all ways of this kind have the same states at every checkpoint. */
static bool agree(const benchmark *b, variant_kind kind) {
    const int first = first_of(b, kind, 0);
    bool same = true;
    for (int i = first; i >= 0 && i < b->variants && same; i++)
        same = b->variant[i].kind != kind || b->variant[i].error ||
               same_states(&b->variant[first], &b->variant[i]);
    return same;
}

void count_states(const benchmark *b, variant_kind kind, int *ways, int *states) {
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

static void judge_runs(const benchmark *b, way_row *row) {
    int ways, states;
    count_states(b, row->kind, &ways, &states);
    if (ways < 2) {
        snprintf(row->words, sizeof row->words, ways ? "one run" : "not run");
        return;
    }
    row->same = agree(b, row->kind) ? SAME_YES : SAME_NO;
    if (row->same == SAME_YES)
        snprintf(row->words, sizeof row->words, "yes, %d runs", ways);
    else if (states > 1)
        snprintf(row->words, sizeof row->words, "no, %d states of %d runs", states, ways);
    else
        snprintf(row->words, sizeof row->words, "no, at some steps");
}

/* Judges auditors: each must have its own trainer's state; trainers may differ. */
static void judge_auditors(const benchmark *b, way_row *row, vd_log_encoding encoding) {
    int all = 0, same = 0, ran = 0;
    double corrected = 0;
    for (int i = 0; i < b->variants; i++) {
        const variant *v = &b->variant[i];
        if (v->kind != LOG_AUDITOR || v->encoding != encoding || v->error == not_run)
            continue;
        all++;
        same += same_states(v, &b->variant[v->trainer]);
        ran += !v->error;
        corrected += v->error ? 0 : v->sum.corrected;
    }
    if (row->kind == LOG_AUDITOR && ran > 0)
        row->corrected = corrected / ran;
    if (all == 0) {
        snprintf(row->words, sizeof row->words, row->shown < 0 ? "not run" : "no auditor ran");
        return;
    }
    row->same = same == all ? SAME_YES : SAME_NO;
    snprintf(row->words, sizeof row->words, "%s, %d of %d auditors", same == all ? "yes" : "no",
             same, all);
}

way_row row_of(const benchmark *b, variant_kind kind) {
    static const char *const name[WAY_KINDS] = {"Free binary32", "Free binary64",
                                                "Trainer with a log", "Auditor with the log",
                                                "Fixed order"};
    const bool logs = kind == LOG_TRAINER || kind == LOG_AUDITOR;
    const int trainer = first_of(b, LOG_TRAINER, 0);
    const vd_log_encoding encoding = trainer < 0 ? VD_LOG_CALLS : b->variant[trainer].encoding;
    way_row row = {.kind = kind, .name = name[kind], .corrected = NAN};
    row.shown = shown_of(b, kind, logs ? encoding : 0);
    if (logs)
        judge_auditors(b, &row, encoding);
    else
        judge_runs(b, &row);
    return row;
}

/* ---- names ---- */

const char *title_of(const benchmark *b) {
    const bool full = strcmp(b->size, "full") == 0;
    if (strcmp(b->model, "gpt2") == 0)
        return full ? "GPT-2 124M" : "a small GPT-2";
    return full ? "ResNet-50" : "a small ResNet";
}

const char *detail_of(const variant *v) {
    const char *comma = strstr(v->name, ", ");
    return comma ? comma + 2 : v->name;
}
