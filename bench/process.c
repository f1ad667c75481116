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

/* Sets LD_PRELOAD to the mkl_kernels.so in this program's directory, before the libraries in
 * `others` (may be NULL). */
static bool preload_mkl_kernels(const char *others) {
    static const char name[] = "mkl_kernels.so";
    char path[4096], all[8192];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    if (size <= 0)
        return false;
    path[size] = 0;
    strcpy(strrchr(path, '/') + 1, name);
    if (access(path, R_OK) != 0 || strpbrk(path, " :")) /* separators to ld.so */
        return false;
    snprintf(all, sizeof all, "%s%s%s", path, others ? ":" : "", others ? others : "");
    setenv("LD_PRELOAD", all, 1);
    return true;
}

process torch_open(const char *const *argv, const char *isa) {
    static const char *const limits[][2] = {{"ATEN_CPU_CAPABILITY", "avx2"},
                                            {"ONEDNN_MAX_CPU_ISA", "AVX2"},
                                            {"MKL_ENABLE_INSTRUCTIONS", "AVX2"}};
    const bool avx2 = isa && strcmp(isa, "avx2") == 0;
    for (int i = 0; i < 3; i++)
        if (avx2)
            setenv(limits[i][0], limits[i][1], 1);
        else
            unsetenv(limits[i][0]);
    const char *given = getenv("LD_PRELOAD");
    char *others = given ? strdup(given) : NULL;
    if (!preload_mkl_kernels(others))
        fputs("bench: mkl_kernels.so cannot be preloaded: MKL may choose slow kernels\n", stderr);
    const process p = process_open(argv);
    if (others)
        setenv("LD_PRELOAD", others, 1);
    else
        unsetenv("LD_PRELOAD");
    free(others);
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
