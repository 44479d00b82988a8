#include "draw/ladder.h"

#include <stdlib.h>
#include <string.h>

#include "draw/transits.h"
#include "draw/works.h"
#include "wire/op.h"
#include "wire/psn.h"

enum { LOOK_BACK = 512 };

/* How far the requests of a flow have come, and the answers to them. */
struct progress {
    bool begun;
    uint32_t next;           /* PSN of a new request */
    uint32_t last, last_psn; /* the request that was sent last: its transit and PSN */
    uint64_t last_time;
    uint32_t nak, nak_psn; /* the NAK that no repeat has followed yet; LOOKUP_NONE */
    enum cause nak_cause;
    uint64_t nak_time;
    enum cause cause;               /* the cause of the present burst of repeats */
    uint32_t response;              /* PSN of the next response of a READ; LOOKUP_NONE: no response is awaited */
    uint32_t *messages;             /* messages that the flow has sent, by their PSNs */
    size_t count, room, unanswered; /* messages before `unanswered` have their answer */
    struct works works;
};

struct walk {
    struct ladder *ladder;
    const struct records *records;
    const struct flows *flows;
    struct progress **of; /* by flow; NULL: no request has come */
    struct lookup seen;   /* by flow and PSN: the transit that was last sent with it */
};

const struct entry *transit_record(const struct records *records, const struct transit *transit)
{
    return &records->list[transit->sent != LOOKUP_NONE ? transit->sent : transit->received];
}

static void set_mark(struct transit *transit, enum mark mark)
{
    transit->marks |= 1u << mark;
}

static bool has_arrived(const struct transit *transit)
{
    return !(transit->marks & (1u << MARK_LOST | 1u << MARK_MISSING | 1u << MARK_WRONG));
}

static struct progress *progress_of(struct walk *walk, uint32_t flow)
{
    if (!walk->of[flow]) {
        walk->of[flow] = list_make(1, sizeof **walk->of);
        walk->of[flow]->nak = walk->of[flow]->response = walk->of[flow]->last = LOOKUP_NONE;
    }
    return walk->of[flow];
}

static bool is_acknowledged(uint8_t opcode)
{
    return op_service(opcode) == SERVICE_RC || op_service(opcode) == SERVICE_XRC;
}

/* --- messages */

static uint32_t add_message(struct walk *walk, struct progress *progress, uint32_t flow, uint32_t transit,
                            const struct packet *packet)
{
    struct ladder *ladder = walk->ladder;
    ladder->messages =
        list_grow(ladder->messages, ladder->message_count, &ladder->message_room, sizeof *ladder->messages);
    progress->messages = list_grow(progress->messages, progress->count, &progress->room, sizeof *progress->messages);
    ladder->messages[ladder->message_count] = (struct message){
        .flow = flow,
        .number = (uint32_t)progress->count,
        .opcode = packet->opcode,
        .first_psn = packet->psn,
        .last_psn = packet->psn,
        .first = transit,
        .last = transit,
        .state = is_acknowledged(packet->opcode) ? MESSAGE_OPEN : MESSAGE_UNACKNOWLEDGED,
        .answered = LOOKUP_NONE,
        .begun = op_table[packet->opcode].flags & OP_START,
        .posted = works_send(&progress->works, (uint32_t)ladder->message_count),
        .completed = LOOKUP_NONE,
        .received = LOOKUP_NONE,
    };
    progress->messages[progress->count++] = (uint32_t)ladder->message_count;
    return (uint32_t)ladder->message_count++;
}

/* The newest message of the flow with this PSN; LOOKUP_NONE: the last LOOK_BACK messages do not have it. */
static uint32_t find_message(const struct walk *walk, const struct progress *progress, uint32_t psn)
{
    for (size_t i = progress->count, looked = 0; i-- > 0 && looked < LOOK_BACK; looked++) {
        const struct message *message = &walk->ladder->messages[progress->messages[i]];
        if (psn_distance(psn, message->first_psn) >= 0 && psn_distance(psn, message->last_psn) <= 0)
            return progress->messages[i];
    }
    return LOOKUP_NONE;
}

static uint32_t open_message(const struct walk *walk, const struct progress *progress, const struct packet *packet)
{
    if (!progress->count || op_table[packet->opcode].flags & OP_START)
        return LOOKUP_NONE;
    uint32_t index = progress->messages[progress->count - 1];
    const struct message *message = &walk->ladder->messages[index];
    return !message->ended && psn_add(message->last_psn, 1) == packet->psn ? index : LOOKUP_NONE;
}

/* The number of PSNs that a request takes: as many as the answer to a READ has packets, otherwise 1. */
static uint32_t span_of(const struct walk *walk, uint32_t flow, const struct packet *packet)
{
    uint32_t peer = walk->flows->list[flow].peer;
    uint32_t mtu = walk->flows->list[flow].mtu;
    if (peer != LOOKUP_NONE && walk->flows->list[peer].mtu > mtu)
        mtu = walk->flows->list[peer].mtu;
    if (!(op_table[packet->opcode].flags & OP_READ) || !mtu || !packet->length)
        return 1;
    uint32_t span = (packet->length - 1) / mtu + 1;
    return span < 1u << 22 ? span : 1;
}

static void add_request(struct walk *walk, struct progress *progress, uint32_t index, const struct packet *packet)
{
    struct transit *transit = &walk->ladder->list[index];
    uint32_t flags = op_table[packet->opcode].flags, span = span_of(walk, transit->flow, packet);
    uint32_t open = open_message(walk, progress, packet);
    transit->message = open != LOOKUP_NONE ? open : add_message(walk, progress, transit->flow, index, packet);
    struct message *message = &walk->ladder->messages[transit->message];
    message->last = index;
    message->last_psn = psn_add(packet->psn, span - 1);
    message->ended = flags & OP_END;
    message->packets++;
    message->bytes += flags & OP_READ ? packet->length : packet->payload.length;
    progress->next = psn_add(packet->psn, span);
}

/* --- repeats */

static bool goes_on(const struct progress *progress, const struct packet *packet)
{
    return progress->cause != CAUSE_NONE && psn_distance(packet->psn, progress->last_psn) > 0;
}

static void name_cause(struct progress *progress, struct transit *transit, const struct packet *packet, uint64_t time)
{
    bool asked = progress->nak != LOOKUP_NONE && psn_distance(packet->psn, progress->nak_psn) >= 0;
    transit->waited = time - (asked ? progress->nak_time : progress->last_time);
    if (asked) {
        transit->related = progress->nak;
        progress->cause = progress->nak_cause;
        progress->nak = LOOKUP_NONE;
    } else if (goes_on(progress, packet)) {
        transit->waited = 0;
    } else {
        progress->cause = CAUSE_TIMEOUT;
    }
    transit->cause = progress->cause;
}

static void add_repeat(struct walk *walk, struct progress *progress, uint32_t index, const struct packet *packet,
                       uint64_t time)
{
    struct transit *transit = &walk->ladder->list[index];
    transit->related = *lookup_find(&walk->seen, transit->flow, packet->psn);
    bool seen = transit->related != LOOKUP_NONE;
    set_mark(transit, seen ? MARK_REPEAT : MARK_LATE);
    transit->message = find_message(walk, progress, packet->psn);
    if (transit->message != LOOKUP_NONE)
        walk->ladder->messages[transit->message].repeats += seen;
    if (seen && is_acknowledged(packet->opcode))
        name_cause(progress, transit, packet, time);
}

static void walk_request(struct walk *walk, uint32_t index, const struct entry *record)
{
    const struct packet *packet = &record->packet;
    struct transit *transit = &walk->ladder->list[index];
    struct progress *progress = progress_of(walk, transit->flow);
    bool sequenced = op_service(packet->opcode) != SERVICE_UD && op_service(packet->opcode) != SERVICE_CNP;
    sequenced &= !(op_table[packet->opcode].flags & OP_SRDETH); /* has no order */
    int32_t ahead = progress->begun && sequenced ? psn_distance(packet->psn, progress->next) : 0;
    if (ahead < 0) {
        add_repeat(walk, progress, index, packet, record->nanoseconds);
    } else {
        if (ahead > 0)
            set_mark(transit, MARK_GAP);
        progress->cause = CAUSE_NONE;
        add_request(walk, progress, index, packet);
    }
    progress->begun = true;
    progress->last = index;
    progress->last_psn = packet->psn;
    progress->last_time = record->nanoseconds;
    *lookup_find(&walk->seen, transit->flow, packet->psn) = index;
}

/* --- answers */

static bool answers_itself(const struct message *message)
{
    return op_table[message->opcode].flags & (OP_READ | OP_ATOMIC | OP_ATOMIC_WRITE);
}

/* An acknowledgment acknowledges all messages before it, too; but a READ or an atomic is done by its own response. */
static void acknowledge(struct walk *walk, struct progress *progress, uint32_t index, const struct packet *packet)
{
    bool own = !(op_table[packet->opcode].flags & OP_AETH) || op_operation(packet->opcode) != OPERATION_ACKNOWLEDGE;
    for (; progress->unanswered < progress->count; progress->unanswered++) {
        struct message *message = &walk->ladder->messages[progress->messages[progress->unanswered]];
        int32_t left = psn_distance(message->last_psn, packet->psn);
        if (left > 0 || (answers_itself(message) && !(own && left == 0)))
            break;
        message->state = MESSAGE_DONE;
        message->answered = index;
    }
}

static void refuse_message(struct walk *walk, struct progress *progress, uint32_t index, const struct packet *packet)
{
    uint32_t found = find_message(walk, progress, packet->psn);
    if (found == LOOKUP_NONE || walk->ladder->messages[found].state == MESSAGE_DONE)
        return;
    struct message *message = &walk->ladder->messages[found];
    message->state = MESSAGE_REFUSED;
    message->syndrome = packet->syndrome;
    message->answered = index;
}

static void note_nak(struct walk *walk, struct progress *progress, uint32_t index, const struct entry *record)
{
    const struct packet *packet = &record->packet;
    struct transit *transit = &walk->ladder->list[index];
    bool rnr = syndrome_class(packet->syndrome) == SYNDROME_CLASS_RNR;
    set_mark(transit, rnr ? MARK_RNR : MARK_NAK);
    if (!has_arrived(transit))
        return;
    if (!rnr && packet->syndrome != SYNDROME_NAK_SEQUENCE) {
        refuse_message(walk, progress, index, packet);
        return;
    }
    if (!rnr && progress->nak != LOOKUP_NONE && progress->nak_cause == CAUSE_NOT_READY)
        return; /* a NAK of a packet after the one that the requester repeats */
    progress->nak = index;
    progress->nak_psn = packet->psn;
    progress->nak_cause = rnr ? CAUSE_NOT_READY : CAUSE_SEQUENCE;
    progress->nak_time = record->nanoseconds;
}

/* Marks a gap where a READ's response has a later PSN than expected. */
static void follow_responses(struct walk *walk, struct progress *progress, uint32_t index, const struct entry *record)
{
    const struct packet *packet = &record->packet;
    struct transit *transit = &walk->ladder->list[index];
    bool starts = op_table[packet->opcode].flags & OP_START, ends = op_table[packet->opcode].flags & OP_END;
    if (!starts && progress->response != LOOKUP_NONE && psn_distance(packet->psn, progress->response) > 0) {
        set_mark(transit, MARK_GAP);
        progress->nak = index;
        progress->nak_psn = progress->response;
        progress->nak_cause = CAUSE_RESPONSE_GAP;
        progress->nak_time = record->nanoseconds;
    }
    progress->response = ends ? LOOKUP_NONE : psn_add(packet->psn, 1);
}

static void walk_response(struct walk *walk, uint32_t index, const struct entry *record)
{
    struct transit *transit = &walk->ladder->list[index];
    uint32_t peer = walk->flows->list[transit->flow].peer, flags = op_table[record->packet.opcode].flags;
    if (peer == LOOKUP_NONE || !walk->of[peer])
        return;
    struct progress *progress = walk->of[peer];
    transit->message = find_message(walk, progress, record->packet.psn);
    if (flags & OP_SRDETH)
        return; /* ends single packets, perhaps several of them */
    enum syndrome_class class = flags & OP_AETH ? syndrome_class(record->packet.syndrome) : SYNDROME_CLASS_ACK;
    if (class == SYNDROME_CLASS_NAK || class == SYNDROME_CLASS_RNR) {
        note_nak(walk, progress, index, record);
        return;
    }
    if (!has_arrived(transit))
        return;
    if (flags & OP_PAYLOAD)
        follow_responses(walk, progress, index, record);
    if (flags & OP_END || !(flags & OP_PAYLOAD))
        acknowledge(walk, progress, index, &record->packet);
}

/* --- what happened at the ends, as a recording has it */

static void end_work(struct walk *walk, struct progress *progress, uint32_t index)
{
    uint32_t message = works_end(&progress->works);
    walk->ladder->list[index].message = message;
    if (message != LOOKUP_NONE)
        walk->ladder->messages[message].completed = index;
}

/* Notes the end of a receive for the message in the other direction that has this PSN. */
static void end_receive(struct walk *walk, uint32_t index, uint32_t psn)
{
    struct transit *transit = &walk->ladder->list[index];
    uint32_t peer = walk->flows->list[transit->flow].peer;
    transit->message = peer == LOOKUP_NONE ? LOOKUP_NONE : find_message(walk, progress_of(walk, peer), psn);
    if (transit->message != LOOKUP_NONE)
        walk->ladder->messages[transit->message].received = index;
}

static void walk_happening(struct walk *walk, uint32_t index, const struct entry *entry)
{
    struct transit *transit = &walk->ladder->list[index];
    struct progress *progress = progress_of(walk, transit->flow);
    if (entry->failed)
        set_mark(transit, MARK_ERROR);
    if (entry->happening == HAPPENING_POST || entry->happening == HAPPENING_POST_LOCAL)
        works_post(&progress->works, index, entry->happening == HAPPENING_POST_LOCAL);
    else if (entry->happening == HAPPENING_SENT)
        end_work(walk, progress, index);
    else if (entry->happening == HAPPENING_RECEIVED)
        end_receive(walk, index, entry->packet.psn);
    else if (entry->happening == HAPPENING_RESET)
        works_reset(&progress->works);
}

/* Gives each post the message that it became. */
static void join_posts(struct ladder *ladder)
{
    for (uint32_t i = 0; i < ladder->message_count; i++)
        if (ladder->messages[i].posted != LOOKUP_NONE)
            ladder->list[ladder->messages[i].posted].message = i;
}

/* --- all of it */

static void mark_way(const struct walk *walk, struct transit *transit)
{
    const struct entry *record = transit_record(walk->records, transit);
    const char *note = walk->records->strings.list[record->note];
    bool fault = strstr(note, "fault:");
    if (record->happening)
        return;
    if (record->verdict || (transit->received != LOOKUP_NONE && walk->records->list[transit->received].verdict))
        set_mark(transit, MARK_WRONG);
    if (fault)
        set_mark(transit, MARK_FAULT);
    if (record->direction == PCAP_SENT && transit->received == LOOKUP_NONE) {
        if (fault && (strstr(note, "dropped") || strstr(note, "corrupted")))
            set_mark(transit, MARK_LOST);
        else if (walk->flows->list[transit->flow].heard)
            set_mark(transit, MARK_MISSING);
    }
}

/* Marks packets that arrived once more than they were sent, in a capture that has the packets of their sender. */
static void mark_duplicates(const struct walk *walk)
{
    bool *sends = list_make(walk->flows->count, sizeof *sends);
    for (size_t i = 0; i < walk->records->count; i++)
        sends[walk->flows->of[i]] |= walk->records->list[i].direction == PCAP_SENT;
    for (size_t i = 0; i < walk->ladder->count; i++)
        if (walk->ladder->list[i].sent == LOOKUP_NONE && sends[walk->ladder->list[i].flow] &&
            !(walk->ladder->list[i].marks & 1u << MARK_WRONG))
            set_mark(&walk->ladder->list[i], MARK_DUPLICATE);
    free(sends);
}

static void walk_transit(struct walk *walk, uint32_t index)
{
    struct transit *transit = &walk->ladder->list[index];
    const struct entry *record = transit_record(walk->records, transit);
    if (record->happening)
        walk_happening(walk, index, record);
    if (!record->known || transit->marks & (1u << MARK_WRONG | 1u << MARK_DUPLICATE))
        return;
    if (op_table[record->packet.opcode].flags & OP_RESPONSE)
        walk_response(walk, index, record);
    else if (!(op_table[record->packet.opcode].flags & OP_CNP))
        walk_request(walk, index, record);
}

void ladder_find(struct ladder *ladder, const struct records *records, const struct flows *flows)
{
    struct walk walk = {ladder, records, flows, list_make(flows->count, sizeof *walk.of), {0}};
    *ladder = (struct ladder){0};
    transits_find(ladder, records, flows);
    for (size_t i = 0; i < ladder->count; i++)
        mark_way(&walk, &ladder->list[i]);
    mark_duplicates(&walk);
    for (uint32_t i = 0; i < ladder->count; i++)
        walk_transit(&walk, i);
    join_posts(ladder);
    for (size_t i = 0; i < flows->count; i++)
        if (walk.of[i]) {
            free(walk.of[i]->messages);
            works_free(&walk.of[i]->works);
            free(walk.of[i]);
        }
    free(walk.of);
    lookup_free(&walk.seen);
}

void ladder_free(struct ladder *ladder)
{
    free(ladder->list);
    free(ladder->messages);
}
