/* Queue pairs of this host that are connected with each other agree. */
#include <stdio.h>

#include "check/hooks.h"

enum { TEXT = 120 };

static void report_difference(const struct shadow *qp, enum rule rule, const char *what)
{
    finding_add(HOOKS_ABOUT(rule, qp), "Queue pairs 0x%x and 0x%x are connected with each other and disagree: %s",
                qp->number, qp->qp.connection.peer, what);
}

/* Compares one end's requests with those that the other end accepts, if there are requests in this direction. */
static void compare_ways(const struct shadow *qp, const struct shadow_connection *from,
                         const struct shadow_connection *to)
{
    char text[TEXT];
    if (!(from->ways & SHADOW_REQUESTS) || !(to->ways & SHADOW_RESPONDS))
        return;
    snprintf(text, sizeof text, "sq_psn of 0x%x is 0x%x, and rq_psn of the other 0x%x", to->peer, from->sq_psn,
             to->rq_psn);
    if (from->sq_psn != to->rq_psn)
        report_difference(qp, RULE_PEERS_DISAGREE, text);
    snprintf(text, sizeof text, "max_rd_atomic of 0x%x is %u, and max_dest_rd_atomic of the other %u", to->peer,
             from->max_rd_atomic, to->max_dest_rd_atomic);
    if (from->max_rd_atomic > to->max_dest_rd_atomic)
        report_difference(qp, RULE_PEERS_DISAGREE, text);
}

/* Compares what the two queue pairs let each other do. */
static void compare_access(const struct shadow *qp, const struct shadow_connection *peer)
{
    enum { REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
    enum { BOTH = SHADOW_REQUESTS | SHADOW_RESPONDS };
    const struct shadow_connection *own = &qp->qp.connection;
    char text[TEXT];
    if (own->ways != BOTH || peer->ways != BOTH || !((own->access ^ peer->access) & REMOTE))
        return;
    snprintf(text, sizeof text, "remote access in qp_access_flags is 0x%x here and 0x%x there", own->access & REMOTE,
             peer->access & REMOTE);
    report_difference(qp, RULE_ACCESS_DIFFERS, text);
}

/* Called for the later one of the two queue pairs. */
static void met(struct shadow *qp, const struct shadow_connection *peer)
{
    const struct shadow_connection *own = &qp->qp.connection;
    char text[TEXT];
    snprintf(text, sizeof text, "path_mtu is %u bytes here and %u there", 128u << own->mtu, 128u << peer->mtu);
    if (own->mtu != peer->mtu)
        report_difference(qp, RULE_PEERS_DISAGREE, text);
    compare_ways(qp, own, peer);
    compare_ways(qp, peer, own);
    compare_access(qp, peer);
}

const struct hooks rules_peers = {.met = met};
