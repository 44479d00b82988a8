#include "verbs/life/qp_ends.h"

#include "config/gid.h"
#include "diag/log.h"
#include "process/process.h"

enum { RING_MOST = 64 }; /* queue pairs in a ring that is looked for */

static struct end end_of(const struct qp *qp)
{
    const struct ibv_qp_attr *attr = &qp->attr;
    const struct ibv_ah_attr *way = &attr->ah_attr;
    return (struct end){.number = qp->number,
                        .peer = attr->dest_qp_num,
                        .sq_psn = attr->sq_psn,
                        .rq_psn = attr->rq_psn,
                        .access = attr->qp_access_flags,
                        .mtu = (uint8_t)attr->path_mtu,
                        .max_rd_atomic = attr->max_rd_atomic,
                        .max_dest_rd_atomic = attr->max_dest_rd_atomic,
                        .family = !way->is_global               ? 0
                                  : gid_is_ipv4(&way->grh.dgid) ? 4
                                                                : 6,
                        .requests = qp->traits & QP_SENDS,
                        .responds = qp->traits & QP_RESPONDS};
}

/* Packets of another size than the path MTU are refused, but for the last of a message (IBA 9.7.4.1.6). */
static void compare(const struct end *own, const struct end *peer)
{
    uint32_t least = 128u << (own->mtu < peer->mtu ? own->mtu : peer->mtu);
    if (own->mtu != peer->mtu)
        log_reason(LOG_WARN, REASON_ENDS_DIFFER,
                   "qp 0x%x: path_mtu is %u bytes here and %u at its peer, qp 0x%x, so that messages of more than %u "
                   "bytes fail between adapters",
                   own->number, 128u << own->mtu, 128u << peer->mtu, peer->number, least);
    else if (own->family != peer->family && own->family && peer->family)
        log_reason(LOG_WARN, REASON_ENDS_DIFFER, "qp 0x%x: its GIDs are of IPv%u, and its peer, qp 0x%x, has IPv%u",
                   own->number, own->family, peer->number, peer->family);
}

/* Returns true if this queue pair closes a ring of connections: each names the next, and no two name each other. No
 * right program ever has a ring, as a peer that still has an earlier connection does not lead back. */
static bool closes_ring(const struct node *node, const struct end *own, struct end *peer)
{
    struct end at = *own, next;
    for (unsigned i = 0; i < RING_MOST; i++) {
        if (i && at.peer == own->number)
            return i > 1;
        if (at.peer == at.number || !node_is_claimed(node, at.peer) || !ends_find(node, at.peer, &next) ||
            next.peer == at.number)
            return false;
        at = next;
        if (!i)
            *peer = next;
    }
    return false;
}

/* Looks on reliable types only: others await nothing from the peer. */
static void look_for_ring(const struct qp *qp, const struct end *own)
{
    struct end peer;
    if (qp_is_reliable(qp) && closes_ring(qp->process->node, own, &peer))
        log_reason(LOG_WARN, REASON_ENDS_CROSSED, "qp 0x%x: its peer is qp 0x%x, whose peer is qp 0x%x", own->number,
                   peer.number, peer.peer);
}

void qp_ends_enter(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    const struct end own = end_of(qp);
    struct node *node = process_node(qp->process);
    struct end peer;
    if (!node || !qp->path.local || qp->traits & (QP_DATAGRAM | QP_ETHERNET))
        return;
    ends_enter(node, &own);
    qp->path.entered = true;
    if (ends_meet(node, &own, qp->path.begun, &peer))
        compare(&own, &peer);
    else
        look_for_ring(qp, &own);
}

void qp_ends_leave(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    struct node *node = process_node(qp->process);
    if (node && qp->path.entered)
        ends_remove(node, qp->number);
    qp->path.entered = false;
}

bool qp_ends_meet(struct ibv_qp *ibv, struct end *own, struct end *peer)
{
    struct qp *qp = qp_real(qp_of(ibv));
    lock_take(&qp->lock);
    struct node *node = process_node(qp->process);
    *own = end_of(qp);
    bool met = node && qp->path.entered && ends_meet(node, own, qp->path.begun, peer);
    lock_release(&qp->lock);
    return met;
}
