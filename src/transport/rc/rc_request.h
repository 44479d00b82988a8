/* The requests of a reliable connection: transport/request.h with windows, references and ACKs. */
#pragma once

#include "transport/bth.h"
#include "transport/rc/rc.h"
#include "transport/request.h"
#include "wire/psn.h"

/* Checks whether this work may be begun: REASON_NONE or why not. */
enum reason rc_request_check(const struct rc *, const struct send_wqe *);

/* Gives the work its segment and number of packets. */
void rc_request_measure(const struct rc *, struct send_wqe *);

/* Writes packet `index` of the work. Not REASON_NONE: why its memory can't be read. */
enum reason rc_request_build(const struct rc *, const struct send_wqe *, uint32_t index, struct packet *out,
                             struct iovec *pieces);

/* Returns true if this message of one packet asks for an ACK when it leaves for the first time. */
static inline bool rc_request_asks(const struct rc *rc, const struct send_wqe *work, uint32_t psn)
{
    return !(psn & rc->settings.ack_mask) || work->flags & IBV_SEND_SIGNALED || rc->requester.direct_lately;
}

/* Write a message of one packet, which is not sent by reference, in two steps, if rc_request_check permits it: first
 * the payload, which may fail; then the rest, once the work has begun. */
static inline enum reason rc_request_load_single(const struct rc *rc, const struct send_wqe *work, struct packet *out,
                                                 struct iovec *pieces)
{
    out->payload = (struct payload){0};
    return request_payload(rc->owner, work, 0, work->length, out, pieces);
}

static inline void rc_request_build_single(const struct rc *rc, const struct send_wqe *work, struct packet *out)
{
    const struct engine_settings *settings = &rc->settings;
    uint32_t flags = (work->flags & IBV_SEND_SOLICITED ? PACKET_SOLICITED : 0) |
                     (rc_request_asks(rc, work, work->first_psn) ? PACKET_ACK_REQUESTED : 0);
    bth_words(out, op_code(settings->service, request_kind(work)->only), settings->pkey, settings->destination,
              work->first_psn, flags);
    out->grh = NULL;
    request_operands(out, work);
}

static inline void rc_request_measure_single(const struct rc *rc, struct send_wqe *work)
{
    work->segment = rc->settings.segment;
    work->packets = work->stride = 1;
}
