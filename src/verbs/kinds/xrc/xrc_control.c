#include "verbs/kinds/xrc/xrc_control.h"

#include <string.h>

#include "ipc/node.h"
#include "verbs/qp/qp.h"
#include "verbs/send/room.h"

_Static_assert(sizeof(struct xrc_control) <= FRAME_HEADERS_MAX, "a message fits a frame");

static void put(struct link *link, const struct xrc_control *message)
{
    link->operations->send(
        link,
        &(struct frame){.kind = FRAME_XRC, .headers = (const uint8_t *)message, .headers_length = sizeof *message});
}

bool xrc_control_send(struct qp *qp, struct peer *peer, const struct xrc_control *message)
{
    lock_assert_held(&qp->lock);
    struct link *link = peer->link;
    link->operations->begin(link);
    bool room = qp_has_room(qp, link);
    if (room)
        put(link, message);
    link->operations->end(link);
    return room;
}

void xrc_control_try(struct qp *qp, struct peer *peer, const struct xrc_control *message)
{
    lock_assert_held(&qp->lock);
    struct link *link = peer->link;
    link->operations->begin(link);
    if (link->operations->ready(link))
        put(link, message);
    link->operations->end(link);
}

bool xrc_control_read(const struct frame *frame, struct xrc_control *message)
{
    if (frame->kind != FRAME_XRC || frame->headers_length != sizeof *message)
        return false;
    memcpy(message, frame->headers, sizeof *message);
    return true;
}
