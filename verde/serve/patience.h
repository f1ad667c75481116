/* How long answers take: what is measured, and how long whoever asks a desk waits. */
#ifndef VD_PATIENCE_H
#define VD_PATIENCE_H

#include "verde/protocol/desk.h"

/* As vd_desk_answer, but waits a quarter of a second for an answer that nobody has asked for
 * before. Nobody else is held up: a question that waits for another one is told so at once. */
VD_MUST_USE vd_status vd_ask_desk(vd_desk *desk, const void *request, size_t size, vd_buf *out,
                                  vd_working *working, vd_err *err);

/* What this machine takes for a step of the run of `program`, and adds to *game_s the seconds that
 * it computes in a game about it. Zeros if that could not be measured: then a referee counts on no
 * computing. `replay` and `game_s` may be NULL. */
void vd_measure(vd_replay *replay, const vd_program *program, vd_pace *out, double *game_s);

#endif
