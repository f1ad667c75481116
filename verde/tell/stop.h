/* Ctrl-C and SIGTERM in commands whose files are complete at any moment. */
#ifndef VD_STOP_H
#define VD_STOP_H

#include "verde/base/base.h"

/* Remembers the command as it was typed, before getopt moves its arguments. */
void vd_stop_command(int argc, char *const *argv);
const char *vd_command_line(void);
/* Appends a word of a command, to be pasted into a shell. */
void vd_put_word(vd_buf *out, const char *word);
/* Sets the line that SIGINT and SIGTERM print before they end the program: what is left behind, and
 * how to continue. It may be called many times. A signal that was ignored at the start, as by
 * nohup, stays ignored. */
void vd_stop_line(const char *format, ...) VD_PRINTF(1, 2);

#endif
