/* Ctrl-C and SIGTERM in commands whose files are whole at any moment. */
#ifndef VD_STOP_H
#define VD_STOP_H

#include "verde/base/base.h"

/* Remembers the command as it was typed, before getopt moves its arguments. */
void vd_stop_command(int argc, char *const *argv);
const char *vd_command_line(void);
/* Appends a word of a command, to be pasted into a shell. */
void vd_put_word(vd_buf *out, const char *word);
/* From now on SIGINT and SIGTERM print this line before they end the program, as they do anyway:
 * what it leaves behind, and how to go on. May be called again and again. A signal that was ignored
 * when the program began, as by nohup, stays so. */
void vd_stop_line(const char *format, ...) VD_PRINTF(1, 2);

#endif
