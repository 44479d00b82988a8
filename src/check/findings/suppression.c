#include "check/findings/suppression.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "diag/log.h"

enum { SUPPRESSIONS_MOST = 256 };

static struct suppression {
    char program[64], rule[64], function[128];
} * suppressions; /* NULL: no file */
static unsigned count;

static void read_line(char *text, const char *path, unsigned number)
{
    struct suppression *line = &suppressions[count];
    char rest;
    text[strcspn(text, "#\n")] = 0;
    if (!text[strspn(text, " \t")])
        return;
    if (sscanf(text, "%63s %63s %127s %c", line->program, line->rule, line->function, &rest) == 3)
        count++;
    else
        log_always("check: %s, line %u ignored: it is not PROGRAM RULE FUNCTION", path, number);
}

void suppression_begin(void)
{
    const char *path = setting_environment(SETTING_CHECK_SUPPRESSIONS);
    char text[512];
    if (!path || !*path)
        return;
    FILE *file = fopen(path, "re");
    if (!file) {
        log_always("check: SOFTVERBS_CHECK_SUPPRESSIONS=%s can't be read: %s", path, strerror(errno));
        return;
    }
    suppressions = calloc(SUPPRESSIONS_MOST, sizeof *suppressions);
    for (unsigned number = 1; suppressions && count < SUPPRESSIONS_MOST && fgets(text, sizeof text, file); number++)
        read_line(text, path, number);
    fclose(file);
}

static bool has_function(const char *pattern, const struct symbol *symbols, unsigned many)
{
    for (unsigned at = 0; at < many; at++)
        if (!fnmatch(pattern, symbols[at].function, 0))
            return true;
    return false;
}

static bool is_at(const char *pattern, const struct finding *finding, const struct finding_places *places)
{
    return has_function(pattern, places->posted, finding->posted ? finding->posted->count : 0) ||
           has_function(pattern, places->found, finding->found.count) ||
           has_function(pattern, places->created, finding->created.count);
}

bool suppression_covers(const struct finding *finding, const struct finding_places *places)
{
    for (unsigned at = 0; at < count; at++) {
        const struct suppression *line = &suppressions[at];
        if (!fnmatch(line->program, program_invocation_short_name, 0) &&
            !fnmatch(line->rule, rule_lines[finding->rule].id, 0) && is_at(line->function, finding, places))
            return true;
    }
    return false;
}
