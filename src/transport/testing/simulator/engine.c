#include "transport/testing/simulator/engine.h"

#include <string.h>

bool engine_is_reliable(const struct endpoint *endpoint)
{
    return endpoint->service == SERVICE_RC || endpoint->service == SERVICE_XRC;
}

struct send_queue *engine_queue(struct endpoint *endpoint)
{
    if (engine_is_reliable(endpoint))
        return &endpoint->rc.requester.queue;
    return endpoint->service == SERVICE_UC ? &endpoint->uc.queue : &endpoint->ud.queue;
}

bool engine_has_failed(const struct endpoint *endpoint)
{
    if (engine_is_reliable(endpoint))
        return endpoint->rc.failed;
    return endpoint->service == SERVICE_UC ? endpoint->uc.failed : endpoint->ud.failed;
}

bool engine_is_flushing(const struct endpoint *endpoint)
{
    if (endpoint->service == SERVICE_UC)
        return endpoint->uc.failed || endpoint->uc.send_error;
    return endpoint->service == SERVICE_UD ? endpoint->ud.failed || endpoint->ud.send_error : endpoint->rc.failed;
}

void engine_start(struct endpoint *endpoint, uint32_t expected_psn, uint32_t first_psn)
{
    if (engine_is_reliable(endpoint)) {
        rc_start_receiving(&endpoint->rc, expected_psn);
        rc_start_transmitting(&endpoint->rc, first_psn);
    } else if (endpoint->service == SERVICE_UC) {
        uc_start_receiving(&endpoint->uc, expected_psn);
        uc_start_transmitting(&endpoint->uc, first_psn);
    } else {
        ud_start_receiving(&endpoint->ud);
        ud_start_transmitting(&endpoint->ud, first_psn);
    }
}

void engine_posted(struct endpoint *endpoint)
{
    if (engine_is_reliable(endpoint))
        rc_posted(&endpoint->rc);
    else if (endpoint->service == SERVICE_UC)
        uc_posted(&endpoint->uc);
    else
        ud_posted(&endpoint->ud);
}

void engine_receive(struct endpoint *endpoint, const struct packet *packet)
{
    if (engine_is_reliable(endpoint))
        rc_receive(&endpoint->rc, packet, endpoint->world->now);
    else if (endpoint->service == SERVICE_UC)
        uc_receive(&endpoint->uc, packet);
    else
        ud_receive(&endpoint->ud, packet);
}

bool engine_transmit(struct endpoint *endpoint, struct packet *packet, struct iovec *pieces)
{
    memset(packet, 0xee, sizeof(*packet)); /* an engine writes all that its operation has */
    if (engine_is_reliable(endpoint))
        return rc_transmit(&endpoint->rc, packet, pieces, endpoint->world->now);
    if (endpoint->service == SERVICE_UC)
        return uc_transmit(&endpoint->uc, packet, pieces);
    return ud_next(&endpoint->ud) && ud_transmit(&endpoint->ud, packet, pieces);
}

bool engine_has_output(const struct endpoint *endpoint)
{
    if (engine_is_reliable(endpoint))
        return rc_has_output(&endpoint->rc);
    return endpoint->service == SERVICE_UC ? uc_has_output(&endpoint->uc) : ud_has_output(&endpoint->ud);
}

nanos engine_deadline(const struct endpoint *endpoint)
{
    return engine_is_reliable(endpoint) ? rc_deadline(&endpoint->rc) : NANOS_NEVER;
}

nanos engine_watch(struct endpoint *endpoint)
{
    return engine_is_reliable(endpoint) ? rc_watch(&endpoint->rc) : NANOS_NEVER;
}

void engine_expire(struct endpoint *endpoint)
{
    if (engine_is_reliable(endpoint))
        rc_expire(&endpoint->rc, endpoint->world->now);
}

void engine_postpone(struct endpoint *endpoint)
{
    if (engine_is_reliable(endpoint))
        rc_postpone(&endpoint->rc, endpoint->world->now);
}

void engine_drain(struct endpoint *endpoint, bool draining)
{
    if (engine_is_reliable(endpoint))
        rc_drain(&endpoint->rc, draining);
    else if (endpoint->service == SERVICE_UC)
        uc_drain(&endpoint->uc, draining);
    else
        ud_drain(&endpoint->ud, draining);
}

void engine_recover(struct endpoint *endpoint)
{
    if (endpoint->service == SERVICE_UC)
        endpoint->uc.send_error = false;
    else if (endpoint->service == SERVICE_UD)
        endpoint->ud.send_error = false;
}

void engine_flush(struct endpoint *endpoint)
{
    if (engine_is_reliable(endpoint))
        rc_flush(&endpoint->rc);
    else if (endpoint->service == SERVICE_UC)
        uc_flush(&endpoint->uc);
    else
        ud_flush(&endpoint->ud);
}
