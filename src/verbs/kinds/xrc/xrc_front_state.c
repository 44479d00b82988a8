#include "verbs/kinds/xrc/xrc_front_state.h"

#include "verbs/qp/qp_engine.h"

#include <stdlib.h>

enum { WAITING_MOST = 4096 };

struct xrc_front *xrc_front_make(struct qp *qp)
{
    struct xrc_front *front = calloc(1, sizeof *front);
    if (!front)
        return NULL;
    LIST_INIT(&front->places);
    STAILQ_INIT(&front->requests);
    STAILQ_INIT(&front->responses);
    qp->xrc.front = front;
    return front;
}

void xrc_front_keep(struct xrc_front *front, struct xrc_packets *list, const struct packet *packet)
{
    struct xrc_packet *kept = front->waiting < WAITING_MOST ? malloc(sizeof *kept + packet->payload.length) : NULL;
    if (!kept)
        return;
    kept->packet = *packet;
    kept->packet.grh = kept->packet.lrh = NULL;
    kept->piece = (struct iovec){kept->bytes, packet->payload.length};
    if (packet->payload.length && !payload_copy(&packet->payload, 0, &kept->piece, 1)) {
        free(kept);
        return;
    }
    kept->packet.payload = (struct payload){.length = packet->payload.length,
                                            .count = packet->payload.length != 0,
                                            .pieces = packet->payload.length ? &kept->piece : NULL};
    STAILQ_INSERT_TAIL(list, kept, next);
    front->waiting++;
}

static void discard(struct xrc_front *front, struct xrc_packets *list)
{
    struct xrc_packet *packet;
    while ((packet = STAILQ_FIRST(list))) {
        STAILQ_REMOVE_HEAD(list, next);
        front->waiting--;
        free(packet);
    }
}

void xrc_front_forget_holder(struct qp *qp)
{
    struct xrc_front *front = qp->xrc.front;
    front->holder = NULL;
    front->srq = 0;
    front->recalled = front->kept = false;
}

struct xrc_place *xrc_front_find_place(struct xrc_front *front, const struct peer *peer)
{
    struct xrc_place *place;
    LIST_FOREACH (place, &front->places, siblings)
        if (place->peer == peer)
            break;
    return place;
}

bool xrc_front_enter_place(struct qp *qp, struct peer *peer)
{
    struct xrc_front *front = qp->xrc.front;
    struct xrc_place *place = xrc_front_find_place(front, peer);
    if (place) {
        node_put(qp->process->node, peer);
        return true;
    }
    place = malloc(sizeof *place);
    if (!place)
        return false;
    place->peer = peer;
    LIST_INSERT_HEAD(&front->places, place, siblings);
    node_watch(qp->process->node, peer);
    return true;
}

void xrc_front_leave_place(struct qp *qp, struct xrc_place *place)
{
    LIST_REMOVE(place, siblings);
    if (!qp->process->forked)
        node_put(qp->process->node, place->peer);
    free(place);
}

struct xrc_control xrc_front_message(const struct qp *qp, enum xrc_control_kind kind)
{
    return (struct xrc_control){.kind = kind, .number = qp->number, .turn = qp->xrc.front->turn};
}

/* If the control message finds no room, the substitute stays until the queue pair's process has ended. */
void xrc_front_end(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    struct xrc_front *front = qp->xrc.front;
    if (!front)
        return;
    discard(front, &front->requests);
    xrc_front_forget_holder(qp);
    front->since = front->turn;
    struct xrc_control over = xrc_front_message(qp, XRC_OVER);
    struct xrc_place *place;
    while ((place = LIST_FIRST(&front->places))) {
        if (!qp->process->forked)
            xrc_control_try(qp, place->peer, &over);
        xrc_front_leave_place(qp, place);
    }
}

void xrc_front_clear(struct qp *qp)
{
    xrc_front_end(qp);
    if (qp->xrc.front)
        discard(qp->xrc.front, &qp->xrc.front->responses);
}
