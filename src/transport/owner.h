/* The transport's way to the world: operations that the owner of an engine implements (small ones: testing/rig.c).
 *
 * Their answers are one of the five doors of an engine (engine/engine.h). The engine calls them within the other
 * four, so under the lock that the owner holds there; they may read the same engine, but not enter it again. The answer
 * REASON_NONE means yes. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/nanos.h"
#include "diag/diag.h"
#include "events/events.h"
#include "transport/recv_wqe.h"
#include "transport/send_queue.h"
#include "wire/packet.h"

/* The end of a receive. */
struct recv_cqe {
    enum ibv_wc_status status;
    enum reason reason;
    enum ibv_wc_opcode opcode; /* IBV_WC_RECV or IBV_WC_RECV_RDMA_WITH_IMM */
    uint32_t length;           /* bytes of the message; UD: with the 40 bytes of the GRH */
    unsigned flags;            /* enum ibv_wc_flags */
    uint32_t immediate_or_key; /* the immediate in network order, or the invalidated key in host order */
    bool solicited;
    uint32_t source;             /* UD: the sender's QP number */
    uint32_t flow_tag;           /* raw packets: of the flow rule that steered the frame here */
    uint16_t cvlan;              /* raw packets: the VLAN tag that was stripped */
    const struct packet *packet; /* the message's last packet; NULL when it was flushed, and for raw packets */
};

/* take_receive's answer when the next receive has less room than `least`; it stays the next receive. */
extern const struct recv_wqe receive_too_short;

/* RC: take_receive's answer when it chooses a receive by the message's bytes and could not fetch these. No receive was
 * taken; the packet counts as lost. */
extern const struct recv_wqe receive_unfetched;

struct engine_owner;
struct direct_works;

/* Turns one local SGE into memory. access: 0 to read it, IBV_ACCESS_LOCAL_WRITE to store into it. Answers
 * REASON_LOCAL_KEY_UNKNOWN, _PD, _RANGE or _PERMISSION. Not called for length 0, which touches no key. */
typedef enum reason owner_memory(struct engine_owner *, const struct ibv_sge *, unsigned access, struct iovec *);

struct owner_operations {
    /* A work request ended; called once for each in the order of posting (SRD: in any order), signalled or not. */
    void (*sent)(struct engine_owner *, const struct send_wqe *, enum ibv_wc_status, enum reason);

    /* Takes the next receive for the message that this packet begins (an RDMA WRITE with immediate: ends). NULL: no
     * receive is posted; &receive_unfetched; &receive_too_short, if the receive has less room than `least`. */
    const struct recv_wqe *(*take_receive)(struct engine_owner *, const struct packet *, uint64_t least);

    /* UC, UD, raw packets: gives back a receive that was taken and not handed to `received`, as the message is lost. It
     * is the next receive again (an SRQ's: for the first message that arrives). */
    void (*return_receive)(struct engine_owner *, const struct recv_wqe *);

    /* XRC: chooses the SRQ to which memory and receives belong until the next choice. Called for every request, and
     * again for each packet of a READ's response. REASON_NONE, REASON_XRC_SRQ or REASON_XRC_DOMAIN. NULL: every
     * number is right. */
    enum reason (*select_srq)(struct engine_owner *, uint32_t number);
    /* SRD: a WRITE with immediate that takes no receive has NULL. */
    void (*received)(struct engine_owner *, const struct recv_wqe *, const struct recv_cqe *);

    owner_memory *local_memory;   /* of work requests */
    owner_memory *receive_memory; /* of receives, which may be of another protection domain: an SRQ's */

    /* Turns a peer's (rkey, address, length) into memory. access: IBV_ACCESS_REMOTE_WRITE, _READ, _ATOMIC or the
     * bits of a flush. Answers REASON_REMOTE_KEY_UNKNOWN, _PD, _RANGE, _PERMISSION or _WINDOW_QP. Length 0, for a
     * flush: the address is ignored, and no memory returned. */
    enum reason (*remote_memory)(struct engine_owner *, uint32_t rkey, uint64_t address, uint32_t length,
                                 unsigned access, struct iovec *);

    /* Executes an atomic in its place, 8 bytes that may be unaligned: FETCH_ADD, COMPARE_SWAP or ATOMIC_WRITE, as
     * the packet defines. *found: the old value. False: the memory is gone. Called only with settings.owner_changes;
     * NULL: the engine executes atomics by itself. */
    bool (*change)(struct engine_owner *, const struct packet *, void *memory, uint64_t *found);

    /* Invalidates this key for a SEND that has arrived; REASON_INVALIDATE_KEY: it can't be invalidated. */
    enum reason (*invalidate)(struct engine_owner *, uint32_t rkey);

    /* Executes work that sends no packet (LOCAL_INV, BIND_MW) in its turn. */
    enum ibv_wc_status (*local_operation)(struct engine_owner *, const struct send_wqe *, enum reason *);

    /* Reports that the engine went to the error state by itself. All work of the send queue has been handed to `sent`,
     * an open receive to `received`; the owner flushes the receive queue and sets its state. `sqe`: the send side only
     * (UC, UD). */
    void (*failed)(struct engine_owner *, bool sqe);

    /* Raises an event: COMM_EST (first packet in RTR), SQ_DRAINED, QP_REQ_ERR, QP_ACCESS_ERR. */
    void (*event)(struct engine_owner *, enum ibv_event_type);

    /* RC: asks for engine_expire at this time, which is sooner than the owner knows. */
    void (*watch)(struct engine_owner *, nanos deadline);

    /* Reports an event of events/events.def, with its fields. May be NULL. */
    void (*note)(struct engine_owner *, enum event, uint64_t a, uint64_t b);

    /* DC: returns true if the connection leads to the receiver of this work, whose responder it sets. Otherwise the
     * work waits until the owner has connected and transmits again. Called only for WORK_ADDRESSED. */
    bool (*reaches)(struct engine_owner *, struct send_wqe *);

    /* DC: returns true if the failure of the oldest work ends its stream alone: work that has begun after it ends with
     * WR_FLUSH_ERR, and the engine goes on. NULL: each failure ends all. */
    bool (*contains)(struct engine_owner *, const struct send_wqe *oldest);

    /* SRD: gives the engine memory of this size, all zeroes, until it is reset or gone. NULL: there is none; the first
     * request always gets its memory (engine_first_room). */
    void *(*room)(struct engine_owner *, size_t size);

    /* SRD: chooses how long a new packet is held back, while others of its flow leave: 0: not at all; n: SRD_WAIT << (n
     * - 1), n up to SRD_LATE_MOST. NULL: no packet is. */
    unsigned (*holds_back)(struct engine_owner *);

    /* SRD: does a READ or WRITE in its target's memory, as direct_doer (transport/direct.h). NULL: none is done so. */
    bool (*direct)(struct engine_owner *, const struct direct_works *);

    /* SRD: sends `response` to the sender of this packet at once; it may be lost. */
    void (*reply)(struct engine_owner *, const struct packet *, const struct packet *response);

    /* SRD: returns true if this end has an address handle for the packet's sender. NULL: for all. */
    bool (*knows)(struct engine_owner *, const struct packet *);

    /* SRD: returns true if the host of the work's receiver has answered since then that no program takes packets there.
     * NULL: no host has. */
    bool (*is_refused)(struct engine_owner *, const struct send_wqe *, nanos since);

    /* SRD: returns true if the receiver of the work lives, and has not consumed yet what was sent to it. NULL: no
     * receiver does. */
    bool (*is_slow)(struct engine_owner *, const struct send_wqe *);

    /* SRD: reports that the message of a packet was refused, as its sender will learn. NULL: it is not reported. */
    void (*refused)(struct engine_owner *, const struct packet *, enum reason);

    /* Reports that a packet was dropped or refused, for counters, logs and the capture. */
    void (*dropped)(struct engine_owner *, const struct packet *, enum reason);
};

struct engine_owner {
    const struct owner_operations *operations;
};

static inline void owner_note(struct engine_owner *owner, enum event event, uint64_t a, uint64_t b)
{
    if (owner->operations->note)
        owner->operations->note(owner, event, a, b);
}
