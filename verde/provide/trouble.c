/* This file reports trouble of this machine once, and then at most once a minute. */
#include "verde/provide/trouble.h"

#include <string.h>

/* Returns the entry of this text, or replaces the one reported longest ago. */
static vd_trouble_line *find_line(vd_trouble *t, const char *text) {
    vd_trouble_line *oldest = &t->line[0];
    for (int i = 0; i < VD_TROUBLE_KINDS; i++) {
        vd_trouble_line *line = &t->line[i];
        if (strncmp(line->text, text, sizeof line->text - 1) == 0)
            return line;
        if (line->said < oldest->said)
            oldest = line;
    }
    *oldest = (vd_trouble_line){.again = 0};
    snprintf(oldest->text, sizeof oldest->text, "%s", text);
    return oldest;
}

void vd_trouble_tell(vd_trouble *t, const vd_daemon_options *options, const char *text) {
    const double now = vd_seconds();
    pthread_mutex_lock(&t->lock);
    vd_trouble_line *line = find_line(t, text);
    const long again = line->again++;
    const bool first = again == 0, due = now - line->said >= VD_TROUBLE_S;
    if (first || due)
        *line = (vd_trouble_line){.said = now, .again = 1, .text = ""};
    if (first || due)
        snprintf(line->text, sizeof line->text, "%s", text);
    pthread_mutex_unlock(&t->lock);
    if (first)
        options->say("verde provide: %s", text);
    else if (due)
        options->say("verde provide: %s (%ld times since it was said last)", text, again);
}
