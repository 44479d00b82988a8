/* The log as tests of refusals read it: lines that end with a reason. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "diag/log.h"

enum { LINE = 700, LINES = 4096 };

/* Before any call of the library: lines go to a file in a new directory, which is the host's directory, too. False: no
 * directory. Lines of the level info are written as log_threshold has it, which is LOG_WARN from here on. */
bool lines_start(void);
void lines_end(void);

/* The lines that were written since the last call. */
void lines_read(char text[LINES]);

/* How many lines of the text have a reason; `line` is the last, without what every line begins with. */
unsigned lines_count(const char *text, char line[LINE]);

bool lines_name_reason(const char *line, enum reason);

/* One row of a table: the call and what is wrong with it, the reason and the errno (0: any) that it must have. */
struct refused {
    const char *call, *wrong;
    const char *name; /* what the line begins with */
    enum reason reason;
    int error;
    enum log_level level;
};

/* Makes the call, which is true when it was refused and leaves its errno. Prints what is not as the row says. `silent`
 * is set when there was no line at all. */
bool lines_check(const struct refused *, bool (*refused)(const void *), const void *context, char line[LINE],
                 bool *silent);

/* The same in a process that is forked for it. */
bool lines_check_in_child(const struct refused *, bool (*refused)(const void *));

/* No two causes have the same words, numbers and all. Rows of one call with one text are one cause. `row_of` has the
 * row of a place. */
bool lines_differ(char (*lines)[LINE], size_t count, struct refused (*row_of)(size_t));
