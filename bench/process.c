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

/* "mkl_kernels.so" in the directory of this program. */
static void preload_mkl_kernels(void) {
    static const char name[] = "mkl_kernels.so";
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    if (size <= 0)
        return;
    path[size] = 0;
    strcpy(strrchr(path, '/') + 1, name);
    if (access(path, R_OK) == 0)
        setenv("LD_PRELOAD", path, 1);
    else
        fprintf(stderr, "bench: no %s: MKL will choose its kernels by the maker's name\n", path);
}

process torch_open(const char *const *argv, const char *isa) {
    if (isa && strcmp(isa, "avx2") == 0) {
        setenv("ATEN_CPU_CAPABILITY", "avx2", 1);
        setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
        setenv("MKL_ENABLE_INSTRUCTIONS", "AVX2", 1);
    }
    preload_mkl_kernels();
    const process p = process_open(argv);
    unsetenv("LD_PRELOAD"); /* nothing for us */
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
