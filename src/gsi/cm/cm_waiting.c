#include "gsi/cm/cm_waiting.h"

#include "gsi/cm/cm_send.h"
#include "process/forward.h"

bool cm_waiting_add(struct cm_waiting *waiting, const struct dispatch_datagram *datagram,
                    const struct udp_arrival *arrival, nanos until)
{
    if (waiting->count == CM_WAITING_MAX)
        return false;
    waiting->requests[waiting->count++] =
        (struct cm_waiting_request){.datagram = *datagram,
                                    .interface = arrival->interface,
                                    .source_port = arrival->route ? arrival->route->source_port : 0,
                                    .until = until};
    return true;
}

/* Forwards the request as it arrived. */
static void forward_waiting(const struct cm_waiting_request *request, struct peer *peer)
{
    struct dispatch_datagram came = request->datagram;
    struct datagram_route route = {.source_port = request->source_port};
    struct cm_packet made;
    memcpy(came.route.from.gid, request->datagram.route.gid, 16);
    memcpy(came.route.gid, request->datagram.route.from.gid, 16);
    cm_make_packet(&came, &made);
    forward_to(peer, &(struct udp_arrival){.route = &route, .packet = &made.packet, .interface = request->interface});
}

enum place { NOBODY, HERE, ELSEWHERE };

/* Finds where the program is that takes the request. ELSEWHERE: that process has got the request. */
static enum place place(struct process *process, const struct cm_waiting_request *request, bool late)
{
    const struct cm_message *message = &request->datagram.message;
    const uint8_t *gid = request->datagram.route.from.gid;
    struct peer *taker = cm_find_taker(process, message, gid);
    if (!taker && late)
        taker = cm_find_former_taker(process, message, gid);
    if (!taker)
        return NOBODY;
    bool here = taker->slot == node_slot(process->node);
    if (!here)
        forward_waiting(request, taker);
    node_put(process->node, taker);
    return here ? HERE : ELSEWHERE;
}

bool cm_waiting_next(struct cm_waiting *waiting, struct process *process, struct dispatch_datagram *to, nanos now)
{
    for (unsigned i = 0; i < waiting->count;) {
        struct cm_waiting_request *request = &waiting->requests[i];
        bool late = now >= request->until;
        enum place taker = place(process, request, late);
        bool out = taker == HERE || (taker == NOBODY && late);
        if (out)
            *to = request->datagram;
        if (out || taker == ELSEWHERE)
            *request = waiting->requests[--waiting->count];
        else
            i++;
        if (out)
            return true;
    }
    return false;
}
