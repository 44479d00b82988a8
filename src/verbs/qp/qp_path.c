#include "verbs/qp/qp_path.h"

#include <string.h>

#include "config/device_state.h"
#include "config/gid.h"
#include "config/settings.h"
#include "process/port.h"
#include "profile/profile.h"
#include "tap/traffic.h"
#include "verbs/object/context.h"
#include "verbs/qp/qp_datapath.h"
#include "wire/op.h"
#include "wire/wire.h"

enum { MULTICAST_QP = 0xffffff, CNP = SERVICE_CNP << 5 | 1 };

static const nanos notify_period = 50 * NANOS_MICROSECOND; /* between two notifications, as adapters have it */

enum reason qp_path_refusal_of_network(const struct qp *qp, const struct packet *packet, unsigned interface)
{
    lock_assert_held(&qp->lock);
    const struct device *device = qp->object.context->device;
    bool connected = !(qp->traits & (QP_DATAGRAM | QP_WELCOMES));
    union ibv_gid source, destination;
    if (!packet->grh || !port_is_on(qp->process, device, interface))
        return REASON_PACKET_DESTINATION;
    gid_from_grh(packet->grh, &source, &destination);
    if (packet->destination != MULTICAST_QP && !port_has_address(device, &destination))
        return REASON_PACKET_DESTINATION;
    if (connected && (!qp->path.remote || memcmp(&source, &qp->attr.ah_attr.grh.dgid, sizeof source)))
        return REASON_PACKET_SOURCE;
    return REASON_NONE;
}

static void send_alone(struct qp *qp, struct link *link, const struct packet *packet)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    struct frame frame = {.kind = FRAME_ROCE, .headers = headers};
    frame.headers_length = (uint16_t)wire_encode(packet, headers);
    link->operations->begin(link);
    if (link->operations->ready(link))
        traffic_send(qp_flow(qp), NULL, link, &frame);
    traffic_end_batch(qp_flow(qp), link);
}

void qp_path_notify(struct qp *qp, nanos now)
{
    lock_assert_held(&qp->lock);
    if (!qp->path.remote || now < qp->path.notified_at + notify_period)
        return;
    qp->path.notified_at = now;
    send_alone(qp, qp->path.remote,
               &(struct packet){.opcode = CNP,
                                .migrated = true,
                                .backward_congestion = true,
                                .pkey = DEVICE_PKEY,
                                .destination = qp->attr.dest_qp_num});
}

uint32_t qp_path_longest(const struct qp *qp)
{
    const struct device *device = qp->object.context->device;
    uint32_t most = device->limits.max_message;
    if (!profile_is_efa(setting_profile()))
        return device_now(device)->mtu;
    return most < LINK_SEGMENT ? most : LINK_SEGMENT;
}
