/* Refused calls of the interface. Each is an event of events.def, which is counted by its reason and writes one line at
 * the level warn. The line begins with the name of the call, has the numbers that were wrong, and ends with the reason:
 *
 *     return refuse(EINVAL, REASON_PORT, "port is %u", port);
 *
 * writes "ibv_query_port: port is 2: The device has one port, number 1. (reason 321)". The wrappers of the interface
 * (abi/around.h) name the call; a function of the data path, which has no wrapper, names it by refuse_in.
 * tools/build/refusals.py ensures that src/verbs and src/abi return errnos by these functions. All are thread-safe,
 * need no lock and may be called under any lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "diag/diag.h"

struct refusal {
    const char *call; /* the call of the interface that this thread is in; NULL: it is in no call with a wrapper */
    bool told;        /* its line was written, or it needs no line */
    bool usual;       /* its refusals count as if by refuse_offer */
    uint16_t reason;  /* of its refusal, or of the last refusal of a call without a wrapper; REASON_NONE: not given */
};

extern _Thread_local struct refusal refusal_now __attribute__((tls_model("initial-exec")));

/* The name of the call that this thread is in; "a call" if the call has no wrapper. */
const char *refusal_call(void);

/* Enters a call; returns the call that the thread was in, for refusal_end. `call` lives as long as the program. */
static inline struct refusal refusal_begin(const char *call)
{
    struct refusal before = refusal_now;
    refusal_now = (struct refusal){.call = call[0] == '_' ? call + 1 : call};
    return before;
}

/* Leaves the call; `error` is 0 if it succeeded. A failure without a line is the C library's or the kernel's, and gets
 * its line here. errno stays. */
void refusal_end(const struct refusal *before, int error);

#define REFUSES(text, values) __attribute__((__cold__, noinline, format(printf, text, values)))

/* Writes "CALL: TEXT: SENTENCE (reason N)" and returns `error`. errno stays. */
int refuse(int error, enum reason, const char *format, ...) REFUSES(3, 4);

/* The same as refuse, but without the sentence, for a text that says more than it. */
int refuse_because(int error, enum reason, const char *format, ...) REFUSES(3, 4);

/* The same as refuse, but at the level info and counted apart: programs make the call to learn whether they can have
 * something. */
int refuse_offer(int error, enum reason, const char *format, ...) REFUSES(3, 4);

/* The same as refuse and refuse_because, for a line that begins with the name `call`; an empty TEXT is left out. */
int refuse_in(const char *call, int error, enum reason, const char *format, ...) REFUSES(4, 5);
int refuse_in_because(const char *call, int error, enum reason, const char *format, ...) REFUSES(4, 5);

/* Set errno and return NULL, or -1, for functions that fail so: refused_null(refuse(EINVAL, ...)). */
void *refused_null(int error);
int refused_minus(int error);

/* Returns `error`. The function that found the error has written its line. */
static inline int refused(int error)
{
    return error;
}

/* For the caller of a function of the data path, which has no wrapper: forgets the reasons of earlier calls, so that
 * refusal_reason is this call's. */
static inline void refusal_forget(void)
{
    refusal_now.reason = REASON_NONE;
}

/* The reason of the last refusal of the call that this thread is in, or of what it called since refusal_forget. */
static inline enum reason refusal_reason(void)
{
    return (enum reason)refusal_now.reason;
}

/* Keeps the reason of a refusal whose line is left out. */
static inline void refusal_keep(enum reason reason)
{
    refusal_now.reason = (uint16_t)reason;
}

/* Marks that other code has logged why this call fails, as scripts of faults do. */
static inline void refusal_told(void)
{
    refusal_now.told = true;
}

/* Makes refusals of this call count as by refuse_offer: programs make it without knowing whether they may. */
static inline void refusal_usual(void)
{
    refusal_now.usual = true;
}

/* Returns `error`, which is an answer that programs look for and not a refusal: it needs no line. */
static inline int not_refused(int error)
{
    refusal_now.told = true;
    return error;
}
