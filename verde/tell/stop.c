/* This file ends a command at a signal, after a line that says how to continue it. */
#include "verde/tell/stop.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "verde/tell/tell.h"

enum { LINE = 8192 };

static char command[2048];
static char buffer[2][LINE]; /* one is shown while the other is written */
static _Atomic(const char *) shown;

/* Handles a signal: prints the line and raises the signal again, both of which handlers may do. A
 * second signal is ignored, because senders of two at once (as timeout does) must not cut the line
 * off. */
static void stop(int number) {
    static atomic_flag stopping = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&stopping))
        return;
    const char *text = atomic_load(&shown);
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
    signal(number, SIG_DFL);
    raise(number); /* takes effect as soon as this returns */
}

static void watch(int number) {
    struct sigaction before, action = {.sa_handler = stop};
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void vd_stop_line(const char *format, ...) {
    const bool first = !atomic_load(&shown);
    char *next = atomic_load(&shown) == buffer[0] ? buffer[1] : buffer[0];
    const int start = snprintf(next, LINE, "%sverde: ", vd_is_terminal() ? "\n" : "");
    va_list args;
    va_start(args, format);
    vsnprintf(next + start, (size_t)(LINE - start - 1), format, args);
    va_end(args);
    strcat(next, "\n");
    atomic_store(&shown, next);
    if (first) {
        watch(SIGINT);
        watch(SIGTERM);
    }
}

/* ---- the command, to be pasted into a shell ---- */

static bool is_plain(const char *text) {
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_./:=,@%+-")] == 0;
}

static void put_quoted(vd_buf *out, const char *text) {
    vd_put_u8(out, '\'');
    for (; *text; text++)
        if (*text == '\'')
            vd_printf(out, "'\\''");
        else
            vd_put_u8(out, (uint8_t)*text);
    vd_put_u8(out, '\'');
}

void vd_put_word(vd_buf *out, const char *word) {
    if (is_plain(word))
        vd_printf(out, "%s", word);
    else
        put_quoted(out, word);
}

void vd_stop_command(int argc, char *const *argv) {
    vd_buf out = {0};
    vd_printf(&out, "%s", argv[0]);
    for (int i = 1; i < argc; i++) {
        vd_put_u8(&out, ' ');
        vd_put_word(&out, argv[i]);
    }
    const bool fits = vd_buf_ok(&out) && out.size < sizeof command;
    snprintf(command, sizeof command, "%.*s", fits ? (int)out.size : 0, (const char *)out.data);
    vd_buf_free(&out);
}

const char *vd_command_line(void) {
    return *command ? command : "the same command";
}
