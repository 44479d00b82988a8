#include "check/hooks.h"

const struct hooks *const hooks_all[] = {
#define RULES_OF(file) &rules_##file,
#include "check/rules.def"
};

const unsigned hooks_count = sizeof hooks_all / sizeof *hooks_all;
