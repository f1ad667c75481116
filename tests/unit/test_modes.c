/* The floating-point modes that a program sets for its own arithmetic. */
#include "hostile_modes.h"
#include "repops/modes.h"

#include <criterion/criterion.h>
#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>

static const int directions[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
enum { DIRECTIONS = sizeof directions / sizeof directions[0] };

typedef struct {
    float read, computed;
    double third;
    float subnormal;
} numbers;

static numbers make(void) {
    volatile float small = 0x1p-126f, tenth = 0.1f;
    volatile double one = 1, three = 3;
    return (numbers){strtof("0.3", NULL), tenth * tenth, one / three, small / 2};
}

static void *make_in_thread(void *user) {
    *(numbers *)user = make();
    return NULL;
}

static void expect_default(const numbers *n, const char *where) {
    cr_expect(n->read == 0x1.333334p-2f, "%s: strtof gives %a", where, (double)n->read);
    cr_expect(n->computed == 0x1.47ae16p-7f, "%s: 0.1 * 0.1 is %a", where, (double)n->computed);
    cr_expect(n->third == 0x1.5555555555555p-2, "%s: 1 / 3 is %a", where, n->third);
    cr_expect(n->subnormal == 0x1p-127f, "%s: a subnormal is %a", where, (double)n->subnormal);
}

Test(modes, set_gives_the_same_numbers_in_all_directions_and_restore_gives_back) {
    for (int i = 0; i < DIRECTIONS; i++) {
        cr_assert(fesetround(directions[i]) == 0);
        const float before = strtof("0.3", NULL);
        const uint64_t modes = ro_modes_set();
        const numbers n = make();
        const int direction = fegetround();
        ro_modes_restore(modes);
        const int after = fegetround();
        const float again = strtof("0.3", NULL);
        fesetround(FE_TONEAREST);
        expect_default(&n, "a direction");
        cr_expect(direction == FE_TONEAREST);
        cr_expect(after == directions[i]);
        cr_expect(again == before);
    }
}

#ifdef HOSTILE
Test(modes, set_keeps_subnormals_that_a_library_flushes) {
    static const uint64_t hostile[] = HOSTILE_MODES;
    const uint64_t own = ro_fp_read();
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        numbers thread;
        pthread_t id;
        ro_fp_write(hostile[i]);
        const uint64_t modes = ro_modes_set();
        const numbers n = make();
        const int started = pthread_create(&id, NULL, make_in_thread, &thread);
        ro_modes_restore(modes);
        const uint64_t after = ro_fp_read();
        ro_fp_write(own);
        expect_default(&n, "a register");
        cr_assert(started == 0 && pthread_join(id, NULL) == 0);
        expect_default(&thread, "a thread that was started meanwhile");
        cr_expect((after & ~(uint64_t)RO_FP_STICKY) == (hostile[i] & ~(uint64_t)RO_FP_STICKY));
    }
}
#endif

/* With FE_INEXACT unmasked, 1 / 3 would end the process. */
Test(modes, set_masks_exceptions_that_trap) {
    if (feenableexcept(FE_ALL_EXCEPT) == -1 || fegetexcept() != FE_ALL_EXCEPT)
        cr_skip("this machine cannot trap");
    const uint64_t modes = ro_modes_set();
    const numbers n = make();
    const int trapping = fegetexcept();
    ro_modes_restore(modes);
    const int after = fegetexcept();
    fedisableexcept(FE_ALL_EXCEPT);
    expect_default(&n, "exceptions");
    cr_expect(trapping == 0);
    cr_expect(after == FE_ALL_EXCEPT);
}

/* ---- teams of threads ---- */

#ifdef HOSTILE
static _Thread_local int number; /* the thread's number in its team */

static int own_number(void) {
    return number;
}

typedef struct {
    ro_team_modes *team;
    uint64_t hostile;
    int number, passed;
} member;

static void *inside(void *argument) {
    member *own = argument;
    number = own->number;
    const uint64_t before = ro_fp_read();
    ro_fp_write(own->hostile);
    const uint64_t modes = ro_modes();
    ro_team_modes_set(own->team);
    own->passed = modes != 0 && ro_modes() == 0 && own->team->modes[number] == modes;
    ro_team_modes_restore(own->team);
    own->passed &= ro_modes() == modes;
    ro_fp_write(before);
    return NULL;
}

Test(modes, each_thread_of_a_team_gets_its_own_back) {
    static const uint64_t hostile[] = HOSTILE_MODES;
    enum { THREADS = sizeof(hostile) / sizeof(hostile[0]) };
    uint64_t modes[THREADS] = {0};
    ro_team_modes team = {own_number, modes};
    member members[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        members[i] = (member){&team, hostile[i], i, 0};
        cr_assert(pthread_create(&thread[i], NULL, inside, &members[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        cr_assert(pthread_join(thread[i], NULL) == 0);
        cr_expect(members[i].passed, "thread %d", i);
        cr_expect(i == 0 || modes[i] != modes[0]);
    }
}
#endif

Test(modes, the_default_modes_are_no_difference) {
    uint64_t modes = 1;
    cr_expect(ro_modes() == 0);
#ifdef HOSTILE
    ro_team_modes team = {own_number, &modes};
    ro_team_modes_set(&team);
    cr_expect(modes == 0 && ro_modes() == 0);
#else
    (void)modes;
#endif
}
