/* This file saves a state, at once or in a thread during the next step. */
#include "verde/exec/run_save.h"

#include "verde/base/thread.h"

vd_status vd_save_state(const vd_run_options *o, ro_ctx *ro, const vd_hash *program_hash,
                        const vd_state *state, vd_hash *commitment, vd_err *err) {
    const vd_run_team *team = o->team;
    const vd_program *p = o->exec->program;
    if (!team) {
        const vd_status status = vd_state_hash(ro, p, program_hash, state, NULL, commitment, err);
        return status == VD_OK ? vd_store_save_state(o->dir, p, state, commitment, err) : status;
    }
    const vd_status status = team->hash(team->user, ro, program_hash, state, commitment, err);
    const vd_leaf_stream leaves = team->leaves(team->user, state);
    return status == VD_OK ? vd_store_save_leaves(o->dir, p, &leaves, commitment, err) : status;
}

/* The thread hashes alone, as the next step uses the context's threads. */
static void *save(void *user) {
    vd_saving *s = user;
    s->status =
        vd_save_state(s->options, NULL, s->program_hash, &s->state, &s->commitment, &s->err);
    return NULL;
}

vd_status vd_saving_start(vd_saving *s, const vd_run_options *options, const vd_hash *program_hash,
                          vd_state *state, vd_err *err) {
    *s = (vd_saving){.options = options, .program_hash = program_hash, .state = *state};
    s->busy = vd_thread_start(&s->thread, save, s) == 0;
    *state = (vd_state){.step = state->step};
    return s->busy ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "no thread to write a state");
}

vd_status vd_saving_end(vd_saving *s, vd_err *err) {
    pthread_join(s->thread, NULL);
    s->busy = false;
    return s->status == VD_OK ? VD_OK : vd_fail(err, s->status, "%s", s->err.text);
}

void vd_saving_free(vd_saving *s) {
    if (s->busy)
        pthread_join(s->thread, NULL);
    vd_state_free(&s->state);
    *s = (vd_saving){0};
}
