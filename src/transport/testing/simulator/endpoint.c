#include "transport/testing/simulator/endpoint.h"

#include <string.h>

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

bool endpoint_transmit(struct endpoint *endpoint, struct packet *packet, struct iovec *pieces)
{
    memset(packet, 0xee, sizeof(*packet)); /* an engine writes all that its operation has */
    return engine_transmit(&endpoint->engine, packet, pieces, endpoint->world->now);
}

void endpoint_recover(struct endpoint *endpoint)
{
    bool *send_error = engine_send_error(&endpoint->engine);
    if (send_error)
        *send_error = false;
}
