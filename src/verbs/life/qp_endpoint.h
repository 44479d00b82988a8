/* The loop's view of a queue pair: the endpoint of its packets and deadlines. */
#pragma once

#include "runtime/endpoint.h"
#include "wire/packet.h"

struct device;
struct qp;

/* Begins the endpoint, before other threads know the queue pair, which may be the inside of a work queue. */
void qp_begin_endpoint(struct qp *, const struct device *);

/* The functions of queue pairs that the loop calls, if their engine takes all packets. */
extern const struct endpoint_operations qp_endpoint_operations;

/* Parts of these functions, for kinds with other operations of endpoints. */
typedef void take_packet(struct qp *, const struct packet *, nanos now);
/* Gives a packet that may be for the queue pair to `next`. True: the packet was expected. Under qp->lock. */
bool qp_endpoint_take(struct qp *, const struct endpoint_arrival *, take_packet *next);
bool qp_endpoint_flush(struct endpoint *, nanos now, bool ack_later);
void qp_endpoint_fail_overrun(struct endpoint *);
