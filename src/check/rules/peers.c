/* Queue pairs that are connected with each other agree. Both are of this process. */
#include <stdio.h>

#include "check/findings/finding.h"
#include "check/hooks.h"

static void report_difference(const struct shadow *qp, const struct shadow *peer, const char *what)
{
    finding_add(&(struct finding_about){.rule = RULE_PEERS_DISAGREE,
                                        .kind = shadow_kind_name(qp->kind),
                                        .number = qp->number,
                                        .created = &qp->created},
                "Queue pairs 0x%x and 0x%x are connected with each other and disagree: %s", qp->number, peer->number,
                what);
}

static void compare_psn(const struct shadow *from, const struct shadow *to, const struct shadow *about)
{
    char text[120];
    if (from->qp.connection.sq_psn == to->qp.connection.rq_psn)
        return;
    snprintf(text, sizeof text, "sq_psn of 0x%x is 0x%x, and rq_psn of the other 0x%x", from->number,
             from->qp.connection.sq_psn, to->qp.connection.rq_psn);
    report_difference(about, about == from ? to : from, text);
}

static void compare_depth(const struct shadow *from, const struct shadow *to, const struct shadow *about)
{
    char text[120];
    if (from->qp.connection.max_rd_atomic <= to->qp.connection.max_dest_rd_atomic)
        return;
    snprintf(text, sizeof text, "max_rd_atomic of 0x%x is %u, and max_dest_rd_atomic of the other %u", from->number,
             from->qp.connection.max_rd_atomic, to->qp.connection.max_dest_rd_atomic);
    report_difference(about, about == from ? to : from, text);
}

static void compare(const struct shadow *qp, const struct shadow *peer)
{
    char text[120];
    snprintf(text, sizeof text, "path_mtu is %u bytes here and %u there", 128u << qp->qp.connection.mtu,
             128u << peer->qp.connection.mtu);
    if (qp->qp.connection.mtu != peer->qp.connection.mtu)
        report_difference(qp, peer, text);
    compare_psn(qp, peer, qp);
    compare_psn(peer, qp, qp);
    compare_depth(qp, peer, qp);
    compare_depth(peer, qp, qp);
}

/* The later of the two. */
static void modified(struct shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
    bool connected = mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTS;
    const struct shadow *peer = connected ? shadow_find_number(SHADOW_QP, qp->qp.connection.peer) : NULL;
    bool mutual = peer && peer != qp && peer->qp.state == IBV_QPS_RTS && peer->qp.connection.peer == qp->number;
    if (mutual && qp->qp.connection.mtu && peer->qp.connection.mtu)
        compare(qp, peer);
}

const struct hooks rules_peers = {.modified = modified};
