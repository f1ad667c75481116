/* This file prints lines on standard error without ever waiting for a reader. */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/tell/tell.h"

/* Opens standard error again if it is a pipe or terminal: setting O_NONBLOCK on descriptor 2 would
 * affect all processes that share it. Returns -1 if that is not possible. */
static int open_again(void) {
    struct stat info;
    if (fstat(STDERR_FILENO, &info) != 0 || !(S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)))
        return -1;
    return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_APPEND | O_CLOEXEC | O_NOCTTY);
}

static bool has_room(void) {
    struct pollfd poll_fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLOUT;
}

static void put(const char *line, size_t size) {
    int again = open_again();
    ssize_t written = 0;
    if (again >= 0) {
        written = write(again, line, size);
        close(again);
    } else if (has_room() && send(STDERR_FILENO, line, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        written = write(STDERR_FILENO, line, size); /* it is not a socket */
    }
    (void)written;
}

void vd_say(const char *format, ...) {
    char line[1002];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (size < 0)
        return;
    size_t length = strlen(line);
    line[length] = '\n';
    put(line, length + 1);
}
