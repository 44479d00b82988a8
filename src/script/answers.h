/* Every call that a program can make, by number, with its name and with how it reports that it failed; and other
 * happenings that rules may be for. The lists are calls/verbs.def, calls/ucma.def and script/words.def. */
#ifndef SCRIPT_ANSWERS_H
#define SCRIPT_ANSWERS_H

enum script_call {
#define CALL(type, name, title, parameters, arguments) SCRIPT_##name,
#define HELD(type, name, title, parameters, arguments) SCRIPT_##name,
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

/* How calls fail (base/result.h): an error number; -1 and errno; an error number below 0; NULL and errno; -1 and
 * errno of a call that waits; calls that do not fail. */
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
    const char *title; /* the manual page's, some after a _; several calls may share it */
    enum script_answer answer;
    unsigned kind; /* enum script_kind */
};

extern const struct script_name script_names[SCRIPT_EVENTS];

/* The name of the call: "ibv_reg_mr" */
static inline const char *script_title(enum script_call call)
{
    return script_names[call].title + (*script_names[call].title == '_');
}

/* How calls answer that verbs.def lists without a word for that. */
#define SCRIPT_FAST_bind_mw SCRIPT_ANSWER_code
#define SCRIPT_FAST_poll_cq SCRIPT_ANSWER_negative
#define SCRIPT_FAST_req_notify_cq SCRIPT_ANSWER_code
#define SCRIPT_FAST_post_srq_recv SCRIPT_ANSWER_code
#define SCRIPT_FAST_post_srq_ops SCRIPT_ANSWER_code
#define SCRIPT_FAST_post_send SCRIPT_ANSWER_code
#define SCRIPT_FAST_post_recv SCRIPT_ANSWER_code
#define SCRIPT_TYPE_void SCRIPT_ANSWER_nothing
#define SCRIPT_TYPE_int SCRIPT_ANSWER_code

#endif
