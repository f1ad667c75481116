#include "bench/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

process process_open(const char *const *argv) {
    int down[2], up[2];
    process p = {0};
    if (pipe(down) != 0 || pipe(up) != 0 || (p.pid = fork()) < 0) {
        perror("bench: could not start the peer");
        exit(1);
    }
    if (p.pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execvp(argv[0], (char *const *)argv);
        perror(argv[0]);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    p.to = fdopen(down[1], "w");
    p.from = fdopen(up[0], "r");
    return p;
}

bool process_ask(process *p, const char *question, char *line, int size) {
    if (!p->to || !p->from || fputs(question, p->to) < 0 || fputc('\n', p->to) == EOF ||
        fflush(p->to) != 0 || !fgets(line, size, p->from))
        return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

void process_close(process *p) {
    if (p->pid <= 0)
        return;
    if (p->to)
        fclose(p->to);
    if (p->from)
        fclose(p->from);
    waitpid(p->pid, NULL, 0);
    *p = (process){0};
}
