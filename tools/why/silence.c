#include "why/silence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "diag/diag.h"
#include "events/drops.h"

enum { MOST_DROPS = 4, BEFORE = 10000000 }; /* the time of a post is known to some milliseconds */

static uint64_t number_of(const json_t *end, const char *key)
{
    return (uint64_t)tale_number(end, key);
}

static bool is_ended(const json_t *end)
{
    return json_is_true(json_object_get(end, "ended"));
}

/* When its work failed, and when that was posted; 0: none did. */
static json_int_t failed_at(const json_t *end)
{
    return tale_number(json_object_get(end, "error"), "time");
}

static json_int_t sent_since(const json_t *end)
{
    json_int_t posted = tale_number(json_object_get(end, "error"), "posted");
    return posted > BEFORE ? posted - BEFORE : 0;
}

static bool is_drop(const json_t *event, json_int_t since)
{
    return tale_has(event, "event", "PACKET_DROPPED") && tale_number(event, "time") >= since &&
           drops_lose((unsigned)tale_number(event, "reason"));
}

static json_int_t count_drops(const json_t *end, unsigned reason, json_int_t since)
{
    json_int_t count = 0;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(end, "events"), i, event) count +=
        is_drop(event, since) && (unsigned)tale_number(event, "reason") == reason;
    return count;
}

/* -- the state of the other end */

static bool takes_nothing(const json_t *other)
{
    return tale_has(other, "state", "RESET") || tale_has(other, "state", "INIT") || tale_has(other, "state", "ERR");
}

/* It came to its state before the work failed, as far as that is known; of an ended one it must be. Changes before the
 * first packet have no record, but what was dropped for the state shows it. */
static bool was_so_before(const json_t *end, const json_t *other)
{
    const json_t *change = tale_event(other, "QP_STATE");
    if (!change)
        return !is_ended(other) || count_drops(other, REASON_PACKET_QP_STATE, sent_since(end));
    return !failed_at(end) || tale_number(change, "time") <= failed_at(end);
}

static bool moved_itself(const json_t *other)
{
    return tale_has(other, "state", "ERR") && !tale_number(json_object_get(other, "error"), "reason") &&
           tale_event(other, "QP_STATE");
}

static void tell_state(struct tale *tale, const json_t *other)
{
    char name[TALE_NAME], when[TALE_NAME];
    tale_name(other, name);
    if (moved_itself(other))
        tale_say(tale,
                 "%s%s itself moved queue pair 0x%" PRIx64
                 " to ERR (ibv_modify_qp, or rdma_disconnect), where it takes nothing.",
                 tale_time(tale_number(tale_event(other, "QP_STATE"), "time"), when), name, number_of(other, "qp"));
    else
        tale_say(tale, "%s %s queue pair 0x%" PRIx64 " in %s, where it %s nothing.", name,
                 is_ended(other) ? "had" : "has", number_of(other, "qp"), tale_text(other, "state"),
                 is_ended(other) ? "took" : "takes");
}

/* -- what it dropped */

/* In numbers. False: they are not known. */
static bool tell_too_short(struct tale *tale, const json_t *end, json_int_t count)
{
    enum { GRH = 40 };
    char name[TALE_NAME];
    const json_t *receive = json_object_get(end, "too_short");
    bool datagram = tale_has(end, "type", "UD");
    uint64_t room = number_of(receive, "room"), bytes = number_of(receive, "bytes");
    if (!receive || room >= bytes + (datagram ? GRH : 0))
        return false;
    if (datagram)
        tale_say(tale,
                 "%s dropped %" PRIu64 " packet%s (reason %u): a datagram of %" PRIu64
                 " bytes needs a receive of %" PRIu64
                 ", as the %d bytes of the GRH stand before its payload, and the receive of wr_id %" PRIu64
                 " has room for %" PRIu64
                 ". Post receives that are %d bytes longer than the longest datagram (ibv_post_recv).",
                 tale_name(end, name), (uint64_t)count, tale_plural(count), (unsigned)REASON_PACKET_TOO_LONG, bytes,
                 bytes + GRH, GRH, number_of(receive, "wr_id"), room, GRH);
    else
        tale_say(tale,
                 "%s dropped %" PRIu64 " packet%s (reason %u): a packet of %" PRIu64
                 " bytes met the receive of wr_id %" PRIu64 ", which has room for %" PRIu64 ".",
                 tale_name(end, name), (uint64_t)count, tale_plural(count), (unsigned)REASON_PACKET_TOO_LONG, bytes,
                 number_of(receive, "wr_id"), room);
    return true;
}

static void tell_drop(struct tale *tale, const json_t *end, unsigned reason, json_int_t since)
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

void silence_tell_drops(struct tale *tale, const json_t *end, json_int_t since)
{
    unsigned told[MOST_DROPS], count = 0;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(end, "events"), i, event)
    {
        unsigned reason = (unsigned)tale_number(event, "reason"), k = 0;
        while (k < count && told[k] != reason)
            k++;
        if (!is_drop(event, since) || k < count || count == MOST_DROPS)
            continue;
        told[count++] = reason;
        tell_drop(tale, end, reason, since);
    }
}

/* The first that says more than the state does. */
static unsigned dropped_for(const json_t *end, json_int_t since)
{
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(end, "events"), i, event)
    {
        if (is_drop(event, since) && tale_number(event, "reason") != REASON_PACKET_QP_STATE)
            return (unsigned)tale_number(event, "reason");
    }
    return 0;
}

unsigned silence_reason(const json_t *end, const json_t *other)
{
    const json_t *error = json_object_get(other, "error");
    unsigned reason = (unsigned)tale_number(error, "reason");
    if (reason && tale_number(error, "time") <= failed_at(end))
        return reason;
    return dropped_for(other, sent_since(end));
}

/* -- that there is no other end */

static void tell_stranger(struct tale *tale)
{
    char name[TALE_NAME];
    const json_t *stranger = tale->stranger;
    tale_say(tale,
             "%s has queue pair 0x%" PRIx64 ", which is connected with 0x%" PRIx64 ", not with 0x%" PRIx64
             ": its answers go there.",
             tale_name(stranger, name), number_of(stranger, "qp"), number_of(stranger, "peer_qp"),
             number_of(tale->own, "qp"));
}

static bool has_ended(const struct tale *tale, const json_t *end)
{
    json_int_t pid = tale_number(end, "peer_pid");
    return json_is_true(json_object_get(end, "peer_ended")) || (pid && tale->processes && !tale_process(tale, pid));
}

static void tell_absence(struct tale *tale, const json_t *end)
{
    json_int_t pid = tale_number(end, "peer_pid");
    const json_t *process = tale_process(tale, pid);
    if (has_ended(tale, end) && pid)
        tale_say(tale, "Process %d, which had queue pair 0x%" PRIx64 ", has ended.", (int)pid,
                 number_of(end, "peer_qp"));
    else if (has_ended(tale, end))
        tale_say(tale, "The process that had queue pair 0x%" PRIx64 " has ended.", number_of(end, "peer_qp"));
    else if (json_is_true(json_object_get(process, "answers")))
        tale_say(tale,
                 "%.40s (%d) lives and has no queue pair 0x%" PRIx64
                 ": it was destroyed (ibv_destroy_qp), or never made.",
                 tale_text(process, "program"), (int)pid, number_of(end, "peer_qp"));
    else if (!process && !json_object_get(end, "network"))
        tale_say(tale, "No process of this directory has queue pair 0x%" PRIx64 " or has left its story.",
                 number_of(end, "peer_qp"));
}

static void tell_other(struct tale *tale, const json_t *end, const json_t *other)
{
    if (takes_nothing(other) && was_so_before(end, other)) {
        tell_state(tale, other);
        return;
    }
    if (has_ended(tale, end))
        tell_absence(tale, end);
    silence_tell_drops(tale, other, sent_since(end));
}

void silence_tell(struct tale *tale, const json_t *end, const json_t *other)
{
    if (other)
        tell_other(tale, end, other);
    else if (tale->stranger && end == tale->own)
        tell_stranger(tale);
    else
        tell_absence(tale, end);
    if (tale_number(end, "faults") || tale_number(other, "faults"))
        tale_say(tale, "Faults that were asked for lost %" PRIu64 " packets of this end and %" PRIu64 " of the other.",
                 number_of(end, "faults"), number_of(other, "faults"));
}

void silence_tell_missing(struct tale *tale)
{
    const json_t *own = tale->own, *process = tale_process(tale, tale_number(own, "peer_pid"));
    if (json_object_get(own, "network"))
        tale_say(tale, "The other end is on another host: \"softverbs why --qp 0x%" PRIx64 "\" there.",
                 number_of(own, "peer_qp"));
    else if (tale->peer || tale->stranger || tale_number(own, "peer_qp") == tale_number(own, "qp"))
        return;
    else if (json_is_true(json_object_get(process, "answers")))
        tale_say(tale, "The part of the other end is not known: its queue pair is gone and has left no story.");
    else if (process)
        tale_say(tale,
                 "The part of the other end is not known: process %d does not answer: it is stopped (SIGSTOP, a "
                 "debugger), or ends.",
                 (int)tale_number(own, "peer_pid"));
    else
        tale_say(tale,
                 "The part of the other end is not known: its process has ended and left no story, or is not of this "
                 "directory.");
}
