/* Every call that a program can make, by number, with its name and with how it reports that it failed. The lists are
 * calls/verbs.def and calls/ucma.def. */
#ifndef SCRIPT_ANSWERS_H
#define SCRIPT_ANSWERS_H

enum script_call {
#define CALL(type, name, title, parameters, arguments) SCRIPT_##name,
#define HELD(type, name, title, parameters, arguments) SCRIPT_##name,
#include "calls/each.def"
    SCRIPT_CALLS
};

/* As base/result.h: an error number; -1 and errno; an error number below 0; NULL and errno; -1 and errno of a call that
 * waits; calls that do not fail. */
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
    const char *title; /* of the manual page, some behind a _; several calls may share it */
    enum script_answer answer;
};

extern const struct script_name script_names[SCRIPT_CALLS];

/* How the calls answer that verbs.def lists without a word for it. */
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
