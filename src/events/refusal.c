#include "events/refusal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "diag/log.h"
#include "events/call_counts.h"
#include "events/process_events.h"

_Thread_local struct refusal refusal_now __attribute__((tls_model("initial-exec")));

const char *refusal_call(void)
{
    return refusal_now.call ? refusal_now.call : "a call";
}

/* Returns a name that lasts for a call of the data path, which names itself and its object in memory that does not
 * last. */
static const char *lasting_name(const char *call)
{
    static const char *const names[] = {"ibv_post_send", "ibv_post_recv",   "ibv_post_srq_recv", "ibv_post_srq_ops",
                                        "ibv_bind_mw",   "ibv_wr_complete", "ibv_post_wq_recv"};
    for (size_t i = 0; !refusal_now.call && i < sizeof names / sizeof *names; i++)
        if (strstr(call, names[i]))
            return names[i];
    return refusal_call();
}

static void note(enum event event, const char *call, enum reason reason, bool sentence, const char *format,
                 va_list arguments)
{
    char text[320];
    event = refusal_now.usual ? EVENT_CALL_DENIED : event;
    enum log_level level = (enum log_level)event_level(event);
    refusal_now.told = true;
    refusal_keep(reason);
    call_note(event, reason);
    event_probe(0, event, reason, (uintptr_t)call);
    process_events_note(event, 0, reason, (uintptr_t)lasting_name(call));
    if (log_leaves_out(level, reason))
        return;
    vsnprintf(text, sizeof text, format, arguments);
    if (sentence)
        log_reason(level, reason, "%s%s%s", call, text[0] ? ": " : "", text);
    else
        log_cause(level, reason, "%s: %s", call, text);
}

#define REFUSE(event, call, sentence)                                                                                  \
    va_list arguments;                                                                                                 \
    va_start(arguments, format);                                                                                       \
    note(event, call, reason, sentence, format, arguments);                                                            \
    va_end(arguments);                                                                                                 \
    return error

int refuse(int error, enum reason reason, const char *format, ...)
{
    REFUSE(EVENT_CALL_REFUSED, refusal_call(), true);
}

int refuse_because(int error, enum reason reason, const char *format, ...)
{
    REFUSE(EVENT_CALL_REFUSED, refusal_call(), false);
}

int refuse_offer(int error, enum reason reason, const char *format, ...)
{
    REFUSE(EVENT_CALL_DENIED, refusal_call(), true);
}

int refuse_in(const char *call, int error, enum reason reason, const char *format, ...)
{
    REFUSE(EVENT_CALL_REFUSED, call, true);
}

int refuse_in_because(const char *call, int error, enum reason reason, const char *format, ...)
{
    REFUSE(EVENT_CALL_REFUSED, call, false);
}

void *refused_null(int error)
{
    errno = error;
    return NULL;
}

int refused_minus(int error)
{
    errno = error;
    return -1;
}

void refusal_end(const struct refusal *before, int error)
{
    if (error && !refusal_now.told)
        refuse(error, error == ENOMEM ? REASON_NO_MEMORY : REASON_SYSTEM_CALL, "%s", strerror(error));
    refusal_now = *before;
}
