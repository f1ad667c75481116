/* Prints how far each provider is, in a line for each. */
#include <math.h>
#include <string.h>

#include "verde/delegate/delegation.h"

enum { TELL_S = 5, SILENT_TELL_S = 15, RATE_AFTER_S = 1, SILENT_S = 3, OLD_S = 60 };

/* Prints the time left. It may be a provider's word: values that cannot be meant are left out. */
static void print_left(double seconds, char *text, size_t size) {
    enum { MEANT_MAX_S = 1000000000 };
    char left[32];
    if (!(seconds >= 0 && seconds < MEANT_MAX_S))
        return;
    vd_print_seconds(seconds, left);
    snprintf(text, size, "  %s left", left);
}

static void describe_run(const vd_order *order, char *text, size_t size) {
    const vd_remote_job *job = &order->job;
    const double old = vd_seconds() - order->new_at;
    char since[32];
    int at = 0;
    if (job->state == VD_REMOTE_QUEUED) {
        snprintf(text, size, "waits for its turn");
        return;
    }
    if (job->prompts)
        at = snprintf(text, size, "prompts done %lld/%lld  ", (long long)job->prompts_done,
                      (long long)job->prompts);
    at += snprintf(text + at, size - (size_t)at, "step %lld/%lld", (long long)job->step,
                   (long long)job->steps);
    if (!isnan(job->loss))
        at += snprintf(text + at, size - (size_t)at, "  loss %.4g", job->loss);
    if (!isnan(job->rate))
        at += snprintf(text + at, size - (size_t)at, "  %.3g steps/s", job->rate);
    if (old >= OLD_S) {
        vd_print_seconds(old - fmod(old, OLD_S), since); /* rounded, for a line a minute */
        snprintf(text + at, size - (size_t)at, "  nothing new for %s", since);
    } else {
        print_left(job->seconds_left, text + at, size - (size_t)at);
    }
}

/* Describes an upload. Its rate counts only bytes sent by this command, not those already there. */
static void describe_upload(const vd_delegation *d, const vd_order *order, char *text,
                            size_t size) {
    char sent[32], total[32], rate[32];
    const double seconds = vd_seconds() - order->since;
    const double each = (double)(order->sent - order->found) / seconds;
    vd_print_size(order->sent, sent);
    vd_print_size(d->parcel_bytes, total);
    if (order->since > 0 && order->sent == d->parcel_bytes) {
        snprintf(text, size, "has all %s; takes the job", total);
        return;
    }
    const int at = snprintf(text, size, "upload: %s of %s", sent, total);
    if (order->since == 0 || seconds < RATE_AFTER_S || each < 1)
        return;
    vd_print_size((uint64_t)each, rate);
    const int more = snprintf(text + at, size - (size_t)at, "  %s/s", rate);
    print_left((double)(d->parcel_bytes - order->sent) / each, text + at + more,
               size - (size_t)(at + more));
}

/* Returns the seconds of silence. After trouble only an answer ends it: bytes that are sent again
 * may not arrive anywhere. */
static double silent_for(vd_order *order) {
    vd_silence *s = &order->silence;
    const uint64_t moved = atomic_load(&order->moved);
    if (s->asked == 0)
        return 0;
    if (moved != s->moved) {
        s->moved = moved;
        s->moved_at = vd_seconds();
    }
    return vd_seconds() - (s->why[0] ? s->asked : s->moved_at);
}

static void describe_silence(const vd_delegation *d, const vd_order *order, double seconds,
                             char *text, size_t size) {
    char since[32], most[32], sent[32];
    vd_print_seconds(seconds, since);
    int at = snprintf(text, size, "no answer for %s", since);
    if (order->silence.why[0]) {
        vd_print_seconds((double)d->o->patience_s, most);
        at += snprintf(text + at, size - (size_t)at, ": %s; given up after %s", order->silence.why,
                       most);
    }
    vd_print_size(d->parcel_bytes - order->sent, sent);
    if (order->state == VD_ORDER_UPLOADS)
        snprintf(text + at, size - (size_t)at, "; %s to send", sent);
}

/* Describes a provider's state in `text`. Returns true if it is silent. */
static bool describe_order(const vd_delegation *d, vd_order *order, char *text, size_t size) {
    char root[2 * VD_HASH_SIZE + 1];
    const double silent = order->state < VD_ORDER_DONE ? silent_for(order) : 0;
    if (silent >= SILENT_S) {
        describe_silence(d, order, silent, text, size);
        return true;
    }
    vd_hex(order->job.run_root.b, VD_HASH_SIZE, root);
    switch (order->state) {
    case VD_ORDER_UPLOADS: describe_upload(d, order, text, size); break;
    case VD_ORDER_RUNS: describe_run(order, text, size); break;
    case VD_ORDER_DONE: snprintf(text, size, "done; it says run root %.16s...", root); break;
    case VD_ORDER_FAILED:
    case VD_ORDER_LATE: snprintf(text, size, "%s", order->why); break;
    }
    return false;
}

/* Without a terminal: returns true if the line is worth printing. A changed rate or time left is
 * not; of silence only its length counts. */
static bool is_due(vd_delegation_lines *lines, uint32_t i, const vd_order *order, bool silent,
                   bool now, const char *text) {
    const vd_order_state state = order->state;
    const double quiet = vd_seconds() - lines->silence_told[i];
    const uint64_t progress =
        order->sent + (uint64_t)order->job.step + (uint64_t)order->job.prompts_done;
    const bool moved = progress != lines->progress[i] || lines->silence_told[i] > 0 ||
                       vd_seconds() - order->new_at >= OLD_S;
    const bool again = silent ? quiet >= SILENT_TELL_S : moved;
    const bool due = state != lines->told[i] ||
                     (now && again && state < VD_ORDER_DONE && strcmp(text, lines->line[i]) != 0);
    if (due)
        lines->progress[i] = progress;
    if (due && silent)
        lines->silence_told[i] = vd_seconds();
    else if (!silent)
        lines->silence_told[i] = 0;
    if (due)
        snprintf(lines->line[i], sizeof lines->line[i], "%s", text);
    lines->told[i] = state;
    return due;
}

void vd_delegation_tell(vd_delegation *d, vd_delegation_lines *lines) {
    char text[700];
    const bool now = vd_seconds() - lines->last_line >= TELL_S;
    if (vd_is_terminal() && lines->drawn)
        fprintf(stderr, "\033[%dA", lines->drawn);
    for (uint32_t i = 0; i < d->o->urls; i++) {
        const bool silent = describe_order(d, &d->order[i], text, sizeof text);
        if (vd_is_terminal())
            fprintf(stderr, "\r\033[Kprovider %u  %.100s\n", i + 1, text);
        else if (is_due(lines, i, &d->order[i], silent, now, text))
            fprintf(stderr, "provider %u  %s\n", i + 1, text);
    }
    lines->drawn = (int)d->o->urls;
    if (now)
        lines->last_line = vd_seconds();
    fflush(stderr);
}

static void put_score(vd_buf *out, const vd_delegation *d) {
    if (!d->has_score)
        return;
    vd_printf(out, "evaluation   %.6f, %s; evaluation.json has it\n", (double)d->score.loss,
              d->loaded.job.training.evaluates ? "as the run root binds it"
                                               : "the loss on `evaluate.file`, computed here");
    if (d->score.has_accuracy)
        vd_printf(out, "accuracy     %.6f\n", (double)d->score.accuracy);
}

void vd_delegation_text(const vd_delegation *d) {
    vd_buf out = {0};
    for (uint32_t i = 0; i < d->o->urls; i++)
        if (d->order[i].state == VD_ORDER_LATE)
            vd_printf(&out, "provider %u   %s\n", i + 1, d->order[i].why);
    put_score(&out, d);
    vd_result_text(&out);
}
