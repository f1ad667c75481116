/* Deliberate faults, one of each kind that the analyzer must find. Never linked. */
#include <stdlib.h>

int unset(int seen);
int unset(int seen) {
    int value, copy = 0;
    if (seen)
        copy = value;
    return copy;
}

void freed_before_it_is_set(int seen);
void freed_before_it_is_set(int seen) {
    char *text;
    if (seen)
        text = malloc(8);
    free(text);
}

int null(int seen);
int null(int seen) {
    int *value = seen ? &seen : NULL;
    return seen ? 0 : *value;
}

void twice(void);
void twice(void) {
    char *text = malloc(8);
    free(text);
    free(text);
}
