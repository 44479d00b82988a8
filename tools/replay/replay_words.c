#include "replay/replay_words.h"

#include <infiniband/verbs.h>
#include <stdio.h>

#include "diag/diag.h"
#include "events/drops.h"
#include "events/lines.h"
#include "events/words.h"
#include "wire/op.h"
#include "wire/wire.h"

#define NUMBER(member) ((unsigned long long)record->member)

/* A word without "IBV_WR_" or "IBV_WC_". */
static const char *without_prefix(const char *word)
{
    return *word == '?' ? word : word + sizeof "IBV_WR_" - 1;
}

static const char *opcode_name(uint64_t opcode)
{
    return without_prefix(words_opcode(opcode & 0x7f));
}

static const char *status_name(uint64_t status)
{
    return without_prefix(words_status((unsigned)status));
}

static void packet_words(const struct record *record, const char *does, size_t skip, uint64_t payload, char *to,
                         size_t size)
{
    struct packet packet;
    unsigned headers, pad;
    char described[160] = "a packet that can't be read";
    size_t length = record->length > skip ? record->length - skip : 0;
    if (skip && record->length && length > record->bytes[0])
        length = record->bytes[0];
    if (length && wire_decode(record->bytes + skip, length, &packet, &headers, &pad) == WIRE_FINE) {
        packet.payload = (struct payload){.length = (uint32_t)payload};
        wire_describe(&packet, described, sizeof described);
    }
    snprintf(to, size, "%s %s", does, described);
}

/* ": the reason (207)", in the caller's frame; 0: nothing. */
#define BECAUSE(reason) because(reason, (char[256]){0}, 256)
static const char *because(uint64_t reason, char *to, size_t size)
{
    if (reason)
        snprintf(to, size, ": %s (%llu)", reason_sentence((unsigned)reason), (unsigned long long)reason);
    return to;
}

static void event_words(const struct record *record, char *to, size_t size)
{
    static const char *const names[] = {[IBV_EVENT_COMM_EST] = "COMM_EST",
                                        [IBV_EVENT_SQ_DRAINED] = "SQ_DRAINED",
                                        [IBV_EVENT_QP_REQ_ERR] = "QP_REQ_ERR",
                                        [IBV_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR",
                                        [IBV_EVENT_QP_FATAL] = "QP_FATAL"};
    uint64_t event = record->EVENT.event;
    if (event < sizeof names / sizeof *names && names[event])
        snprintf(to, size, "raises IBV_EVENT_%s", names[event]);
    else
        snprintf(to, size, "raises event %llu", NUMBER(EVENT.event));
}

static void note_words(const struct record *record, char *to, size_t size)
{
    if (record->NOTE.event < EVENT_KINDS)
        snprintf(to, size, "notes %s", event_lines[record->NOTE.event].name);
}

#define WORDS(name) static void name##_words(const struct record *record, char *to, size_t size)

/* SAYS: a kind whose words are one sentence. PACKET: a packet. MEMORY: memory that a reason refuses. */
#define SAYS(name, ...)                                                                                                \
    WORDS(name)                                                                                                        \
    {                                                                                                                  \
        snprintf(to, size, __VA_ARGS__);                                                                               \
    }
#define PACKET(name, KIND, does, skip)                                                                                 \
    WORDS(name)                                                                                                        \
    {                                                                                                                  \
        packet_words(record, does, skip, record->KIND.payload, to, size);                                              \
    }
#define MEMORY(name, KIND, what)                                                                                       \
    WORDS(name)                                                                                                        \
    {                                                                                                                  \
        if (record->KIND.reason)                                                                                       \
            snprintf(to, size, "%s%s", what, BECAUSE(record->KIND.reason));                                            \
    }

SAYS(post, "posts %s wr_id %llu, %llu bytes", opcode_name(record->POST.opcode), NUMBER(POST.id), NUMBER(POST.length))
PACKET(receive, RECEIVE, "receives", 1)
PACKET(hear, HEAR, "hears", 1)
PACKET(transmitted, TRANSMITTED, "transmits", 0)
SAYS(expire, "a timer expires%s", BECAUSE(record->EXPIRE.silence))
SAYS(unreadable, "the memory of the payload of psn %llu is gone", NUMBER(UNREADABLE.psn))
SAYS(receiving, "is ready to receive, from psn %llu on", NUMBER(START_RECEIVING.expected_psn))
SAYS(transmitting, "is ready to send, from psn %llu on", NUMBER(START_TRANSMITTING.first_psn))
SAYS(decision, "gets the order: %s", record_lines[record->kind].words)
MEMORY(local_memory, LOCAL_MEMORY, "may not use the memory of its request")
MEMORY(receive_memory, RECEIVE_MEMORY, "may not use the memory of its receive")
MEMORY(remote_memory, REMOTE_MEMORY, "may not use the memory that the peer names")
SAYS(sent, "completes %s wr_id %llu with %s%s", opcode_name(record->SENT.opcode), NUMBER(SENT.id),
     status_name(record->SENT.status), BECAUSE(record->SENT.reason))
SAYS(received, "completes receive wr_id %llu, %llu bytes, with %s%s", NUMBER(RECEIVED.id), NUMBER(RECEIVED.length),
     status_name(record->RECEIVED.status), BECAUSE(record->RECEIVED.reason))
SAYS(failed, "%s", record->FAILED.send_side_only ? "its send queue is in error" : "is in the error state")

WORDS(take_receive)
{
    if (record->TAKE_RECEIVE.found == 1)
        snprintf(to, size, "takes receive wr_id %llu", NUMBER(TAKE_RECEIVE.id));
    else
        snprintf(to, size, "%s", record->TAKE_RECEIVE.found ? "finds no receive that it can take" : "finds no receive");
}

WORDS(store)
{
    if (!record->STORE.stored)
        snprintf(to, size, "can't store %llu bytes: the memory %s", NUMBER(STORE.length),
                 record->STORE.can_land ? "that they come from is gone" : "that they go to is gone");
}

WORDS(dropped)
{
    enum service service = op_service((uint8_t)record->DROPPED.opcode);
    unsigned reason = drops_named((unsigned)record->DROPPED.reason, service == SERVICE_RC || service == SERVICE_XRC);
    snprintf(to, size, "drops the packet of psn %llu%s", NUMBER(DROPPED.psn), BECAUSE(reason));
}

void replay_words(const struct record *record, char *to, size_t size)
{
    static void (*const words[RECORD_KINDS])(const struct record *, char *, size_t) = {
        [RECORD_POST] = post_words,
        [RECORD_RECEIVE] = receive_words,
        [RECORD_HEAR] = hear_words,
        [RECORD_TRANSMITTED] = transmitted_words,
        [RECORD_EXPIRE] = expire_words,
        [RECORD_UNREADABLE] = unreadable_words,
        [RECORD_START_RECEIVING] = receiving_words,
        [RECORD_START_TRANSMITTING] = transmitting_words,
        [RECORD_DRAIN] = decision_words,
        [RECORD_RESUME] = decision_words,
        [RECORD_FLUSH] = decision_words,
        [RECORD_RESET] = decision_words,
        [RECORD_RECLAIM] = decision_words,
        [RECORD_LEND] = decision_words,
        [RECORD_TAKE_OVER] = decision_words,
        [RECORD_DESTROY] = decision_words,
        [RECORD_TAKE_RECEIVE] = take_receive_words,
        [RECORD_LOCAL_MEMORY] = local_memory_words,
        [RECORD_RECEIVE_MEMORY] = receive_memory_words,
        [RECORD_REMOTE_MEMORY] = remote_memory_words,
        [RECORD_STORE] = store_words,
        [RECORD_SENT] = sent_words,
        [RECORD_RECEIVED] = received_words,
        [RECORD_FAILED] = failed_words,
        [RECORD_EVENT] = event_words,
        [RECORD_NOTE] = note_words,
        [RECORD_DROPPED] = dropped_words,
    };
    *to = 0;
    if (words[record->kind])
        words[record->kind](record, to, size);
}

unsigned replay_reason(const struct record *record)
{
    bool sent = record->kind == RECORD_SENT;
    uint64_t status = sent ? record->SENT.status : record->RECEIVED.status;
    uint64_t reason = sent ? record->SENT.reason : record->RECEIVED.reason;
    bool ends = sent || record->kind == RECORD_RECEIVED;
    return !ends || status == IBV_WC_SUCCESS || status == IBV_WC_WR_FLUSH_ERR ? 0 : (unsigned)reason;
}

uint64_t replay_time(const struct record *record)
{
    return record->kind == RECORD_TIME ? record->TIME.now : 0;
}
