/* Programs are bytes of strangers: a child that has nothing, and little time and memory, reads them
 * and says what they are. */
#ifndef VD_JUDGE_H
#define VD_JUDGE_H

#include "verde/graph/graph.h"
#include "verde/provide/daemon.h"

enum {
    VD_JUDGE_MS = 12000,       /* for a file of few bytes */
    VD_JUDGE_CPU_S = 4,        /* seconds of a processor, likewise */
    VD_JUDGE_BYTES_MS = 18000, /* more for VD_PROGRAM_BYTES_MAX bytes, or a pack of a quarter of */
    VD_JUDGE_BYTES_CPU_S = 16, /* most items, in proportion for fewer; */
    VD_JUDGE_PACK_MS = 26000,  /* more for a pack of most items, in proportion for fewer; */
    VD_JUDGE_PACK_CPU_S = 32,  /* a client waits for VD_REMOTE_DEADLINE_MS */
    VD_JUDGE_MEMORY = 2047 << 20, /* bytes, for a program of at most 64 MiB */
};

/* What a program is, or a pack of many (exec/item_pack.h). */
typedef struct {
    vd_hash program;       /* as in assignments; of a pack, the collection hash */
    uint32_t items;        /* of a pack; 0: a program */
    int64_t steps;         /* of a pack, of all its programs */
    uint64_t memory, disk; /* bytes: estimated (exec/estimate.h); of the disk in whole blocks */
    uint64_t seconds;      /* estimated, of all of it */
    /* Milliseconds, likewise, of the step or initialisation that is furthest beyond what a referee
     * waits for, and these (protocol/pace.h); 0 if all are short. */
    uint64_t step_ms, step_ms_max;
    bool emits; /* it runs on a backend beside the fixed order (exec/backend.h) */
    uint32_t data_count;
    uint64_t *data_bytes; /* of each data tensor, or of those that a pack's programs share; owned */
} vd_judgement;
void vd_judgement_free(vd_judgement *judgement);

/* What a child may take to read so many bytes, and so many items of a pack; 0: a program. */
typedef struct {
    int ms;
    int64_t cpu_s;
} vd_judge_time;
vd_judge_time vd_judge_time_of(uint64_t bytes, uint32_t items);

/* Whose time and memory are estimated. */
typedef struct {
    int cores;   /* that it is as fast as (exec/estimate.h) */
    int threads; /* of a job */
} vd_judge_machine;

enum { VD_JUDGE_PACK = -1 }; /* in place of `keep`: the file is a pack */
/* The child's side: reads the file, and appends what it is, or why it is no program, to `out`. */
void vd_judge_file(const char *path, int64_t keep, const vd_judge_machine *machine, vd_buf *out);
/* The daemon's side. VD_ERR_PEER: it is no program that is valid, or took more than its judge may
 * have; VD_ERR_LOCAL, VD_ERR_IO: trouble of this machine. *cpu_us: what the child took of a
 * processor, in any case. */
VD_MUST_USE vd_status vd_judgement_read(const vd_buf *reply, vd_judgement *out, vd_err *err);
VD_MUST_USE vd_status vd_judge(const vd_daemon_options *options, const char *path, int64_t keep,
                               vd_judgement *out, int64_t *cpu_us, vd_err *err);

/* ---- judge_pack.c ---- */

/* *read is false if the file cannot be read. */
VD_MUST_USE vd_status vd_judge_pack(const char *path, const vd_judge_machine *machine,
                                    vd_judgement *out, bool *read, vd_err *err);
/* ---- judge_estimate.c ---- */

/* Adds a program's seconds; and its memory, if it is the most. */
VD_MUST_USE vd_status vd_judge_estimate(const vd_program *program, const vd_judge_machine *machine,
                                        vd_judgement *j, vd_err *err);

/* Bytes of the disk that a run takes, of so many bytes in files of so many states and some more. */
uint64_t vd_judge_disk(uint64_t bytes, uint64_t states, uint32_t data_count);

#endif
