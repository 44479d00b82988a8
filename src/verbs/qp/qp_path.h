/* The path of a queue pair, with which packets that arrive are compared. */
#pragma once

#include "base/likely.h"
#include "base/lock.h"
#include "diag/diag.h"
#include "link/link.h"
#include "process/port_state.h"
#include "verbs/qp/qp.h"
#include "wire/packet.h"

/* Checks whether this packet may be for the queue pair (IBA 9.6.1): REASON_NONE, or why not. `interface`: the one over
 * which it arrived from a network, directly or by way of another process; 0: it is of this host.
 *
 * A packet from a network must have arrived over the interface of the queue pair's device, at one of its addresses:
 * processes of the host forward packets to each other, so a device could otherwise be reached from all networks on
 * which the user has one, or from a network although it serves the host only. (Any of its addresses is accepted, so
 * that programs which answer from another one work.) A connection's packets must arrive by the way that its address
 * vector names; packets of the host have no GRH. Under qp->lock. */
static inline enum reason qp_path_refusal(const struct qp *, const struct packet *, unsigned interface);

/* Notifies the sender that a router marked a packet for this queue pair, not too often (RoCEv2 annex, A17.9.3). Under
 * qp->lock. */
void qp_path_notify(struct qp *, nanos now);

/* The most bytes of a datagram: the MTU of the port; an EFA's messages may be longer, and each is one packet. */
uint32_t qp_path_longest(const struct qp *);

/* --- how */

enum reason qp_path_refusal_of_network(const struct qp *, const struct packet *, unsigned interface);

/* Inlined, as it is called for each packet of the host. */
static inline enum reason qp_path_refusal(const struct qp *qp, const struct packet *packet, unsigned interface)
{
    lock_assert_held(&qp->lock);
    if (unlikely(interface))
        return qp_path_refusal_of_network(qp, packet, interface);
    return !(qp->traits & QP_DATAGRAM) && (packet->grh || qp->path.remote) ? REASON_PACKET_SOURCE : REASON_NONE;
}

/* The payload bytes of a packet on a way of this kind. Inside the host the link's segment replaces the path MTU, which
 * only programs see. */
static inline uint32_t qp_path_segment(const struct qp *qp, bool remote)
{
    return remote ? 128u << qp->attr.path_mtu : LINK_SEGMENT;
}

/* Returns true if the port of the device is down. Then packets from and to the queue pair are lost. */
static inline bool qp_port_is_down(const struct qp *qp)
{
    return port_state_down(qp->process, qp->path.port);
}
