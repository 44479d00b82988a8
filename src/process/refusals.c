#include "process/refusals.h"

#include "base/bucket.h"
#include "config/gid.h"
#include "link/link.h"
#include "process/port.h"
#include "process/process.h"
#include "wire/datagram.h"
#include "wire/grh.h"
#include "wire/srd.h"
#include "wire/wire.h"

enum { HOP_LIMIT = 64, UDP = 8 };

/* Writes the headers of an answer, which goes back the way that the packet came. */
static void write_frame_back(const struct packet *packet, const struct packet *refusal, uint8_t *headers,
                             struct frame *frame)
{
    uint8_t source[16], destination[16];
    unsigned length = wire_encode(refusal, headers + GRH_LENGTH);
    grh_read(packet->grh, source, destination);
    grh_write(
        headers,
        &(struct grh_route){
            .source = destination, .destination = source, .hop_limit = HOP_LIMIT, .fragment = DATAGRAM_DONT_FRAGMENT},
        UDP + length + DATAGRAM_ICRC);
    *frame = (struct frame){.kind = FRAME_GRH, .headers = headers, .headers_length = (uint16_t)(GRH_LENGTH + length)};
}

static void send_alone(struct link *link, const struct packet *packet, const struct packet *refusal)
{
    struct frame frame;
    uint8_t headers[FRAME_HEADERS_MAX];
    write_frame_back(packet, refusal, headers, &frame);
    link->operations->begin(link);
    if (link->operations->ready(link))
        link->operations->send(link, &frame);
    link->operations->end(link);
}

void refusals_send_back(struct process *process, const struct packet *packet, unsigned interface, nanos now)
{
    enum { BURST = 256 };
    struct packet refusal;
    union ibv_gid source, destination;
    lock_assert_held(&process->progress);
    if (!packet->grh || !srd_refusal(packet, &refusal))
        return;
    gid_from_grh(packet->grh, &source, &destination);
    const struct device *device = port_with_address(process, &destination, interface);
    if (!device || gid_is_multicast(&source) || !bucket_take(&process->loop.refusals, now, NANOS_MILLISECOND, BURST))
        return;
    struct link *link = port_reply_link(process, device, &destination, &source);
    if (!link)
        return;
    send_alone(link, packet, &refusal);
    link->operations->close(link);
}

void refusals_send(struct peer *peer, const struct packet *packet)
{
    struct packet refusal;
    if (packet->grh && srd_refusal(packet, &refusal))
        send_alone(peer->link, packet, &refusal);
}
