/* What the daemon's operator is told about trouble, and how often. */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>

#include "verde/provide/trouble.h"

static int said;
static char last[512];

static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(last, sizeof last, format, args);
    va_end(args);
    said++;
}

static vd_trouble trouble = {.lock = PTHREAD_MUTEX_INITIALIZER};
static const vd_daemon_options options = {.say = say};

static void tell(const char *text, int times) {
    for (int i = 0; i < times; i++)
        vd_trouble_tell(&trouble, &options, text);
}

static void a_minute_passes(void) {
    for (int i = 0; i < VD_TROUBLE_KINDS; i++)
        trouble.line[i].said -= VD_TROUBLE_S;
}

Test(provide_trouble, is_said_once_and_then_once_a_minute) {
    tell("the disk is full", 1000);
    cr_expect(said == 1 && strcmp(last, "verde provide: the disk is full") == 0, "%s", last);
    tell("another", 10);
    tell("the disk is full", 10);
    cr_expect(said == 2);
    a_minute_passes();
    tell("the disk is full", 10);
    cr_expect(said == 3 && strstr(last, "the disk is full (1010 times since"), "%s", last);
    a_minute_passes();
    tell("the disk is full", 1);
    cr_expect(said == 4 && strstr(last, "(10 times since"), "%s", last);
}

Test(provide_trouble, more_kinds_than_are_remembered_are_all_said) {
    char text[32];
    for (int i = 0; i < 3 * VD_TROUBLE_KINDS; i++) {
        snprintf(text, sizeof text, "trouble %d", i);
        tell(text, 2);
        cr_expect(said == i + 1);
    }
}

/* A message as long as a line may be, or longer, is recognised when it repeats. */
Test(provide_trouble, long_sentences_are_known_again) {
    char text[600];
    memset(text, 'x', sizeof text);
    for (size_t size = 250; size < 260; size++) {
        const int before = said;
        text[size] = 0;
        tell(text, 5);
        cr_expect(said <= before + 1, "%zu", size);
        text[size] = 'x';
    }
}
