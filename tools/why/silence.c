#include "why/silence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "diag/diag.h"
#include "events/drops.h"
#include "facts/record.h"

enum { MOST_DROPS = 4, BEFORE = 10000000 }; /* the time of a post is known to some milliseconds */

static bool is_ended(const struct story_end *end)
{
    return facts_is(&end->story.ended);
}

/* When its work failed, and when that was posted; 0: none did. */
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
    json_array_foreach(story_end_events(end), i, event) count +=
        is_drop(event, since) && (unsigned)record_number(event, EVENT_FIELD_REASON) == reason;
    return count;
}

/* -- the state of the other end */

static bool takes_nothing(const struct story_end *other)
{
    return story_end_is_in(other, "RESET") || story_end_is_in(other, "INIT") || story_end_is_in(other, "ERR");
}

/* It came to its state before the work failed, as far as that is known; of an ended one it must be. Changes before the
 * first packet have no record, but what was dropped for the state shows it. */
static bool was_so_before(const struct story_end *end, const struct story_end *other)
{
    const json_t *change = story_end_event(other, EVENT_QP_STATE);
    if (!change)
        return !is_ended(other) || count_drops(other, REASON_PACKET_QP_STATE, sent_since(end));
    return !failed_at(end) || record_time(change) <= failed_at(end);
}

static bool moved_itself(const struct story_end *other)
{
    return story_end_is_in(other, "ERR") && !other->error.reason.value && story_end_event(other, EVENT_QP_STATE);
}

static void tell_state(struct tale *tale, const struct story_end *other)
{
    char name[TALE_NAME], when[TALE_NAME];
    tale_name(other, name);
    if (moved_itself(other))
        tale_say(tale,
                 "%s%s itself moved queue pair 0x%" PRIx64
                 " to ERR (ibv_modify_qp, or rdma_disconnect), where it takes nothing.",
                 tale_time(record_time(story_end_event(other, EVENT_QP_STATE)), when), name, other->story.qp.value);
    else
        tale_say(tale, "%s %s queue pair 0x%" PRIx64 " in %s, where it %s nothing.", name,
                 is_ended(other) ? "had" : "has", other->story.qp.value, facts_text(other->story.state),
                 is_ended(other) ? "took" : "takes");
}

/* -- what it dropped */

/* In numbers. False: they are not known. */
static bool tell_too_short(struct tale *tale, const struct story_end *end, json_int_t count)
{
    enum { GRH = 40 };
    char name[TALE_NAME];
    const struct facts_short *receive = &end->too_short;
    bool datagram = !strcmp(facts_text(end->story.type), "UD");
    uint64_t room = receive->room.value, bytes = receive->bytes.value;
    if (!receive->wr_id.known || room >= bytes + (datagram ? GRH : 0))
        return false;
    if (datagram)
        tale_say(tale,
                 "%s dropped %" PRIu64 " packet%s (reason %u): a datagram of %" PRIu64
                 " bytes needs a receive of %" PRIu64
                 ", as the %d bytes of the GRH stand before its payload, and the receive of wr_id %" PRIu64
                 " has room for %" PRIu64
                 ". Post receives that are %d bytes longer than the longest datagram (ibv_post_recv).",
                 tale_name(end, name), (uint64_t)count, tale_plural(count), (unsigned)REASON_PACKET_TOO_LONG, bytes,
                 bytes + GRH, GRH, receive->wr_id.value, room, GRH);
    else
        tale_say(tale,
                 "%s dropped %" PRIu64 " packet%s (reason %u): a packet of %" PRIu64
                 " bytes met the receive of wr_id %" PRIu64 ", which has room for %" PRIu64 ".",
                 tale_name(end, name), (uint64_t)count, tale_plural(count), (unsigned)REASON_PACKET_TOO_LONG, bytes,
                 receive->wr_id.value, room);
    return true;
}

static void tell_drop(struct tale *tale, const struct story_end *end, unsigned reason, json_int_t since)
{
    char name[TALE_NAME];
    json_int_t count = count_drops(end, reason, since);
    const char *sentence = reason_sentence(reason);
    if (reason == REASON_PACKET_TOO_LONG && tell_too_short(tale, end, count))
        return;
    if (sentence)
        tale_say(tale, "%s dropped %" PRIu64 " packet%s (reason %u): %s", tale_name(end, name), (uint64_t)count,
                 tale_plural(count), reason, sentence);
}

void silence_tell_drops(struct tale *tale, const struct story_end *end, json_int_t since)
{
    unsigned told[MOST_DROPS], count = 0;
    size_t i;
    json_t *event;
    json_array_foreach(story_end_events(end), i, event)
    {
        unsigned reason = (unsigned)record_number(event, EVENT_FIELD_REASON), k = 0;
        while (k < count && told[k] != reason)
            k++;
        if (!is_drop(event, since) || k < count || count == MOST_DROPS)
            continue;
        told[count++] = reason;
        tell_drop(tale, end, reason, since);
    }
}

/* The first that says more than the state does. */
static unsigned dropped_for(const struct story_end *end, json_int_t since)
{
    size_t i;
    json_t *event;
    json_array_foreach(story_end_events(end), i, event)
    {
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

/* -- that there is no other end */

static void tell_stranger(struct tale *tale)
{
    char name[TALE_NAME];
    const struct story_end *stranger = tale->stranger;
    tale_say(tale,
             "%s has queue pair 0x%" PRIx64 ", which is connected with 0x%" PRIx64 ", not with 0x%" PRIx64
             ": its answers go there.",
             tale_name(stranger, name), stranger->story.qp.value, stranger->story.peer_qp.value,
             tale->own->story.qp.value);
}

static bool has_ended(const struct tale *tale, const struct story_end *end)
{
    uint64_t pid = end->story.peer_pid.value;
    return facts_is(&end->story.peer_ended) || (pid && tale->processes && !tale_process(tale, pid));
}

static void tell_absence(struct tale *tale, const struct story_end *end)
{
    uint64_t pid = end->story.peer_pid.value;
    const struct seen_process *process = tale_process(tale, pid);
    if (has_ended(tale, end) && pid)
        tale_say(tale, "Process %d, which had queue pair 0x%" PRIx64 ", has ended.", (int)pid,
                 end->story.peer_qp.value);
    else if (has_ended(tale, end))
        tale_say(tale, "The process that had queue pair 0x%" PRIx64 " has ended.", end->story.peer_qp.value);
    else if (process && facts_is(&process->own.answers))
        tale_say(tale,
                 "%.40s (%d) lives and has no queue pair 0x%" PRIx64
                 ": it was destroyed (ibv_destroy_qp), or never made.",
                 facts_text(process->own.program), (int)pid, end->story.peer_qp.value);
    else if (!process && !end->story.network.known)
        tale_say(tale, "No process of this directory has queue pair 0x%" PRIx64 " or has left its story.",
                 end->story.peer_qp.value);
}

static void tell_other(struct tale *tale, const struct story_end *end, const struct story_end *other)
{
    if (takes_nothing(other) && was_so_before(end, other)) {
        tell_state(tale, other);
        return;
    }
    if (has_ended(tale, end))
        tell_absence(tale, end);
    silence_tell_drops(tale, other, sent_since(end));
}

void silence_tell(struct tale *tale, const struct story_end *end, const struct story_end *other)
{
    if (other)
        tell_other(tale, end, other);
    else if (tale->stranger && end == tale->own)
        tell_stranger(tale);
    else
        tell_absence(tale, end);
    if (story_end_count(end, EVENT_FRAME_LOST) || story_end_count(other, EVENT_FRAME_LOST))
        tale_say(tale, "Faults that were asked for lost %" PRIu64 " packets of this end and %" PRIu64 " of the other.",
                 story_end_count(end, EVENT_FRAME_LOST), story_end_count(other, EVENT_FRAME_LOST));
}

void silence_tell_missing(struct tale *tale)
{
    const struct story_end *own = tale->own;
    const struct seen_process *process = tale_process(tale, own->story.peer_pid.value);
    if (own->story.network.known)
        tale_say(tale, "The other end is on another host: \"softverbs why --qp 0x%" PRIx64 "\" there.",
                 own->story.peer_qp.value);
    else if (tale->peer || tale->stranger || own->story.peer_qp.value == own->story.qp.value)
        return;
    else if (process && facts_is(&process->own.answers))
        tale_say(tale, "The part of the other end is not known: its queue pair is gone and has left no story.");
    else if (process)
        tale_say(tale,
                 "The part of the other end is not known: process %d does not answer: it is stopped (SIGSTOP, a "
                 "debugger), or ends.",
                 (int)own->story.peer_pid.value);
    else
        tale_say(tale,
                 "The part of the other end is not known: its process has ended and left no story, or is not of this "
                 "directory.");
}
