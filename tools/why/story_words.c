#include "why/story_words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "diag/diag.h"
#include "facts/record.h"
#include "why/adapter.h"
#include "why/explanation.h"
#include "why/silence.h"
#include "why/srd/messages.h"
#include "why/substitute.h"

/* -- the parts of a story */

static void tell_ends(struct explanation *explanation)
{
    char peer[EXPLANATION_NAME] = "";
    struct known known = explanation_known(explanation->own, explanation->peer);
    const struct facts_story *own = &explanation->own->story;
    if (substitute_is(explanation->own)) {
        substitute_tell(explanation, explanation->own, NULL);
        return;
    }
    if (!explanation->peer && own->peer_pid.value)
        snprintf(peer, sizeof peer, "process %d", (int)own->peer_pid.value);
    if (!explanation->peer)
        known.process = peer;
    explanation_first(explanation, DIAGNOSE_STORY_END, &known);
}

/* The clock of posts may be some milliseconds ahead: no work is refused before it was posted. */
static json_int_t posted_at(const struct story_end *end, const struct story_end *other)
{
    json_int_t posted = (json_int_t)end->error.posted.value;
    json_int_t refused = other ? (json_int_t)other->error.time.value : 0;
    return refused && refused < posted ? refused : posted;
}

static json_int_t time_of(const struct story_end *end)
{
    return (json_int_t)end->error.time.value;
}

static bool is_of_silence(unsigned reason)
{
    return reason == REASON_RETRY_EXCEEDED || reason == REASON_PEER_GONE;
}

/* Returns whether the other end refused the request: its error says more than the code that came back. */
static bool is_refused_there(const struct story_end *end, const struct story_end *other)
{
    unsigned reason = story_end_reason(end);
    bool refuses = (other && !strcmp(facts_text(other->error.subject), "packet")) ||
                   story_end_reason(other) == REASON_XRC_SUBSTITUTE_FAILED;
    return other && refuses &&
           (reason == REASON_REMOTE_INVALID_REQUEST || reason == REASON_REMOTE_ACCESS ||
            reason == REASON_REMOTE_OPERATION);
}

/* Returns whether the sentence about the attempts has this reason already. */
static bool is_of_attempts(unsigned reason)
{
    return is_of_silence(reason) || reason == REASON_RNR_EXCEEDED;
}

static void tell_completion(struct explanation *explanation, const struct story_end *end, const struct story_end *other)
{
    char detail[DIAGNOSE_ROOM];
    struct known known = explanation_known(end, other);
    if (!is_refused_there(end, other) && !is_of_attempts(story_end_reason(end)))
        known.words = end->error.cause ? end->error.cause : explanation_cause(end, 0, detail);
    explanation_diagnose(explanation, time_of(end), DIAGNOSIS_SEND_COMPLETED, &known);
}

static void tell_flushed(struct explanation *explanation, const struct story_end *end)
{
    const struct known known = explanation_known(end, NULL);
    explanation_all(explanation, DIAGNOSE_STORY_FLUSHED, &known);
}

/* Adds the cause that was known when the work failed, and the receives that were posted later. */
static void tell_receives(struct explanation *explanation, const struct story_end *end, const struct known *known)
{
    enum diagnosis now = diagnose(DIAGNOSE_RECEIVES, known);
    if (end->error.cause)
        explanation_diagnose(explanation, time_of(end), DIAGNOSIS_FOUND_OUT, known);
    if (!end->error.cause || now == DIAGNOSIS_POSTED_SINCE)
        explanation_diagnose(explanation, 0, now, known);
}

static void tell_send(struct explanation *explanation, const struct story_end *end, const struct story_end *other)
{
    struct known known = explanation_known(end, other);
    const struct story_end *refusing = is_refused_there(end, other) ? other : NULL;
    bool names = explanation_names_memory(facts_text(end->error.opcode));
    explanation_diagnose(explanation, posted_at(end, refusing), names ? DIAGNOSIS_POSTED_TO_MEMORY : DIAGNOSIS_POSTED,
                         &known);
    if (refusing)
        explanation_refusal(explanation, other, end);
    explanation_first(explanation, DIAGNOSE_STORY_ATTEMPTS, &known);
    if (is_of_silence(story_end_reason(end)))
        silence_tell(explanation, end, other);
    else if (story_end_reason(end) == REASON_RNR_EXCEEDED)
        tell_receives(explanation, end, &known);
    tell_completion(explanation, end, other);
}

static void tell_receive(struct explanation *explanation, const struct story_end *end)
{
    char detail[DIAGNOSE_ROOM], words[DIAGNOSE_ROOM];
    struct known known = explanation_known(end, NULL);
    known.words = words;
    snprintf(words, sizeof words, "%.900s (reason %u)", explanation_cause(end, 0, detail), story_end_reason(end));
    explanation_diagnose(explanation, time_of(end), DIAGNOSIS_RECEIVE_COMPLETED, &known);
}

static void tell_fault(struct explanation *explanation, const struct story_end *end)
{
    char detail[DIAGNOSE_ROOM];
    struct known known = explanation_known(end, NULL);
    known.words = explanation_cause(end, 0, detail);
    explanation_diagnose(explanation, time_of(end), DIAGNOSIS_QP_FAILED, &known);
}

/* The sentences about an end's error. */
static void tell_error(struct explanation *explanation, const struct story_end *end, const struct story_end *other)
{
    const char *subject = facts_text(end->error.subject);
    if (!strcmp(subject, "send"))
        tell_send(explanation, end, other);
    else if (!strcmp(subject, "packet"))
        explanation_refusal(explanation, end, NULL);
    else if (!strcmp(subject, "receive"))
        tell_receive(explanation, end);
    else
        tell_fault(explanation, end);
}

/* The record "SEND_ENDED" or "RECEIVE_ENDED" of the newest completion, which may be the completion that waits. */
static const json_t *last_completion(const struct story_end *end)
{
    const json_t *send = story_end_event(end, EVENT_SEND_ENDED), *receive = story_end_event(end, EVENT_RECEIVE_ENDED);
    return !send || (receive && record_time(receive) > record_time(send)) ? receive : send;
}

static bool is_ended(const struct story_end *end)
{
    return facts_is(&end->story.ended);
}

/* Returns whether the end was kept because it waited. (The completion of an error is in the queue of an end that was
 * kept for the error.) */
static bool is_kept_waiting(const struct story_end *end, const struct facts_cq *cq)
{
    return cq->event.known && !story_end_reason(end) && !story_end_is_in(end, "ERR");
}

/* The next queue of the end (NULL: it has no queue), from the i-th on, with a completion that the program has not
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
static void tell_completions(struct explanation *explanation, const struct story_end *end)
{
    struct facts_cq cq;
    char words[DIAGNOSE_ROOM];
    for (size_t i = 0; next_unpolled(end, &i, &cq);) {
        struct known known = explanation_known(end, NULL);
        known.cq = &cq;
        if (cq.event.known || cq.asked.value)
            known.words = diagnose_words(diagnose(DIAGNOSE_EVENT, &known), &known, words, sizeof words);
        else
            known.hint = " (ibv_poll_cq)";
        explanation_diagnose(explanation, record_time(last_completion(end)), DIAGNOSIS_NOT_POLLED, &known);
    }
}

/* Adds sentences about lost messages of services that do not repeat, or why there is no answer yet. */
static void tell_losses(struct explanation *explanation)
{
    if (!explanation->own->story.retry_cnt.known) {
        silence_tell_drops(explanation, explanation->own, 0);
        silence_tell_drops(explanation, explanation->peer, 0);
    } else if (is_ended(explanation->own) && has_completions(explanation->own))
        return;
    else if (explanation->own->story.send_posted.value && !story_end_is_in(explanation->own, "ERR"))
        silence_tell(explanation, explanation->own, explanation->peer);
}

/* Returns whether the newest record of a message is that it found no receive, which is the event `without`. */
static bool waits_for_receive(const struct story_end *end, enum event without)
{
    json_int_t when = record_time(story_end_event(end, without));
    return when && when >= record_time(last_completion(end));
}

/* Adds, to a story without an error, what the program did, or what it waits for. */
static void tell_flush_or_hang(struct explanation *explanation)
{
    const struct story_end *own = explanation->own;
    struct known known = explanation_known(own, explanation->peer);
    known.since.refused = waits_for_receive(own, EVENT_RNR_RECEIVED);
    known.since.naks = waits_for_receive(own, EVENT_RNR_SENT);
    known.since.unpolled = has_completions(own) || has_completions(explanation->peer);
    known.hint = own->story.rnr_retry.value == 7 ? ", for ever" : NULL;
    enum diagnosis diagnosis = diagnose(DIAGNOSE_STORY_WAIT, &known);
    bool moved = diagnosis == DIAGNOSIS_MOVED_ITSELF;
    explanation_diagnose(explanation, moved ? record_time(story_end_event(own, EVENT_QP_STATE)) : 0, diagnosis, &known);
    tell_losses(explanation);
    tell_completions(explanation, own);
    tell_completions(explanation, explanation->peer);
}

/* Returns whether the other end could know more: not of an error before anything was sent. */
static bool is_of_both(const struct story_end *own)
{
    unsigned reason = story_end_reason(own);
    return !reason || is_of_attempts(reason) || reason == REASON_PEER_STALLED || reason == REASON_BAD_RESPONSE ||
           (reason >= REASON_REMOTE_INVALID_REQUEST && reason <= REASON_REMOTE_OPERATION);
}

static void tell_missing(struct explanation *explanation)
{
    bool told = adapter_is(explanation->own) && is_of_silence(story_end_reason(explanation->own));
    if (explanation->own->story.peer_qp.value && is_of_both(explanation->own) && !explanation->own->error.cause &&
        !told && !has_completions(explanation->own))
        silence_tell_missing(explanation);
}

/* The reason that caused the end's error: the reason of this end, or of the other one. */
static unsigned cause_of(const struct story_end *end, const struct story_end *other)
{
    unsigned there = 0;
    if (is_refused_there(end, other))
        there = story_end_reason(other);
    else if (is_of_silence(story_end_reason(end)) && other)
        there = silence_reason(end, other);
    return there ? there : story_end_reason(end);
}

/* Returns whether the error of `end` came first: the first of two errors is the cause of the other. */
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

/* The facts of the ends; `own` is `none` if story_end_read refuses it. */
struct read_ends {
    struct story_end room[4], none;
    const struct story_end *own, *peer, *substitute, *stranger;
};

static void read_ends(struct read_ends *read, const struct story_ends *ends)
{
    memset(read, 0, sizeof *read);
    read->own = story_end_read(&read->room[0], ends->own);
    read->peer = story_end_read(&read->room[1], ends->peer);
    read->substitute = story_end_read(&read->room[2], ends->substitute);
    read->stranger = story_end_read(&read->room[3], ends->stranger);
    if (!read->own)
        read->own = &read->none;
    if (read->peer) {
        adapter_judge(read->own, &read->room[1]);
        adapter_judge(read->peer, &read->room[0]);
    }
}

unsigned story_reason(const struct story_ends *ends)
{
    struct read_ends read;
    read_ends(&read, ends);
    if (messages_are_of(read.own))
        return messages_reason(read.own, ends->receivers);
    substitute_act(&read.own, &read.peer, read.substitute);
    return reason_of(read.own, read.peer);
}

/* Adds the actions of the user's script on the end. */
static void tell_rules(struct explanation *explanation, const struct story_end *end)
{
    const json_t *rules = end ? facts_json(&end->story.rules) : NULL;
    for (size_t i = 0; i < json_array_size(rules); i++)
        explanation_say(explanation, "A rule of the script of %s acted on it: %s", end->name,
                        facts_text(json_string_value(json_array_get(rules, i))));
}

static void tell_more(struct explanation *explanation)
{
    explanation_reason(explanation, reason_of(explanation->own, explanation->peer));
}

/* The sender's end has the whole of the refused request. Otherwise each end has a separate error, and the first error
 * may have led to the other. */
static void tell_errors(struct explanation *explanation, const struct story_end *own, const struct story_end *peer)
{
    if (is_refused_there(peer, own))
        tell_error(explanation, peer, own);
    else if (is_refused_there(own, peer))
        tell_error(explanation, own, peer);
    else {
        const struct story_end *first = is_first(own, peer) ? own : peer, *second = first == own ? peer : own;
        tell_error(explanation, first, second);
        if (story_end_reason(second))
            tell_error(explanation, second, first);
    }
}

/* The story of a queue pair whose errors end single messages. */
static void tell_messages(struct explanation *explanation, const json_t *receivers)
{
    tell_ends(explanation);
    messages_tell(explanation, receivers);
    tell_flushed(explanation, explanation->own);
    tell_rules(explanation, explanation->own);
    messages_explain(explanation, receivers);
}

static void tell_story(struct explanation *explanation, const struct story_end *substitute)
{
    const struct story_end *first = explanation->own, *second = explanation->peer;
    tell_ends(explanation);
    if (substitute_act(&explanation->own, &explanation->peer, substitute))
        substitute_tell(explanation, substitute, explanation->own == first ? second : first);
    if (story_end_reason(explanation->own) || story_end_reason(explanation->peer))
        tell_errors(explanation, explanation->own, explanation->peer);
    else
        tell_flush_or_hang(explanation);
    adapter_tell(explanation, explanation->own, NULL);
    adapter_tell(explanation, explanation->peer, explanation->own);
    tell_flushed(explanation, explanation->own);
    if (explanation->peer)
        tell_flushed(explanation, explanation->peer);
    tell_rules(explanation, explanation->own);
    tell_rules(explanation, explanation->peer);
    tell_missing(explanation);
    tell_more(explanation);
}

json_t *story_sentences(const struct story_ends *ends)
{
    struct read_ends read;
    struct seen seen = seen_begin(ends->processes);
    read_ends(&read, ends);
    struct explanation explanation = {.own = read.own,
                                      .peer = read.peer,
                                      .stranger = read.stranger,
                                      .processes = ends->processes ? &seen : NULL,
                                      .list = json_array()};
    if (messages_are_of(read.own))
        tell_messages(&explanation, ends->receivers);
    else
        tell_story(&explanation, read.substitute);
    seen_end(&seen);
    return explanation.list;
}
