#include "trace/trace_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "command.h"
#include "script/answers.h"
#include "script/reader.h"

static const char *bare_title(enum script_call call)
{
    return strchr(script_title(call), '_') + 1;
}

static bool is_call(const char *name)
{
    for (enum script_call call = 0; call < SCRIPT_CALLS; call++)
        if (!strcmp(name, script_title(call)) || !strcmp(name, bare_title(call)))
            return true;
    return false;
}

static void complain_of(const char *name)
{
    struct suggestion suggestion = suggest_begin(name);
    char meant[READER_MEANT];
    for (enum script_call call = 0; call < SCRIPT_CALLS; call++) {
        suggest_try(&suggestion, bare_title(call));
        suggest_try(&suggestion, script_title(call));
    }
    complain("There is no call \"%s\".%s", name,
             *name == '!' ? " A \"!\" before the first name leaves out all calls of the list."
                          : reader_meant(&suggestion, meant));
}

bool trace_calls_check(const char *calls)
{
    bool good = true;
    text_excludes(&calls);
    char *copy = strdup(calls), *rest = copy;
    for (char *name; good && (name = strsep(&rest, ","));) {
        good = !*name || is_call(name);
        if (!good)
            complain_of(name);
    }
    free(copy);
    return good;
}
