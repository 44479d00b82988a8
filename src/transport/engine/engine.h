/* An engine: the protocol of a queue pair, of any service (RC and XRC, UC, UD, raw packets), without a socket, a clock,
 * a thread, a lock or an allocation. This is the only way to one from outside of transport/: tools/build/doors.py
 * ensures that no other file names a function or a field of one service.
 *
 * All that an engine ever learns enters by five doors, and the same calls with the same answers give the same packets
 * and completions. So a recorder or a script of faults at the doors sees all inputs, except the bytes in programs'
 * memory, to which its owner's answers point.
 *
 *   door      what enters                 functions
 *   --------  --------------------------  -----------------------------------------------------------------------------
 *   posted    work requests               engine_queue (reserve, fill, commit), then engine_posted for the batch,
 *                                         whose slow half is _flush_posted
 *   receive   packets of the network      engine_receive; _receive_reliable, the same inlined (engine/inlined.h);
 *                                         _receive_along, the ACK that a frame has in its head; _receive_frame, raw
 *                                         packets; _hear_response, XRC: one that another engine gave in its place
 *   expire    time                        engine_expire, with what is known of the peer; engine_watch
 *   transmit  room in the link, and what  engine_transmit; _transmit_reliable and _transmit_single, the same for most
 *             became of what was given    packets; _take_along, _take_back_along; _transmit_ack (engine/inlined.h);
 *                                         _acknowledge_late; _transmit_directly; _next_datagram; _next_frame and
 *                                         _frame_sent, raw packets; _unreadable, _unreadable_request
 *   owner     its answers                 struct owner_operations (transport/owner.h), which the engine calls
 *             and its decisions           engine_initialize, _initialize_raw, _configure, _allow_direct,
 *                                         _allow_direct_above,
 *                                         _allow_references, _keep_responses, _start_receiving, _start_transmitting,
 *                                         _drain, _resume, _flush, _reset; XRC: _lend, _take_over, _reclaim
 *
 * All else only reads.
 *
 * Locks. One caller at a time: the owner holds its lock (that of the queue pair, qp->lock; of a work queue, that of the
 * queue pair inside it) around each function here, those that read included. Only engine_initialize and
 * engine_initialize_raw need none, as no other thread knows the queue pair then. An engine takes no lock and waits for
 * nothing, so all calls of owner_operations come from within a door, under that same lock; the locks that they take
 * must come behind it in base/lock_order.h. They may read the engine that calls them, and enter no door of it.
 *
 * The calls that a door may make to its owner: `posted` only ends work that can't be done any more (sent). `receive`
 * may take and end receives, ask for memory, end work, fail, raise events, drop the packet, and ask to be watched.
 * `expire` may end work, fail and ask to be watched. `transmit` asks for memory, executes local work, ends work, may
 * fail the send side, raise SQ_DRAINED and ask to be watched. Of the owner's decisions _flush ends work and an open
 * receive, _drain raises SQ_DRAINED and ends work that was transmitted, _lend raises COMM_EST, and the others make no
 * calls. */
#ifndef TRANSPORT_ENGINE_ENGINE_H
#define TRANSPORT_ENGINE_ENGINE_H

#include "base/likely.h"
#include "transport/direct.h"
#include "transport/position.h"
#include "transport/rc/rc.h"
#include "transport/unreliable/raw.h"
#include "transport/unreliable/uc.h"
#include "transport/unreliable/ud.h"

struct engine {
    const struct unreliable_operations *operations; /* NULL: RC and XRC */
    union {
        struct rc rc;
        struct unreliable unreliable; /* the beginning of the three below */
        struct uc uc;
        struct ud ud;
        struct raw raw;
    };
};

#define ENGINE_ALIKE(member, reliable)                                                                                 \
    _Static_assert(offsetof(struct unreliable, member) == offsetof(struct rc, reliable), "read without asking which")
ENGINE_ALIKE(owner, owner);
ENGINE_ALIKE(settings, settings);
ENGINE_ALIKE(receiving, receiving);
ENGINE_ALIKE(transmitting, transmitting);
ENGINE_ALIKE(failed, failed);
ENGINE_ALIKE(queue, requester.queue);
#undef ENGINE_ALIKE

/* Returns true for RC and XRC. */
static inline bool engine_is_reliable(const struct engine *engine)
{
    return !engine->operations;
}

/* ---- posted ---- */

/* Work is posted by send_queue_reserve and send_queue_commit on it, and engine_posted then. */
static inline struct send_queue *engine_queue(struct engine *engine)
{
    return &engine->unreliable.queue;
}

/* Once for a batch. In the error state and in SQE all of it is flushed. */
void engine_flush_posted(struct engine *); /* of an engine that is in one of them */

static inline void engine_posted(struct engine *engine)
{
    bool works = !engine->unreliable.failed && (engine_is_reliable(engine) || !engine->unreliable.send_error);
    if (!likely(works))
        engine_flush_posted(engine);
}

/* ---- receive ---- */

/* Takes one packet from the network, a congestion notification (CNP), too. The packet and its payload are not kept. Not
 * for raw packets. */
void engine_receive(struct engine *, const struct packet *, nanos now);

/* RC: the ACK that came along with a packet (engine_take_along), before that packet is taken. It may be nonsense. */
void engine_receive_along(struct engine *, uint32_t along, nanos now);

/* Raw packets: stores the frame in the next receive. Without one, or when it is too short, the frame is dropped, as a
 * network does. */
void engine_receive_frame(struct engine *, const struct raw_frame *);

/* XRC: the engine that has the position has responded with this packet: the lender remembers what the peer knows. */
void engine_hear_response(struct engine *, const struct packet *response);

/* ---- expire ---- */

/* The owner's knowledge of a peer that does not answer. */
enum silent_peer {
    PEER_SILENT,   /* nothing else: it is silent */
    PEER_SLOW,     /* it lives, and has not consumed yet what was sent: a new period, and no retry is counted. Likewise
                    * after another time-out was configured, which begins so, or ends where it is 0 now */
    PEER_TOOK_ALL, /* it is gone, and had taken all that was sent. If that is only messages which asked for no ACK
                    * (ack_mask), they end with success, as it would have refused them at once; otherwise it is silent
                    */
    PEER_MOVED,    /* the way to it is another: what was sent and not acknowledged is sent again, no retry is counted */
};

/* The deadline has passed, or the owner knows one of those: repeats, or gives up. `silence`: why no answer comes, if
 * the owner knows. Before the deadline PEER_SILENT does nothing. */
void engine_expire(struct engine *, nanos now, enum silent_peer, enum reason silence);

/* The owner looks at the timers, after engine_expire where that was due: when to look again; NANOS_NEVER: not at all.
 * owner->watch reports deadlines that become sooner than that, and only those, so no other call needs this one after
 * it. */
nanos engine_watch(struct engine *);

/* ---- transmit ---- */

/* The next packet to send: responses before requests. False: nothing now. `pieces` is where out->payload.pieces points,
 * room for PAYLOAD_PIECES_MAX. Of *out only what the operation has, the BTH and the payload are written. The caller
 * must be able to send each packet that it gets; back-pressure is not calling. Of UC and UD work ends with the next
 * call of any function here, since the caller is done with the packet then: so call it until it answers false. Not for
 * raw packets. */
bool engine_transmit(struct engine *, struct packet *out, struct iovec *pieces, nanos now);

/* The same for RC and XRC alone. */
bool engine_transmit_reliable(struct engine *, struct packet *out, struct iovec *pieces, nanos now);

/* RC and XRC: the same where nothing is owed, but perhaps an ACK that may go along, and a message of one packet is next
 * that never left before: most packets, the fastest way. False: nothing was done, and engine_transmit knows whether
 * there is something. */
bool engine_transmit_single(struct engine *, struct packet *out, struct iovec *pieces, nanos now);

/* Where settings.acks_along, each engine_transmit_single that gave a request is followed by this: an ACK that was not
 * requested goes along with it, and is no separate packet. It is a number that the owner carries to the peer's
 * engine_receive_along; 0: there is none. */
static inline uint32_t engine_take_along(struct engine *engine)
{
    return rc_take_along(&engine->rc);
}

/* That request did not leave. */
void engine_take_back_along(struct engine *, uint32_t along);

/* The packet given just now was not sent: the memory of its payload is gone. The work request fails in its turn; for
 * the response to a READ the peer gets a NAK. */
void engine_unreadable(struct engine *, const struct packet *);
void engine_unreadable_request(struct engine *, uint32_t psn); /* likewise, the request of engine_transmit_single */

/* RC and XRC: requests that were taken and asked for no ACK are acknowledged by the next packet. Nothing happens where
 * no ACK is owed so. */
void engine_acknowledge_late(struct engine *);

/* RC: offers READs and WRITEs that are next to the owner's `doer`, WRITEs up to DIRECT_TOGETHER at a time, when nothing
 * is on its way, and completes what it did. The rest is left for engine_transmit.
 * No PSN is used up: to both engines it is as if that work had never been.
 * The doer is an argument, and no operation of the owner, so that it can be made part of the caller: processors
 * mispredict each return behind the doer's system call. */
void engine_transmit_directly(struct engine *, direct_doer *);

/* UD: the work that engine_transmit would send next, or NULL: its `address` says where to. Ends what was transmitted
 * before, so call it until it answers NULL. A work request with nowhere to go (no queue pair is at the address) is
 * completed with success once it is transmitted and lost, as on a real network. */
const struct send_wqe *engine_next_datagram(struct engine *);

/* Raw packets: writes the next frame to `frame`, with its checksums if the work asks for them, and its length. False:
 * there is none, or it can't be sent and the send queue is in error. The same frame again until engine_frame_sent. */
bool engine_next_frame(struct engine *, uint8_t frame[RAW_FRAME_MAX], uint32_t *length);
void engine_frame_sent(struct engine *); /* that frame is on its way */

/* ---- the owner's decisions ---- */

/* Makes an idle engine of this service, without settings. `queue` describes memory of the owner, which outlives the
 * engine; `saved` is as with engine_keep_responses. */
void engine_initialize(struct engine *, enum service, struct engine_owner *, const struct send_queue *queue,
                       struct responder_resource *saved);
void engine_initialize_raw(struct engine *, struct engine_owner *, const struct send_queue *queue);

/* At any time; work that has begun may go on by those before. A changed count of retries begins anew. */
void engine_configure(struct engine *, const struct engine_settings *);

/* Settings that come and go with the link. Work that has begun by reference goes on so. */
static inline void engine_allow_direct(struct engine *engine, bool direct)
{
    engine->unreliable.settings.direct = direct;
}

static inline void engine_allow_direct_above(struct engine *engine, uint32_t length)
{
    engine->unreliable.settings.direct_above = length;
}

static inline void engine_allow_references(struct engine *engine, uint32_t segment)
{
    engine->unreliable.settings.reference_segment = segment;
}

/* RC and XRC: where the responder keeps what it may have to respond with again, the owner's, max_dest_rd_atomic
 * entries. Before engine_start_receiving; NULL after engine_reset. */
void engine_keep_responses(struct engine *, struct responder_resource *saved);

/* RTR: from now on packets are accepted; settings hold. RTS: from now on work is transmitted. */
void engine_start_receiving(struct engine *, uint32_t expected_psn);
void engine_start_transmitting(struct engine *, uint32_t first_psn);

/* SQD and back: `draining` true starts no new work and raises SQ_DRAINED once all begun work has ended. */
void engine_drain(struct engine *, bool draining);

/* SQE to RTS. RC and XRC have no such state. */
void engine_resume(struct engine *);

/* To the error state by the owner's wish: everything outstanding is flushed. Does not call owner->failed. */
void engine_flush(struct engine *);

/* To the state after engine_initialize, but with its settings: nothing is completed, everything is forgotten. */
void engine_reset(struct engine *);

/* XRC: a responder goes from engine to engine (rc/lend.h). Where this one stands, when engine_may_lend; the connection
 * counts as established (COMM_EST). */
struct engine_position engine_lend(struct engine *);
/* This engine goes on from there. */
void engine_take_over(struct engine *, const struct engine_position *);
/* The engine that has the position is gone with all that it knew: this one goes on behind its last answer, and the peer
 * is asked to repeat the rest. Of a message that it had begun the rest is then refused. */
void engine_reclaim(struct engine *);

/* ---- reading: of any service ---- */

static inline const struct engine_settings *engine_settings_of(const struct engine *engine)
{
    return &engine->unreliable.settings;
}

/* Returns true in RTR or later. */
static inline bool engine_is_receiving(const struct engine *engine)
{
    return engine->unreliable.receiving;
}

static inline bool engine_is_transmitting(const struct engine *engine)
{
    return engine->unreliable.transmitting;
}

/* The error state. */
static inline bool engine_has_failed(const struct engine *engine)
{
    return engine->unreliable.failed;
}

/* SQE. */
static inline bool engine_has_send_error(const struct engine *engine)
{
    return !engine_is_reliable(engine) && engine->unreliable.send_error;
}

/* Returns true if work has begun that has not ended, for which SQD waits. */
bool engine_has_begun(const struct engine *);

/* Returns true if that work could go on by a way whose packets carry at most `segment` bytes, all of them so many where
 * `exact`. */
bool engine_may_move(const struct engine *, uint32_t segment, bool exact);

/* Returns true if engine_transmit would give output. May be true too often, never false wrongly. */
bool engine_has_output(const struct engine *);

/* The same at once, and true more often: if there is posted work that was not sent, or an answer is owed. */
static inline bool engine_may_have_output(const struct engine *engine)
{
    return engine_is_reliable(engine) ? rc_may_have_output(&engine->rc) : unreliable_has_output(&engine->unreliable);
}

/* When engine_expire is to be called; NANOS_NEVER: not at all. */
static inline nanos engine_deadline(const struct engine *engine)
{
    return engine_is_reliable(engine) ? rc_deadline(&engine->rc) : NANOS_NEVER;
}

/* The receive that a message has taken and not ended; NULL: none. */
const struct recv_wqe *engine_open_receive(const struct engine *);

/* ---- reading: of connections, UC's, too ---- */

static inline uint32_t engine_expected_psn(const struct engine *engine)
{
    return engine_is_reliable(engine) ? engine->rc.responder.expected_psn : engine->uc.expected_psn;
}

/* ---- reading: of RC and XRC alone ---- */

/* Of the next packet that was never sent, and behind the last that was. */
static inline uint32_t engine_next_psn(const struct engine *engine)
{
    return engine->rc.requester.next_psn;
}

static inline uint32_t engine_sent_psn(const struct engine *engine)
{
    return engine->rc.requester.sent_psn;
}

/* Returns true if the ACK timer, or the wait that an RNR NAK asked for, has run out. */
static inline bool engine_is_due(const struct engine *engine, nanos now)
{
    return engine->rc.requester.deadline <= now;
}

/* Returns true if engine_expire will give up now, as the last retry has passed in silence. */
static inline bool engine_gives_up(const struct engine *engine, nanos now)
{
    const struct rc *rc = &engine->rc;
    return engine_is_reliable(engine) && engine_is_due(engine, now) && !rc->requester.rnr_waiting &&
           !rc->requester.retries_left && !rc->failed;
}

/* Returns true if no retry was needed since the peer last answered. */
static inline bool engine_has_all_retries(const struct engine *engine)
{
    return engine->rc.requester.retries_left >= engine->rc.settings.retry_count;
}

/* Returns true if the peer may be fetching a payload by reference, or was once since the last reset. */
static inline bool engine_has_shipped(const struct engine *engine)
{
    return engine->rc.requester.shipped;
}

/* READs, atomics and flushes that were sent and not answered yet. */
static inline uint32_t engine_reads_under_way(const struct engine *engine)
{
    return engine->rc.requester.reads;
}

/* Returns true if it waits because the peer had no receive. */
static inline bool engine_waits_for_receive(const struct engine *engine)
{
    return engine->rc.requester.rnr_waiting;
}

/* Returns true if COMM_EST was raised, or need not be. */
static inline bool engine_is_established(const struct engine *engine)
{
    return engine->rc.responder.established;
}

/* Returns true if a message has begun that has not ended. */
bool engine_is_within_message(const struct engine *);

/* As many READs and atomics of the peer as it may keep results for, as in RTR. */
static inline uint32_t engine_responses_kept(const struct engine *engine)
{
    return engine->rc.responder.saved ? engine->rc.responder.saved_most : 0;
}

/* Returns true if some of the output answers the peer's requests; it goes first (an ACK alone lets one request go
 * before it). */
bool engine_owes_responses(const struct engine *);

/* Returns true if all of it is an ACK, which may wait a moment for a request to go with. */
bool engine_owes_but_an_ack(const struct engine *);

/* Returns true if all that engine_transmit might give is an ACK, which need not wait for a request. Then
 * engine_transmit_ack gives it at once. */
static inline bool engine_owes_one_ack(const struct engine *engine)
{
    return rc_owes_one_ack(&engine->rc);
}

/* Inside a host messages need not ask for an ACK (ack_mask): a request that was taken without is acknowledged with the
 * next that does, along with a request, or when the owner says so by engine_acknowledge_late, before the peer's timer
 * expires. */
static inline bool engine_owes_late(const struct engine *engine)
{
    return rc_owes_late(&engine->rc);
}

/* Returns true if a READ of this length, were it the next work, could be begun and done by the owner itself. */
static inline bool engine_may_begin_read(const struct engine *engine, uint32_t length)
{
    const struct engine_settings *settings = &engine->rc.settings;
    return engine->rc.transmitting && !engine->rc.failed && !engine->rc.requester.draining && length &&
           length <= DIRECT_LENGTH_MAX && length <= settings->max_message && settings->max_rd_atomic;
}

/* The next work to be sent, if it is a READ or WRITE that the owner may do by itself; NULL otherwise. */
const struct send_wqe *engine_next_direct(const struct engine *);

/* Returns true if the position may go to another engine now. False inside a message, while an answer is owed or after a
 * failure. */
bool engine_may_lend(const struct engine *);

#endif
