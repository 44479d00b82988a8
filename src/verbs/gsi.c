#include "verbs/gsi.h"

#include <string.h>

#include "diag/log.h"
#include "transport/pkey.h"
#include "verbs/config.h"
#include "verbs/event.h"
#include "verbs/gid.h"
#include "verbs/identity.h"
#include "verbs/port.h"
#include "verbs/process.h"
#include "verbs/remote.h"
#include "verbs/traffic.h"
#include "wire/cm.h"
#include "wire/op.h"
#include "wire/wire.h"

enum { REPLY_MAX = 4096, SEND_ONLY = SERVICE_UD << 5 | OPERATION_SEND_ONLY };

/* The name of a port in the host's list of multicast groups, where its processes find each other: no GID of a group
 * begins like the name of an interface. */
static void name_port(const struct device *device, uint8_t name[16])
{
    _Static_assert(sizeof device->interface == 16, "as long as a GID");
    memset(name, 0, 16);
    memcpy(name, device->interface, strlen(device->interface));
}

/* When the list is full, others don't find us, but what the kernel hands to us we answer all the same. */
void gsi_serve(struct process *process, const struct device *device)
{
    uint8_t name[16];
    uint32_t bit = 1u << device->index;
    if (!device->interface[0] || atomic_fetch_or(&process->served, bit) & bit)
        return;
    name_port(device, name);
    node_join(process->node, name);
}

/* --- what is wrong with a datagram */

/* Of all messages only those that resolve a service ID are answered so far. */
static enum reason decode_message(const uint8_t bytes[MAD_BYTES], struct cm_message *message)
{
    static const enum reason reasons[] = {[CM_FINE] = REASON_NONE,
                                          [CM_TRUNCATED] = REASON_MAD_LENGTH,
                                          [CM_CLASS] = REASON_MAD_CLASS,
                                          [CM_ATTRIBUTE] = REASON_MAD_MESSAGE,
                                          [CM_LENGTH] = REASON_MAD_LENGTH};
    enum cm_fault fault = cm_decode(bytes, MAD_BYTES, message);
    bool known = message->attribute == CM_SIDR_REQ || message->attribute == CM_SIDR_REP;
    return fault == CM_FINE && !known ? REASON_MAD_MESSAGE : reasons[fault];
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
        traffic_send_alone(process, link, request, &frame);
    link->operations->end(link);
}

/* Nobody offers any service yet. The private data says who we are. A reply is as long as the request: who wants to know
 * what the path carries has sent more than a MAD. */
static void answer(struct process *process, const struct device *device, const struct packet *packet,
                   const struct cm_message *request)
{
    union ibv_gid source, destination;
    struct cm_message reply = {.attribute = CM_SIDR_REP,
                               .transaction = request->transaction,
                               .remote_id = request->local_id,
                               .sidr_rep = {.status = CM_SIDR_UNSUPPORTED, .service = request->sidr_req.service},
                               .private_data = GSI_SIGNATURE IDENTITY_FIRMWARE};
    gid_from_grh(packet->grh, &source, &destination);
    struct link *link = gid_is_multicast(&source) ? NULL : port_answer(process, device, &destination, &source);
    if (!link)
        return;
    send_reply(process, link, packet, &reply);
    link->operations->close(link);
}

/* --- who is it for? */

static void drop(struct process *process, const struct udp_arrival *arrival, enum reason reason)
{
    traffic_stray(process, arrival->packet, arrival->route, reason);
    log_reason(LOG_INFO, reason, "for queue pair 1");
}

struct search {
    struct process *process;
    const struct udp_arrival *arrival;
    bool done;
};

static void give_to_one(struct peer *peer, void *context)
{
    struct search *search = context;
    if (search->done || peer->slot == node_slot(search->process->node))
        return;
    search->done = remote_hand_over(peer, search->arrival);
}

/* To some process that answers there, when we don't: `softverbs ping` only asks. */
static bool give_to_another(struct process *process, const struct device *device, const struct udp_arrival *arrival)
{
    struct search search = {process, arrival, false};
    uint8_t name[16];
    name_port(device, name);
    node_members(process->node, name, give_to_one, &search);
    return search.done;
}

/* A reply goes wherever the request says that it came from, and nobody knows whether that is so: not more of them than
 * somebody who really asks has use for. */
static bool may_answer(struct process *process)
{
    enum { BURST = 256 };
    static const nanos each = NANOS_MILLISECOND;
    return bucket_take(&process->answers, process_about_now(), each, BURST);
}

static void take_request(struct process *process, const struct udp_arrival *arrival, const struct cm_message *message,
                         bool passed_on)
{
    union ibv_gid source, destination;
    gid_from_grh(arrival->packet->grh, &source, &destination);
    const struct device *device = port_with_address(process, &destination, arrival->interface);
    if (!device)
        drop(process, arrival, REASON_MAD_NOT_SERVED);
    else if (event_port_is_down(process, device))
        drop(process, arrival, REASON_PACKET_PORT_DOWN);
    else if (atomic_load(&process->served) & 1u << device->index) {
        if (!may_answer(process))
            return drop(process, arrival, REASON_MAD_TOO_MANY);
        traffic_managed(process, arrival->packet, arrival->route);
        answer(process, device, arrival->packet, message);
    } else if (passed_on || !give_to_another(process, device, arrival))
        drop(process, arrival, REASON_MAD_NOT_SERVED);
}

static void take_reply(struct process *process, const struct udp_arrival *arrival, const struct cm_message *message,
                       const uint8_t *passed_on)
{
    struct gsi_asker *asker = process->asker;
    union ibv_gid source, destination;
    gid_from_grh(arrival->packet->grh, &source, &destination);
    if (asker && port_with_address(process, &destination, arrival->interface) &&
        message->remote_id - asker->first < NODE_BLOCK &&
        asker->take(asker, message, arrival->packet->payload.length)) {
        traffic_managed(process, arrival->packet, arrival->route);
        if (passed_on)
            remote_prefer_sender(process, passed_on, arrival->packet);
    } else if (passed_on || !remote_pass_on(process, arrival, message->remote_id))
        drop(process, arrival, REASON_MAD_UNSOLICITED);
}

void gsi_receive(struct process *process, const struct udp_arrival *arrival, const uint8_t *passed_on)
{
    struct cm_message message;
    enum reason reason = find_fault(arrival->packet, &message);
    if (reason != REASON_NONE)
        drop(process, arrival, reason);
    else if (message.attribute == CM_SIDR_REQ)
        take_request(process, arrival, &message, passed_on);
    else
        take_reply(process, arrival, &message, passed_on);
}
