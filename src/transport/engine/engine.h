/* An engine: the protocol of a queue pair, of any service (RC and XRC, UC, UD, SRD, raw packets), without a socket, a
 * clock, a thread, a lock or an allocation. This header is the only way to an engine from outside of transport/:
 * tools/build/doors.py ensures that no other file names a function or a field of one service.
 *
 * All that an engine ever learns enters by five doors, and the same calls with the same answers give the same packets
 * and completions. So a recorder or a script of faults at the doors sees all inputs, except the bytes in programs'
 * memory, to which the owner's answers point.
 *
 *   door      what enters                 functions
 *   --------  --------------------------  -----------------------------------------------------------------------------
 *   posted    work requests               engine_queue (reserve, fill, commit), then engine_posted for the batch,
 *                                         whose slow half is _flush_posted
 *   receive   packets of the network      engine_receive; _receive_reliable, the same inlined (engine/inlined.h), and
 *                                         _receive_message, the same of SRD; _receive_along, the ACK that a frame has
 *                                         in its head; _receive_frame, raw packets; _hear_response, XRC: one that
 *                                         another engine sent in its place
 *   expire    time                        engine_expire, with the knowledge of the peer; engine_watch
 *   transmit  room in the link, and the   engine_transmit; _transmit_reliable and _transmit_single, the same for most
 *             fate of the last packet     packets; _take_along, _take_back_along; _transmit_ack (engine/inlined.h);
 *                                         _acknowledge_late; _transmit_directly; _next_datagram; _next_message,
 *                                         _transmit_message, _hold, _retry and _nobody, SRD; _next_frame and
 *                                         _frame_sent, raw packets; _unreadable, _unreadable_request
 *   owner     its answers                 struct owner_operations (transport/owner.h), which the engine calls
 *             and its decisions           engine_initialize, _initialize_raw, _configure, _allow_direct,
 *                                         _allow_direct_above, _allow_references, _keep_responses, _start_receiving,
 *                                         _start_transmitting, _drain, _resume, _flush, _reset; XRC: _lend,
 *                                         _take_over, _reclaim; SRD: _forget_address; DC: _refuse, _flush_oldest
 *
 * All else only reads.
 *
 * Locks. One caller at a time: the owner holds its lock (the queue pair's, qp->lock; for a work queue, the lock of the
 * queue pair inside it) around each function here, also those that only read. Only engine_initialize and
 * engine_initialize_raw need no lock, as no other thread knows the queue pair then. An engine takes no lock and never
 * waits, so all calls of owner_operations are made within a door, under that same lock; the locks that they take must
 * be after it in base/lock_order.h. They may read the engine that calls them, but must not enter it.
 *
 * The calls that a door may make to its owner: `posted` only ends work that can't be done any more (sent). `receive`
 * may take and end receives, ask for memory, end work, fail, raise events, drop the packet, and ask to be watched.
 * `expire` may end work, fail, note a timeout and ask to be watched. `transmit` may ask for memory, execute local work,
 * end work, fail, drop a READ whose memory is gone, raise events and ask to be watched. Of the owner's decisions
 * _flush ends work and an open receive, _drain raises SQ_DRAINED and ends work that was transmitted, _lend raises
 * COMM_EST, and the others make no calls. */
#pragma once

#include "base/likely.h"
#include "transport/direct.h"
#include "transport/position.h"
#include "transport/rc/rc.h"
#include "transport/srd/srd.h"
#include "transport/unreliable/raw.h"
#include "transport/unreliable/uc.h"
#include "transport/unreliable/ud.h"

struct engine {
    const struct unreliable_operations *operations; /* NULL: RC and XRC */
    union {
        struct rc rc;
        struct unreliable unreliable; /* the beginning of uc, ud, srd and raw */
        struct uc uc;
        struct ud ud;
        struct srd srd;
        struct raw raw;
    };
};

#define ENGINE_ALIKE(member, reliable)                                                                                 \
    _Static_assert(offsetof(struct unreliable, member) == offsetof(struct rc, reliable),                               \
                   "read without a look at the service")
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

/* The send queue: work is posted by send_queue_reserve and send_queue_commit, and then engine_posted. */
static inline struct send_queue *engine_queue(struct engine *engine)
{
    return &engine->unreliable.queue;
}

/* engine_posted is called once for a batch. In the error state and in SQE it flushes the whole batch. */
void engine_flush_posted(struct engine *); /* does so, for an engine in one of these states */

static inline void engine_posted(struct engine *engine)
{
    bool works = !engine->unreliable.failed && (engine_is_reliable(engine) || !engine->unreliable.send_error);
    if (!likely(works))
        engine_flush_posted(engine);
}

/* ---- receive ---- */

/* Takes one packet from the network, also a congestion notification (CNP), and keeps neither the packet nor its
 * payload. Not for raw packets. */
void engine_receive(struct engine *, const struct packet *, nanos now);

/* SRD: takes a packet as engine_receive does. */
void engine_receive_message(struct engine *, const struct packet *, nanos now);

/* RC: takes the ACK that was sent along with a packet (engine_take_along), before that packet. It may be wrong. */
void engine_receive_along(struct engine *, uint32_t along, nanos now);

/* Raw packets: stores the frame in the next receive. Without one, or when it is too short, the frame is dropped, as a
 * network does. */
void engine_receive_frame(struct engine *, const struct raw_frame *);

/* XRC: notes, in the engine that has lent its position, what the peer learns from this response of the other engine. */
void engine_hear_response(struct engine *, const struct packet *response);

/* ---- expire ---- */

/* The owner's knowledge of a peer that does not answer. */
enum silent_peer {
    PEER_SILENT, /* it is silent, for an unknown reason */
    PEER_SLOW,   /* it lives, and has not consumed yet what was sent: a new period begins, and no retry is counted. The
                    owner says so after a change of the time-out, too: at 0 the timer stops */
    PEER_TOOK_ALL, /* it is gone, and had taken all that was sent. If these are only messages that asked for no ACK
                      (ack_mask), they end with success, as it would have refused them at once; otherwise it counts as
                      silent */
    PEER_MOVED,    /* the way to it changed: unacknowledged packets are sent again, and no retry is counted */
};

/* Repeats packets or gives up when the deadline has passed; does what enum silent_peer says at any time. `silence`: why
 * the peer does not answer, if the owner knows. */
void engine_expire(struct engine *, nanos now, enum silent_peer, enum reason silence);

/* Returns when the owner, which looks at the timers, must look again; NANOS_NEVER: not at all. Called after
 * engine_expire if that was due. owner->watch reports only deadlines that become sooner than that, so this need not
 * be called after other calls. */
nanos engine_watch(struct engine *);

/* ---- transmit ---- */

/* Returns the next packet to send: responses before requests. False: nothing now. out->payload.pieces points to
 * `pieces`, which has room for PAYLOAD_PIECES_MAX. Only the operation's fields, the BTH and the payload of *out are
 * written. The caller must be able to send each packet that it gets; without room in the link it does not call. UC and
 * UD work ends at the next call, since the caller is done with its packet then: so call until false is returned. Not
 * for raw packets. */
bool engine_transmit(struct engine *, struct packet *out, struct iovec *pieces, nanos now);

/* Returns the next packet as engine_transmit does, for RC and XRC alone. */
bool engine_transmit_reliable(struct engine *, struct packet *out, struct iovec *pieces, nanos now);

/* RC and XRC: the fastest way for most packets. Returns the next packet if it is a new message of one packet, and no
 * answer is owed, except perhaps an ACK that may be sent along. False: nothing was done; call engine_transmit. */
bool engine_transmit_single(struct engine *, struct packet *out, struct iovec *pieces, nanos now);

/* Takes an unrequested ACK that is sent along with a request, and not as a separate packet: with settings.acks_along,
 * called after each engine_transmit_single that returned a request. The number is for the peer's engine_receive_along;
 * 0: no ACK. */
static inline uint32_t engine_take_along(struct engine *engine)
{
    return rc_take_along(&engine->rc);
}

/* Takes that ACK back, as the request was not sent. */
void engine_take_back_along(struct engine *, uint32_t along);

/* Reports that the last packet was not sent, as the memory of its payload is gone. The work request fails in its
 * turn; for a READ's response the peer gets a NAK. */
void engine_unreadable(struct engine *, const struct packet *);
void engine_unreadable_request(struct engine *, uint32_t psn); /* for a request of engine_transmit_single */

/* RC and XRC: owes an ACK for the requests that were taken and asked for no ACK. Does nothing without such requests. */
void engine_acknowledge_late(struct engine *);

/* RC: offers the next READs and WRITEs to the owner's `doer`, up to DIRECT_TOGETHER WRITEs at a time, when nothing
 * is on its way, and completes those that it did. The rest is left for engine_transmit. No PSN is used up: to both
 * engines it is as if that work had never been. The doer is an argument, and not an operation of the owner, so that
 * it can be inlined: processors mispredict each return after the doer's system call. */
void engine_transmit_directly(struct engine *, direct_doer *);

/* UD: the work that engine_transmit would send next, to its `address`; or NULL. Ends work that was transmitted before,
 * so call it until it returns NULL. Work for an address that no queue pair has ends with success once it is
 * transmitted, and is lost, as on a real network. */
const struct send_wqe *engine_next_datagram(struct engine *);

/* SRD: finds where the next packet goes, which engine_transmit returns; false: there is no packet. engine_transmit
 * returns false if that packet's work ended instead; so call both until engine_next_message returns false. */
bool engine_next_message(struct engine *, struct engine_target *);
/* SRD: transmits as engine_transmit does. */
bool engine_transmit_message(struct engine *, struct packet *out, struct iovec *pieces, nanos now);
/* SRD: the link of that target has no room: its packets wait until engine_retry, a request's a moment at most, and
 * others come first. */
void engine_hold(struct engine *, nanos now);
void engine_retry(struct engine *);
/* SRD: that target is not on this host: work for it ends. */
void engine_nobody(struct engine *);
/* SRD: ends the work that names this address handle, which is about to be destroyed. */
void engine_forget_address(struct engine *, const void *address);

/* Raw packets: writes the next frame and its length, with checksums if the work asks for them. False: no work is
 * left, or it can't be sent and the send queue is in error. Returns the same frame until engine_frame_sent. */
bool engine_next_frame(struct engine *, uint8_t frame[RAW_FRAME_MAX], uint32_t *length);
void engine_frame_sent(struct engine *); /* that frame has left */

/* ---- the owner's decisions ---- */

/* Makes an idle engine of this service, without settings. `queue` describes memory of the owner, which outlives the
 * engine; `saved` as in engine_keep_responses. */
void engine_initialize(struct engine *, enum service, struct engine_owner *, const struct send_queue *queue,
                       struct responder_resource *saved);
/* SRD: the size of the memory that an engine asks for when it is made and when it is reset (owner_operations.room),
 * and that it must get then. */
size_t engine_first_room(void);
void engine_initialize_raw(struct engine *, struct engine_owner *, const struct send_queue *queue);

/* Changes the settings, at any time; begun work may continue with the old ones. A changed retry count begins anew. */
void engine_configure(struct engine *, const struct engine_settings *);

/* Settings that change with the link. Work whose payload is already sent by reference continues by reference. */
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

/* RC and XRC: gives the responder memory of the owner for responses that it may have to repeat, max_dest_rd_atomic
 * entries. Called before engine_start_receiving, and with NULL after engine_reset. */
void engine_keep_responses(struct engine *, struct responder_resource *saved);

/* RTR: packets are accepted from now on; the engine is configured. RTS: work is transmitted from now on. */
void engine_start_receiving(struct engine *, uint32_t expected_psn);
void engine_start_transmitting(struct engine *, uint32_t first_psn);

/* SQD and back: while `draining` is true no new work starts, and SQ_DRAINED is raised once begun work has ended. */
void engine_drain(struct engine *, bool draining);

/* SQE to RTS. RC and XRC do not have SQE. */
void engine_resume(struct engine *);

/* Moves the engine to the error state for the owner: everything outstanding is flushed. Does not call owner->failed. */
void engine_flush(struct engine *);

/* DC: ends the oldest work, which has not begun, with this error, and flushes the rest: its receiver can't be reached.
 */
void engine_refuse(struct engine *, enum ibv_wc_status, enum reason);

/* DC: ends the oldest work, which has not begun, with WR_FLUSH_ERR: its stream is in error. */
void engine_flush_oldest(struct engine *);

/* Returns to the state after engine_initialize, but with its settings: all work is forgotten, and not completed. */
void engine_reset(struct engine *);

/* XRC: lends the responder's position to another engine (rc/lend.h), if engine_may_lend; the connection counts as
 * established (COMM_EST). */
struct engine_position engine_lend(struct engine *);
/* Continues from that position. */
void engine_take_over(struct engine *, const struct engine_position *);
/* Takes the position back from an engine that is gone with all that it knew: this engine continues after the last
 * answer of that one, and asks the peer to repeat the rest. If that rest begins within a message, it is refused. */
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

/* Returns true in the error state. */
static inline bool engine_has_failed(const struct engine *engine)
{
    return engine->unreliable.failed;
}

/* Returns true in SQE. */
static inline bool engine_has_send_error(const struct engine *engine)
{
    return !engine_is_reliable(engine) && engine->unreliable.send_error;
}

/* Returns true if work has begun that has not ended, for which SQD waits. */
bool engine_has_begun(const struct engine *);

/* Returns true if begun work could continue on a way whose packets carry at most `segment` bytes, or, if `exact`,
 * exactly as many. */
bool engine_may_move(const struct engine *, uint32_t segment, bool exact);

/* Returns true if engine_transmit would give output. May be true too often, never false wrongly. */
bool engine_has_output(const struct engine *);

/* A faster form of engine_has_output, which is true more often: if posted work was not sent, or an answer is owed. */
static inline bool engine_may_have_output(const struct engine *engine)
{
    return engine_is_reliable(engine) ? rc_may_have_output(&engine->rc) : engine_has_output(engine);
}

/* The time at which engine_expire must be called; or NANOS_NEVER. */
static inline nanos engine_deadline(const struct engine *engine)
{
    if (engine_is_reliable(engine))
        return rc_deadline(&engine->rc);
    return engine->operations->deadline ? engine->operations->deadline(&engine->unreliable) : NANOS_NEVER;
}

/* The receive that a message has taken and has not ended; or NULL. */
const struct recv_wqe *engine_open_receive(const struct engine *);

/* ---- reading: of connections, UC's, too ---- */

static inline uint32_t engine_expected_psn(const struct engine *engine)
{
    return engine_is_reliable(engine) ? engine->rc.responder.expected_psn : engine->uc.expected_psn;
}

/* ---- reading: of RC and XRC alone ---- */

/* The PSN of the next packet that was never sent, and the PSN after the last one that was. */
static inline uint32_t engine_next_psn(const struct engine *engine)
{
    return engine->rc.requester.next_psn;
}

/* The PSN of the oldest packet that is not acknowledged; if all are, the next one. */
static inline uint32_t engine_acked_psn(const struct engine *engine)
{
    return engine->rc.requester.acked_psn;
}

static inline uint32_t engine_sent_psn(const struct engine *engine)
{
    return engine->rc.requester.sent_psn;
}

/* Returns true if the ACK timer, or the wait that an RNR NAK asked for, has expired. */
static inline bool engine_is_due(const struct engine *engine, nanos now)
{
    return engine->rc.requester.deadline <= now;
}

/* Returns true if engine_expire will give up now, as the last retry had no answer. */
static inline bool engine_gives_up(const struct engine *engine, nanos now)
{
    const struct rc *rc = &engine->rc;
    return engine_is_reliable(engine) && engine_is_due(engine, now) && !rc->requester.rnr_waiting &&
           !rc->requester.retries_left && !rc->failed;
}

/* Returns true if an RNR NAK ends the oldest request, as it was repeated often enough. */
static inline bool engine_ends_by_rnr(const struct engine *engine)
{
    return engine_is_reliable(engine) && rc_ends_by_rnr(&engine->rc);
}

/* Returns true if no retry was needed since the peer's last answer. */
static inline bool engine_has_all_retries(const struct engine *engine)
{
    return engine->rc.requester.retries_left >= engine->rc.settings.retry_count;
}

/* Returns true if a payload was sent by reference since the last reset, so that the peer may be fetching it. */
static inline bool engine_has_shipped(const struct engine *engine)
{
    return engine->rc.requester.shipped;
}

/* The number of READs, atomics and flushes that were sent and not answered yet. */
static inline uint32_t engine_reads_under_way(const struct engine *engine)
{
    return engine->rc.requester.reads;
}

/* SRD: returns what engine_has_output returns. */
bool engine_owes_messages(const struct engine *);

/* SRD: writes how far the messages of the queue pair are. */
void engine_describe(const struct engine *, struct engine_messages *);

/* Returns true if the engine waits because the peer had no receive. */
static inline bool engine_waits_for_receive(const struct engine *engine)
{
    return engine->rc.requester.rnr_waiting;
}

/* Returns true if COMM_EST was raised, or need not be. */
static inline bool engine_is_established(const struct engine *engine)
{
    return engine->rc.responder.established;
}

/* Returns true if a message has begun to arrive and has not ended. */
bool engine_is_within_message(const struct engine *);

/* The number of READs and atomics of the peer that the engine may keep results for, as set in RTR. */
static inline uint32_t engine_responses_kept(const struct engine *engine)
{
    return engine->rc.responder.saved ? engine->rc.responder.saved_most : 0;
}

/* Returns true if some of the output answers the peer's requests. Answers are sent first, but an ACK alone lets one
 * request pass. */
bool engine_owes_responses(const struct engine *);

/* Returns true if the only output is an ACK, which may wait a moment to be sent along with a request. */
bool engine_owes_but_an_ack(const struct engine *);

/* Returns true if the only possible output is an ACK, which need not wait for a request. Then engine_transmit_ack
 * returns it at once. */
static inline bool engine_owes_one_ack(const struct engine *engine)
{
    return rc_owes_one_ack(&engine->rc);
}

/* Returns true if a request was taken that asked for no ACK, as messages inside a host need not (ack_mask). It is
 * acknowledged with the next request that asks, along with a request of ours, or by engine_acknowledge_late, before the
 * peer's timer expires. */
static inline bool engine_owes_late(const struct engine *engine)
{
    return rc_owes_late(&engine->rc);
}

/* Returns true if the owner could do a READ of this length by itself if that were the next work. */
static inline bool engine_may_begin_read(const struct engine *engine, uint32_t length)
{
    const struct engine_settings *settings = &engine->rc.settings;
    return engine->rc.transmitting && !engine->rc.failed && !engine->rc.requester.draining && length &&
           length <= DIRECT_LENGTH_MAX && length <= settings->max_message && settings->max_rd_atomic;
}

/* The next work to be sent, if it is a READ or WRITE that the owner may do by itself; NULL otherwise. */
const struct send_wqe *engine_next_direct(const struct engine *);

/* XRC: returns true if the position may be lent to another engine now. False inside a message, while an answer is owed,
 * and after a failure. */
bool engine_may_lend(const struct engine *);
