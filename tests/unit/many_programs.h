/* A job of many small programs, and two providers that have run it. */
#ifndef MANY_PROGRAMS_H
#define MANY_PROGRAMS_H

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/support/dispute.h"

enum { ITEMS = 5, STEPS = 3 };

/* A provider's runs of all items. */
typedef struct {
    test_provider run[ITEMS];
    vd_hash root[ITEMS];
    vd_provider side;
} many_runs;

typedef struct {
    test_job job[ITEMS];
    vd_hash program[ITEMS];
    vd_collection collection;
    vd_hash hash;
    many_runs side[2];
} many;

static inline vd_status copy_program(void *user, uint64_t item, vd_program *out, vd_err *err) {
    const many *m = user;
    vd_buf bytes = {0};
    vd_program_encode(&m->job[item].program, &bytes);
    vd_status status = vd_program_decode(bytes.data, bytes.size, out, err);
    vd_buf_free(&bytes);
    return status;
}

static inline vd_status item_source(void *user, uint64_t item, vd_source *out, vd_err *err) {
    many_runs *runs = user;
    (void)err;
    *out = vd_replay_source(runs->run[item].replay);
    return VD_OK;
}

static inline vd_hash root_of(const vd_hash *item, uint64_t count) {
    vd_hash root;
    cr_assert(vd_collection_root(item, count, &root, NULL) == VD_OK);
    return root;
}

static inline void open_side(many *m, int p, int wrong, const char *fault) {
    many_runs *runs = &m->side[p];
    for (int i = 0; i < ITEMS; i++) {
        const vd_fault f = test_fault(&m->job[i], fault ? fault : "skip@1");
        test_provider_open(&runs->run[i], &m->job[i], (uint8_t)(p + 1), i == wrong ? &f : NULL);
        runs->root[i] = runs->run[i].run.run_root;
    }
    runs->side = (vd_provider){.collection = &m->collection,
                               .program_hash = m->hash,
                               .key = runs->run[0].key,
                               .source = {.run_root = root_of(runs->root, ITEMS)},
                               .item_root = runs->root,
                               .item_source = item_source,
                               .items = runs};
}

/* Opens items that differ in their seeds. The second provider has this fault in item `wrong`; -1:
 * in none. */
static inline void many_open(many *m, int wrong, const char *fault) {
    for (int i = 0; i < ITEMS; i++) {
        test_job_open_seed(&m->job[i], VD_MODEL_MLP, STEPS, (uint64_t)i + 1);
        m->program[i] = m->job[i].hash;
    }
    m->collection = (vd_collection){.count = ITEMS,
                                    .programs = root_of(m->program, ITEMS),
                                    .program = m->program,
                                    .load = copy_program,
                                    .user = m};
    cr_assert(vd_collection_commit(ITEMS, &m->collection.programs, &m->hash));
    open_side(m, 0, -1, NULL);
    open_side(m, 1, wrong, fault);
}

static inline void many_close(many *m) {
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < ITEMS; i++)
            test_provider_close(&m->side[p].run[i]);
    for (int i = 0; i < ITEMS; i++)
        test_job_close(&m->job[i]);
}

#endif
