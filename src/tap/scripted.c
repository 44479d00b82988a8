#include "tap/scripted.h"

#include <stdio.h>
#include <string.h>

#include "script/faults.h"
#include "script/field.h"
#include "wire/op.h"
#include "wire/psn.h"
#include "wire/wire.h"

void scripted_add(const struct script_verdict *verdict, struct fault *fault)
{
    unsigned kinds = verdict->faults;
    for (enum fault_kind kind = 0; kind < FAULT_KINDS; kind++)
        kinds |= (unsigned)verdict_has(verdict, fault_fates[kind]) << kind;
    fault_add(fault, kinds, verdict->delay + verdict_has(verdict, SCRIPT_HOLD));
}

/* Reads the headers from the BTH on. False: the frame has no BTH, or the headers can't be read. */
static bool read_headers(const struct frame *frame, struct packet *packet)
{
    unsigned skip = frame_outer_length(frame->kind), headers, pad;
    if (frame->kind == FRAME_ETHERNET ||
        wire_decode(frame->headers + skip, frame->headers_length - skip, packet, &headers, &pad) != WIRE_FINE)
        return false;
    packet->payload = frame->payload;
    return true;
}

static void write_headers(const struct packet *packet, struct scripted_frame *to)
{
    unsigned skip = frame_outer_length(to->frame.kind);
    memcpy(to->headers, to->frame.headers, skip);
    to->frame.headers_length = (uint16_t)(skip + wire_encode(packet, to->headers + skip));
    to->frame.headers = to->headers;
}

static void cut(struct scripted_frame *to, uint32_t length)
{
    struct payload *payload = &to->frame.payload;
    uint32_t rest = length, count = 0;
    for (; count < payload->count && rest; count++) {
        to->pieces[count] = payload->pieces[count];
        if (to->pieces[count].iov_len > rest)
            to->pieces[count].iov_len = rest;
        rest -= (uint32_t)to->pieces[count].iov_len;
    }
    payload->length = length;
    payload->count = count;
    payload->pieces = count ? to->pieces : NULL;
}

/* Changes fields of the packet. It keeps its opcode if the new one does not exist, and so has no headers. */
static void change_packet(const struct script_verdict *verdict, struct packet *packet)
{
    uint8_t opcode = packet->opcode;
    for (unsigned i = 0; i < verdict->changing; i++)
        field_change(&verdict->changes[i], SCRIPT_packet, packet, sizeof *packet);
    if (!op_find(packet->opcode))
        packet->opcode = opcode;
}

const struct frame *scripted_change(const struct script_verdict *verdict, const struct frame *frame,
                                    struct scripted_frame *to)
{
    struct packet packet;
    bool cuts = verdict->cut && frame->payload.length > verdict->length && !frame->payload.pull;
    if (!cuts && !verdict->changing)
        return frame;
    to->frame = *frame;
    if (cuts)
        cut(to, verdict->length);
    if (!read_headers(&to->frame, &packet))
        return cuts ? &to->frame : frame;
    change_packet(verdict, &packet);
    write_headers(&packet, to);
    return &to->frame;
}

static const uint8_t syndromes[] = {
#define FORGED(name, syndrome) [SCRIPT_FORGED_##name] = syndrome,
#include "script/words.def"
};

/* The forged packet has the PSN of the packet before which it is sent; an old ACK the PSN before that. */
bool scripted_forge(const struct script_verdict *verdict, const struct frame *frame, struct scripted_frame *to)
{
    struct packet as;
    if (!verdict->forged || frame->kind != FRAME_ROCE || !read_headers(frame, &as))
        return false;
    bool notification = verdict->forged == SCRIPT_FORGED_CNP, old = verdict->forged == SCRIPT_FORGED_OLD_ACK;
    uint8_t acknowledge = op_code(op_service(as.opcode), OPERATION_ACKNOWLEDGE);
    struct packet packet = {.opcode = notification ? op_code(SERVICE_CNP, OPERATION_SEND_MIDDLE) : acknowledge,
                            .migrated = true,
                            .pkey = as.pkey,
                            .destination = as.destination,
                            .psn = (as.psn - old) & PSN_MASK,
                            .msn = as.msn,
                            .syndrome = syndromes[verdict->forged]};
    if (notification)
        packet.psn = 0;
    if (!op_find(packet.opcode))
        return false;
    to->frame = (struct frame){.kind = FRAME_ROCE, .headers = to->headers};
    write_headers(&packet, to);
    return true;
}

const char *scripted_describe(const struct script_verdict *verdict, const struct fault *fault, char *to, size_t room)
{
    const char *changed = verdict->changing ? " changed" : "", *shorter = verdict->cut ? " cut" : "";
    const char *held = verdict_has(verdict, SCRIPT_HOLD) ? " held" : "";
    char words[96];
    struct fault shown = *fault;
    if (*held) /* how long is not known */
        shown.kinds &= ~(1u << FAULT_DELAY);
    const char *met = fault_describe(&shown, words, sizeof words);
    if (!met && !*changed && !*shorter && !*held)
        return NULL;
    snprintf(to, room, "%s%s%s%s", met ? met : "fault:", held, changed, shorter);
    return to;
}
