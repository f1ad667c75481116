/* Suggests causes of a divergence. */
#include "verde/audit/diff_tell.h"

const vd_graph *vd_telling_graph(const vd_telling *t, int side) {
    const vd_program *p = &t->run[side].loaded.program;
    return t->d->step < 0 ? &p->init : &p->step;
}

/* Returns the side for which alone something is true, or -1. */
static int alone(const bool of[2]) {
    return of[0] == of[1] ? -1 : of[1];
}

/* ---- causes ---- */

static bool fits_node(const vd_telling *t, char *text, size_t size) {
    const vd_divergence *d = t->d;
    const vd_diverged_tensor *e = &d->tensor;
    const bool right[] = {e->bits[0] == e->reference, e->bits[1] == e->reference};
    const int other = alone(d->other_node), good = alone(right), possible = alone(e->possible);
    char at[600];
    if (t->programs && vd_program_diff_at(t->programs, d->step < 0, d->node[0], at, sizeof at))
        snprintf(text, size, "another program, %s", at);
    else if (d->compares_inputs && d->inputs_differ > 0)
        snprintf(text, size,
                 "input %u differs, and no node before this one: other data, another "
                 "state, or a node that the other program does not have",
                 d->first_input);
    else if (other >= 0)
        snprintf(text, size,
                 "%c ran another node here than its program's: another operator or "
                 "attribute",
                 "ab"[other]);
    else if (e->has_reference && good >= 0)
        snprintf(text, size,
                 "equal inputs, and %c has the operator's value: a kernel, the memory, "
                 "the device or a flag of %c's build",
                 "ab"[good], "ab"[!good]);
    else if (e->has_reference)
        snprintf(text, size, "equal inputs, and neither has the operator's value");
    else if (e->has_bound && possible >= 0)
        snprintf(text, size, "equal inputs, and only %c has a value that some device may round to",
                 "ab"[possible]);
    else if (e->has_bound)
        snprintf(text, size,
                 "equal inputs, and some device may round to each of the two: their "
                 "logs tell them apart");
    else
        snprintf(text, size,
                 "equal inputs and unequal outputs: a kernel, the memory, the device "
                 "or a flag of the build");
    return true;
}

bool vd_fits_text(const vd_telling *t, char *text, size_t size) {
    const vd_divergence *d = t->d;
    const int broken = alone(d->broken), skipped = alone(d->skipped);
    const char side = broken < 0 ? '?' : "ab"[broken];
    switch (d->kind) {
    case VD_DIVERGE_NODE: return fits_node(t, text, size);
    case VD_DIVERGE_NEXT:
        if (skipped >= 0)
            snprintf(text, size, "%c left the step out: its state is the one from before",
                     "ab"[skipped]);
        else
            snprintf(text, size,
                     "all nodes agree one by one, and the whole step of %c gives another state: a "
                     "fused function on backend %s",
                     side,
                     t->run[broken > 0].remote ? "that is not told"
                                               : ro_ctx_backend(t->run[broken > 0].loaded.ro));
        return true;
    case VD_DIVERGE_STORED:
        snprintf(text, size,
                 "%s not what the steps before it give here: an error that came once, or another "
                 "machine or build",
                 broken < 0 ? "both states are"
                 : broken   ? "b's state is"
                            : "a's state is");
        return true;
    case VD_DIVERGE_COMMITMENT:
        snprintf(text, size, "%c holds the state that its steps give, and commits to another",
                 side);
        return true;
    case VD_DIVERGE_EMITTED:
        snprintf(text, size, "equal states, and the log of this node is another");
        return true;
    case VD_DIVERGE_EMITTED_NAMED:
        snprintf(text, size, "%c commits to other rounding logs than it holds", side);
        return true;
    default: return false;
    }
}

const char *vd_guess_text(const vd_diverged_tensor *e, char text[VD_GUESS_TEXT]) {
    const char side = "ab"[e->guessed];
    const long long part = (long long)e->part, parts = (long long)e->parts;
    switch (e->guess) {
    case VD_FOLD_WITHOUT:
        snprintf(text, VD_GUESS_TEXT, "%c has the value without part %lld of 0..%lld", side, part,
                 parts - 1);
        break;
    case VD_FOLD_TWICE:
        snprintf(text, VD_GUESS_TEXT, "%c has the value with part %lld of 0..%lld twice", side,
                 part, parts - 1);
        break;
    case VD_FOLD_ENDED:
        snprintf(text, VD_GUESS_TEXT, "%c has the value of parts 0..%lld alone, of 0..%lld", side,
                 part - 1, parts - 1);
        break;
    default:
        if (e->part >= 0)
            snprintf(text, VD_GUESS_TEXT, "part %lld of 0..%lld is the first that differs", part,
                     parts - 1);
        else
            snprintf(text, VD_GUESS_TEXT, "0..%lld; no single one of them explains the difference",
                     parts - 1);
    }
    return text;
}
