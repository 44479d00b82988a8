#include "why/substitute.h"

#include <stdio.h>
#include <string.h>

#include "diag/sentence.h"
#include "facts/record.h"

enum { PASSED_ON = 50000000 }; /* ns until the process that passes a stand-in's answer on has noted that answer, too */

bool substitute_is(const struct story_end *end)
{
    return facts_is(&end->story.stands_in);
}

bool substitute_is_better(const struct story_end *one, const struct story_end *other)
{
    bool failed = story_end_reason(one), other_failed = story_end_reason(other);
    return failed != other_failed ? failed : one->story.time.value >= other->story.time.value;
}

/* When the end last answered that it has no receive; 0: never. */
static json_int_t last_empty(const struct story_end *end)
{
    return record_time(story_end_event(end, EVENT_RNR_SENT));
}

/* Returns whether the stand-in was the last end without a receive; a receiver whose queue no message has named does not
 * count. */
static bool is_empty(const struct story_end *substitute, const struct story_end *receiver)
{
    json_int_t when = last_empty(substitute);
    return when && (!(receiver && receiver->story.srq.known) || when + PASSED_ON > last_empty(receiver));
}

bool substitute_act(const struct story_end **own, const struct story_end **peer, const struct story_end *substitute)
{
    const struct story_end **receiver = !strcmp(facts_text((*own)->story.type), "XRC_RECV") ? own : peer;
    bool acts = substitute && (story_end_reason(substitute) || is_empty(substitute, *receiver));
    if (acts)
        *receiver = substitute;
    return acts;
}

void substitute_tell(struct explanation *explanation, const struct story_end *substitute, const struct story_end *end)
{
    char other[EXPLANATION_NAME], queue[EXPLANATION_NAME] = "a shared receive queue";
    struct known known = explanation_known(substitute, end);
    known.words = queue;
    if (substitute->story.srq.known)
        snprintf(queue, sizeof queue, "the " OBJECT_NAMED, "shared receive queue",
                 (unsigned)substitute->story.srq.value);
    snprintf(other, sizeof other, "process %d", (int)substitute->story.peer_pid.value);
    if (!end)
        known.process = other;
    explanation_diagnose(explanation, 0, DIAGNOSIS_SUBSTITUTE, &known);
}
