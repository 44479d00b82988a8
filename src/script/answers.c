#include "script/answers.h"

const struct script_name script_names[SCRIPT_EVENTS] = {
#define CALL(answer, type, name, title, ...) [SCRIPT_##name] = {title, SCRIPT_ANSWER_##answer, SCRIPT_KIND_CALL},
#define HELD CALL
#include "calls/each.def"
#define HAPPENING(name, kind, meaning) [SCRIPT_##name] = {#name, SCRIPT_ANSWER_nothing, SCRIPT_KIND_##kind},
#include "script/words.def"
};
