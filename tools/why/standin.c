#include "why/standin.h"

#include <inttypes.h>
#include <stdio.h>

enum { PASSED_ON = 50000000 }; /* ns, until the process that passes on a stand-in's answer has noted it, too */

bool standin_is(const json_t *end)
{
    return json_is_true(json_object_get(end, "stands_in"));
}

bool standin_is_better(const json_t *one, const json_t *other)
{
    bool failed = tale_reason(one), other_failed = tale_reason(other);
    return failed != other_failed ? failed : tale_number(one, "time") >= tale_number(other, "time");
}

/* When it last answered that it has no receive; 0: never. */
static json_int_t last_empty(const json_t *end)
{
    return tale_number(tale_event(end, "RNR_SENT"), "time");
}

/* Returns whether it was the last without a receive. The other is not, if no message has named a queue of its own. */
static bool is_empty(const json_t *standin, const json_t *receiver)
{
    json_int_t when = last_empty(standin);
    return when && (!json_object_get(receiver, "srq") || when + PASSED_ON > last_empty(receiver));
}

bool standin_act(const json_t **own, const json_t **peer, const json_t *standin)
{
    const json_t **receiver = tale_has(*own, "type", "XRC_RECV") ? own : peer;
    bool acts = standin && (tale_reason(standin) || is_empty(standin, *receiver));
    if (acts)
        *receiver = standin;
    return acts;
}

void standin_tell(struct tale *tale, const json_t *standin, const json_t *end)
{
    char name[TALE_NAME], other[TALE_NAME], queue[TALE_NAME] = "a shared receive queue";
    if (json_object_get(standin, "srq"))
        snprintf(queue, sizeof queue, "shared receive queue %u", (unsigned)tale_number(standin, "srq"));
    if (end)
        tale_name(end, other);
    else
        snprintf(other, sizeof other, "process %d", (int)tale_number(standin, "peer_pid"));
    tale_say(tale, "%s has %s of XRC and takes the messages that name it, in place of %s.", tale_name(standin, name),
             queue, other);
}
