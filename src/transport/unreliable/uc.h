/* Unreliable connection: messages of several packets, no answers. Pure, as rc.h says. IBA 9.8.2.
 *
 * A message with a gap is lost as a whole and silently; the receive that it had taken is the next again. */
#ifndef TRANSPORT_UNRELIABLE_UC_H
#define TRANSPORT_UNRELIABLE_UC_H

#include "transport/unreliable/unreliable.h"

struct uc {
    struct unreliable common;
    /* requester */
    uint32_t next_psn;
    uint32_t packet; /* index within the work at queue.next */
    /* responder */
    uint32_t expected_psn;
    const struct recv_wqe *receive; /* taken for the open message */
    uint8_t open;                   /* enum operation of the open message's first packet, or MESSAGE_CLOSED */
    bool established;
    uint32_t received, write_rkey, write_length;
    uint64_t write_address;
};

/* Makes an idle engine. `queue` describes memory of the owner, which outlives the engine. */
void uc_initialize(struct uc *, struct engine_owner *, const struct send_queue *queue);

/* RTR and RTS. The expected PSN is but a start: each message's first packet sets it anew. */
void uc_start_receiving(struct uc *, uint32_t expected_psn);
void uc_start_transmitting(struct uc *, uint32_t first_psn);

/* Takes one packet from the network. The packet and its payload are not kept. */
void uc_receive(struct uc *, const struct packet *);

/* The next packet to send, or false. A work ends when its last packet has been sent: with the next call of any function
 * below or of uc_transmit, since the caller is done with the packet before. Call it until it answers false. */
bool uc_transmit(struct uc *, struct packet *out, struct iovec *pieces);

/* The packet that uc_transmit gave just now was not sent: the memory of its payload is gone. */
void uc_unreadable(struct uc *);

/* To the error state by the owner's wish: everything outstanding is flushed. Does not call owner->failed. */
void uc_flush(struct uc *);

/* To the state after uc_initialize, but with its settings: nothing is completed, everything is forgotten. */
void uc_reset(struct uc *);

#endif
