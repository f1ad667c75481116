/* All memory of a context comes from its allocator. If the allocator fails at any call, every
 * operator returns a status and nothing leaks. */
#include "each_operator.h"
#include "op_cases.h"

#include <criterion/criterion.h>

enum { CASES = 6, CALLS_MAX = 100, THREADS = 3 };

typedef struct {
    int calls, fails_at; /* the call that returns NULL, counted from 0 */
    int live;
} arena;

static void *arena_alloc(void *user, size_t size, size_t alignment) {
    arena *a = user;
    if (a->calls++ == a->fails_at)
        return NULL;
    void *block = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    a->live += block != NULL;
    return block;
}

static void arena_free(void *user, void *block) {
    cr_assert(block != NULL);
    ((arena *)user)->live--;
    free(block);
}

/* Runs twice: the second run reuses the first one's workspace. */
static ro_status run_twice(arena *a, const op_case *c) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options,
                                .threads = THREADS,
                                .alloc = arena_alloc,
                                .free = arena_free,
                                .user = a};
    ro_status status = ro_ctx_create(&options, &ctx);
    for (int i = 0; i < 2 && status == RO_OK; i++)
        status = ro_run(ctx, &c->call, (const void *const *)c->data, c->out);
    if (status != RO_OK)
        cr_expect(strstr(ro_ctx_error(ctx), "memory"), "\"%s\"", ro_ctx_error(ctx));
    ro_ctx_destroy(ctx);
    return status;
}

static void fail_each_call(int op, uint64_t seed) {
    op_case c;
    arena a = {.fails_at = -1};
    cr_assert(case_roll(&c, op, seed) == NULL);
    cr_assert(run_twice(&a, &c) == RO_OK);
    const char *name = ro_op_describe(op)->name;
    const int calls = a.calls;
    cr_expect(calls >= 1 && calls < CALLS_MAX && a.live == 0, "%s: %d blocks are left", name,
              a.live);
    for (int i = 0; i < calls; i++) {
        a = (arena){.fails_at = i};
        cr_expect(run_twice(&a, &c) == RO_ERR_MEMORY, "%s, call %d of %d", name, i, calls);
        cr_expect(a.live == 0, "%s, call %d: %d blocks are left", name, i, a.live);
    }
    case_free(&c);
}

Test(memory, allocator_that_fails_at_any_call_leaves_a_status_and_no_block) {
    for (int op = next_operator(0); op; op = next_operator(op))
        for (uint64_t seed = 0; seed < CASES; seed++)
            fail_each_call(op, 4242 + seed);
}
