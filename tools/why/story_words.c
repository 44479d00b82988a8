#include "why/story_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "diag/clean.h"
#include "diag/diag.h"
#include "print/emit.h"
#include "report/lost_event.h"
#include "why/silence.h"
#include "why/standin.h"
#include "why/tale.h"

enum { DETAIL = 512 };

static const json_t *error_of(const json_t *end)
{
    return json_object_get(end, "error");
}

/* -- what was refused, with its numbers. */

static const char *kind_of(const json_t *memory)
{
    return json_is_true(json_object_get(memory, "window")) ? "memory window" : "region";
}

static void describe_bounds(const json_t *memory, char *text)
{
    uint64_t base = (uint64_t)tale_number(memory, "base"), address = (uint64_t)tale_number(memory, "address");
    int length = snprintf(text, DETAIL, "key 0x%" PRIx64 " belongs to a %s of %" PRIu64 " bytes; %" PRIu64 " bytes ",
                          (uint64_t)tale_number(memory, "key"), kind_of(memory), (uint64_t)tale_number(memory, "size"),
                          (uint64_t)tale_number(memory, "length"));
    snprintf(text + length, DETAIL - (size_t)length, "at offset %s%" PRIu64 " do not fit", address < base ? "-" : "",
             address < base ? base - address : address - base);
}

static void describe_key(const json_t *memory, char *text)
{
    snprintf(text, DETAIL,
             "key 0x%" PRIx64
             " is that of no memory region of this process: never registered, deregistered, or another process's",
             (uint64_t)tale_number(memory, "key"));
}

static void describe_remote_key(const json_t *memory, char *text)
{
    snprintf(text, DETAIL,
             "key 0x%" PRIx64 " is that of no memory region and no bound memory window of this process: never "
             "registered or bound, deregistered, invalidated, or another process's",
             (uint64_t)tale_number(memory, "key"));
}

static void describe_domain(const json_t *memory, char *text)
{
    snprintf(text, DETAIL, "the %s of key 0x%" PRIx64 " is of another protection domain than the queue pair",
             kind_of(memory), (uint64_t)tale_number(memory, "key"));
}

static void describe_permission(const json_t *memory, char *text)
{
    snprintf(text, DETAIL, "the %s of key 0x%" PRIx64 " was %s with %.160s, and this needs %.160s", kind_of(memory),
             (uint64_t)tale_number(memory, "key"),
             json_is_true(json_object_get(memory, "window")) ? "bound" : "registered", tale_text(memory, "has"),
             tale_text(memory, "access"));
}

static const struct {
    enum reason reasons[3]; /* of a send, a receive, a peer's request */
    void (*describe)(const json_t *memory, char *text);
} memory_lines[] = {
    {{REASON_LOCAL_KEY_UNKNOWN, REASON_RECEIVE_KEY_UNKNOWN}, describe_key},
    {{REASON_REMOTE_KEY_UNKNOWN}, describe_remote_key},
    {{REASON_LOCAL_PD, REASON_RECEIVE_PD, REASON_REMOTE_PD}, describe_domain},
    {{REASON_LOCAL_RANGE, REASON_RECEIVE_RANGE, REASON_REMOTE_RANGE}, describe_bounds},
    {{REASON_LOCAL_PERMISSION, REASON_RECEIVE_PERMISSION, REASON_REMOTE_PERMISSION}, describe_permission},
};

static bool describe_memory(const json_t *error, char *text)
{
    const json_t *memory = json_object_get(error, "memory");
    unsigned reason = (unsigned)tale_number(error, "reason");
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
static const char *describe(const json_t *error, json_int_t sent, char text[DETAIL])
{
    unsigned reason = (unsigned)tale_number(error, "reason");
    const json_t *receive = json_object_get(error, "receive");
    if (describe_memory(error, text))
        return text;
    if (reason == REASON_XRC_STANDIN_FAILED)
        snprintf(text, DETAIL, "process %d, which has the shared receive queue, refused the message, and left no story",
                 (int)tale_number(error, "process"));
    else if (reason == REASON_RECEIVE_TOO_SHORT && receive && sent)
        snprintf(text, DETAIL,
                 "the message has %" PRIu64 " bytes, and the receive of wr_id %" PRIu64 " has room for %" PRIu64,
                 (uint64_t)sent, (uint64_t)tale_number(receive, "wr_id"), (uint64_t)tale_number(receive, "room"));
    else if (reason == REASON_MESSAGE_LENGTH)
        snprintf(text, DETAIL, "a packet does not fit its message or this side's path_mtu of %" PRIu64 " bytes",
                 (uint64_t)tale_number(error, "limit"));
    else if (reason == REASON_QP_PERMISSION)
        snprintf(text, DETAIL, "qp_access_flags of its queue pair are %.160s", tale_text(error, "flags"));
    else if (reason == REASON_TOO_MANY_READS && !tale_number(error, "limit"))
        snprintf(text, DETAIL, "max_dest_rd_atomic of its queue pair is 0, so that it takes no READs and atomics");
    else if (reason == REASON_TOO_MANY_READS)
        snprintf(text, DETAIL,
                 "max_dest_rd_atomic of its queue pair is %" PRIu64 ", and more READs and atomics came at a time",
                 (uint64_t)tale_number(error, "limit"));
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
    else if (tale_number(tale->own, "peer_pid"))
        snprintf(peer, sizeof peer, "process %d", (int)tale_number(tale->own, "peer_pid"));
    uint64_t number = (uint64_t)tale_number(tale->own, "peer_qp");
    if (number)
        tale_say(tale, "Queue pair 0x%" PRIx64 " of %s is %s in %s, connected with 0x%" PRIx64 "%s%s.",
                 (uint64_t)tale_number(tale->own, "qp"), tale_name(tale->own, own), tale_text(tale->own, "type"),
                 tale_text(tale->own, "state"), number, *peer ? " of " : "", peer);
    else
        tale_say(tale, "Queue pair 0x%" PRIx64 " of %s is %s in %s.", (uint64_t)tale_number(tale->own, "qp"),
                 tale_name(tale->own, own), tale_text(tale->own, "type"), tale_text(tale->own, "state"));
}

/* The clock of posts may be some milliseconds ahead: no work is refused before it was posted. */
static json_int_t posted_at(const json_t *end, const json_t *other)
{
    json_int_t posted = tale_number(error_of(end), "posted"), refused = tale_number(error_of(other), "time");
    return refused && refused < posted ? refused : posted;
}

/* Memory of the peer. */
static bool names_memory(const char *opcode)
{
    return strstr(opcode, "RDMA") || strstr(opcode, "ATOMIC") || strstr(opcode, "FLUSH");
}

static void tell_post(struct tale *tale, const json_t *end, const json_t *other)
{
    char name[TALE_NAME], when[TALE_NAME], where[128] = "";
    const json_t *error = error_of(end);
    if (names_memory(tale_text(error, "opcode")))
        snprintf(where, sizeof where, ", to address 0x%" PRIx64 " with rkey 0x%" PRIx64,
                 (uint64_t)tale_number(error, "address"), (uint64_t)tale_number(error, "key"));
    tale_say(tale, "%s%s posted %s of %" PRIu64 " bytes, wr_id %" PRIu64 "%s.", tale_time(posted_at(end, other), when),
             tale_name(end, name), tale_text(error, "opcode"), (uint64_t)tale_number(error, "length"),
             (uint64_t)tale_number(error, "wr_id"), where);
}

static void tell_refusal(struct tale *tale, const json_t *end, const json_t *sender)
{
    char name[TALE_NAME], when[TALE_NAME], detail[DETAIL];
    const json_t *error = error_of(end), *receive = json_object_get(error, "receive");
    json_int_t sent = sender ? tale_number(error_of(sender), "length") : tale_number(error, "length");
    tale_say(tale, "%s%s refused %s: %s (reason %u).", tale_time(tale_number(error, "time"), when),
             tale_name(end, name), sender ? "it" : tale_text(error, "operation"), describe(error, sent, detail),
             tale_reason(end));
    if (receive)
        tale_say(tale, "%s completed the receive of wr_id %" PRIu64 " with %s.", name,
                 (uint64_t)tale_number(receive, "wr_id"), tale_text(receive, "status"));
}

/* How receives are posted to an end; NULL: one that is not known. */
static const char *posting_of(const json_t *end)
{
    return json_object_get(end, "srq") ? "ibv_post_srq_recv" : "ibv_post_recv";
}

static void tell_attempts(struct tale *tale, const json_t *end, const json_t *other)
{
    unsigned reason = tale_reason(end);
    char name[TALE_NAME];
    json_int_t rnrs = tale_number(end, "rnrs_received"), timeouts = tale_number(end, "timeouts");
    if (reason == REASON_RNR_EXCEEDED)
        tale_say(tale,
                 "Its peer answered %" PRIu64 " time%s that it has no receive posted (%s); rnr_retry of %s is %" PRIu64
                 ".",
                 (uint64_t)rnrs, tale_plural(rnrs), posting_of(other), tale_name(end, name),
                 (uint64_t)tale_number(end, "rnr_retry"));
    if (reason == REASON_RETRY_EXCEEDED || reason == REASON_PEER_GONE || reason == REASON_PEER_STALLED ||
        reason == REASON_NOT_SENT)
        tale_say(tale,
                 "No answer came: the ACK timer ran out %" PRIu64 " time%s (timeout is %" PRIu64 ", retry_cnt %" PRIu64
                 ").",
                 (uint64_t)timeouts, tale_plural(timeouts), (uint64_t)tale_number(end, "timeout"),
                 (uint64_t)tale_number(end, "retry_cnt"));
}

/* The other end says more than the code that came back. */
static bool is_refused_there(const json_t *end, const json_t *other)
{
    unsigned reason = tale_reason(end);
    bool refuses = tale_has(error_of(other), "subject", "packet") || tale_reason(other) == REASON_XRC_STANDIN_FAILED;
    return other && refuses &&
           (reason == REASON_REMOTE_INVALID_REQUEST || reason == REASON_REMOTE_ACCESS ||
            reason == REASON_REMOTE_OPERATION);
}

/* The sentence about the attempts is not repeated. */
static bool is_of_attempts(unsigned reason)
{
    return reason == REASON_RETRY_EXCEEDED || reason == REASON_RNR_EXCEEDED || reason == REASON_PEER_GONE;
}

static void tell_completion(struct tale *tale, const json_t *end, const json_t *other)
{
    char name[TALE_NAME], when[TALE_NAME], detail[DETAIL] = "";
    const json_t *error = error_of(end);
    if (!is_refused_there(end, other) && !is_of_attempts(tale_reason(end)))
        describe(error, 0, detail);
    tale_say(tale, "%s%s completed it with %s%s%s (reason %u).", tale_time(tale_number(error, "time"), when),
             tale_name(end, name), tale_text(error, "status"), *detail ? ": " : "", detail, tale_reason(end));
}

static void tell_flushed(struct tale *tale, const json_t *end)
{
    char name[TALE_NAME];
    json_int_t sends = tale_number(end, "flushed_sends"), receives = tale_number(end, "flushed_receives");
    if (sends)
        tale_say(tale, "%" PRIu64 " %swork request%s of %s ended with IBV_WC_WR_FLUSH_ERR.", (uint64_t)sends,
                 tale_reason(end) ? "later " : "", tale_plural(sends), tale_name(end, name));
    if (receives)
        tale_say(tale, "%" PRIu64 " receive%s of %s ended with IBV_WC_WR_FLUSH_ERR.", (uint64_t)receives,
                 tale_plural(receives), tale_name(end, name));
}

static void tell_receives(struct tale *tale, const json_t *other)
{
    char name[TALE_NAME], queue[TALE_NAME] = "";
    json_int_t posted = tale_number(other, "recv_posted");
    if (json_object_get(other, "srq"))
        snprintf(queue, sizeof queue, "shared receive queue %u of ", (unsigned)tale_number(other, "srq"));
    tale_name(other, name);
    if (posted)
        tale_say(tale, "%s has %" PRIu64 " receive%s posted to %s0x%" PRIx64 " since.", name, (uint64_t)posted,
                 tale_plural(posted), queue, (uint64_t)tale_number(other, "qp"));
    else
        tale_say(tale, "%s has no receive posted to %s0x%" PRIx64 ".", name, queue, (uint64_t)tale_number(other, "qp"));
}

static void tell_send(struct tale *tale, const json_t *end, const json_t *other)
{
    tell_post(tale, end, is_refused_there(end, other) ? other : NULL);
    if (is_refused_there(end, other))
        tell_refusal(tale, other, end);
    tell_attempts(tale, end, other);
    if (tale_reason(end) == REASON_RNR_EXCEEDED && other)
        tell_receives(tale, other);
    if (tale_reason(end) == REASON_RETRY_EXCEEDED || tale_reason(end) == REASON_PEER_GONE)
        silence_tell(tale, end, other);
    tell_completion(tale, end, other);
}

static void tell_receive(struct tale *tale, const json_t *end)
{
    char name[TALE_NAME], when[TALE_NAME], detail[DETAIL];
    const json_t *error = error_of(end), *receive = json_object_get(error, "receive");
    tale_say(tale, "%s%s completed the receive of wr_id %" PRIu64 " with %s: %s (reason %u).",
             tale_time(tale_number(error, "time"), when), tale_name(end, name), (uint64_t)tale_number(receive, "wr_id"),
             tale_text(receive, "status"), describe(error, tale_number(error, "length"), detail), tale_reason(end));
}

static void tell_fault(struct tale *tale, const json_t *end)
{
    char name[TALE_NAME], when[TALE_NAME], detail[DETAIL];
    tale_say(tale, "%sThe queue pair of %s failed: %s (reason %u).",
             tale_time(tale_number(error_of(end), "time"), when), tale_name(end, name),
             describe(error_of(end), 0, detail), tale_reason(end));
}

/* The sentences about an end's error. */
static void tell_error(struct tale *tale, const json_t *end, const json_t *other)
{
    const char *subject = tale_text(error_of(end), "subject");
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
static const json_t *last_completion(const json_t *end)
{
    const json_t *send = tale_event(end, "SEND_ENDED"), *receive = tale_event(end, "RECEIVE_ENDED");
    return !send || (receive && tale_number(receive, "time") > tale_number(send, "time")) ? receive : send;
}

static bool is_ended(const json_t *end)
{
    return json_is_true(json_object_get(end, "ended"));
}

/* It was kept for what it waited for, and not for an error, with which its completion lies there, too. */
static bool is_kept_waiting(const json_t *end, const json_t *cq)
{
    return json_object_get(cq, "event") && !tale_reason(end) && !tale_has(end, "state", "ERR");
}

/* Something lies in the queue that the program has not polled. */
static bool has_unpolled(const json_t *end, const json_t *cq)
{
    return tale_number(cq, "waiting") && (!is_ended(end) || is_kept_waiting(end, cq));
}

static bool has_completions(const json_t *end)
{
    size_t i;
    json_t *cq;
    json_array_foreach(json_object_get(end, "cqs"), i, cq) if (has_unpolled(end, cq)) return true;
    return false;
}

/* Completions that the program has not polled, and what became of their event. */
static void tell_completions(struct tale *tale, const json_t *end)
{
    size_t i;
    json_t *cq;
    char name[TALE_NAME], when[TALE_NAME];
    json_array_foreach(json_object_get(end, "cqs"), i, cq)
    {
        json_int_t waiting = tale_number(cq, "waiting");
        if (!has_unpolled(end, cq))
            continue;
        bool sleeps = json_object_get(cq, "event") || tale_number(cq, "asked");
        const char *words = is_ended(end) ? lost_event_words_ended(cq) : lost_event_words(cq);
        tale_say(tale, "%sCompletion queue %" PRIu64 " of %s %s %" PRIu64 " completion%s that %s not polled%s%s.",
                 tale_time(tale_number(last_completion(end), "time"), when), (uint64_t)tale_number(cq, "handle"),
                 tale_name(end, name), is_ended(end) ? "had" : "has", (uint64_t)waiting, tale_plural(waiting),
                 waiting == 1 ? "was" : "were", sleeps ? ", and " : " (ibv_poll_cq)", sleeps ? words : "");
    }
}

/* The messages that did not arrive, of services that do not repeat; or why there is no answer yet. */
static void tell_losses(struct tale *tale)
{
    if (!json_object_get(tale->own, "retry_cnt")) {
        silence_tell_drops(tale, tale->own, 0);
        silence_tell_drops(tale, tale->peer, 0);
    } else if (is_ended(tale->own) && has_completions(tale->own))
        return;
    else if (tale_number(tale->own, "send_posted") && !tale_has(tale->own, "state", "ERR"))
        silence_tell(tale, tale->own, tale->peer);
}

/* No error: what the program did, or what it waits for. */
static void tell_flush_or_hang(struct tale *tale)
{
    char name[TALE_NAME], when[TALE_NAME];
    const json_t *state = tale_event(tale->own, "QP_STATE");
    json_int_t rnrs = tale_number(tale->own, "rnrs_received"), waits = tale_number(tale->own, "rnrs_sent");
    tale_name(tale->own, name);
    if (tale_has(tale->own, "state", "ERR"))
        tale_say(tale, "%sIt had no error: %s itself moved the queue pair to ERR (ibv_modify_qp, or rdma_disconnect).",
                 tale_time(tale_number(state, "time"), when), name);
    else if (rnrs && tale_number(tale->own, "send_posted"))
        tale_say(tale,
                 "It had no error: it waits. Its peer answered %" PRIu64
                 " time%s that it has no receive posted (%s), and rnr_retry is %" PRIu64 "%s.",
                 (uint64_t)rnrs, tale_plural(rnrs), posting_of(tale->peer),
                 (uint64_t)tale_number(tale->own, "rnr_retry"),
                 tale_number(tale->own, "rnr_retry") == 7 ? ", for ever" : "");
    else if (waits && !tale_number(tale->own, "recv_posted"))
        tale_say(tale,
                 "It had no error. It has no receive posted (%s) for a message of its peer, and answered so "
                 "%" PRIu64 " time%s.",
                 posting_of(tale->own), (uint64_t)waits, tale_plural(waits));
    else if (has_completions(tale->own) || has_completions(tale->peer) || is_ended(tale->own))
        tale_say(tale, "It had no error.");
    else
        tale_say(tale, "It had no error. \"softverbs why %d\" says what its process waits for.",
                 (int)tale_number(tale->own, "pid"));
    tell_losses(tale);
    tell_completions(tale, tale->own);
    tell_completions(tale, tale->peer);
}

/* Returns whether the other end could know more: not of an error before anything was sent. */
static bool is_of_both(const json_t *own)
{
    unsigned reason = tale_reason(own);
    return !reason || is_of_attempts(reason) || reason == REASON_PEER_STALLED || reason == REASON_BAD_RESPONSE ||
           (reason >= REASON_REMOTE_INVALID_REQUEST && reason <= REASON_REMOTE_OPERATION);
}

static void tell_missing(struct tale *tale)
{
    if (tale_number(tale->own, "peer_qp") && is_of_both(tale->own) && !has_completions(tale->own))
        silence_tell_missing(tale);
}

static bool is_of_silence(const json_t *end)
{
    return tale_reason(end) == REASON_RETRY_EXCEEDED || tale_reason(end) == REASON_PEER_GONE;
}

/* The reason that is the cause of the end's error, here or there. */
static unsigned cause_of(const json_t *end, const json_t *other)
{
    unsigned there = 0;
    if (is_refused_there(end, other))
        there = tale_reason(other);
    else if (is_of_silence(end) && other)
        there = silence_reason(end, other);
    return there ? there : tale_reason(end);
}

/* Which of two errors came first is the cause of the other. */
static bool is_first(const json_t *end, const json_t *other)
{
    if (!tale_reason(end) || !tale_reason(other))
        return tale_reason(end);
    return tale_number(error_of(end), "time") <= tale_number(error_of(other), "time");
}

static unsigned reason_of(const json_t *own, const json_t *peer)
{
    return tale_reason(own) ? cause_of(own, peer) : cause_of(peer, own);
}

unsigned story_reason(const struct story_ends *ends)
{
    const json_t *own = ends->own, *peer = ends->peer;
    standin_act(&own, &peer, ends->standin);
    return reason_of(own, peer);
}

/* The actions of the user's script on it. */
static void tell_rules(struct tale *tale, const json_t *end)
{
    size_t i;
    json_t *rule;
    char name[TALE_NAME];
    json_array_foreach(json_object_get(end, "rules"), i, rule) if (json_is_string(rule))
        tale_say(tale, "A rule of the script of %s acted on it: %s", tale_name(end, name), json_string_value(rule));
}

static void tell_more(struct tale *tale)
{
    unsigned reason = reason_of(tale->own, tale->peer);
    if (reason)
        tale_say(tale, "\"softverbs explain %u\" has causes and cures.", reason);
}

/* The sender's end has the whole of the refused request. Otherwise each end has a separate error, the first of which
 * may have led to the other. */
static void tell_errors(struct tale *tale, const json_t *own, const json_t *peer)
{
    if (is_refused_there(peer, own))
        tell_error(tale, peer, own);
    else if (is_refused_there(own, peer))
        tell_error(tale, own, peer);
    else if (is_first(own, peer)) {
        tell_error(tale, own, peer);
        if (tale_reason(peer))
            tell_error(tale, peer, own);
    } else {
        tell_error(tale, peer, own);
        if (tale_reason(own))
            tell_error(tale, own, peer);
    }
}

json_t *story_sentences(const struct story_ends *ends)
{
    struct tale tale = {.own = ends->own,
                        .peer = ends->peer,
                        .processes = ends->processes,
                        .stranger = ends->stranger,
                        .list = json_array()};
    tell_ends(&tale);
    if (standin_act(&tale.own, &tale.peer, ends->standin))
        standin_tell(&tale, ends->standin, tale.own == ends->own ? ends->peer : ends->own);
    const json_t *own = tale.own, *peer = tale.peer;
    if (tale_reason(own) || tale_reason(peer))
        tell_errors(&tale, own, peer);
    else
        tell_flush_or_hang(&tale);
    tell_flushed(&tale, own);
    if (peer)
        tell_flushed(&tale, peer);
    tell_rules(&tale, own);
    tell_rules(&tale, peer);
    tell_missing(&tale);
    tell_more(&tale);
    return tale.list;
}
