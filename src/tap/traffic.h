/* The one place where frames leave for the links, and where packets arrive: here they are counted, captured, and meet
 * the faults that the user asked for. It knows flows: the packets that a queue pair sends and receives. */
#pragma once

#include <infiniband/verbs.h>

#include "base/likely.h"
#include "base/lock.h"
#include "config/device.h"
#include "events/events.h"
#include "events/story.h"
#include "ipc/node.h"
#include "link/udp/udp.h"
#include "tap/taps.h"
#include "wire/op.h"
#include "wire/psn.h"

enum { TRAFFIC_NO_SERVICE = 0xff }; /* raw packets */

/* The traffic of a process. */
struct traffic {
    _Atomic(struct taps *) taps; /* by traffic_taps; once made, they stay */
    struct counts_total *totals; /* by device: counts of ended flows; under process->control */
    struct counts_total strays;  /* packets that arrived for no queue pair; under process->progress */
};

/* The traffic of a queue pair, under its lock, which `lock` is. The attributes and the number are the queue pair's;
 * number 0: it has no number yet. */
struct traffic_flow {
    const struct ibv_qp_attr *attr;
    uint64_t stream_frames[2]; /* frames that left, requests and responses, for faults */
    nanos stream_due;          /* when the last delayed frame leaves */

    /* Fields that each packet touches are together: among many queue pairs a line of the cache is most of a
     * message's price. */
    struct traffic *traffic;
    nanos now;                   /* as the present round has read it */
    struct story_recent *recent; /* the last records of the story; NULL: it has no records yet */
    struct story *story;         /* NULL: all records are recent ones */
    uint32_t written;            /* bytes of all records that were ever written for the story */
    uint32_t number;
    uint8_t service;        /* enum service of its packets, or TRAFFIC_NO_SERVICE */
    uint8_t before_records; /* bytes of the allocation before the recent records */
    uint32_t stream;        /* the stream of faults */
    const struct lock *lock;
    const struct device *device;
    struct counts counts;
};

/* 0 or ENOMEM. */
int traffic_open(struct traffic *, struct node *, struct schedule *, const atomic_bool *closed);
/* Closes the traffic, after delay_flush. */
void traffic_close(struct traffic *);

/* Makes the packets and messages of a running process meet the rules of a script. True: its queue pairs, which must
 * continue by packets without references, have no stream of faults yet (traffic_begin). Under process->progress. */
bool traffic_script(struct traffic *, struct node *, struct schedule *, const atomic_bool *closed);

/* Gives a new queue pair, whose `traffic` to `service` are filled in, a stream of faults. */
void traffic_begin(struct traffic_flow *);
/* Adds the counts of a destroyed queue pair to its device's. Under process->control. */
void traffic_end(struct traffic_flow *);
/* Frees the memory of a flow that no thread uses any more; it may not have ended, as in the child of a fork. */
void traffic_release(struct traffic_flow *);

/* Adds the queue pair's counts to the total. */
void traffic_add(struct counts_total *, const struct traffic_flow *);
/* The number of packets of WRITEs and atomics that arrived, without those in the middle and at the end of a message. */
uint64_t traffic_count_writes(const struct traffic_flow *);

/* Returns the queue pair's story, made at the first event that it keeps, so that an idle queue pair takes no memory
 * for one; NULL: no memory. Under qp->lock. */
struct story *traffic_story(struct traffic_flow *);

/* Returns the queue pair's recent records, made at the first event that they keep; NULL: no memory. Under qp->lock. */
struct story_recent *traffic_recent(struct traffic_flow *);

/* Puts all recent records into the story, which is made if necessary. Under qp->lock. */
void traffic_settle(struct traffic_flow *);

/* Bytes of all records that were ever written for the story. */
static inline uint32_t traffic_written(const struct traffic_flow *flow)
{
    return flow->written;
}

/* A change of the state alone needs no story. */
__attribute__((always_inline)) static inline void traffic_keep(struct traffic_flow *flow, enum event event, uint64_t a,
                                                               uint64_t b, uint32_t more)
{
    struct story_recent *recent = flow->recent;
    if (unlikely(!recent) && (event == EVENT_QP_STATE || !(recent = traffic_recent(flow))))
        return;
    if (unlikely(story_write(recent, &flow->written, flow->now, event, more, a, b)))
        traffic_settle(flow);
}

/* Notes an event of the queue pair: counts it, writes its line to the log and its record to the story, as events.def
 * defines them. `more`: the field that only the record has. Under qp->lock. If `event` is constant, the compiler
 * knows which of these are needed. */
__attribute__((always_inline)) static inline void traffic_note_more(struct traffic_flow *flow, enum event event,
                                                                    uint64_t a, uint64_t b, uint32_t more)
{
    lock_assert_held(flow->lock);
    counts_note(&flow->counts, event, a, b);
    if (event_kept(event) != EVENT_FIELD_LEFT)
        traffic_keep(flow, event, a, b, more);
    event_note(flow->number, event, a, b);
}

__attribute__((always_inline)) static inline void traffic_note(struct traffic_flow *flow, enum event event, uint64_t a,
                                                               uint64_t b)
{
    traffic_note_more(flow, event, a, b, 0);
}

/* Notes the end of a send or a receive (EVENT_SEND_ENDED, EVENT_RECEIVE_ENDED). Flushed ones are left out: many after
 * one error would push earlier records out of the story. The story has their number. */
__attribute__((always_inline)) static inline void
traffic_note_ended(struct traffic_flow *flow, enum event event, uint64_t id, enum ibv_wc_status status, uint32_t more)
{
    if (status != IBV_WC_WR_FLUSH_ERR)
        traffic_note_more(flow, event, id, status, more);
}

/* Counts the frame of the queue pair and puts it into the link, as link->operations->send does, which must have
 * room. `peer` is the receiver; NULL: the link leads to another host. Under qp->lock, between the link's begin and
 * end. False: the memory of the payload is gone, and nothing was sent. */
static inline bool traffic_send(struct traffic_flow *, struct peer *peer, struct link *, const struct frame *);

/* Sends a request of a connection like traffic_send; the caller knows its operation. */
static inline bool traffic_send_request(struct traffic_flow *, struct peer *peer, struct link *, const struct frame *,
                                        enum operation);

/* Gives the link back, as link->operations->end does, and counts frames as dropped that the kernel refused, of this
 * batch or an earlier one that had waited for room. Under qp->lock. */
static inline void traffic_end_batch(struct traffic_flow *, struct link *);

/* Notes that a request is sent again if its PSN is before the first PSN that was not sent yet. */
static inline void traffic_retransmitted(struct traffic_flow *flow, const struct packet *packet, uint32_t fresh)
{
    if (psn_distance(packet->psn, fresh) < 0 && !(op_table[packet->opcode].flags & OP_RESPONSE))
        traffic_note(flow, EVENT_RETRANSMITTED, packet->psn, 0);
}

/* Notes that this member of its group misses a frame of the queue pair, as it has no room. Under qp->lock. */
void traffic_missed(struct traffic_flow *, const struct peer *);

/* Returns true if payloads may be sent by reference. False while faults are injected: a delayed copy could be read
 * after the memory changed. */
bool traffic_may_reference(const struct traffic *, struct link *);

/* Returns true if the peer can fetch no payload any more that was sent by reference, and no frame waits on its way
 * to the link: later frames arrive after all earlier ones. */
bool traffic_has_lost_references(const struct traffic *, struct link *);

/* The taps, or NULL. Another thread may make them meanwhile (traffic_script). Thread-safe. */
static inline struct taps *traffic_taps(const struct traffic *traffic)
{
    return atomic_load_explicit(&traffic->taps, memory_order_acquire);
}

/* Returns true if frames may meet faults, also on links that lose no frames by themselves. */
static inline bool traffic_is_faulty(const struct traffic *traffic)
{
    return unlikely(traffic_taps(traffic) != NULL) && traffic_taps(traffic)->faulty;
}

/* Notes a packet that arrived for this queue pair, under its lock. `route` NULL: from this host. Under
 * process->progress, like all below. */
static inline void traffic_received(struct traffic_flow *, const struct packet *, const struct datagram_route *route);

/* traffic_managed notes a packet for queue pair 1 that was used; traffic_send_alone answers one. */
void traffic_managed(struct traffic *, const struct packet *, const struct datagram_route *route);
void traffic_send_alone(struct traffic *, struct link *, const struct packet *request, const struct frame *);

/* Returns the errno with which the kernel refused one frame of queue pair 1, or 0; called after the link's end. Any
 * lock. */
int traffic_take_unsent(struct link *);

/* traffic_stray notes that a packet for no queue pair was dropped, traffic_dropped one that could not be read or
 * sent: both count it by the reason, with a line in the log; traffic_stray captures it. */
void traffic_stray(struct traffic *, const struct packet *, const struct datagram_route *route, enum reason,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
void traffic_dropped(struct traffic *, enum reason, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Notes a raw Ethernet frame that arrived. */
void traffic_received_frame(struct traffic *, const struct frame *);

/* --- how */

void traffic_note_refusal_sent(struct traffic_flow *, const uint8_t *headers);
void traffic_received_slow(struct traffic_flow *, const struct packet *);
void traffic_count_unsent(struct traffic_flow *, struct link *);
bool traffic_send_tapped(struct traffic_flow *, struct peer *peer, struct link *, const struct frame *);

enum { TRAFFIC_SYNDROME_AT = 12 /* in an ACKNOWLEDGE's headers */ };

static inline void traffic_note_sent(struct traffic_flow *flow, const struct frame *frame)
{
    const uint8_t *headers = frame->headers + frame_outer_length(frame->kind);
    if (unlikely(frame->kind == FRAME_ETHERNET)) {
        traffic_note(flow, EVENT_PACKET_SENT, 0, frame->payload.length);
    } else if (unlikely(op_service(headers[0]) == SERVICE_CNP)) {
        traffic_note(flow, EVENT_CNP_SENT, 0, frame->payload.length);
    } else {
        traffic_note(flow, EVENT_PACKET_SENT, op_operation(headers[0]), frame->payload.length);
        if (op_operation(headers[0]) == OPERATION_ACKNOWLEDGE && frame->kind == FRAME_ROCE &&
            unlikely(headers[TRAFFIC_SYNDROME_AT] >> 5))
            traffic_note_refusal_sent(flow, headers);
    }
}

/* The functions below are called for each frame, so they are inlined. */
static inline bool traffic_send_counted(struct traffic_flow *flow, struct peer *peer, struct link *link,
                                        const struct frame *frame)
{
    if (unlikely(traffic_taps(flow->traffic) != NULL))
        return traffic_send_tapped(flow, peer, link, frame);
    return link->operations->send(link, frame) != FRAME_UNREADABLE;
}

static inline bool traffic_send(struct traffic_flow *flow, struct peer *peer, struct link *link,
                                const struct frame *frame)
{
    lock_assert_held(flow->lock);
    traffic_note_sent(flow, frame);
    return traffic_send_counted(flow, peer, link, frame);
}

static inline bool traffic_send_request(struct traffic_flow *flow, struct peer *peer, struct link *link,
                                        const struct frame *frame, enum operation operation)
{
    lock_assert_held(flow->lock);
    traffic_note(flow, EVENT_PACKET_SENT, operation, frame->payload.length);
    return traffic_send_counted(flow, peer, link, frame);
}

/* A packet without AETH has the class of ACKs. Called for each packet, so it is inlined. */
static inline void traffic_received(struct traffic_flow *flow, const struct packet *packet,
                                    const struct datagram_route *route)
{
    lock_assert_held(flow->lock);
    bool usual = op_service(packet->opcode) == flow->service && packet->syndrome >> 5 == 0;
    if (likely(usual))
        traffic_note_more(flow, EVENT_PACKET_RECEIVED, op_operation(packet->opcode), packet->payload.length,
                          packet->psn);
    else
        traffic_received_slow(flow, packet);
    if (unlikely(traffic_taps(flow->traffic) != NULL))
        taps_received(traffic_taps(flow->traffic), flow, packet, route);
}

static inline void traffic_end_batch(struct traffic_flow *flow, struct link *link)
{
    lock_assert_held(flow->lock);
    link->operations->end(link);
    if (unlikely(atomic_load_explicit(&link->unsent, memory_order_relaxed)))
        traffic_count_unsent(flow, link);
}
