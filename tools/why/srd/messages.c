#include "why/srd/messages.h"

#include <string.h>

#include "diag/diag.h"

enum { MOST = 16 }; /* reasons of a story */

/* A message that failed: the end that sent it, and the end that it was for, each with its own error of the message. */
struct message {
    struct story_end sent, found, refused;
    const struct story_end *receiver; /* NULL: not known */
    const struct story_end *refuser;  /* NULL: the receiver has no record of it */
};

bool messages_are_of(const struct story_end *end)
{
    return facts_count(&end->story.failed) || facts_count(&end->story.refused) || facts_count(&end->story.messages);
}

static const json_t *at(const struct fact_inner *list, size_t i)
{
    return json_array_get(facts_json(list), i);
}

static const struct story_end *find_receiver(struct message *message, const json_t *receivers)
{
    uint64_t number = message->sent.error.peer_qp.value;
    for (size_t i = 0; i < json_array_size(receivers) && !facts_is(&message->sent.error.network); i++)
        if (story_end_read(&message->found, json_array_get(receivers, i)) && message->found.story.qp.value == number)
            return &message->found;
    return NULL;
}

/* The reasons of a sender, and of a receiver that refused the message: from the first to the last of these. */
static const struct {
    unsigned sender, first, last;
} answers[] = {
    {REASON_PEER_NO_QP, REASON_PACKET_QKEY, REASON_PACKET_QKEY},
    {REASON_PEER_NO_QP, REASON_PACKET_QP_STATE, REASON_PACKET_QP_STATE},
    {REASON_REMOTE_ACCESS, REASON_REMOTE_KEY_UNKNOWN, REASON_REMOTE_PERMISSION},
    {REASON_REMOTE_INVALID_REQUEST, REASON_RECEIVE_TOO_SHORT, REASON_RECEIVE_TOO_SHORT},
    {REASON_REMOTE_INVALID_REQUEST, REASON_RECEIVE_GONE, REASON_RECEIVE_GONE},
    {REASON_REMOTE_INVALID_REQUEST, REASON_RECEIVE_KEY_UNKNOWN, REASON_RECEIVE_PERMISSION},
    {REASON_PEER_NO_ADDRESS, REASON_SENDER_UNADDRESSED, REASON_SENDER_UNADDRESSED},
};

static bool is_answer(unsigned sender, unsigned receiver)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i].sender == sender && receiver >= answers[i].first && receiver <= answers[i].last)
            return true;
    return false;
}

/* Both ends keep the first of messages that are alike. A packet may be a piece of its message. */
static bool is_refusal(const struct message *message, bool alike)
{
    const struct facts_error *sent = &message->sent.error, *refused = &message->refused.error;
    if (refused->peer_qp.value != message->sent.story.qp.value ||
        !is_answer(story_end_reason(&message->sent), story_end_reason(&message->refused)))
        return false;
    return !alike || (sent->length.value == refused->length.value && sent->key.value == refused->key.value);
}

static const struct story_end *find_refusal(struct message *message)
{
    const struct story_end *end = message->receiver;
    for (int alike = true; end && alike >= false; alike--)
        for (size_t i = 0; i < facts_count(&end->story.refused); i++)
            if (story_end_with(&message->refused, end, at(&end->story.refused, i)) && is_refusal(message, alike))
                return &message->refused;
    return NULL;
}

/* False: there is no i-th message. */
static bool read_message(struct message *message, const struct story_end *own, size_t i, const json_t *receivers)
{
    if (!story_end_with(&message->sent, own, at(&own->story.failed, i)))
        return false;
    message->receiver = find_receiver(message, receivers);
    message->refuser = find_refusal(message);
    return true;
}

static json_int_t time_of(const struct story_end *end)
{
    return (json_int_t)end->error.time.value;
}

static void tell_count(struct explanation *explanation, enum diagnosis diagnosis, const struct story_end *end,
                       uint64_t count)
{
    struct known known = explanation_known(end, NULL);
    known.count = (struct fact_number){count, true};
    if (count)
        explanation_diagnose(explanation, 0, diagnosis, &known);
}

/* Adds what the receiver says, or why it says nothing. True: that has the cause. */
static bool tell_receiver(struct explanation *explanation, const struct message *message, const struct known *known)
{
    bool unready = story_end_reason(&message->sent) == REASON_RNR_EXCEEDED;
    if (message->refuser)
        explanation_refusal(explanation, message->refuser, &message->sent);
    if (unready)
        explanation_diagnose(explanation, 0, DIAGNOSIS_MESSAGE_NOT_READY, known);
    if (unready && message->receiver)
        explanation_first(explanation, DIAGNOSE_RECEIVES, known);
    return message->refuser || (explanation_first(explanation, DIAGNOSE_MESSAGE, known), unready);
}

static void tell_message(struct explanation *explanation, const struct message *message)
{
    char detail[DIAGNOSE_ROOM];
    const struct story_end *sent = &message->sent;
    struct known known = explanation_known(sent, message->receiver);
    known.ended = message->receiver && facts_is(&message->receiver->story.ended);
    bool names = explanation_names_memory(facts_text(sent->error.opcode));
    json_int_t posted = (json_int_t)sent->error.posted.value,
               refused = message->refuser ? time_of(message->refuser) : 0;
    explanation_diagnose(explanation, refused && refused < posted ? refused : posted,
                         names ? DIAGNOSIS_MESSAGE_TO_MEMORY : DIAGNOSIS_MESSAGE, &known);
    if (!tell_receiver(explanation, message, &known))
        known.words = explanation_cause(sent, 0, detail);
    explanation_diagnose(explanation, time_of(sent), DIAGNOSIS_MESSAGE_COMPLETED, &known);
    tell_count(explanation, DIAGNOSIS_MESSAGES_ALIKE, sent, sent->error.times.value ? sent->error.times.value - 1 : 0);
}

static void tell_refused(struct explanation *explanation, const struct story_end *end)
{
    char detail[DIAGNOSE_ROOM];
    struct known known = explanation_known(end, NULL);
    known.words = explanation_cause(end, 0, detail);
    explanation_diagnose(explanation, time_of(end), DIAGNOSIS_MESSAGE_REFUSED, &known);
    tell_count(explanation, DIAGNOSIS_REFUSALS_ALIKE, end, end->error.times.value ? end->error.times.value - 1 : 0);
}

static void tell_waiting(struct explanation *explanation, const struct story_end *own)
{
    struct facts_message message;
    struct known known = explanation_known(own, NULL);
    known.message = &message;
    if (!facts_count(&own->story.failed) && !facts_count(&own->story.refused))
        explanation_diagnose(explanation, 0, DIAGNOSIS_NO_ERROR, &known);
    for (size_t i = 0; facts_read_at(&facts_of_message, &own->story.messages, i, &message); i++)
        explanation_first(explanation, DIAGNOSE_MESSAGE_WAIT, &known);
}

void messages_tell(struct explanation *explanation, const json_t *receivers)
{
    const struct story_end *own = explanation->own;
    const struct known known = explanation_known(own, NULL);
    struct message message;
    struct story_end refused;
    for (size_t i = 0; read_message(&message, own, i, receivers); i++)
        tell_message(explanation, &message);
    tell_count(explanation, DIAGNOSIS_MESSAGES_OTHER, own, own->story.failed_others.value);
    for (size_t i = 0; story_end_with(&refused, own, at(&own->story.refused, i)); i++)
        tell_refused(explanation, &refused);
    tell_count(explanation, DIAGNOSIS_REFUSALS_OTHER, own, own->story.refused_others.value);
    if (story_end_is_in(own, "RTS") && facts_count(&own->story.failed))
        explanation_diagnose(explanation, 0, DIAGNOSIS_MESSAGES_GO_ON, &known);
    tell_waiting(explanation, own);
}

/* The i-th reason of the story; 0: there are no more. */
static unsigned reason_at(const struct story_end *own, size_t i, const json_t *receivers)
{
    struct message message;
    size_t failed = facts_count(&own->story.failed);
    if (i < failed && read_message(&message, own, i, receivers))
        return story_end_reason(message.refuser ? message.refuser : &message.sent);
    return story_end_with(&message.refused, own, at(&own->story.refused, i - failed))
               ? story_end_reason(&message.refused)
               : 0;
}

unsigned messages_reason(const struct story_end *own, const json_t *receivers)
{
    return reason_at(own, 0, receivers);
}

void messages_explain(struct explanation *explanation, const json_t *receivers)
{
    unsigned told[MOST], count = 0, reason;
    for (size_t i = 0; i < MOST && (reason = reason_at(explanation->own, i, receivers)); i++) {
        unsigned k = 0;
        while (k < count && told[k] != reason)
            k++;
        if (k < count)
            continue;
        told[count++] = reason;
        explanation_reason(explanation, reason);
    }
}
