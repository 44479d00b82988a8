#include "transport/engine/inlined.h"

#include <string.h>

#include "transport/rc/completer.h"
#include "transport/rc/direct.h"
#include "transport/rc/fail.h"
#include "transport/rc/lend.h"
#include "transport/rc/requester.h"
#include "transport/request.h"
#include "transport/retire.h"

_Static_assert(!offsetof(struct uc, common) && !offsetof(struct ud, common) && !offsetof(struct raw, common) &&
                   !offsetof(struct srd, common),
               "what the services have in common comes first");

/* ---- posted ---- */

void engine_flush_posted(struct engine *engine)
{
    if (engine_is_reliable(engine))
        rc_posted(&engine->rc);
    else
        engine->operations->posted(&engine->unreliable);
}

/* ---- receive ---- */

void engine_receive(struct engine *engine, const struct packet *packet, nanos now)
{
    if (!engine_is_reliable(engine))
        engine->operations->receive(&engine->unreliable, packet, now);
    else if (op_service(packet->opcode) == SERVICE_CNP)
        rc_notified(&engine->rc);
    else
        rc_receive(&engine->rc, packet, now);
}

void engine_receive_message(struct engine *engine, const struct packet *packet, nanos now)
{
    srd_take(&engine->srd, packet, now);
}

void engine_receive_along(struct engine *engine, uint32_t along, nanos now)
{
    rc_receive_along(&engine->rc, along, now);
}

void engine_receive_frame(struct engine *engine, const struct raw_frame *frame)
{
    raw_receive(&engine->raw, frame);
}

void engine_hear_response(struct engine *engine, const struct packet *response)
{
    rc_responded(&engine->rc, response);
}

/* ---- expire ---- */

void engine_expire(struct engine *engine, nanos now, enum silent_peer peer, enum reason silence)
{
    struct rc *rc = &engine->rc;
    if (!engine_is_reliable(engine)) {
        if (engine->operations->expire)
            engine->operations->expire(&engine->unreliable, now);
        return;
    }
    rc->settings.silence = silence;
    if (peer == PEER_MOVED)
        rc_reroute(rc, now);
    else if (peer == PEER_SLOW)
        rc_postpone(rc, now);
    else if (peer != PEER_TOOK_ALL || !completer_presume(rc, now))
        rc_expire(rc, now);
}

nanos engine_watch(struct engine *engine)
{
    if (engine_is_reliable(engine))
        return rc_watch(&engine->rc);
    return engine->operations->watch ? engine->operations->watch(&engine->unreliable) : NANOS_NEVER;
}

/* ---- transmit ---- */

bool engine_transmit(struct engine *engine, struct packet *out, struct iovec *pieces, nanos now)
{
    return engine_is_reliable(engine) ? rc_transmit(&engine->rc, out, pieces, now)
                                      : engine->operations->transmit(&engine->unreliable, out, pieces, now);
}

bool engine_transmit_reliable(struct engine *engine, struct packet *out, struct iovec *pieces, nanos now)
{
    return rc_transmit(&engine->rc, out, pieces, now);
}

bool engine_transmit_single(struct engine *engine, struct packet *out, struct iovec *pieces, nanos now)
{
    return rc_transmit_single(&engine->rc, out, pieces, now);
}

void engine_take_back_along(struct engine *engine, uint32_t along)
{
    rc_take_back_along(&engine->rc, along);
}

void engine_unreadable(struct engine *engine, const struct packet *packet)
{
    if (engine_is_reliable(engine))
        rc_unreadable(&engine->rc, packet);
    else
        engine->operations->unreadable(&engine->unreliable);
}

void engine_unreadable_request(struct engine *engine, uint32_t psn)
{
    requester_unreadable(&engine->rc, psn);
}

void engine_acknowledge_late(struct engine *engine)
{
    responses_acknowledge_late(&engine->rc);
}

void engine_transmit_directly(struct engine *engine, direct_doer *doer)
{
    rc_direct(&engine->rc, doer);
}

const struct send_wqe *engine_next_datagram(struct engine *engine)
{
    return ud_next(&engine->ud);
}

bool engine_next_message(struct engine *engine, struct engine_target *target)
{
    return srd_next(&engine->srd, target);
}

bool engine_transmit_message(struct engine *engine, struct packet *out, struct iovec *pieces, nanos now)
{
    return srd_write(&engine->srd, out, pieces, now);
}

void engine_hold(struct engine *engine, nanos now)
{
    srd_hold(&engine->srd, now);
}

void engine_nobody(struct engine *engine)
{
    srd_nobody(&engine->srd);
}

void engine_forget_address(struct engine *engine, const void *address)
{
    srd_forget_address(&engine->srd, address);
}

void engine_retry(struct engine *engine)
{
    srd_retry(&engine->srd);
}

bool engine_next_frame(struct engine *engine, uint8_t frame[RAW_FRAME_MAX], uint32_t *length)
{
    return raw_next(&engine->raw, frame, length);
}

void engine_frame_sent(struct engine *engine)
{
    raw_sent(&engine->raw);
}

/* ---- the owner's decisions ---- */

static void initialize_unreliable(struct engine *engine, const struct unreliable_operations *operations,
                                  struct engine_owner *owner, const struct send_queue *queue)
{
    memset(engine, 0, sizeof *engine);
    engine->operations = operations;
    unreliable_initialize(&engine->unreliable, owner, queue);
    if (operations->initialize)
        operations->initialize(&engine->unreliable);
}

void engine_initialize(struct engine *engine, enum service service, struct engine_owner *owner,
                       const struct send_queue *queue, struct responder_resource *saved)
{
    static const struct unreliable_operations *const others[] = {
        [SERVICE_UC] = &uc_operations, [SERVICE_UD] = &ud_operations, [SERVICE_SRD] = &srd_operations};
    if (others[service])
        return initialize_unreliable(engine, others[service], owner, queue);
    engine->operations = NULL;
    rc_initialize(&engine->rc, owner, queue, saved);
}

size_t engine_first_room(void)
{
    return srd_first_room();
}

void engine_initialize_raw(struct engine *engine, struct engine_owner *owner, const struct send_queue *queue)
{
    initialize_unreliable(engine, &raw_operations, owner, queue);
}

void engine_configure(struct engine *engine, const struct engine_settings *settings)
{
    if (engine_is_reliable(engine))
        rc_configure(&engine->rc, settings);
    else
        engine->unreliable.settings = *settings;
}

bool engine_may_move(const struct engine *engine, uint32_t segment, bool exact)
{
    return engine_is_reliable(engine) ? rc_may_move(&engine->rc, segment, exact) : !engine->unreliable.begun;
}

bool engine_has_begun(const struct engine *engine)
{
    const struct unreliable *unreliable = &engine->unreliable;
    if (engine_is_reliable(engine))
        return requester_has_begun(&engine->rc);
    return unreliable->begun || unreliable->queue.head != unreliable->queue.next;
}

void engine_keep_responses(struct engine *engine, struct responder_resource *saved)
{
    engine->rc.responder.saved = saved;
}

void engine_start_receiving(struct engine *engine, uint32_t expected_psn)
{
    if (engine_is_reliable(engine))
        return rc_start_receiving(&engine->rc, expected_psn);
    engine->unreliable.receiving = true;
    if (engine->operations->start_receiving)
        engine->operations->start_receiving(&engine->unreliable, expected_psn);
}

void engine_start_transmitting(struct engine *engine, uint32_t first_psn)
{
    if (engine_is_reliable(engine))
        return rc_start_transmitting(&engine->rc, first_psn);
    engine->unreliable.transmitting = true;
    if (engine->operations->start_transmitting)
        engine->operations->start_transmitting(&engine->unreliable, first_psn);
}

void engine_drain(struct engine *engine, bool draining)
{
    struct unreliable *unreliable = &engine->unreliable;
    if (engine_is_reliable(engine))
        return rc_drain(&engine->rc, draining);
    if (!engine->operations->drained)
        return unreliable_drain(unreliable, draining);
    unreliable->draining = draining;
    unreliable->drained_reported = false;
    engine->operations->drained(unreliable);
}

void engine_resume(struct engine *engine)
{
    if (!engine_is_reliable(engine))
        engine->unreliable.send_error = false;
}

void engine_flush(struct engine *engine)
{
    if (engine_is_reliable(engine))
        rc_flush(&engine->rc);
    else
        engine->operations->flush(&engine->unreliable);
}

void engine_refuse(struct engine *engine, enum ibv_wc_status status, enum reason reason)
{
    fail_requester(&engine->rc, status, reason);
}

void engine_flush_oldest(struct engine *engine)
{
    retire_head(&engine->rc.requester.queue, engine->rc.owner, IBV_WC_WR_FLUSH_ERR, REASON_FLUSHED);
}

void engine_reset(struct engine *engine)
{
    if (engine_is_reliable(engine))
        return rc_reset(&engine->rc);
    struct unreliable old = engine->unreliable;
    initialize_unreliable(engine, engine->operations, old.owner, &old.queue);
    engine->unreliable.settings = old.settings;
}

struct engine_position engine_lend(struct engine *engine)
{
    return rc_lend(&engine->rc);
}

void engine_take_over(struct engine *engine, const struct engine_position *position)
{
    rc_take_over(&engine->rc, position);
}

void engine_reclaim(struct engine *engine)
{
    rc_reclaim(&engine->rc);
}

/* ---- reading ---- */

bool engine_has_output(const struct engine *engine)
{
    if (engine_is_reliable(engine))
        return rc_has_output(&engine->rc);
    return engine->operations->has_output ? engine->operations->has_output(&engine->unreliable)
                                          : unreliable_has_output(&engine->unreliable);
}

bool engine_owes_messages(const struct engine *engine)
{
    return srd_owes(&engine->srd);
}

const struct recv_wqe *engine_open_receive(const struct engine *engine)
{
    if (engine_is_reliable(engine))
        return engine->rc.responder.receive;
    return engine->operations->open_receive ? engine->operations->open_receive(&engine->unreliable) : NULL;
}

bool engine_is_within_message(const struct engine *engine)
{
    return engine->rc.responder.open != MESSAGE_CLOSED || engine->rc.responder.receive;
}

bool engine_owes_responses(const struct engine *engine)
{
    return responses_due(&engine->rc);
}

bool engine_owes_but_an_ack(const struct engine *engine)
{
    return rc_owes_but_an_ack(&engine->rc);
}

const struct send_wqe *engine_next_direct(const struct engine *engine)
{
    return rc_direct_next(&engine->rc);
}

bool engine_may_lend(const struct engine *engine)
{
    return rc_may_lend(&engine->rc);
}

void engine_describe(const struct engine *engine, struct engine_messages *messages)
{
    srd_describe(&engine->srd, messages);
}
