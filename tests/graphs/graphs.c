/* Changes graphs of programs at random; fused and node by node, they must give the same bits.
 *
 * Usage: graphs [--backend NAME] [--seed N] [--out DIR] COUNT PROGRAM...
 *        graphs [--backend NAME] [--seed N] --replay VALUES PROGRAM...
 *
 * The first form runs COUNT programs that the decoder accepts, made from the files, and exits with
 * 1 at the first difference, with the program in DIR. The second form runs files as they are, each
 * with values from VALUES seeds, N and those after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/graphs/counts.h"
#include "tests/graphs/together.h"
#include "tests/graphs/ways.h"
#include "verde/exec/estimate.h"

enum {
    PROGRAM_BYTES = 1 << 18,
    NODES_MAX = 3000,
    CHANGES_MAX = 5, /* between a program that ran and the next one */
    TRIES = 12,      /* for each change */
    MEMORY_MAX = 64 << 20,
};
static const double seconds_max = 0.01; /* estimated, for initialisation or a step */

typedef struct {
    const char *backend, *out;
    uint64_t seed, count;
    bool replay;
    char **file;
    int files;
} options;

typedef struct {
    vd_buf given, now; /* as captured; after the last changes */
} seed_program;

/* ---- one program ---- */

static uint64_t data_bytes(const vd_program *p) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->data_count && bytes < MEMORY_MAX; i++) {
        const uint64_t more = vd_estimate_shape(&p->data[i].tensor.shape);
        bytes = more > MEMORY_MAX ? more : bytes + more;
    }
    return bytes;
}

/* Is the program small? Asks all estimates, as is done for strangers' programs. */
static bool is_small(const vd_program *p) {
    uint64_t memory;
    const vd_estimated_seconds s = vd_estimate_seconds(p, 1);
    const uint64_t terms = vd_estimate_terms(p, &p->init) + vd_estimate_terms(p, &p->step);
    if (vd_estimate_memory(p, &memory, NULL) != VD_OK)
        return false;
    if (!(s.init >= 0 && s.step >= 0 && s.run >= s.init) || vd_estimate_disk(p, 1) == 0 ||
        vd_estimate_beside(p, 0) == 0 || vd_estimate_journal(p) == 0) {
        fprintf(stderr, "an estimate is no number\n");
        abort();
    }
    return terms > 0 && memory < MEMORY_MAX && vd_estimate_kernels(p, 2) < MEMORY_MAX &&
           data_bytes(p) < MEMORY_MAX && s.init < seconds_max && s.step < seconds_max &&
           p->init.node_count < NODES_MAX && p->step.node_count < NODES_MAX;
}

static void replace(vd_buf *to, const vd_buf *from) {
    to->size = 0;
    vd_put(to, from->data, from->size);
}

static const mutation *choose(dice *d, uint32_t *number) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < wire_mutation_count; i++)
        all += wire_mutations[i].weight;
    for (uint32_t i = 0; i < value_mutation_count; i++)
        all += value_mutations[i].weight;
    uint32_t at = dice_below(d, all);
    for (*number = 0; *number < wire_mutation_count; ++*number) {
        if (at < wire_mutations[*number].weight)
            return &wire_mutations[*number];
        at -= wire_mutations[*number].weight;
    }
    for (uint32_t i = 0; i + 1 < value_mutation_count; i++, ++*number) {
        if (at < value_mutations[i].weight)
            return &value_mutations[i];
        at -= value_mutations[i].weight;
    }
    return &value_mutations[value_mutation_count - 1];
}

/* Changes the program in *bytes once. Returns false, with *bytes unchanged, if that fails. */
static bool change(vd_buf *bytes, uint32_t centre, bool init, dice *d, counts *c) {
    vd_program p = {0}, again = {0};
    vd_buf changed = {0};
    vd_err err = {0};
    uint32_t number;
    const mutation *m = choose(d, &number);
    if (vd_program_decode(bytes->data, bytes->size, &p, &err) != VD_OK)
        return false;
    site s = {&p, init ? &p.init : &p.step, d, centre};
    c->tried[number]++;
    bool taken = m->apply(&s);
    if (taken) {
        vd_program_encode(&p, &changed);
        taken = !changed.failed && changed.size < PROGRAM_BYTES &&
                vd_program_decode(changed.data, changed.size, &again, &err) == VD_OK;
        c->refused += !taken;
    }
    if (taken)
        replace(bytes, &changed);
    c->taken[number] += taken;
    vd_program_free(&p);
    vd_program_free(&again);
    vd_buf_free(&changed);
    return taken;
}

static uint32_t nodes_of(const vd_buf *bytes, bool init) {
    vd_program p = {0};
    uint32_t count = 1;
    if (vd_program_decode(bytes->data, bytes->size, &p, NULL) == VD_OK)
        count = (init ? &p.init : &p.step)->stored_count;
    vd_program_free(&p);
    return count;
}

static bool changes(vd_buf *bytes, dice *d, counts *c) {
    const uint32_t wanted = 1 + dice_below(d, CHANGES_MAX);
    const bool init = dice_one_in(d, 12);
    const uint32_t centre = dice_below(d, nodes_of(bytes, init));
    uint32_t done = 0;
    for (uint32_t i = 0; i < TRIES * wanted && done < wanted; i++)
        done += change(bytes, centre, init, d, c);
    return done > 0;
}

/* ---- many programs ---- */

static void keep_failure(const options *o, const vd_buf *bytes, uint64_t values,
                         const ways_why *why) {
    char path[512];
    vd_err err = {0};
    snprintf(path, sizeof path, "%s/differs-%llu.program", o->out, (unsigned long long)values);
    if (vd_write_file(path, bytes->data, bytes->size, 0644, &err) != VD_OK)
        fprintf(stderr, "%s\n", err.text);
    fprintf(stderr, "FAILED: %s\ngraphs --backend %s --replay --seed %llu 1 %s\n", why->text,
            o->backend ? o->backend : "cpu", (unsigned long long)values, path);
}

/* Makes the second program of a pack, by one or two more changes of the first, *p. */
static void make_similar(const vd_buf *bytes, dice *d, counts *c, vd_program *out) {
    vd_buf changed = {0};
    uint32_t done = 0;
    replace(&changed, bytes);
    for (int i = 0; i < 2 * TRIES && done < 2; i++)
        done += change(&changed, 0, dice_one_in(d, 3), d, c);
    if (vd_program_decode(changed.data, changed.size, out, NULL) == VD_OK && !is_small(out))
        vd_program_free(out);
    vd_buf_free(&changed);
}

/* Returns false if bits differ. */
static bool all_agree(const options *o, const machines *m, const vd_buf *bytes, const vd_program *p,
                      dice *d, counts *c) {
    const uint64_t values = dice_word(d) >> 16;
    vd_program similar = {0};
    ways_why why;
    int ran = 0;
    make_similar(bytes, d, c, &similar);
    const bool same =
        ways_agree(m, p, values, &why) && together_agree(m, p, &similar, values, &ran, &why);
    c->together += ran > 1, c->similar += ran > 2;
    if (!same)
        keep_failure(o, bytes, values, &why);
    vd_program_free(&similar);
    return same;
}

/* Returns false if bits differ. */
static bool run_changed(const options *o, const machines *m, seed_program *s, dice *d, counts *c) {
    vd_program p = {0};
    bool same = true;
    if (dice_one_in(d, 4))
        replace(&s->now, &s->given);
    if (!changes(&s->now, d, c)) {
        c->barren++;
        return true;
    }
    if (vd_program_decode(s->now.data, s->now.size, &p, NULL) == VD_OK && is_small(&p)) {
        same = all_agree(o, m, &s->now, &p, d, c);
        c->run++;
        counts_add(c, &p);
    } else {
        c->large++;
        replace(&s->now, &s->given);
    }
    vd_program_free(&p);
    return same;
}

static int fuzz(const options *o, const machines *m, seed_program *list) {
    enum { MINUTE = 10000 };
    static counts c;
    dice d = {o->seed};
    while (c.run < o->count) {
        const uint64_t before = c.run;
        if (!run_changed(o, m, &list[dice_below(&d, (uint64_t)o->files)], &d, &c))
            return 1;
        if (c.run > before && c.run % MINUTE == 0)
            printf("  %llu programs\n", (unsigned long long)c.run), fflush(stdout);
    }
    counts_print(&c);
    return 0;
}

static int replay(const options *o, const machines *m, seed_program *list) {
    ways_why why;
    for (int i = 0; i < o->files; i++) {
        vd_program p = {0};
        vd_err err = {0};
        if (vd_program_decode(list[i].given.data, list[i].given.size, &p, &err) != VD_OK) {
            fprintf(stderr, "%s: %s\n", o->file[i], err.text);
            return 1;
        }
        int ran;
        for (uint64_t v = 0; v < o->count; v++)
            if (!ways_agree(m, &p, o->seed + v, &why) ||
                !together_agree(m, &p, &p, o->seed + v, &ran, &why)) {
                fprintf(stderr, "FAILED: %s, values of seed %llu: %s\n", o->file[i],
                        (unsigned long long)(o->seed + v), why.text);
                return 1;
            }
        vd_program_free(&p);
    }
    printf("%d programs as they are, %llu times: the same bits\n", o->files,
           (unsigned long long)o->count);
    return 0;
}

/* ---- the command line ---- */

static bool parse(int argc, char **argv, options *o) {
    int i = 1;
    *o = (options){.out = ".", .seed = 1};
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--backend") == 0)
            o->backend = argv[++i];
        else if (strcmp(argv[i], "--seed") == 0)
            o->seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--out") == 0)
            o->out = argv[++i];
        else if (strcmp(argv[i], "--replay") == 0)
            o->replay = true;
        else
            return false;
    }
    o->count = i < argc ? strtoull(argv[i], NULL, 10) : 0;
    o->file = argv + i + 1, o->files = argc - i - 1;
    return o->count > 0 && o->files > 0;
}

static bool read_seeds(const options *o, seed_program *list) {
    for (int i = 0; i < o->files; i++) {
        vd_err err = {0};
        if (vd_read_file(o->file[i], PROGRAM_BYTES, &list[i].given, &err) != VD_OK) {
            fprintf(stderr, "%s\n", err.text);
            return false;
        }
        replace(&list[i].now, &list[i].given);
    }
    return true;
}

int main(int argc, char **argv) {
    options o;
    machines m;
    ways_why why;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: graphs [--backend NAME] [--seed N] [--out DIR] [--replay] COUNT "
                        "PROGRAM...\n");
        return 2;
    }
    seed_program *list = calloc((size_t)o.files, sizeof *list);
    if (!list || !read_seeds(&o, list))
        return 1;
    vd_keep_pages();
    if (!ways_open(o.backend, &m, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    printf("backend %s\n", ro_ctx_backend(m.one));
    const int code = o.replay ? replay(&o, &m, list) : fuzz(&o, &m, list);
    ways_close(&m);
    for (int i = 0; i < o.files; i++) {
        vd_buf_free(&list[i].given);
        vd_buf_free(&list[i].now);
    }
    free(list);
    return code;
}
