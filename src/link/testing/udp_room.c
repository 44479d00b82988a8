#include "link/testing/udp_room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/op.h"

struct room_sends room_sends;

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    room_sends.count++;
    room_sends.last_used = fd;
    room_sends.addressed += message->msg_name != NULL;
    if (room_sends.no_room)
        return errno = EAGAIN, -1;
    if (room_sends.next_error) {
        errno = room_sends.next_error;
        room_sends.next_error = 0;
        return -1;
    }
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); room_sends.no_cutting && header;
         header = CMSG_NXTHDR((struct msghdr *)message, header))
        if (header->cmsg_level == IPPROTO_UDP)
            return errno = EIO, -1;
    return syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (room_sends.no_copies && flags & MSG_ERRQUEUE)
        return errno = EAGAIN, -1;
    return syscall(SYS_recvmsg, fd, message, flags);
}

uint8_t room_pattern(uint32_t psn, uint32_t offset)
{
    return (uint8_t)(psn * 7 + offset * 3);
}

bool room_take(void *context, const struct udp_arrival *arrival)
{
    struct room *room = context;
    const struct packet *packet = arrival->packet;
    if (room->count < KEPT) {
        room->psns[room->count] = packet->psn;
        room->lengths[room->count] = packet->payload.length;
    }
    for (uint32_t i = 0; i < packet->payload.length; i++)
        room->wrong += ((const uint8_t *)packet->payload.pieces[0].iov_base)[i] != room_pattern(packet->psn, i);
    room->source_port = arrival->route->source_port;
    memcpy(room->grh, packet->grh, sizeof room->grh);
    room->congested = arrival->congested;
    room->count++;
    return room->wants;
}

void room_drop(void *context, const struct udp_refusal *refusal)
{
    struct room *room = context;
    room->fault = refusal->fault;
    room->refused = refusal->length <= sizeof room->noise ? refusal->length : 0;
    memcpy(room->noise, refusal->bytes, room->refused);
    room->drops++;
}

/* False: nothing arrived for long. */
static bool wait_for_some(struct room *room)
{
    struct pollfd readable = {.fd = udp_fd(room->port), .events = POLLIN};
    int found;
    while ((found = poll(&readable, 1, 5000)) < 0 && errno == EINTR)
        ;
    return found == 1;
}

void room_receive(struct room *room, unsigned count)
{
    while (room->count + room->drops < count && wait_for_some(room))
        udp_receive(room->port, room_take, room_drop, room, 64);
}

void room_receive_drops(struct room *room, unsigned drops)
{
    while (room->drops < drops && wait_for_some(room))
        udp_receive(room->port, room_take, room_drop, room, 64);
}

void room_push(struct link *link, uint32_t psn, uint32_t length)
{
    uint8_t bytes[LARGEST], headers[WIRE_HEADERS_MAX];
    struct iovec halves[2] = {{bytes, length / 2}, {bytes + length / 2, length - length / 2}};
    struct packet packet = {.opcode = op_code(SERVICE_UC, OPERATION_SEND_ONLY), .destination = 0x1234, .psn = psn};
    packet.payload = (struct payload){.length = length, .count = 2, .pieces = halves};
    for (uint32_t i = 0; i < length; i++)
        bytes[i] = room_pattern(psn, i);
    struct frame frame = {.kind = FRAME_ROCE, .headers = headers, .payload = packet.payload};
    frame.headers_length = (uint16_t)wire_encode(&packet, headers);
    assert_true(link->operations->send(link, &frame));
}

void room_send(struct link *link, uint32_t psn, uint32_t length)
{
    assert_true(link->operations->ready(link));
    room_push(link, psn, length);
}

void room_send_one(struct link *link, uint32_t psn)
{
    link->operations->begin(link);
    room_send(link, psn, 100);
    link->operations->end(link);
}

struct link *room_connect(struct room *room, const uint8_t gid[16], uint32_t flow)
{
    struct udp_route route = {.traffic_class = 0x48, .hop_limit = 17, .flow = flow};
    memcpy(route.source, gid, 16);
    memcpy(route.destination, gid, 16);
    struct link *link = udp_connect(room->port, &route);
    assert_non_null(link);
    return link;
}

int room_set_up(void **state)
{
    char why[256];
    struct room *room = calloc(1, sizeof *room);
    *state = room;
    return udp_open(&room->port, "lo", why, sizeof why);
}

int room_tear_down(void **state)
{
    struct room *room = *state;
    udp_close(room->port);
    free(room);
    return 0;
}
