#include "gsi/cm/cm_send.h"

#include "config/config.h"
#include "config/gid.h"
#include "config/local_gid.h"
#include "gsi/cm/cm.h"
#include "ipc/ports.h"
#include "process/port.h"
#include "tap/taps.h"
#include "wire/cm/cm_ip.h"
#include "wire/grh.h"
#include "wire/op.h"
#include "wire/wire.h"

enum { SEND_ONLY = SERVICE_UD << 5 | OPERATION_SEND_ONLY, NEXT_UDP = 17, ID_MASK = 0xffffff };

/* Returns the service ID that a request is for, and writes the address at which that service is. */
static uint64_t find_target(const struct cm_message *message, const uint8_t gid[16], struct cm_address *address)
{
    struct cm_ip ip;
    *address = (struct cm_address){.family = AF_IB};
    memcpy(address->gid, gid, 16);
    if (cm_ip_decode(message->private_data, &ip) == CM_IP_FINE) {
        unsigned from = ip.version == 4 ? 12 : 0;
        *address = cm_any(ip.version == 4 ? AF_INET : AF_INET6);
        memcpy(address->gid + from, ip.destination + from, 16 - from);
    }
    return message->attribute == CM_REQ ? message->req.service : message->sidr_req.service;
}

struct peer *cm_find_taker(struct process *process, const struct cm_message *message, const uint8_t gid[16])
{
    struct cm_address address;
    if (cm_is_reply(message->attribute))
        return node_find(process->node, message->remote_id & ID_MASK);
    uint64_t service = find_target(message, gid, &address);
    return ports_find_listener(process->node, (uint16_t)(service >> 16), (uint16_t)service, &address);
}

struct peer *cm_find_former_taker(struct process *process, const struct cm_message *message, const uint8_t gid[16])
{
    struct cm_address address;
    uint64_t service = find_target(message, gid, &address);
    return ports_find_former(process->node, (uint16_t)(service >> 16), (uint16_t)service, &address);
}

static struct peer *find_self(struct process *process, const struct dispatch_datagram *datagram)
{
    return node_find(process->node, datagram->message.local_id & ID_MASK);
}

/* Writes the GRH that the receiver of a datagram sees before the payload (RoCEv2 annex, A17.9.1). */
static void write_grh(const struct cm_route *route, uint8_t grh[GRH_LENGTH])
{
    memset(grh, 0, GRH_LENGTH);
    if (cm_is_mapped(route->from.gid) && cm_is_mapped(route->gid)) {
        grh[20] = 0x45;
        grh[28] = route->hop_limit;
        grh[29] = NEXT_UDP;
        memcpy(grh + 32, route->from.gid + 12, 4);
        memcpy(grh + 36, route->gid + 12, 4);
        return;
    }
    grh[0] = 0x60;
    grh[6] = NEXT_UDP;
    grh[7] = route->hop_limit;
    memcpy(grh + 8, route->from.gid, 16);
    memcpy(grh + 24, route->gid, 16);
}

/* The caller holds cm->lock. */
static struct cm_counts *counts_of(struct process *process)
{
    return &atomic_load(&process_objects(process)->cm)->counts;
}

/* Sends with the faults of the taps. Messages are too few for reordering or delays: with such a fault they leave at
 * once. Links inside the host would not notice flipped bits, so a frame that should get some is dropped there. */
static bool send_tapped(struct process *process, struct peer *peer, struct link *link, const struct frame *frame,
                        enum cm_attribute attribute)
{
    struct fault fault = taps_disturb(traffic_taps(&process->traffic), cm_name(attribute));
    struct frame changed = *frame;
    cm_note_faults(counts_of(process), &fault);
    taps_managed(traffic_taps(&process->traffic), peer, link, frame, &fault);
    changed.corrupt = fault.corrupt;
    if (fault_has(&fault, FAULT_DROP) || (fault.corrupt && peer))
        return true;
    bool sent = link->operations->send(link, &changed);
    if (sent && fault_has(&fault, FAULT_DUPLICATE) && link->operations->ready(link))
        link->operations->send(link, &changed);
    return sent;
}

/* `peer` NULL: the link leads to another host. */
static bool send_on(struct process *process, struct peer *peer, struct link *link, const struct frame *frame,
                    enum cm_attribute attribute)
{
    link->operations->begin(link);
    bool ready = link->operations->ready(link);
    bool sent = ready && (traffic_taps(&process->traffic) ? send_tapped(process, peer, link, frame, attribute)
                                                          : link->operations->send(link, frame) != FRAME_NO_ROOM);
    link->operations->end(link);
    return sent;
}

bool cm_is_farewell(const struct cm_message *message)
{
    return message->attribute == CM_REJ && !message->remote_id;
}

static enum cm_sent send_to_neighbor(struct process *process, const struct dispatch_datagram *datagram,
                                     struct frame *frame, struct peer *partner, bool insist, struct peer **to)
{
    bool request = !cm_is_reply(datagram->message.attribute), farewell = cm_is_farewell(&datagram->message);
    struct peer *peer = farewell ? partner : cm_find_taker(process, &datagram->message, datagram->route.gid);
    if (farewell && peer)
        node_hold(peer);
    if (!peer && request && !insist)
        return CM_NOBODY;
    if (!peer && request)
        peer = cm_find_former_taker(process, &datagram->message, datagram->route.gid);
    if (!peer && request)
        peer = find_self(process, datagram);
    if (!peer)
        return CM_SENT;
    bool sent = send_on(process, peer, peer->link, frame, datagram->message.attribute);
    if (sent)
        *to = peer;
    else
        node_put(process->node, peer);
    return sent ? CM_SENT : CM_NO_ROOM;
}

static enum cm_sent send_beyond(struct process *process, const struct dispatch_datagram *datagram, struct frame *frame)
{
    const struct device *device = config_device(datagram->route.from.device);
    union ibv_gid source, destination;
    memcpy(source.raw, datagram->route.from.gid, 16);
    memcpy(destination.raw, datagram->route.gid, 16);
    struct link *link = device->interface[0] ? port_reply_link(process, device, &source, &destination) : NULL;
    if (!link)
        return CM_SENT;
    bool sent = send_on(process, NULL, link, frame, datagram->message.attribute);
    int error = traffic_take_unsent(link);
    link->operations->close(link);
    if (error)
        cm_note_dropped(counts_of(process), REASON_CM_UNSENT, strerror(error));
    return error ? CM_UNSENT : sent ? CM_SENT : CM_NO_ROOM;
}

static enum cm_sent dispatch_frame(struct process *process, const struct dispatch_datagram *datagram,
                                   struct frame *frame, struct peer *partner, bool insist, struct peer **to)
{
    union ibv_gid destination;
    memcpy(destination.raw, datagram->route.gid, 16);
    enum cm_sent sent = config_local_gid(&destination) ? send_to_neighbor(process, datagram, frame, partner, insist, to)
                                                       : send_beyond(process, datagram, frame);
    if (sent == CM_SENT)
        cm_note_sent(counts_of(process), &datagram->message);
    return sent;
}

void cm_make_packet(const struct dispatch_datagram *datagram, struct cm_packet *made)
{
    made->piece = (struct iovec){made->bytes, sizeof made->bytes};
    made->packet = (struct packet){.opcode = SEND_ONLY,
                                   .migrated = true,
                                   .pkey = DEVICE_PKEY,
                                   .destination = MAD_QP,
                                   .qkey = MAD_QKEY,
                                   .source = MAD_QP,
                                   .grh = made->grh,
                                   .payload = {.length = sizeof made->bytes, .count = 1, .pieces = &made->piece}};
    write_grh(&datagram->route, made->grh);
    cm_encode(&datagram->message, made->bytes);
}

bool cm_read_packet(const struct packet *packet, struct cm_message *message)
{
    uint8_t bytes[MAD_BYTES];
    return packet->opcode == SEND_ONLY && packet->qkey == MAD_QKEY && packet->payload.length >= MAD_BYTES &&
           payload_copy(&packet->payload, 0, &(struct iovec){bytes, sizeof bytes}, 1) &&
           cm_decode(bytes, sizeof bytes, message) == CM_FINE;
}

enum cm_sent cm_send(struct process *process, const struct dispatch_datagram *datagram, struct peer *partner,
                     bool insist, struct peer **to)
{
    struct cm_packet made;
    uint8_t headers[FRAME_HEADERS_MAX];
    cm_make_packet(datagram, &made);
    struct frame frame = {.kind = FRAME_GRH, .headers = headers, .payload = made.packet.payload};
    *to = NULL;
    memcpy(headers, made.grh, GRH_LENGTH);
    frame.headers_length = (uint16_t)(GRH_LENGTH + wire_encode(&made.packet, headers + GRH_LENGTH));
    return dispatch_frame(process, datagram, &frame, partner, insist, to);
}
