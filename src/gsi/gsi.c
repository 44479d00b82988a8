#include "gsi/gsi.h"

#include <string.h>

#include "config/device_identity.h"
#include "config/gid.h"
#include "diag/log.h"
#include "gsi/cm/cm.h"
#include "gsi/cm/cm_send.h"
#include "gsi/served.h"
#include "process/forward.h"
#include "process/port.h"
#include "process/port_state.h"
#include "runtime/clock.h"
#include "tap/traffic.h"
#include "transport/pkey.h"
#include "wire/cm/cm.h"
#include "wire/op.h"
#include "wire/wire.h"

enum { REPLY_MAX = 4096, SEND_ONLY = SERVICE_UD << 5 | OPERATION_SEND_ONLY };

/* --- what is wrong with a datagram */

/* Decodes a message. RoCE has no alternate paths, so LAP and APR are refused. */
static enum reason decode_message(const uint8_t bytes[MAD_BYTES], struct cm_message *message)
{
    static const enum reason reasons[] = {[CM_FINE] = REASON_NONE,
                                          [CM_TRUNCATED] = REASON_MAD_LENGTH,
                                          [CM_CLASS] = REASON_MAD_CLASS,
                                          [CM_ATTRIBUTE] = REASON_MAD_MESSAGE,
                                          [CM_LENGTH] = REASON_MAD_LENGTH};
    enum cm_fault fault = cm_decode(bytes, MAD_BYTES, message);
    bool alternate = message->attribute == CM_LAP || message->attribute == CM_APR;
    return fault == CM_FINE && alternate ? REASON_MAD_MESSAGE : reasons[fault];
}

static enum reason find_fault(const struct packet *packet, struct cm_message *message)
{
    uint8_t bytes[MAD_BYTES];
    if (packet->opcode != SEND_ONLY)
        return REASON_PACKET_SERVICE;
    if (!pkey_matches(packet->pkey, DEVICE_PKEY))
        return REASON_PACKET_PKEY;
    if (packet->qkey != MAD_QKEY)
        return REASON_PACKET_QKEY;
    if (packet->payload.length < MAD_BYTES || packet->payload.length > REPLY_MAX)
        return REASON_MAD_LENGTH;
    if (!payload_copy(&packet->payload, 0, &(struct iovec){bytes, sizeof bytes}, 1))
        return REASON_PACKET_PULL;
    return decode_message(bytes, message);
}

/* --- answering */

static void send_reply(struct process *process, struct link *link, const struct packet *request,
                       const struct cm_message *message)
{
    static const uint8_t nothing[REPLY_MAX];
    uint8_t bytes[MAD_BYTES], headers[WIRE_HEADERS_MAX];
    struct iovec pieces[] = {{bytes, sizeof bytes}, {(void *)nothing, request->payload.length - MAD_BYTES}};
    struct packet reply = {.opcode = SEND_ONLY,
                           .migrated = true,
                           .pkey = DEVICE_PKEY,
                           .destination = request->source,
                           .qkey = MAD_QKEY,
                           .source = MAD_QP,
                           .payload = {.length = request->payload.length,
                                       .count = request->payload.length > MAD_BYTES ? 2 : 1,
                                       .pieces = pieces}};
    struct frame frame = {.kind = FRAME_ROCE, .headers = headers, .payload = reply.payload};
    cm_encode(message, bytes);
    frame.headers_length = (uint16_t)wire_encode(&reply, headers);
    link->operations->begin(link);
    if (link->operations->ready(link))
        traffic_send_alone(&process->traffic, link, request, &frame);
    link->operations->end(link);
    int error = traffic_take_unsent(link);
    if (error)
        traffic_dropped(&process->traffic, REASON_PACKET_UNSENT, "qp 1: %s", strerror(error));
}

/* Replies to the sender's address, not to one in the message. The address may be forged, so the number of replies is
 * limited, and a reply is no longer than its request. It is as long, since `softverbs ping` measures what the path
 * carries. */
static void answer(struct process *process, const struct device *device, const struct udp_arrival *arrival,
                   const struct cm_message *reply)
{
    union ibv_gid source, destination;
    gid_from_grh(arrival->packet->grh, &source, &destination);
    struct link *link = gid_is_multicast(&source) ? NULL : port_reply_link(process, device, &destination, &source);
    if (!link)
        return;
    send_reply(process, link, arrival->packet, reply);
    link->operations->close(link);
}

/* Makes the reply to a message that no program of this host takes; false: no reply is due. The private data of a
 * SIDR_REP identifies this host. */
static bool answer_for_nobody(const struct cm_message *message, struct cm_message *reply)
{
    *reply = (struct cm_message){.transaction = message->transaction, .remote_id = message->local_id};
    switch (message->attribute) {
    case CM_SIDR_REQ:
        reply->attribute = CM_SIDR_REP;
        reply->sidr_rep = (struct cm_sidr_rep){.status = CM_SIDR_UNSUPPORTED, .service = message->sidr_req.service};
        memcpy(reply->private_data, GSI_SIGNATURE IDENTITY_FIRMWARE, sizeof GSI_SIGNATURE IDENTITY_FIRMWARE);
        return true;
    case CM_REQ:
        reply->attribute = CM_REJ;
        reply->rej = (struct cm_rej){.about = CM_ABOUT_REQ, .reason = CM_REJECT_INVALID_SERVICE};
        return true;
    case CM_DREQ: /* the process has ended: the peer may stop asking */
        reply->attribute = CM_DREP;
        reply->local_id = message->remote_id;
        return true;
    default:
        return false;
    }
}

/* --- the receiver */

static void drop(struct process *process, const struct udp_arrival *arrival, enum reason reason)
{
    traffic_stray(&process->traffic, arrival->packet, arrival->route, reason, "for queue pair 1");
}

struct search {
    struct process *process;
    const struct udp_arrival *arrival;
    bool all, done;
};

static void forward_to_peer(struct peer *peer, void *context)
{
    struct search *search = context;
    if ((search->done && !search->all) || peer->slot == node_slot(search->process->node))
        return;
    search->done |= forward_to(peer, search->arrival);
}

/* Gives a packet to one other process that answers there, or to all of them. False: no process has taken it. */
static bool give_to_others(struct process *process, const struct device *device, const struct udp_arrival *arrival,
                           bool all)
{
    struct search search = {process, arrival, .all = all};
    served_each(process, device, forward_to_peer, &search);
    return search.done;
}

static bool may_answer(struct process *process)
{
    enum { BURST = 256 };
    static const nanos each = NANOS_MILLISECOND;
    return bucket_take(&process_objects(process)->gsi->answers, clock_about_now(), each, BURST);
}

static void reply_to(struct process *process, const struct device *device, const struct udp_arrival *arrival,
                     const struct cm_message *reply)
{
    if (!may_answer(process))
        return drop(process, arrival, REASON_MAD_TOO_MANY);
    traffic_managed(&process->traffic, arrival->packet, arrival->route);
    answer(process, device, arrival, reply);
}

/* Takes a request for which no program listens: one may do so in a moment. */
static void refuse_request(struct process *process, const struct device *device, const struct udp_arrival *arrival,
                           const struct cm_message *message)
{
    struct cm_message reply;
    if (!may_answer(process))
        return drop(process, arrival, REASON_MAD_TOO_MANY);
    traffic_managed(&process->traffic, arrival->packet, arrival->route);
    if (!cm_wait(process, arrival, message) && answer_for_nobody(message, &reply))
        answer(process, device, arrival, &reply);
}

/* Gives the message to the programs of this process; false: no program takes it. */
static bool give_to_programs(struct process *process, const struct device *device, const struct udp_arrival *arrival,
                             const struct cm_message *message)
{
    struct cm_message reply;
    enum cm_taken taken = cm_receive_remote(process, arrival->packet, message, &reply);
    if (taken == CM_ANSWER)
        reply_to(process, device, arrival, &reply);
    else if (taken == CM_TAKEN)
        traffic_managed(&process->traffic, arrival->packet, arrival->route);
    return taken != CM_UNKNOWN;
}

/* Forwards the packet; without room it is lost, as on a network. */
static bool give_to_process(struct process *process, struct peer *peer, const struct udp_arrival *arrival)
{
    if (!forward_to(peer, arrival))
        traffic_stray(&process->traffic, arrival->packet, arrival->route, REASON_PACKET_FORWARDED, "to process %d",
                      (int)peer->pid);
    return true;
}

/* Gives the message to the process whose program takes it; false: no program does. */
static bool give_to_taker(struct process *process, const struct device *device, const struct udp_arrival *arrival,
                          const struct cm_message *message, bool forwarded)
{
    union ibv_gid source, destination;
    gid_from_grh(arrival->packet->grh, &source, &destination);
    struct peer *taker = cm_find_taker(process, message, destination.raw);
    if (!taker)
        return false;
    bool here = taker->slot == node_slot(process->node);
    bool taken = here ? give_to_programs(process, device, arrival, message)
                      : !forwarded && give_to_process(process, taker, arrival);
    node_put(process->node, taker);
    return taken;
}

static void take_request(struct process *process, const struct device *device, const struct udp_arrival *arrival,
                         const struct cm_message *message, bool forwarded)
{
    if (give_to_taker(process, device, arrival, message, forwarded))
        return;
    if (served_here(process, device))
        refuse_request(process, device, arrival, message);
    else if (forwarded || !give_to_others(process, device, arrival, false)) /* `softverbs ping` only asks */
        drop(process, arrival, REASON_MAD_NOT_SERVED);
}

/* Gives the message to the asker (gsi.h); false: the asker does not wait for it. */
static bool give_to_asker(struct process *process, const struct udp_arrival *arrival, const struct cm_message *message,
                          const uint8_t *forwarded)
{
    struct gsi_asker *asker = process_objects(process)->gsi->asker;
    if (!asker || message->attribute != CM_SIDR_REP || message->remote_id - asker->first >= NODE_BLOCK ||
        !asker->take(asker, message, arrival->packet->payload.length))
        return false;
    traffic_managed(&process->traffic, arrival->packet, arrival->route);
    if (forwarded)
        forward_prefer_sender(process, forwarded, arrival->packet);
    return true;
}

/* A REJ of a requester that has given up its request has no communication ID of ours: any process of the host may have
 * got the request. */
static void take_farewell(struct process *process, const struct device *device, const struct udp_arrival *arrival,
                          const struct cm_message *message, bool forwarded)
{
    if (!give_to_programs(process, device, arrival, message))
        traffic_managed(&process->traffic, arrival->packet, arrival->route);
    if (!forwarded)
        give_to_others(process, device, arrival, true);
}

static void take_reply(struct process *process, const struct device *device, const struct udp_arrival *arrival,
                       const struct cm_message *message, const uint8_t *forwarded)
{
    struct cm_message reply;
    if (give_to_asker(process, arrival, message, forwarded))
        return;
    if (cm_is_farewell(message))
        take_farewell(process, device, arrival, message, forwarded);
    else if (give_to_taker(process, device, arrival, message, forwarded))
        ;
    else if (answer_for_nobody(message, &reply))
        reply_to(process, device, arrival, &reply);
    else
        drop(process, arrival, REASON_MAD_UNSOLICITED);
}

void gsi_receive(struct process *process, const struct udp_arrival *arrival, const uint8_t *forwarded)
{
    lock_assert_held(&process->progress);
    struct cm_message message;
    union ibv_gid source, destination;
    enum reason reason = find_fault(arrival->packet, &message);
    if (reason != REASON_NONE)
        return drop(process, arrival, reason);
    gid_from_grh(arrival->packet->grh, &source, &destination);
    const struct device *device = port_with_address(process, &destination, arrival->interface);
    if (!device)
        drop(process, arrival, cm_is_reply(message.attribute) ? REASON_MAD_UNSOLICITED : REASON_MAD_NOT_SERVED);
    else if (port_state_down(process, port_state_bit(device)))
        drop(process, arrival, REASON_PACKET_PORT_DOWN);
    else if (cm_is_reply(message.attribute))
        take_reply(process, device, arrival, &message, forwarded);
    else
        take_request(process, device, arrival, &message, forwarded);
}
