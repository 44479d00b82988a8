#include "why/silence.h"

#include <stdio.h>
#include <string.h>

#include "diag/diag.h"
#include "events/drops.h"
#include "facts/record.h"
#include "why/adapter.h"

enum { MOST_DROPS = 4, BEFORE = 10000000, GRH = 40 }; /* the time of a post is known to some milliseconds */

/* When work of the end failed, and when that work was posted; 0: no work failed. */
static json_int_t failed_at(const struct story_end *end)
{
    return (json_int_t)end->error.time.value;
}

static json_int_t sent_since(const struct story_end *end)
{
    json_int_t posted = (json_int_t)end->error.posted.value;
    return posted > BEFORE ? posted - BEFORE : 0;
}

static bool is_drop(const json_t *event, json_int_t since)
{
    return record_is(event, EVENT_PACKET_DROPPED) && record_time(event) >= since &&
           drops_lose((unsigned)record_number(event, EVENT_FIELD_REASON));
}

static json_int_t count_drops(const struct story_end *end, unsigned reason, json_int_t since)
{
    json_int_t count = 0;
    size_t i;
    json_t *event;
    json_array_foreach (story_end_events(end), i, event)
        count += is_drop(event, since) && (unsigned)record_number(event, EVENT_FIELD_REASON) == reason;
    return count;
}

/* -- the state of the other end */

/* Returns whether the other end was in its state before the work failed. Without a record of the change (a change
 * before the first packet leaves no record) this is taken for true, but of an ended queue pair only if it dropped
 * packets for its state. */
static bool was_so_before(const struct story_end *end, const struct story_end *other)
{
    const json_t *change = story_end_event(other, EVENT_QP_STATE);
    if (!change)
        return !facts_is(&other->story.ended) || count_drops(other, REASON_PACKET_QP_STATE, sent_since(end));
    return !failed_at(end) || record_time(change) <= failed_at(end);
}

static bool takes_nothing(const struct story_end *other)
{
    return story_end_is_in(other, "RESET") || story_end_is_in(other, "INIT") || story_end_is_in(other, "ERR");
}

static void tell_state(struct explanation *explanation, const struct story_end *end, const struct story_end *other)
{
    struct known known = explanation_known(end, other);
    const json_t *change = story_end_event(other, EVENT_QP_STATE);
    bool moved = story_end_is_in(other, "ERR") && !story_end_reason(other) && change;
    known.ended = facts_is(&other->story.ended);
    explanation_diagnose(explanation, moved ? record_time(change) : 0,
                         moved ? DIAGNOSIS_PEER_MOVED : diagnose_silence(&known), &known);
}

/* -- packets that an end dropped */

/* The last receive that was too short explains drops of packets that were too long, and no others. */
static void tell_drop(struct explanation *explanation, const struct story_end *end, unsigned reason, json_int_t since)
{
    struct known known = explanation_known(end, NULL);
    bool datagram = !strcmp(facts_text(end->story.type), "UD");
    known.count = (struct fact_number){(uint64_t)count_drops(end, reason, since), true};
    known.reason = (struct fact_number){reason, true};
    known.needed = (struct fact_number){end->too_short.bytes.value + (datagram ? GRH : 0), true};
    if (reason != REASON_PACKET_TOO_LONG)
        known.too_short = NULL;
    explanation_first(explanation, DIAGNOSE_DROP, &known);
}

void silence_tell_drops(struct explanation *explanation, const struct story_end *end, json_int_t since)
{
    unsigned told[MOST_DROPS], count = 0;
    size_t i;
    json_t *event;
    json_array_foreach (story_end_events(end), i, event) {
        unsigned reason = (unsigned)record_number(event, EVENT_FIELD_REASON), k = 0;
        while (k < count && told[k] != reason)
            k++;
        if (!is_drop(event, since) || k < count || count == MOST_DROPS)
            continue;
        told[count++] = reason;
        tell_drop(explanation, end, reason, since);
    }
}

/* The reason of the first drop that says more than the state of the end does; 0: no drop does. */
static unsigned dropped_for(const struct story_end *end, json_int_t since)
{
    size_t i;
    json_t *event;
    json_array_foreach (story_end_events(end), i, event) {
        if (is_drop(event, since) && record_number(event, EVENT_FIELD_REASON) != REASON_PACKET_QP_STATE)
            return (unsigned)record_number(event, EVENT_FIELD_REASON);
    }
    return 0;
}

unsigned silence_reason(const struct story_end *end, const struct story_end *other)
{
    unsigned reason = story_end_reason(other);
    if (reason && failed_at(other) <= failed_at(end))
        return reason;
    return dropped_for(other, sent_since(end));
}

/* -- a missing other end */

static bool has_ended(const struct explanation *explanation, const struct story_end *end)
{
    uint64_t pid = end->story.peer_pid.value;
    return facts_is(&end->story.peer_ended) ||
           (pid && explanation->processes && !explanation_process(explanation, pid));
}

static void tell_absence(struct explanation *explanation, const struct story_end *end)
{
    char name[EXPLANATION_NAME] = "The process";
    uint64_t pid = end->story.peer_pid.value;
    const struct seen_process *process = explanation_process(explanation, pid);
    struct known known = explanation_known(end, NULL);
    known.process = name;
    known.partner = process ? &process->own : NULL;
    known.asked.ended = has_ended(explanation, end);
    known.absence = diagnose(DIAGNOSE_ABSENCE, &known);
    if (known.asked.ended && pid)
        snprintf(name, sizeof name, "Process %d", (int)pid);
    else if (process)
        explanation_name_process(process->own.program, pid, name);
    if (known.absence == DIAGNOSIS_FOUND_OUT)
        explanation_diagnose(explanation, failed_at(end), known.absence, &known);
    else
        explanation_diagnose(explanation, 0, diagnose_silence(&known), &known);
}

static void tell_other(struct explanation *explanation, const struct story_end *end, const struct story_end *other)
{
    if (takes_nothing(other) && was_so_before(end, other)) {
        tell_state(explanation, end, other);
        return;
    }
    if (has_ended(explanation, end))
        tell_absence(explanation, end);
    if (adapter_is(other))
        adapter_tell_silence(explanation, end, other);
    silence_tell_drops(explanation, other, sent_since(end));
}

void silence_tell(struct explanation *explanation, const struct story_end *end, const struct story_end *other)
{
    struct known known = explanation_known(end, end == explanation->own ? explanation->stranger : NULL);
    known.count = (struct fact_number){story_end_count(end, EVENT_FRAME_LOST), true};
    known.needed = (struct fact_number){story_end_count(other, EVENT_FRAME_LOST), true};
    if (other)
        tell_other(explanation, end, other);
    else if (known.peer && !end->error.cause)
        explanation_diagnose(explanation, 0, DIAGNOSIS_OTHER_PEER, &known);
    else
        tell_absence(explanation, end);
    if (known.count.value || known.needed.value)
        explanation_diagnose(explanation, 0, DIAGNOSIS_FAULTS_LOST, &known);
}

void silence_tell_missing(struct explanation *explanation)
{
    struct known known =
        explanation_known(explanation->own, explanation->peer ? explanation->peer : explanation->stranger);
    const struct seen_process *process = explanation_process(explanation, explanation->own->story.peer_pid.value);
    known.partner = process ? &process->own : NULL;
    explanation_first(explanation, DIAGNOSE_OTHER_END, &known);
}
