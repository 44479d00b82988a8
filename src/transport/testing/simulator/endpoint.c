#include "transport/testing/simulator/endpoint.h"

#include <string.h>

#include "transport/rc/lend.h"
#include "transport/rc/responses.h"
#include "transport/request.h"
#include "wire/psn.h"

bool endpoint_is_reliable(const struct endpoint *endpoint)
{
    return endpoint->service == SERVICE_RC || endpoint->service == SERVICE_XRC;
}

bool endpoint_is_flushing(const struct endpoint *endpoint)
{
    const bool *send_error = engine_send_error((struct engine *)&endpoint->engine);
    return engine_has_failed(&endpoint->engine) || (send_error && *send_error);
}

void endpoint_start(struct endpoint *endpoint, uint32_t expected_psn, uint32_t first_psn)
{
    engine_start_receiving(&endpoint->engine, expected_psn);
    engine_start_transmitting(&endpoint->engine, first_psn);
}

static bool is_aside(const struct endpoint *endpoint, uint32_t psn)
{
    struct rc rc = {.responder = endpoint->aside};
    return rc.responder.saved && responses_find(&rc, psn);
}

static bool owes_aside(const struct endpoint *endpoint)
{
    struct rc rc = {.responder = endpoint->aside};
    return rc.responder.saved && responses_due(&rc);
}

static void change_sides(struct endpoint *endpoint)
{
    struct responder other = endpoint->aside;
    endpoint->aside = endpoint->engine.rc.responder;
    endpoint->engine.rc.responder = other;
}

static void lend(struct endpoint *endpoint)
{
    struct rc *rc = &endpoint->engine.rc;
    struct rc_position position = rc_lend(rc);
    if (!endpoint->aside.saved)
        endpoint->aside = (struct responder){
            .open = MESSAGE_CLOSED, .saved = endpoint->aside_saved, .saved_most = rc->responder.saved_most};
    change_sides(endpoint);
    rc_take_over(rc, &position);
    endpoint->world->statistics.lent++;
}

/* Over XRC two processes execute the messages, whose SRQs the packets name: here, by their PSNs. What one of them has
 * executed it responds to again, whether it has the position or not. */
static void receive_over_xrc(struct endpoint *endpoint, const struct packet *packet)
{
    enum { ANSWERED = OP_READ | OP_FLUSH | OP_ATOMIC | OP_ATOMIC_WRITE };
    struct rc *rc = &endpoint->engine.rc;
    uint32_t flags = op_find(packet->opcode)->flags;
    int32_t ahead = psn_distance(packet->psn, rc->responder.expected_psn);
    bool aside = ahead < 0 && flags & ANSWERED && is_aside(endpoint, packet->psn);
    if (!ahead && flags & OP_START && packet->psn & 4 && rc_may_lend(rc))
        lend(endpoint);
    if (aside)
        change_sides(endpoint);
    engine_receive(&endpoint->engine, packet, endpoint->world->now);
    if (aside)
        change_sides(endpoint);
}

void endpoint_receive(struct endpoint *endpoint, const struct packet *packet)
{
    if (endpoint->service == SERVICE_XRC && !(op_find(packet->opcode)->flags & OP_RESPONSE))
        receive_over_xrc(endpoint, packet);
    else
        engine_receive(&endpoint->engine, packet, endpoint->world->now);
}

static bool transmit_aside(struct endpoint *endpoint, struct packet *packet, struct iovec *pieces)
{
    if (endpoint->service != SERVICE_XRC || !owes_aside(endpoint))
        return false;
    change_sides(endpoint);
    bool sent = engine_transmit(&endpoint->engine, packet, pieces, endpoint->world->now);
    change_sides(endpoint);
    return sent;
}

bool endpoint_has_output(const struct endpoint *endpoint)
{
    return engine_has_output(&endpoint->engine) || (endpoint->service == SERVICE_XRC && owes_aside(endpoint));
}

/* As a host's owner does it, whose link takes an ACK along. */
static bool transmit_along(struct endpoint *endpoint, struct packet *packet, struct iovec *pieces)
{
    struct rc *rc = &endpoint->engine.rc;
    if (endpoint->service != SERVICE_RC || !rc->settings.acks_along ||
        !rc_transmit_single(rc, packet, pieces, endpoint->world->now))
        return false;
    endpoint->along = rc_take_along(rc);
    endpoint->world->statistics.along += endpoint->along != 0;
    return true;
}

bool endpoint_transmit(struct endpoint *endpoint, struct packet *packet, struct iovec *pieces)
{
    memset(packet, 0xee, sizeof(*packet)); /* an engine writes all that its operation has */
    endpoint->along = 0;
    if (transmit_along(endpoint, packet, pieces))
        return true;
    return transmit_aside(endpoint, packet, pieces) ||
           engine_transmit(&endpoint->engine, packet, pieces, endpoint->world->now);
}

void endpoint_recover(struct endpoint *endpoint)
{
    bool *send_error = engine_send_error(&endpoint->engine);
    if (send_error)
        *send_error = false;
}
