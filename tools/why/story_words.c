#include "why/story_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "diag/clean.h"
#include "diag/diag.h"
#include "facts/record.h"
#include "print/emit.h"
#include "why/silence.h"
#include "why/standin.h"
#include "why/tale.h"

enum { DETAIL = 512 };

/* -- what was refused, with its numbers. */

static const char *kind_of(const struct facts_refused *memory)
{
    return facts_is(&memory->window) ? "memory window" : "region";
}

static void describe_bounds(const struct facts_refused *memory, char *text)
{
    uint64_t base = memory->base.value, address = memory->address.value;
    int length = snprintf(text, DETAIL, "key 0x%" PRIx64 " belongs to a %s of %" PRIu64 " bytes; %" PRIu64 " bytes ",
                          memory->key.value, kind_of(memory), memory->size.value, memory->length.value);
    snprintf(text + length, DETAIL - (size_t)length, "at offset %s%" PRIu64 " do not fit", address < base ? "-" : "",
             address < base ? base - address : address - base);
}

static void describe_key(const struct facts_refused *memory, char *text)
{
    snprintf(text, DETAIL,
             "key 0x%" PRIx64
             " is that of no memory region of this process: never registered, deregistered, or another process's",
             memory->key.value);
}

static void describe_remote_key(const struct facts_refused *memory, char *text)
{
    snprintf(text, DETAIL,
             "key 0x%" PRIx64 " is that of no memory region and no bound memory window of this process: never "
             "registered or bound, deregistered, invalidated, or another process's",
             memory->key.value);
}

static void describe_domain(const struct facts_refused *memory, char *text)
{
    snprintf(text, DETAIL, "the %s of key 0x%" PRIx64 " is of another protection domain than the queue pair",
             kind_of(memory), memory->key.value);
}

static void describe_permission(const struct facts_refused *memory, char *text)
{
    snprintf(text, DETAIL, "the %s of key 0x%" PRIx64 " was %s with %.160s, and this needs %.160s", kind_of(memory),
             memory->key.value, facts_is(&memory->window) ? "bound" : "registered", facts_text(memory->has),
             facts_text(memory->access));
}

static const struct {
    enum reason reasons[3]; /* of a send, a receive, a peer's request */
    void (*describe)(const struct facts_refused *memory, char *text);
} memory_lines[] = {
    {{REASON_LOCAL_KEY_UNKNOWN, REASON_RECEIVE_KEY_UNKNOWN}, describe_key},
    {{REASON_REMOTE_KEY_UNKNOWN}, describe_remote_key},
    {{REASON_LOCAL_PD, REASON_RECEIVE_PD, REASON_REMOTE_PD}, describe_domain},
    {{REASON_LOCAL_RANGE, REASON_RECEIVE_RANGE, REASON_REMOTE_RANGE}, describe_bounds},
    {{REASON_LOCAL_PERMISSION, REASON_RECEIVE_PERMISSION, REASON_REMOTE_PERMISSION}, describe_permission},
};

static bool describe_memory(const struct story_end *end, char *text)
{
    const struct facts_refused *memory = end->error.memory.of ? &end->memory : NULL;
    unsigned reason = (unsigned)end->error.reason.value;
    for (size_t i = 0; memory && i < sizeof memory_lines / sizeof *memory_lines; i++)
        for (int k = 0; k < 3; k++)
            if (memory_lines[i].reasons[k] == reason) {
                memory_lines[i].describe(memory, text);
                return true;
            }
    return false;
}

/* Why, in numbers where they are known, otherwise the reason's own sentence. `sent`: bytes of the message, as its
 * sender says; 0: not known. */
static const char *describe(const struct story_end *end, uint64_t sent, char text[DETAIL])
{
    unsigned reason = (unsigned)end->error.reason.value;
    const bool receive = end->error.receive.of;
    if (describe_memory(end, text))
        return text;
    if (reason == REASON_XRC_STANDIN_FAILED)
        snprintf(text, DETAIL, "process %d, which has the shared receive queue, refused the message, and left no story",
                 (int)end->error.process.value);
    else if (reason == REASON_RECEIVE_TOO_SHORT && receive && sent)
        snprintf(text, DETAIL,
                 "the message has %" PRIu64 " bytes, and the receive of wr_id %" PRIu64 " has room for %" PRIu64,
                 (uint64_t)sent, end->receive.wr_id.value, end->receive.room.value);
    else if (reason == REASON_MESSAGE_LENGTH)
        snprintf(text, DETAIL, "a packet does not fit its message or this side's path_mtu of %" PRIu64 " bytes",
                 end->error.limit.value);
    else if (reason == REASON_QP_PERMISSION)
        snprintf(text, DETAIL, "qp_access_flags of its queue pair are %.160s", facts_text(end->error.flags));
    else if (reason == REASON_TOO_MANY_READS && !end->error.limit.value)
        snprintf(text, DETAIL, "max_dest_rd_atomic of its queue pair is 0, so that it takes no READs and atomics");
    else if (reason == REASON_TOO_MANY_READS)
        snprintf(text, DETAIL,
                 "max_dest_rd_atomic of its queue pair is %" PRIu64 ", and more READs and atomics came at a time",
                 end->error.limit.value);
    else {
        const char *sentence = reason_sentence(reason);
        snprintf(text, DETAIL, "%s", sentence ? sentence : "an unknown reason");
        size_t length = strlen(text);
        if (length && text[length - 1] == '.')
            text[length - 1] = 0;
    }
    return text;
}

/* -- the parts of a story */

static void tell_ends(struct tale *tale)
{
    char own[TALE_NAME], peer[TALE_NAME] = "";
    if (standin_is(tale->own)) {
        standin_tell(tale, tale->own, NULL);
        return;
    }
    if (tale->peer)
        tale_name(tale->peer, peer);
    else if (tale->own->story.peer_pid.value)
        snprintf(peer, sizeof peer, "process %d", (int)tale->own->story.peer_pid.value);
    uint64_t number = tale->own->story.peer_qp.value;
    if (number)
        tale_say(tale, "Queue pair 0x%" PRIx64 " of %s is %s in %s, connected with 0x%" PRIx64 "%s%s.",
                 tale->own->story.qp.value, tale_name(tale->own, own), facts_text(tale->own->story.type),
                 facts_text(tale->own->story.state), number, *peer ? " of " : "", peer);
    else
        tale_say(tale, "Queue pair 0x%" PRIx64 " of %s is %s in %s.", tale->own->story.qp.value,
                 tale_name(tale->own, own), facts_text(tale->own->story.type), facts_text(tale->own->story.state));
}

/* The clock of posts may be some milliseconds ahead: no work is refused before it was posted. */
static json_int_t posted_at(const struct story_end *end, const struct story_end *other)
{
    json_int_t posted = (json_int_t)end->error.posted.value;
    json_int_t refused = other ? (json_int_t)other->error.time.value : 0;
    return refused && refused < posted ? refused : posted;
}

/* Memory of the peer. */
static bool names_memory(const char *opcode)
{
    return strstr(opcode, "RDMA") || strstr(opcode, "ATOMIC") || strstr(opcode, "FLUSH");
}

static void tell_post(struct tale *tale, const struct story_end *end, const struct story_end *other)
{
    char name[TALE_NAME], when[TALE_NAME], where[128] = "";
    if (names_memory(facts_text(end->error.opcode)))
        snprintf(where, sizeof where, ", to address 0x%" PRIx64 " with rkey 0x%" PRIx64, end->error.address.value,
                 end->error.key.value);
    tale_say(tale, "%s%s posted %s of %" PRIu64 " bytes, wr_id %" PRIu64 "%s.", tale_time(posted_at(end, other), when),
             tale_name(end, name), facts_text(end->error.opcode), end->error.length.value, end->error.wr_id.value,
             where);
}

static void tell_refusal(struct tale *tale, const struct story_end *end, const struct story_end *sender)
{
    char name[TALE_NAME], when[TALE_NAME], detail[DETAIL];
    uint64_t sent = sender ? sender->error.length.value : end->error.length.value;
    tale_say(tale, "%s%s refused %s: %s (reason %u).", tale_time(end->error.time.value, when), tale_name(end, name),
             sender ? "it" : facts_text(end->error.operation), describe(end, sent, detail), story_end_reason(end));
    if (end->error.receive.of)
        tale_say(tale, "%s completed the receive of wr_id %" PRIu64 " with %s.", name, end->receive.wr_id.value,
                 facts_text(end->receive.status));
}

/* How receives are posted to an end; NULL: one that is not known. */
static const char *posting_of(const struct story_end *end)
{
    return end && end->story.srq.known ? "ibv_post_srq_recv" : "ibv_post_recv";
}

static void tell_attempts(struct tale *tale, const struct story_end *end, const struct story_end *other)
{
    unsigned reason = story_end_reason(end);
    char name[TALE_NAME];
    uint64_t rnrs = story_end_count(end, EVENT_RNR_RECEIVED), timeouts = story_end_count(end, EVENT_ACK_TIMEOUT);
    if (reason == REASON_RNR_EXCEEDED)
        tale_say(
            tale,
            "Its peer answered %" PRIu64 " time%s that it has no receive posted (%s); rnr_retry of %s is %" PRIu64 ".",
            (uint64_t)rnrs, tale_plural(rnrs), posting_of(other), tale_name(end, name), end->story.rnr_retry.value);
    if (reason == REASON_RETRY_EXCEEDED || reason == REASON_PEER_GONE || reason == REASON_PEER_STALLED ||
        reason == REASON_NOT_SENT)
        tale_say(tale,
                 "No answer came: the ACK timer ran out %" PRIu64 " time%s (timeout is %" PRIu64 ", retry_cnt %" PRIu64
                 ").",
                 (uint64_t)timeouts, tale_plural(timeouts), end->story.timeout.value, end->story.retry_cnt.value);
}

/* The other end says more than the code that came back. */
static bool is_refused_there(const struct story_end *end, const struct story_end *other)
{
    unsigned reason = story_end_reason(end);
    bool refuses = (other && !strcmp(facts_text(other->error.subject), "packet")) ||
                   story_end_reason(other) == REASON_XRC_STANDIN_FAILED;
    return other && refuses &&
           (reason == REASON_REMOTE_INVALID_REQUEST || reason == REASON_REMOTE_ACCESS ||
            reason == REASON_REMOTE_OPERATION);
}

/* The sentence about the attempts is not repeated. */
static bool is_of_attempts(unsigned reason)
{
    return reason == REASON_RETRY_EXCEEDED || reason == REASON_RNR_EXCEEDED || reason == REASON_PEER_GONE;
}

static void tell_completion(struct tale *tale, const struct story_end *end, const struct story_end *other)
{
    char name[TALE_NAME], when[TALE_NAME], detail[DETAIL] = "";
    if (!is_refused_there(end, other) && !is_of_attempts(story_end_reason(end)))
        describe(end, 0, detail);
    tale_say(tale, "%s%s completed it with %s%s%s (reason %u).", tale_time(end->error.time.value, when),
             tale_name(end, name), facts_text(end->error.status), *detail ? ": " : "", detail, story_end_reason(end));
}

static void tell_flushed(struct tale *tale, const struct story_end *end)
{
    char name[TALE_NAME];
    uint64_t sends = end->story.flushed_sends.value, receives = end->story.flushed_receives.value;
    if (sends)
        tale_say(tale, "%" PRIu64 " %swork request%s of %s ended with IBV_WC_WR_FLUSH_ERR.", (uint64_t)sends,
                 story_end_reason(end) ? "later " : "", tale_plural(sends), tale_name(end, name));
    if (receives)
        tale_say(tale, "%" PRIu64 " receive%s of %s ended with IBV_WC_WR_FLUSH_ERR.", (uint64_t)receives,
                 tale_plural(receives), tale_name(end, name));
}

static void tell_receives(struct tale *tale, const struct story_end *other)
{
    char name[TALE_NAME], queue[TALE_NAME] = "";
    uint64_t posted = other->story.recv_posted.value;
    if (other->story.srq.known)
        snprintf(queue, sizeof queue, "shared receive queue %u of ", (unsigned)other->story.srq.value);
    tale_name(other, name);
    if (posted)
        tale_say(tale, "%s has %" PRIu64 " receive%s posted to %s0x%" PRIx64 " since.", name, (uint64_t)posted,
                 tale_plural(posted), queue, other->story.qp.value);
    else
        tale_say(tale, "%s has no receive posted to %s0x%" PRIx64 ".", name, queue, other->story.qp.value);
}

static void tell_send(struct tale *tale, const struct story_end *end, const struct story_end *other)
{
    tell_post(tale, end, is_refused_there(end, other) ? other : NULL);
    if (is_refused_there(end, other))
        tell_refusal(tale, other, end);
    tell_attempts(tale, end, other);
    if (story_end_reason(end) == REASON_RNR_EXCEEDED && other)
        tell_receives(tale, other);
    if (story_end_reason(end) == REASON_RETRY_EXCEEDED || story_end_reason(end) == REASON_PEER_GONE)
        silence_tell(tale, end, other);
    tell_completion(tale, end, other);
}

static void tell_receive(struct tale *tale, const struct story_end *end)
{
    char name[TALE_NAME], when[TALE_NAME], detail[DETAIL];
    tale_say(tale, "%s%s completed the receive of wr_id %" PRIu64 " with %s: %s (reason %u).",
             tale_time(end->error.time.value, when), tale_name(end, name), end->receive.wr_id.value,
             facts_text(end->receive.status), describe(end, end->error.length.value, detail), story_end_reason(end));
}

static void tell_fault(struct tale *tale, const struct story_end *end)
{
    char name[TALE_NAME], when[TALE_NAME], detail[DETAIL];
    tale_say(tale, "%sThe queue pair of %s failed: %s (reason %u).", tale_time(end->error.time.value, when),
             tale_name(end, name), describe(end, 0, detail), story_end_reason(end));
}

/* The sentences about an end's error. */
static void tell_error(struct tale *tale, const struct story_end *end, const struct story_end *other)
{
    const char *subject = facts_text(end->error.subject);
    if (!strcmp(subject, "send"))
        tell_send(tale, end, other);
    else if (!strcmp(subject, "packet"))
        tell_refusal(tale, end, NULL);
    else if (!strcmp(subject, "receive"))
        tell_receive(tale, end);
    else
        tell_fault(tale, end);
}

/* "SEND_ENDED" or "RECEIVE_ENDED" of the newest completion, which may be the one that waits. */
static const json_t *last_completion(const struct story_end *end)
{
    const json_t *send = story_end_event(end, EVENT_SEND_ENDED), *receive = story_end_event(end, EVENT_RECEIVE_ENDED);
    return !send || (receive && record_time(receive) > record_time(send)) ? receive : send;
}

static bool is_ended(const struct story_end *end)
{
    return facts_is(&end->story.ended);
}

/* It was kept for what it waited for, and not for an error, with which its completion lies there, too. */
static bool is_kept_waiting(const struct story_end *end, const struct facts_cq *cq)
{
    return cq->event.known && !story_end_reason(end) && !story_end_is_in(end, "ERR");
}

/* The next queue of the end (NULL: it has no queue), from the i-th on, in which something lies that the program has not
 * polled. */
static bool next_unpolled(const struct story_end *end, size_t *i, struct facts_cq *cq)
{
    const struct fact_inner *cqs = end ? &end->story.cqs : NULL;
    while (cqs && *i < facts_count(cqs))
        if (facts_read_at(&facts_of_cq, cqs, (*i)++, cq) && cq->waiting.value &&
            (!is_ended(end) || is_kept_waiting(end, cq)))
            return true;
    return false;
}

static bool has_completions(const struct story_end *end)
{
    struct facts_cq cq;
    return next_unpolled(end, &(size_t){0}, &cq);
}

/* Completions that the program has not polled, and what became of their event. */
static void tell_completions(struct tale *tale, const struct story_end *end)
{
    struct facts_cq cq;
    char name[TALE_NAME], when[TALE_NAME], words[DIAGNOSE_ROOM];
    for (size_t i = 0; next_unpolled(end, &i, &cq);) {
        uint64_t waiting = cq.waiting.value;
        bool sleeps = cq.event.known || cq.asked.value;
        struct known known = {.cq = &cq, .ended = is_ended(end)};
        diagnose_words(diagnose_event(&known), &known, words, sizeof words);
        tale_say(tale, "%sCompletion queue %" PRIu64 " of %s %s %" PRIu64 " completion%s that %s not polled%s%s.",
                 tale_time(record_time(last_completion(end)), when), cq.handle.value, tale_name(end, name),
                 is_ended(end) ? "had" : "has", waiting, tale_plural(waiting), waiting == 1 ? "was" : "were",
                 sleeps ? ", and " : " (ibv_poll_cq)", sleeps ? words : "");
    }
}

/* The messages that did not arrive, of services that do not repeat; or why there is no answer yet. */
static void tell_losses(struct tale *tale)
{
    if (!tale->own->story.retry_cnt.known) {
        silence_tell_drops(tale, tale->own, 0);
        silence_tell_drops(tale, tale->peer, 0);
    } else if (is_ended(tale->own) && has_completions(tale->own))
        return;
    else if (tale->own->story.send_posted.value && !story_end_is_in(tale->own, "ERR"))
        silence_tell(tale, tale->own, tale->peer);
}

/* False: it does not wait for what may never come. */
static bool tell_wait(struct tale *tale)
{
    const struct facts_story *story = &tale->own->story;
    if (story->waits.value == REASON_NO_COMPLETION)
        tale_say(
            tale,
            "It had no error: all of its work requests were unsignalled, so no completion comes of any (reason %u).",
            REASON_NO_COMPLETION);
    else if (story->waits.value == REASON_NO_ANSWER)
        tale_say(tale,
                 "It had no error: it waits for an answer. Its timeout is %" PRIu64
                 ", so nothing is sent again soon (reason %u).",
                 story->timeout.value, REASON_NO_ANSWER);
    return story->waits.value == REASON_NO_COMPLETION || story->waits.value == REASON_NO_ANSWER;
}

/* No error: what the program did, or what it waits for. */
static void tell_flush_or_hang(struct tale *tale)
{
    char name[TALE_NAME], when[TALE_NAME];
    const json_t *state = story_end_event(tale->own, EVENT_QP_STATE);
    uint64_t rnrs = story_end_count(tale->own, EVENT_RNR_RECEIVED), waits = story_end_count(tale->own, EVENT_RNR_SENT);
    tale_name(tale->own, name);
    if (story_end_is_in(tale->own, "ERR"))
        tale_say(tale, "%sIt had no error: %s itself moved the queue pair to ERR (ibv_modify_qp, or rdma_disconnect).",
                 tale_time(record_time(state), when), name);
    else if (tell_wait(tale))
        ;
    else if (rnrs && tale->own->story.send_posted.value)
        tale_say(tale,
                 "It had no error: it waits. Its peer answered %" PRIu64
                 " time%s that it has no receive posted (%s), and rnr_retry is %" PRIu64 "%s.",
                 (uint64_t)rnrs, tale_plural(rnrs), posting_of(tale->peer), tale->own->story.rnr_retry.value,
                 tale->own->story.rnr_retry.value == 7 ? ", for ever" : "");
    else if (waits && !tale->own->story.recv_posted.value)
        tale_say(tale,
                 "It had no error. It has no receive posted (%s) for a message of its peer, and answered so "
                 "%" PRIu64 " time%s.",
                 posting_of(tale->own), (uint64_t)waits, tale_plural(waits));
    else if (has_completions(tale->own) || has_completions(tale->peer) || is_ended(tale->own))
        tale_say(tale, "It had no error.");
    else
        tale_say(tale, "It had no error. \"softverbs why %d\" says what its process waits for.",
                 (int)tale->own->story.pid.value);
    tell_losses(tale);
    tell_completions(tale, tale->own);
    tell_completions(tale, tale->peer);
}

/* Returns whether the other end could know more: not of an error before anything was sent. */
static bool is_of_both(const struct story_end *own)
{
    unsigned reason = story_end_reason(own);
    return !reason || is_of_attempts(reason) || reason == REASON_PEER_STALLED || reason == REASON_BAD_RESPONSE ||
           (reason >= REASON_REMOTE_INVALID_REQUEST && reason <= REASON_REMOTE_OPERATION);
}

static void tell_missing(struct tale *tale)
{
    if (tale->own->story.peer_qp.value && is_of_both(tale->own) && !has_completions(tale->own))
        silence_tell_missing(tale);
}

static bool is_of_silence(const struct story_end *end)
{
    return story_end_reason(end) == REASON_RETRY_EXCEEDED || story_end_reason(end) == REASON_PEER_GONE;
}

/* The reason that is the cause of the end's error, here or there. */
static unsigned cause_of(const struct story_end *end, const struct story_end *other)
{
    unsigned there = 0;
    if (is_refused_there(end, other))
        there = story_end_reason(other);
    else if (is_of_silence(end) && other)
        there = silence_reason(end, other);
    return there ? there : story_end_reason(end);
}

/* Which of two errors came first is the cause of the other. */
static bool is_first(const struct story_end *end, const struct story_end *other)
{
    if (!story_end_reason(end) || !story_end_reason(other))
        return story_end_reason(end);
    return end->error.time.value <= other->error.time.value;
}

static unsigned reason_of(const struct story_end *own, const struct story_end *peer)
{
    return story_end_reason(own) ? cause_of(own, peer) : cause_of(peer, own);
}

/* The ends, read, and the processes; `none` for an end that is refused. */
struct read_ends {
    struct story_end room[4], none;
    const struct story_end *own, *peer, *standin, *stranger;
};

static void read_ends(struct read_ends *read, const struct story_ends *ends)
{
    memset(read, 0, sizeof *read);
    read->own = story_end_read(&read->room[0], ends->own);
    read->peer = story_end_read(&read->room[1], ends->peer);
    read->standin = story_end_read(&read->room[2], ends->standin);
    read->stranger = story_end_read(&read->room[3], ends->stranger);
    if (!read->own)
        read->own = &read->none;
}

unsigned story_reason(const struct story_ends *ends)
{
    struct read_ends read;
    read_ends(&read, ends);
    standin_act(&read.own, &read.peer, read.standin);
    return reason_of(read.own, read.peer);
}

/* The actions of the user's script on it. */
static void tell_rules(struct tale *tale, const struct story_end *end)
{
    char name[TALE_NAME];
    const json_t *rules = end ? facts_json(&end->story.rules) : NULL;
    for (size_t i = 0; i < json_array_size(rules); i++)
        tale_say(tale, "A rule of the script of %s acted on it: %s", tale_name(end, name),
                 facts_text(json_string_value(json_array_get(rules, i))));
}

static void tell_more(struct tale *tale)
{
    unsigned reason = reason_of(tale->own, tale->peer);
    if (reason)
        tale_say(tale, "\"softverbs explain %u\" has causes and cures.", reason);
}

/* The sender's end has the whole of the refused request. Otherwise each end has a separate error, the first of which
 * may have led to the other. */
static void tell_errors(struct tale *tale, const struct story_end *own, const struct story_end *peer)
{
    if (is_refused_there(peer, own))
        tell_error(tale, peer, own);
    else if (is_refused_there(own, peer))
        tell_error(tale, own, peer);
    else if (is_first(own, peer)) {
        tell_error(tale, own, peer);
        if (story_end_reason(peer))
            tell_error(tale, peer, own);
    } else {
        tell_error(tale, peer, own);
        if (story_end_reason(own))
            tell_error(tale, own, peer);
    }
}

static void tell_story(struct tale *tale, const struct story_end *standin)
{
    const struct story_end *first = tale->own, *second = tale->peer;
    tell_ends(tale);
    if (standin_act(&tale->own, &tale->peer, standin))
        standin_tell(tale, standin, tale->own == first ? second : first);
    if (story_end_reason(tale->own) || story_end_reason(tale->peer))
        tell_errors(tale, tale->own, tale->peer);
    else
        tell_flush_or_hang(tale);
    tell_flushed(tale, tale->own);
    if (tale->peer)
        tell_flushed(tale, tale->peer);
    tell_rules(tale, tale->own);
    tell_rules(tale, tale->peer);
    tell_missing(tale);
    tell_more(tale);
}

json_t *story_sentences(const struct story_ends *ends)
{
    struct read_ends read;
    struct seen seen = seen_begin(ends->processes);
    read_ends(&read, ends);
    struct tale tale = {.own = read.own,
                        .peer = read.peer,
                        .stranger = read.stranger,
                        .processes = ends->processes ? &seen : NULL,
                        .list = json_array()};
    tell_story(&tale, read.standin);
    seen_end(&seen);
    return tale.list;
}
