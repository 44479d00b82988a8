/* A sending socket that is connected: its sends carry no address and no control messages for the address, and the
 * kernel keeps the route. A flow's socket is connected to the destination of a link after many sends in a row for that
 * link, and disconnected when another link sends from it.
 *
 * Over IPv4 the kernel then counts the identification up with each send, from a random number, and the ICRC covers it.
 * So the number is learned: datagrams go from the socket to another of ours, through the loopback interface, and the
 * kernel returns copies of them with all headers (SO_TIMESTAMPING). Where that fails, or the number does not go up by
 * one with each send, the socket stays as it was. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/likely.h"
#include "base/uncancelled.h"
#include "link/udp/ancillary.h"
#include "link/udp/udp_state.h"
#include "wire/bytes.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/udp.h>

enum {
    IN_A_ROW = 64, /* sends in a row for one link, before the socket is connected for the first time */
    MOST_IN_A_ROW = 1 << 20,
    LOOPBACK = 1, /* the interface's index, in every network namespace */
    IPV4 = 20,
    IPV4_IDENTIFICATION = 4,
    UDP_HEADER = 8,
    TRIAL = 8,   /* bytes */
    COPIES = 16, /* the most messages of an error queue that are read to find the copy */
};

/* --- the identification */

/* A datagram to ourselves, with its control messages. */
struct trial {
    _Alignas(struct cmsghdr) uint8_t control[128];
    uint8_t bytes[2 * TRIAL];
    struct iovec piece;
    struct msghdr message;
};

static void begin_trial(struct trial *trial, const struct sockaddr_in *to, size_t bytes)
{
    static const struct in_pktinfo way = {.ipi_ifindex = LOOPBACK};
    *trial = (struct trial){.piece = {trial->bytes, bytes}};
    trial->message = (struct msghdr){.msg_name = (void *)to,
                                     .msg_namelen = sizeof *to,
                                     .msg_iov = &trial->piece,
                                     .msg_iovlen = 1,
                                     .msg_control = trial->control};
    ancillary_add(&trial->message, IPPROTO_IP, IP_PKTINFO, &way, sizeof way);
}

static bool send_trial(int fd, const struct trial *trial)
{
    return sendmsg(fd, &trial->message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)trial->piece.iov_len;
}

/* Sends one datagram, and makes the kernel return a copy. */
static bool send_copied(int fd, const struct sockaddr_in *to)
{
    static const uint32_t want = SOF_TIMESTAMPING_TX_SCHED;
    struct trial trial;
    begin_trial(&trial, to, TRIAL);
    ancillary_add(&trial.message, SOL_SOCKET, SO_TIMESTAMPING, &want, sizeof want);
    return send_trial(fd, &trial);
}

/* Sends two datagrams in one send. */
static bool send_batch(int fd, const struct sockaddr_in *to)
{
    static const uint16_t segment = TRIAL;
    struct trial trial;
    begin_trial(&trial, to, (size_t)2 * TRIAL);
    ancillary_add(&trial.message, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
    return send_trial(fd, &trial);
}

/* A copy is the header of the interface's kind, the IPv4 header, the UDP header and the bytes. */
static bool is_copy(const uint8_t *end, size_t length, const struct sockaddr_in *to)
{
    const uint8_t *udp = end - TRIAL - UDP_HEADER;
    uint16_t port;
    if (length < IPV4 + UDP_HEADER + TRIAL || udp[-IPV4] != 0x45)
        return false;
    memcpy(&port, udp + 2, sizeof port);
    return port == to->sin_port && bytes_get16(udp + 4) == UDP_HEADER + TRIAL;
}

static bool read_copy(int fd, const struct sockaddr_in *to, uint16_t *identification)
{
    uint8_t copy[256];
    for (int tries = 0; tries < COPIES; tries++) {
        struct msghdr message = {.msg_iov = &(struct iovec){copy, sizeof copy}, .msg_iovlen = 1};
        ssize_t length = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
        if (length < 0)
            return false;
        if (!(message.msg_flags & MSG_TRUNC) && is_copy(copy + length, (size_t)length, to)) {
            *identification = bytes_get16(copy + length - TRIAL - UDP_HEADER - IPV4 + IPV4_IDENTIFICATION);
            return true;
        }
    }
    return false;
}

/* Learns the next identification. False: it is unknown, or a send, even of a batch, does not count it up by one. */
static bool learn_from(struct udp_flow *flow, const struct sockaddr_in *to)
{
    uint16_t first, third;
    int fd = flow->fd;
    if (!send_copied(fd, to) || !read_copy(fd, to, &first) || !send_batch(fd, to) || !send_copied(fd, to) ||
        !read_copy(fd, to, &third))
        return false;
    flow->next = (uint16_t)(third + 1);
    return third == (uint16_t)(first + 2);
}

static bool learn_identification(struct udp_flow *flow)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    int sink = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sink < 0)
        return false;
    bool learned = !bind(sink, (struct sockaddr *)&here, sizeof here) &&
                   !getsockname(sink, (struct sockaddr *)&here, &size) &&
                   udp_set(flow->fd, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_SOFTWARE) && learn_from(flow, &here);
    udp_set(flow->fd, SOL_SOCKET, SO_TIMESTAMPING, 0);
    close(sink);
    return learned;
}

/* --- connecting */

/* Sets as options what control messages say with each send of a socket that is not connected. */
static bool describe_once(const struct udp_flow *flow, const struct udp_link *link)
{
    int class = (link->route.traffic_class & ~3) | UDP_ECN_CAPABLE;
    int hops = link->route.hop_limit ? link->route.hop_limit : -1, interface = (int)htonl(link->port->index);
    if (link->ipv6)
        return udp_set(flow->fd, IPPROTO_IPV6, IPV6_TCLASS, class) &&
               udp_set(flow->fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, hops) &&
               udp_set(flow->fd, IPPROTO_IPV6, IPV6_UNICAST_IF, interface);
    return udp_set(flow->fd, IPPROTO_IP, IP_TOS, class) && udp_set(flow->fd, IPPROTO_IP, IP_TTL, hops) &&
           udp_set(flow->fd, IPPROTO_IP, IP_UNICAST_IF, interface);
}

/* The kernel chooses the source of a connection. */
static bool has_source(const struct udp_flow *flow, const struct udp_link *link)
{
    union udp_address here = {0};
    socklen_t size = sizeof here;
    if (getsockname(flow->fd, &here.any, &size))
        return false;
    return link->ipv6 ? !memcmp(&here.ipv6.sin6_addr, link->route.source, 16)
                      : !memcmp(&here.ipv4.sin_addr, link->route.source + 12, 4);
}

static bool connect_flow(struct udp_flow *flow, const struct udp_link *link)
{
    if (!describe_once(flow, link) || connect(flow->fd, &link->to.any, udp_address_length(&link->to)) ||
        !has_source(flow, link))
        return false;
    if (link->ipv6)
        return true;
    udp_icmp_hold(&link->port->icmp, flow->fd); /* other threads would take the copies */
    bool learned = learn_identification(flow);
    udp_icmp_release(&link->port->icmp);
    return learned;
}

/* Disconnects the socket, which keeps its port, and unsets the hop limit, which some links leave to the route. */
static void disconnect_flow(struct udp_flow *flow, bool ipv6)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    connect(flow->fd, &none, sizeof none);
    udp_set(flow->fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_UNICAST_HOPS : IP_TTL, -1);
    flow->connected = NULL;
    flow->next = 0;
}

/* Doubles, up to a limit, how many batches in a row connect the socket: links that take turns would else connect it
 * again and again. */
static void raise_threshold(struct udp_flow *flow)
{
    flow->threshold = flow->threshold < MOST_IN_A_ROW ? 2 * flow->threshold : MOST_IN_A_ROW;
    flow->streak = 0;
}

static void end_connection(struct udp_flow *flow)
{
    int error = errno, before = uncancelled_begin();
    disconnect_flow(flow, flow->connected->ipv6);
    uncancelled_end(before);
    errno = error;
}

void udp_disconnect(struct udp_flow *flow)
{
    lock_assert_held(&flow->lock);
    if (!flow->connected)
        return;
    end_connection(flow);
    raise_threshold(flow);
}

cold static void try_to_connect(struct udp_flow *flow, const struct udp_link *link)
{
    int error = errno, before = uncancelled_begin();
    if (connect_flow(flow, link)) {
        flow->connected = link;
    } else {
        disconnect_flow(flow, link->ipv6);
        raise_threshold(flow);
    }
    uncancelled_end(before);
    errno = error;
}

void udp_settle(struct udp_flow *flow, const struct udp_link *link)
{
    lock_assert_held(&flow->lock);
    if (flow->connected == link)
        return;
    udp_disconnect(flow);
    if (!flow->threshold)
        flow->threshold = IN_A_ROW;
    flow->streak = flow->last == link ? flow->streak + 1 : 0;
    flow->last = link;
    if (flow->streak >= flow->threshold && !link->multicast)
        try_to_connect(flow, link);
}

void udp_forget_link(struct udp_flow *flow, const struct udp_link *link)
{
    lock_assert_held(&flow->lock);
    if (flow->connected == link)
        end_connection(flow);
    if (flow->last == link)
        flow->last = NULL;
}

void udp_forget_connection(struct udp_flow *flow)
{
    flow->connected = flow->last = NULL;
    flow->next = 0;
}
