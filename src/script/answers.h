/* Every call that a program can make, by number, with its name and with how it reports that it failed; and other
 * happenings that rules may be for. The lists are calls/verbs.def, calls/ucma.def and script/words.def. */
#pragma once

enum script_call {
#define CALL(answer, type, name, title, parameters, arguments) SCRIPT_##name,
#define HELD(answer, type, name, title, parameters, arguments) SCRIPT_##name,
#include "calls/each.def"
    SCRIPT_CALLS,
    SCRIPT_BEFORE_HAPPENINGS = SCRIPT_CALLS - 1,
#define HAPPENING(name, kind, meaning) SCRIPT_##name,
#include "script/words.def"
    SCRIPT_EVENTS
};

/* The subjects of actions. */
enum {
#define KIND(NAME, name) SCRIPT_PLACE_OF_##NAME,
#include "script/words.def"
    SCRIPT_KINDS
};
enum script_kind {
#define KIND(NAME, name) SCRIPT_KIND_##NAME = 1 << SCRIPT_PLACE_OF_##NAME,
#include "script/words.def"
    SCRIPT_KIND_ANYTHING = (1 << SCRIPT_KINDS) - 1,
};

/* The words of base/result.h; the words of calls that cannot fail are the last. */
enum script_answer {
    SCRIPT_ANSWER_code,
    SCRIPT_ANSWER_minus,
    SCRIPT_ANSWER_negative,
    SCRIPT_ANSWER_pointer,
    SCRIPT_ANSWER_event,
    SCRIPT_ANSWER_nothing,
    SCRIPT_ANSWER_plain,
};

struct script_name {
    const char *title; /* of the manual page; several calls may share it */
    enum script_answer answer;
    unsigned kind; /* enum script_kind */
};

extern const struct script_name script_names[SCRIPT_EVENTS];

/* The name of the call: "ibv_reg_mr" */
static inline const char *script_title(enum script_call call)
{
    return script_names[call].title;
}
