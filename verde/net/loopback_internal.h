/* Declarations shared by the files of the server for people on this machine. */
#ifndef VD_LOOPBACK_INTERNAL_H
#define VD_LOOPBACK_INTERNAL_H

#include "verde/net/loopback.h"

/* Answers a complete head: appends a head and a body to *out. `text` is changed. */
void vd_loopback_answer(char *text, vd_loopback_handler handler, void *user, vd_buf *out);
/* Appends the refusal of a malformed head. */
void vd_loopback_refuse(int status, const char *why, vd_buf *out);

#endif
