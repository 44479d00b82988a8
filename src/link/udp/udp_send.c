/* Sending: datagrams of a link are collected between begin and end and leave in one send, which the kernel cuts up
 * (UDP_SEGMENT). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/likely.h"
#include "base/uncancelled.h"
#include "link/udp/ancillary.h"
#include "link/udp/udp_state.h"
#include "wire/grh.h"

#include <netinet/udp.h>

enum { FIRST_PORT = 0xc000 }; /* RoCEv2 annex, A17.9.2: source ports from 0xC000 on */

/* Binds the socket to any free port of the upper quarter; returns 0 where it can't. */
static uint16_t bind_somewhere(int fd, bool ipv6)
{
    uint16_t number = 0;
    for (int tries = 0; tries < 1000; tries++) {
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            break;
        number |= FIRST_PORT;
        union udp_address here = udp_any_address(ipv6, number);
        if (!bind(fd, &here.any, udp_address_length(&here)))
            return number;
        if (errno != EADDRINUSE)
            break;
    }
    return 0;
}

/* An unconnected socket sets the DF bit and sends identification 0, as the ICRC is computed with both. Members on
 * this host get multicasts through shared memory, so the kernel must not loop them back. EPOLLOUT is armed only
 * while the socket is full: otherwise each sent datagram would wake a waiting thread. */
static bool udp_send_prepare(struct udp_port *port, int fd, bool ipv6)
{
    struct epoll_event nothing = {.events = EPOLLET, .data.fd = -1};
    if (ipv6)
        udp_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    return (ipv6 ? udp_set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
                       udp_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0)
                 : udp_set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) &&
                       udp_set(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0)) &&
           !epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &nothing);
}

/* Binds to the port that a program has chosen, which other processes of the user may have chosen, too. */
static uint16_t bind_there(int fd, bool ipv6, uint16_t number)
{
    union udp_address here = udp_any_address(ipv6, number);
    udp_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    return bind(fd, &here.any, udp_address_length(&here)) ? 0 : number;
}

/* `chosen` 0: any source port. False: no socket, with errno. */
static bool udp_send_make(struct udp_port *port, struct udp_flow *flow, bool ipv6, uint16_t chosen)
{
    int fd = descriptor_raise(socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return false;
    flow->source_port = chosen ? bind_there(fd, ipv6, chosen) : bind_somewhere(fd, ipv6);
    int error = errno;
    flow->bytes = malloc(UDP_BATCH + UDP_DATAGRAM);
    if (flow->source_port && flow->bytes && udp_send_prepare(port, fd, ipv6)) {
        udp_icmp_add(&port->icmp, fd, ipv6);
        flow->fd = fd;
        return true;
    }
    free(flow->bytes);
    flow->bytes = NULL;
    close(fd);
    errno = flow->source_port ? ENOMEM : error;
    return false;
}

/* Makes the socket of the flow where it is missing. False: that is not possible. */
static bool udp_flow_open(struct udp_port *port, bool ipv6, unsigned index)
{
    struct udp_flow *flow = &port->flows[ipv6][index];
    lock_take(&port->lock);
    bool opened = flow->fd >= 0 || udp_send_make(port, flow, ipv6, 0);
    lock_release(&port->lock);
    return opened;
}

/* --- one send of the collected datagrams */

static void describe_source(struct msghdr *message, const struct udp_link *link)
{
    const uint8_t *source = link->route.source;
    if (link->ipv6) {
        struct in6_pktinfo info = {.ipi6_ifindex = link->port->index};
        memcpy(&info.ipi6_addr, source, 16);
        ancillary_add(message, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
    } else {
        struct in_pktinfo info = {.ipi_ifindex = (int)link->port->index};
        memcpy(&info.ipi_spec_dst, source + 12, 4);
        ancillary_add(message, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
    }
}

/* If the link has no hop limit, the kernel uses its route's; to a group it would be 1. */
static void describe_hops(struct msghdr *message, const struct udp_link *link)
{
    int hops = link->route.hop_limit;
    if (!hops && link->multicast)
        hops = 64;
    if (hops)
        ancillary_add(message, link->ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, link->ipv6 ? IPV6_HOPLIMIT : IP_TTL, &hops,
                      sizeof hops);
}

/* Adds the route; a connected socket knows it. */
static void describe_route(struct msghdr *message, const struct udp_link *link)
{
    int class = (link->route.traffic_class & ~3) | UDP_ECN_CAPABLE;
    describe_source(message, link);
    ancillary_add(message, link->ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, link->ipv6 ? IPV6_TCLASS : IP_TOS, &class,
                  sizeof class);
    describe_hops(message, link);
}

/* A send of the batch, as the kernel wants it. */
struct outgoing {
    struct msghdr message;
    struct iovec bytes;
    _Alignas(struct cmsghdr) uint8_t control[128];
};

static void describe(struct outgoing *out, const struct udp_flow *flow)
{
    const struct udp_link *link = flow->link;
    uint16_t segment = (uint16_t)flow->segment;
    out->message = (struct msghdr){.msg_iov = &out->bytes, .msg_iovlen = 1, .msg_control = out->control};
    out->bytes = (struct iovec){flow->bytes, flow->count > 1 ? flow->used : flow->segment};
    if (!flow->connected) {
        out->message.msg_name = (void *)&link->to;
        out->message.msg_namelen = udp_address_length(&link->to);
        describe_route(&out->message, link);
    }
    if (flow->count > 1)
        ancillary_add(&out->message, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
}

static void empty(struct udp_flow *flow)
{
    flow->used = flow->count = flow->segment = 0;
    flow->closed = flow->stuck = false;
}

/* A datagram that can't be sent at all is lost, as on a network: the engines retransmit. Its link's owner counts it. */
static void note_unsent(const struct udp_flow *flow, int error)
{
    struct link *link = (struct link *)&flow->link->link;
    atomic_store(&link->error, error);
    atomic_store(&link->refused, error);
    atomic_fetch_add(&link->unsent, flow->count);
}

static void note_sent(const struct udp_flow *flow)
{
    struct link *link = (struct link *)&flow->link->link;
    if (unlikely(atomic_load_explicit(&link->refused, memory_order_relaxed)))
        atomic_store(&link->refused, 0);
}

/* Asks for an event of room, edge-triggered and one-shot: it comes at once if the socket has room already. */
static void await_room(struct udp_flow *flow)
{
    struct epoll_event room = {.events = EPOLLOUT | EPOLLET | EPOLLONESHOT, .data.fd = -1};
    lock_assert_held(&flow->lock);
    if (!flow->awaits)
        flow->awaits = !epoll_ctl(flow->link->port->epoll, EPOLL_CTL_MOD, flow->fd, &room);
}

/* Returns true if the batch's first datagram leaves alone, after the batch did not. Then the interface or the kernel
 * can't segment; the error did not come of a source address that is ours no more. */
static bool udp_send_leaves_alone(struct udp_flow *flow, struct outgoing *out)
{
    uint32_t count = flow->count;
    flow->count = 1;
    describe(out, flow);
    bool left = sendmsg(flow->fd, &out->message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
    flow->count = count - left;
    return left;
}

/* Returns true if sendmsg fails with this error for the datagram itself, and not for an answer to an earlier one. */
static bool is_of_this_send(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EIO || error == EINVAL || error == ENOBUFS;
}

static void allow_fragments(const struct udp_flow *flow, bool allowed)
{
    if (flow->link->ipv6)
        udp_set(flow->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, allowed ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_DO);
    else
        udp_set(flow->fd, IPPROTO_IP, IP_MTU_DISCOVER, allowed ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
}

/* Sends the batch, in fragments if it is a datagram that the interface does not hold. Returns 0 or the error. */
static int give_to_kernel(const struct udp_flow *flow, const struct msghdr *message)
{
    bool alone = flow->segment > flow->link->whole;
    if (unlikely(alone))
        allow_fragments(flow, true);
    int error = sendmsg(flow->fd, message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
    if (unlikely(alone))
        allow_fragments(flow, false);
    return error;
}

/* The kernel reports an answer to an earlier datagram, of any link, in place of sending this one. Once reported, it is
 * gone, so the datagram is sent again; more answers may arrive meanwhile. Returns the last error. */
static int udp_send_again(const struct udp_flow *flow, const struct msghdr *message, int error)
{
    enum { TRIES = 3 };
    for (int tries = 0; tries < TRIES && error && !is_of_this_send(error); tries++) {
        if (!udp_icmp_take(&flow->link->port->icmp, flow->fd) && tries)
            break;
        error = give_to_kernel(flow, message);
    }
    return error;
}

/* The identification of the next send is not certain after an error. */
static void note_left(struct udp_flow *flow, bool failed)
{
    if (unlikely(failed))
        udp_disconnect(flow);
    else if (flow->connected)
        flow->next++;
}

/* Hands the batch to the kernel. Returns 0 or the error. A full queue of the interface (ENOBUFS) is reported only to
 * sockets that ask for answers; it loses datagrams as the network does. */
static int udp_send_now(struct udp_flow *flow)
{
    struct outgoing out;
    describe(&out, flow);
    int first = give_to_kernel(flow, &out.message), error = first;
    if (unlikely(error))
        error = udp_send_again(flow, &out.message, error);
    if (error == EAGAIN || error == EWOULDBLOCK)
        return error;
    note_left(flow, first);
    if (error == ENOBUFS)
        error = 0;
    if (flow->count > 1 && (error == EIO || error == EINVAL) && udp_send_leaves_alone(flow, &out))
        flow->link->port->no_segments = true;
    return error;
}

/* Sends the batch; false: the socket has no room, and the batch waits. */
static bool udp_send_batch(struct udp_flow *flow)
{
    if (!flow->count)
        return true;
    int kept = errno, before = uncancelled_begin(), error = udp_send_now(flow);
    uncancelled_end(before);
    flow->stuck = error == EAGAIN || error == EWOULDBLOCK;
    if (flow->stuck)
        await_room(flow);
    errno = kept; /* the program's: its call has not failed */
    if (flow->stuck)
        return false;
    if (error)
        note_unsent(flow, error);
    else
        note_sent(flow);
    empty(flow);
    return true;
}

/* Makes the datagram that waits the next batch, once the batch before it has left. */
static bool take_waiting(struct udp_flow *flow)
{
    uint32_t length = flow->waiting.length;
    if (!length)
        return false;
    memcpy(flow->bytes, flow->bytes + UDP_BATCH, length);
    flow->link = flow->waiting.link;
    flow->used = flow->segment = length;
    flow->count = 1;
    flow->waiting.length = 0;
    if (flow->connected != flow->link)
        udp_disconnect(flow);
    return true;
}

/* Sends the batch and the datagram that waits. False: the socket has no room, and what is left waits. */
static bool udp_send_flush(struct udp_flow *flow)
{
    lock_assert_held(&flow->lock);
    do
        if (!udp_send_batch(flow))
            return false;
    while (unlikely(take_waiting(flow)));
    return true;
}

void udp_flush_stuck(struct udp_port *port)
{
    for (int family = 0; family < UDP_FAMILIES; family++)
        for (int i = 0; i < UDP_SENDING; i++) {
            struct udp_flow *flow = &port->flows[family][i];
            lock_take(&flow->lock);
            flow->awaits = false; /* also of flows that the event was not for: these ask once more */
            if (flow->stuck)
                udp_send_flush(flow);
            lock_release(&flow->lock);
        }
}

/* --- the link's operations */

static struct udp_link *udp_of(struct link *link)
{
    return (struct udp_link *)link;
}

static bool udp_begin(struct link *link)
{
    struct udp_link *udp = udp_of(link);
    lock_take(&atomic_load(&udp->flow)->lock);
    return false;
}

/* The link can't be rerouted by another thread between begin and end: both are under its queue pair's lock. */
static void udp_end(struct link *link)
{
    struct udp_flow *flow = atomic_load(&udp_of(link)->flow);
    if (!udp_of(link)->port->abandoned)
        udp_send_flush(flow);
    lock_release(&flow->lock);
}

/* Returns true if another datagram might not fit: each that joins is at most as long as the first. The kernel segments
 * nothing that it has to fragment. */
static bool is_full(const struct udp_flow *flow, const struct udp_port *port)
{
    return (flow->count && flow->segment > flow->link->whole) ||
           flow->count == (port->no_segments ? 1 : UDP_SEGMENTS) || flow->used + flow->segment > UDP_BATCH;
}

static bool udp_ready(struct link *link)
{
    struct udp_link *udp = udp_of(link);
    struct udp_flow *flow = atomic_load(&udp->flow);
    if (udp->port->abandoned)
        return true;
    return (!flow->stuck && !is_full(flow, udp->port)) || udp_send_flush(flow);
}

/* Writes headers, payload, pad and ICRC. Returns their length; 0: the payload can't be read. */
static uint32_t write_datagram(uint8_t *start, const struct datagram_route *route, const uint8_t *headers,
                               size_t length, const struct payload *payload)
{
    uint32_t covered = (uint32_t)length + payload->length, pad = -payload->length & 3;
    memcpy(start, headers, length);
    if (!payload_copy(payload, 0, &(struct iovec){start + length, payload->length}, 1))
        return 0;
    memset(start + covered, 0, pad);
    covered += pad;
    uint32_t crc = wire_icrc(route, &(struct iovec){start, covered}, 1);
    for (int i = 0; i < DATAGRAM_ICRC; i++)
        start[covered + (uint32_t)i] = (uint8_t)(crc >> 8 * i);
    return covered + DATAGRAM_ICRC;
}

/* Sends the batch if a datagram of this length can't join it. False: the socket has no room for the batch. */
static bool make_place(struct udp_link *udp, struct udp_flow *flow, uint32_t length)
{
    bool joins = flow->count && flow->link == udp && !flow->closed && length <= flow->segment;
    return !flow->count || (joins && !is_full(flow, udp->port)) || udp_send_flush(flow);
}

/* The byte of congestion marks, which routers may change, is not covered by the ICRC. */
static void corrupt(uint8_t *datagram, uint32_t length, uint32_t bit)
{
    enum { MARKS_AT = 4 };
    uint32_t at = bit / 8 % length;
    datagram[at == MARKS_AT ? at + 1 : at] ^= (uint8_t)(1 << bit % 8);
}

static void join_batch(struct udp_flow *flow, const struct udp_link *udp, uint32_t length)
{
    flow->link = udp;
    flow->closed = flow->count && length < flow->segment;
    flow->segment = flow->count ? flow->segment : length;
    flow->used += length;
    flow->count++;
}

/* The segments of one send have identifications that count up. A datagram that waits is the next send. */
static uint16_t identification_of(const struct udp_flow *flow, const struct udp_link *udp, bool waits)
{
    if (waits)
        return flow->connected == udp ? (uint16_t)(flow->next + 1) : 0;
    return (uint16_t)(flow->next + flow->count);
}

/* The caller's check covered the socket, not whether this datagram joins the pending batch: if it does not, and the
 * batch can't leave, the datagram waits. */
static enum frame_sent udp_send(struct link *link, const struct frame *frame)
{
    struct udp_link *udp = udp_of(link);
    struct udp_flow *flow = atomic_load(&udp->flow);
    size_t skip = frame->kind == FRAME_GRH ? GRH_LENGTH : 0, headers = frame->headers_length - skip;
    uint32_t length = (uint32_t)headers + ((frame->payload.length + 3) & ~3u) + DATAGRAM_ICRC;
    if (udp->port->abandoned || frame->kind == FRAME_ETHERNET)
        return FRAME_SENT;
    if (unlikely(length > UDP_DATAGRAM))
        return link_drop_too_long(link);
    bool waits = !make_place(udp, flow, length);
    if (waits && flow->waiting.length)
        return FRAME_NO_ROOM;
    if (!flow->count && flow->connected != udp)
        udp_settle(flow, udp);
    uint8_t *start = waits ? flow->bytes + UDP_BATCH : flow->bytes + flow->used;
    struct datagram_route route = udp->wire;
    route.source_port = flow->source_port;
    route.identification = identification_of(flow, udp, waits);
    if (!write_datagram(start, &route, frame->headers + skip, headers, &frame->payload))
        return frame->payload.pull ? FRAME_SENT : FRAME_UNREADABLE;
    if (unlikely(frame->corrupt))
        corrupt(start, length, frame->corrupt);
    if (unlikely(waits)) {
        flow->waiting.link = udp;
        flow->waiting.length = length;
    } else {
        join_batch(flow, udp, length);
    }
    return FRAME_SENT;
}

static void udp_nothing(struct link *link)
{
}

static bool udp_no(struct link *link)
{
    return false;
}

/* The datagrams are out of our hands: timers may run. */
static bool udp_consumed(struct link *link)
{
    return true;
}

static void forget_batch(struct udp_flow *flow, const struct udp_link *udp)
{
    lock_take(&flow->lock);
    if (flow->waiting.link == udp) {
        flow->waiting.link = NULL;
        flow->waiting.length = 0;
    }
    if (flow->link == udp) {
        empty(flow);
        flow->link = NULL;
        if (take_waiting(flow)) /* another link's datagram */
            udp_send_flush(flow);
    }
    udp_forget_link(flow, udp);
    lock_release(&flow->lock);
}

/* A waiting batch must not outlive its link, whose route it uses, even in a flow that the link was rerouted from. */
static void udp_close_link(struct link *link)
{
    struct udp_link *udp = udp_of(link);
    for (int i = 0; i < UDP_SENDING; i++)
        forget_batch(&udp->port->flows[udp->ipv6][i], udp);
    free(udp);
}

static const struct link_operations operations = {
    .begin = udp_begin,
    .end = udp_end,
    .ready = udp_ready,
    .send = udp_send,
    .revoke = udp_nothing,
    .can_reference = udp_no,
    .consumed = udp_consumed,
    .close = udp_close_link,
};

static void address(struct udp_link *udp)
{
    udp_put_address(udp->port, &udp->to, udp->route.destination, DATAGRAM_PORT);
    memcpy(udp->wire.source, udp->route.source, 16);
    memcpy(udp->wire.destination, udp->route.destination, 16);
    udp->wire.destination_port = DATAGRAM_PORT;
    udp->wire.fragment = DATAGRAM_DONT_FRAGMENT;
}

/* Only an EFA's datagrams are longer: the path MTU of a connection is at most that of the interface. */
static uint32_t find_whole(const struct udp_port *port, const struct udp_flow *flow)
{
    enum { HEADERS = 40 + 8 }; /* of IPv6 and UDP */
    struct ifreq request = {.ifr_mtu = 0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", port->interface);
    return ioctl(flow->fd, SIOCGIFMTU, &request) || request.ifr_mtu <= HEADERS ? UINT32_MAX
                                                                               : (uint32_t)request.ifr_mtu - HEADERS;
}

struct link *udp_connect(struct udp_port *port, const struct udp_route *route)
{
    unsigned spread = route->flow * 0x9e3779b1u >> 29; /* the upper three bits: UDP_FLOWS */
    unsigned index = route->apart ? UDP_APART : spread;
    bool ipv6 = !grh_is_ipv4(route->destination);
    struct udp_link *udp = udp_flow_open(port, ipv6, index) ? calloc(1, sizeof *udp) : NULL;
    if (!udp)
        return NULL;
    udp->link.operations = &operations;
    udp->port = port;
    udp->flow = &port->flows[ipv6][index];
    udp->route = *route;
    udp->whole = find_whole(port, &port->flows[ipv6][index]);
    udp->ipv6 = ipv6;
    udp->multicast = ipv6 ? route->destination[0] == 0xff : route->destination[12] >> 4 == 14;
    address(udp);
    return &udp->link;
}

uint16_t udp_source_port(const struct link *link)
{
    return atomic_load(&((const struct udp_link *)link)->flow)->source_port;
}

/* The flow of this port number, or one that has no socket; NULL: all have other numbers. Under the port's lock. */
static struct udp_flow *find_pinned(struct udp_flow *flows, uint16_t number)
{
    struct udp_flow *unused = NULL;
    for (struct udp_flow *flow = flows + UDP_PINNED; flow < flows + UDP_SENDING; flow++) {
        if (flow->fd >= 0 && flow->source_port == number)
            return flow;
        if (flow->fd < 0 && !unused)
            unused = flow;
    }
    return unused;
}

int udp_pin(struct link *link, uint16_t number)
{
    struct udp_link *udp = udp_of(link);
    struct udp_port *port = udp->port;
    lock_take(&port->lock);
    struct udp_flow *flow = find_pinned(port->flows[udp->ipv6], number);
    int error = port->abandoned || !flow ? EBUSY : 0;
    if (!error && flow->fd < 0 && !udp_send_make(port, flow, udp->ipv6, number))
        error = errno;
    lock_release(&port->lock);
    if (!error)
        atomic_store(&udp->flow, flow);
    return error;
}

void udp_reroute(struct link *link)
{
    struct udp_link *udp = udp_of(link);
    struct udp_flow *flow = atomic_load(&udp->flow), *flows = udp->port->flows[udp->ipv6];
    unsigned next = (unsigned)(flow - flows + 1) % UDP_FLOWS;
    if (flow >= flows + UDP_PINNED)
        return;
    if (!udp->port->abandoned && udp_flow_open(udp->port, udp->ipv6, next))
        atomic_store(&udp->flow, &flows[next]);
}
