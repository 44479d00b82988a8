/* Calls that the library refuses: where they are. */
#include <string.h>

#include "check/findings/finding.h"
#include "check/hooks.h"

static void refused_call(const char *call, int error)
{
    char text[80];
    finding_add(&(struct finding_about){.rule = RULE_REFUSED_CALL, .kind = "process"}, "%s was refused: %s", call,
                strerror_r(error, text, sizeof text));
}

const struct hooks rules_refusals = {.refused_call = refused_call};
