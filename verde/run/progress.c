/* This file prints the progress of a run. */
#include "verde/run/progress.h"

#include "verde/tell/stop.h"

/* No rate is printed before, because the first steps after a start take longer than others. */
#define RATE_SECONDS 1

/* Reports, only once, the step at which a run diverged. */
static void tell_divergence(vd_run_printer *print, const vd_progress *p) {
    if (print->no_loss || print->lost || p->loss - p->loss == 0)
        return;
    print->lost = true;
    fprintf(stderr, "%sstep %lld: the loss is %s\n", vd_is_terminal() ? "\r\033[K" : "",
            (long long)p->step, p->loss != p->loss ? "nan" : "infinite");
}

static void rate_text(const vd_run_printer *print, const vd_progress *p, char *text, size_t size) {
    const double done = (double)(p->step - p->resumed_at);
    const double rate = done / (p->seconds > 0 ? p->seconds : 1e-9);
    char left[32];
    vd_print_seconds((double)(p->steps - p->step) / rate, left);
    snprintf(text, size, "  %.0f %s/s  %s left", rate * print->samples_per_step, print->samples,
             left);
}

json_t *vd_loss_json(float loss) {
    if (loss - loss == 0)
        return json_real((double)loss);
    return json_string(loss != loss ? "nan" : loss > 0 ? "inf" : "-inf");
}

/* Prints a line of JSON for each step, for programs that read during the run. */
static void print_step(const vd_run_printer *print, const vd_progress *p) {
    vd_result_json(json_pack(
        "{sI sI so sI sI sf}", "step", (json_int_t)p->step, "steps", (json_int_t)p->steps, "loss",
        print->no_loss ? json_null() : vd_loss_json(p->loss), "saved", (json_int_t)p->saved,
        "resumed_at", (json_int_t)p->resumed_at, "seconds", p->seconds));
}

bool vd_tell_progress(void *user, const vd_progress *p) {
    vd_run_printer *print = user;
    const bool last = p->step == p->steps;
    char rate[100] = "", loss[32] = "";
    vd_stop_line("stopped after step %lld of %lld; `%s` goes on from the checkpoint at step %lld",
                 (long long)p->step, (long long)p->steps, vd_command_line(), (long long)p->saved);
    tell_divergence(print, p);
    if (print->json)
        print_step(print, p);
    if (!vd_tick(&print->ticker, 0, last || p->step <= 1))
        return true;
    if (p->seconds >= RATE_SECONDS || last)
        rate_text(print, p, rate, sizeof rate);
    if (!print->no_loss)
        snprintf(loss, sizeof loss, "  loss %.4f", (double)p->loss);
    vd_tell_meanwhile(last, "step %lld/%lld%s%s", (long long)p->step, (long long)p->steps, loss,
                      rate);
    return true;
}

const char *vd_samples_name(const vd_job *job) {
    if (job->program)
        return "steps";
    return vd_record_size(&job->training.model) ? "images" : "tokens";
}
