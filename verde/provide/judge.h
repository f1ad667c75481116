/* Programs are untrusted bytes: a confined child with little time and memory reads and describes
 * them. */
#ifndef VD_JUDGE_H
#define VD_JUDGE_H

#include "verde/graph/graph.h"
#include "verde/provide/daemon.h"

enum {
    VD_JUDGE_MS = 12000,          /* for a small file */
    VD_JUDGE_CPU_S = 4,           /* processor seconds for a small file */
    VD_JUDGE_BYTES_MS = 18000,    /* in addition, for VD_PROGRAM_BYTES_MAX bytes, or a pack of */
    VD_JUDGE_BYTES_CPU_S = 16,    /* 1/4 of the items allowed; in proportion for fewer */
    VD_JUDGE_PACK_MS = 26000,     /* in addition, for a pack of all items allowed; in proportion */
    VD_JUDGE_PACK_CPU_S = 32,     /* for fewer. A client waits for VD_REMOTE_DEADLINE_MS */
    VD_JUDGE_MEMORY = 2047 << 20, /* bytes, for a program of at most 64 MiB */
};

/* A judged program, or pack of programs (exec/item_pack.h). */
typedef struct {
    vd_hash program;       /* hash in assignments; of a pack, its collection hash */
    uint32_t items;        /* number in a pack; 0: a program */
    int64_t steps;         /* of a pack, of all programs together */
    uint64_t memory, disk; /* bytes, estimated (exec/estimate.h); disk in whole blocks */
    uint64_t seconds;      /* estimated, of the whole job */
    /* Estimated milliseconds of the step or initialisation that exceeds what a referee waits for by
     * most, and that limit (protocol/pace.h); 0 if none exceeds it. */
    uint64_t step_ms, step_ms_max;
    bool emits; /* it writes rounding logs (exec/backend.h) */
    uint32_t data_count;
    uint64_t *data_bytes; /* of each data tensor, of a pack of the shared ones; owned */
} vd_judgement;
void vd_judgement_free(vd_judgement *judgement);

/* The time that a child may take to read a pack of `items` items, or a program (`items` 0). */
typedef struct {
    int ms;
    int64_t cpu_s;
} vd_judge_time;
vd_judge_time vd_judge_time_of(uint64_t bytes, uint32_t items);

/* The machine for which time and memory are estimated. */
typedef struct {
    int cores;   /* speed, as a number of cores (exec/estimate.h) */
    int threads; /* threads of a job */
} vd_judge_machine;

enum { VD_JUDGE_PACK = -1 }; /* as `keep`: the file is a pack */
/* The child's side: reads the file and appends a description, or why it is refused, to *out. */
void vd_judge_file(const char *path, int64_t keep, const vd_judge_machine *machine, vd_buf *out);
/* The daemon's side. VD_ERR_PEER: the file is no valid program, or judging it exceeded the limits.
 * VD_ERR_LOCAL, VD_ERR_IO: trouble of this machine. *cpu_us: processor time of the child, set even
 * after an error. */
VD_MUST_USE vd_status vd_judgement_read(const vd_buf *reply, vd_judgement *out, vd_err *err);
VD_MUST_USE vd_status vd_judge(const vd_daemon_options *options, const char *path, int64_t keep,
                               vd_judgement *out, int64_t *cpu_us, vd_err *err);

/* ---- judge_pack.c ---- */

/* Judges a pack. *read becomes false if the file cannot be read. */
VD_MUST_USE vd_status vd_judge_pack(const char *path, const vd_judge_machine *machine,
                                    vd_judgement *out, bool *read, vd_err *err);
/* ---- judge_estimate.c ---- */

/* Adds a program's seconds to the total, and raises the memory to the program's. */
VD_MUST_USE vd_status vd_judge_estimate(const vd_program *program, const vd_judge_machine *machine,
                                        vd_judgement *j, vd_err *err);

/* Returns the disk space of a run: `bytes` in the files of `states` states, and further files. */
uint64_t vd_judge_disk(uint64_t bytes, uint64_t states, uint32_t data_count);

#endif
