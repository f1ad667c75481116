/* Measures how long answers take, and waits for quick ones. */
#ifndef VD_PATIENCE_H
#define VD_PATIENCE_H

#include "verde/protocol/desk.h"

/* Like vd_desk_answer, but waits up to a quarter of a second for the answer to a new question. A
 * question that waits for another one is not waited for. */
VD_MUST_USE vd_status vd_ask_desk(vd_desk *desk, const void *request, size_t size, vd_buf *out,
                                  vd_working *working, vd_err *err);

/* Measures the time of a step of `program` on this machine, and adds to *game_s the seconds of
 * computing in a game about it. *out becomes zeros if that fails: a referee then allows for no
 * computing. `replay` and `game_s` may be NULL. */
void vd_measure(vd_replay *replay, const vd_program *program, vd_pace *out, double *game_s);

#endif
