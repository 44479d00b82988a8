/* The functions that the engine of SRD calls (transport/owner.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "process/port.h"
#include "process/process.h"
#include "verbs/kinds/srd/srd.h"
#include "verbs/kinds/srd/srd_ways.h"
#include "verbs/life/qp_messages.h"
#include "verbs/life/qp_owner.h"
#include "verbs/qp/qp_direct.h"
#include "verbs/qp/qp_doors.h"
#include "verbs/send/ah.h"
#include "wire/grh.h"

/* A block of the engine's memory. The last one of the list is the first that the engine asks for, and stays when the
 * engine is reset, which must not fail. */
struct room {
    struct room *next;
    size_t size;
    bool spare;
    max_align_t memory[];
};

static struct room *add_room(struct qp *qp, size_t size)
{
    struct room *room = calloc(1, sizeof *room + size);
    if (!room)
        return NULL;
    *room = (struct room){.next = qp->sends.rooms, .size = size};
    qp->sends.rooms = room;
    return room;
}

int srd_make_first_room(struct qp *qp)
{
    struct room *room = add_room(qp, engine_first_room());
    if (room)
        room->spare = true;
    return room ? 0 : ENOMEM;
}

static void *make_room(struct engine_owner *owner, size_t size)
{
    struct qp *qp = qp_of_owner(owner);
    struct room *room = qp->sends.rooms;
    if (!room || !room->spare)
        room = add_room(qp, size);
    if (!room)
        return NULL;
    room->spare = false;
    return room->memory;
}

void srd_free_rooms(struct qp *qp, bool all)
{
    struct room *room = qp->sends.rooms, *next;
    for (; room && (all || room->next); room = next) {
        next = room->next;
        free(room);
    }
    qp->sends.rooms = room;
    if (!room)
        return;
    memset(room->memory, 0, room->size);
    room->spare = true;
}

static void reply(struct engine_owner *owner, const struct packet *packet, const struct packet *response)
{
    uint8_t source[16];
    if (!packet->grh)
        return;
    grh_read_source(packet->grh, source);
    srd_respond(qp_of_owner(owner), source, response);
}

/* The sender's GID has a number if an address handle of this protection domain leads to it. Handles come after the
 * queue pair, so the first READ or WRITE after them is when it may be published. */
static bool knows(struct engine_owner *owner, const struct packet *packet)
{
    struct qp *qp = qp_of_owner(owner);
    union ibv_gid source;
    if (!packet->grh)
        return false;
    grh_read_source(packet->grh, source.raw);
    bool known = pd_address_number(qp->memory.pd, &source) != ADDRESS_NUMBER_NONE;
    if (known)
        qp_publish(qp);
    return known;
}

static bool is_done_directly(struct engine_owner *owner, const struct direct_works *these)
{
    const struct ah *ah = these->works[0]->address;
    return ah->local && qp_direct_message(qp_of_owner(owner), ah->attr.grh.sgid_index, these);
}

static bool is_refused(struct engine_owner *owner, const struct send_wqe *work, nanos since)
{
    const struct qp *qp = qp_of_owner(owner);
    const struct ah *ah = work->address;
    return ah->remote && port_is_closed(qp->process, qp_flow(qp)->device->index, ah->attr.grh.dgid.raw, since);
}

/* A process that lives, but has taken nothing for long, is not slow any more. */
static bool is_slow(struct engine_owner *owner, const struct send_wqe *work)
{
    struct qp *qp = qp_of_owner(owner);
    struct node *node = qp->process->node;
    const struct ah *ah = work->address;
    struct peer *peer = ah->local ? srd_ways_peer(qp, work->remote_qp) : NULL;
    return peer && node_alive(node, peer) && !peer->link->operations->consumed(peer->link) &&
           node_insist(node, peer, qp_flow(qp)->now) == NODE_SLOW;
}

static unsigned holds_back(struct engine_owner *owner)
{
    struct qp *qp = qp_of_owner(owner);
    struct disturbance *disturbance = qp_datapath(qp)->disturbance;
    return disturbance ? disturbance->holds_back(qp) : 0;
}

static void dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    qp_owner_dropped(owner, packet, reason);
    qp_messages_dropped(qp_of_owner(owner), packet, reason);
}

const struct owner_operations srd_owner_operations = {
    QP_OWNER_COMMON,
    .sent = qp_owner_sent_unordered,
    .take_receive = qp_owner_take_receive,
    .received = qp_owner_received_unordered,
    .failed = qp_owner_failed,
    .dropped = dropped,
    .room = make_room,
    .reply = reply,
    .knows = knows,
    .is_refused = is_refused,
    .is_slow = is_slow,
    .holds_back = holds_back,
    .direct = is_done_directly,
    .refused = qp_owner_refused,
};
