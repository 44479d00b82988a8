/* Receiving: several messages with each system call; each may be many datagrams that the kernel has joined
 * (UDP_GRO). */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/likely.h"
#include "link/udp/udp_state.h"
#include "wire/grh.h"

#include <netinet/udp.h>

enum {
    UDP = 8,
    CONTROL = 256,
    ECN_MASK = 3,
    ECN_MARKED = 3,
    SOCKETS_A_ROUND = 8,
    HOT_ROUNDS = 16,
    FEW_BYTES = 16384, /* a message of fewer is short */
    STEADY = 256,      /* the number of messages in a row after which their sender gets a socket */
};

struct udp_buffers {
    struct mmsghdr messages[UDP_RECEIVES];
    struct iovec pieces[UDP_RECEIVES];
    union udp_address from[UDP_RECEIVES];
    _Alignas(struct cmsghdr) uint8_t control[UDP_RECEIVES][CONTROL];
    uint8_t bytes[UDP_RECEIVES][UDP_RECEIVE];
};

/* The contents of the address and the control messages of a message. */
struct header {
    struct datagram_route route;
    int traffic_class, hop_limit;
    uint32_t segment; /* bytes of each datagram but the last; 0: there is one */
};

struct receiver {
    udp_take *take;
    udp_drop *drop;
    void *context;
    unsigned interface;
    unsigned done;
    bool wanted; /* what the last `take` returned */
};

struct udp_buffers *udp_buffers_create(void)
{
    return calloc(1, sizeof(struct udp_buffers));
}

static void udp_receive_prepare(struct udp_buffers *buffers, int wanted)
{
    for (int i = 0; i < wanted; i++) {
        buffers->pieces[i] = (struct iovec){buffers->bytes[i], UDP_RECEIVE};
        buffers->messages[i].msg_hdr = (struct msghdr){.msg_name = &buffers->from[i],
                                                       .msg_namelen = sizeof buffers->from[i],
                                                       .msg_iov = &buffers->pieces[i],
                                                       .msg_iovlen = 1,
                                                       .msg_control = buffers->control[i],
                                                       .msg_controllen = CONTROL};
    }
}

static int integer(struct cmsghdr *header)
{
    int value = 0;
    size_t size = header->cmsg_len - CMSG_LEN(0);
    memcpy(&value, CMSG_DATA(header), size < sizeof value ? size : sizeof value);
    return value;
}

static void read_control(struct cmsghdr *control, struct header *header)
{
    int level = control->cmsg_level, type = control->cmsg_type;
    const uint8_t *data = CMSG_DATA(control);
    if (level == IPPROTO_IP && type == IP_PKTINFO)
        grh_gid_of_ipv4(data + offsetof(struct in_pktinfo, ipi_addr), header->route.destination);
    else if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO)
        memcpy(header->route.destination, data, 16);
    else if ((level == IPPROTO_IP && type == IP_TOS) || (level == IPPROTO_IPV6 && type == IPV6_TCLASS))
        header->traffic_class = integer(control) & 0xff;
    else if ((level == IPPROTO_IP && type == IP_TTL) || (level == IPPROTO_IPV6 && type == IPV6_HOPLIMIT))
        header->hop_limit = integer(control) & 0xff;
    else if (level == IPPROTO_UDP && type == UDP_GRO)
        header->segment = (uint32_t)integer(control);
}

static void read_header(struct msghdr *message, struct header *header)
{
    const union udp_address *from = message->msg_name;
    *header = (struct header){.route = {.destination_port = DATAGRAM_PORT,
                                        .fragment = DATAGRAM_DONT_FRAGMENT,
                                        .identification_unknown = true}};
    if (from->any.sa_family == AF_INET6) {
        memcpy(header->route.source, &from->ipv6.sin6_addr, 16);
        header->route.source_port = ntohs(from->ipv6.sin6_port);
    } else {
        grh_gid_of_ipv4((const uint8_t *)&from->ipv4.sin_addr, header->route.source);
        header->route.source_port = ntohs(from->ipv4.sin_port);
    }
    for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control))
        read_control(control, header);
}

static void write_grh(const struct header *header, uint32_t length, uint8_t to[GRH_LENGTH])
{
    const struct datagram_route *route = &header->route;
    grh_write(to,
              &(struct grh_route){.source = route->source,
                                  .destination = route->destination,
                                  .traffic_class = (uint8_t)header->traffic_class,
                                  .hop_limit = (uint8_t)header->hop_limit,
                                  .identification = route->identification,
                                  .fragment = route->fragment},
              UDP + length);
}

static void udp_receive_refuse(struct receiver *receiver, const struct header *header, const uint8_t *bytes,
                               uint32_t length, enum wire_fault fault)
{
    receiver->drop(receiver->context, &(struct udp_refusal){.route = &header->route,
                                                            .traffic_class = (uint8_t)header->traffic_class,
                                                            .hop_limit = (uint8_t)header->hop_limit,
                                                            .bytes = bytes,
                                                            .length = length,
                                                            .fault = fault});
}

static void take_datagram(struct receiver *receiver, struct header *header, const uint8_t *bytes, uint32_t length)
{
    struct packet packet;
    struct iovec piece;
    uint8_t grh[GRH_LENGTH];
    enum wire_fault fault = datagram_decode(&header->route, bytes, length, &packet, &piece);
    receiver->done++;
    if (fault) {
        udp_receive_refuse(receiver, header, bytes, length, fault);
        receiver->wanted = false;
        return;
    }
    write_grh(header, length, grh);
    packet.grh = grh;
    struct udp_arrival arrival = {.route = &header->route,
                                  .packet = &packet,
                                  .interface = receiver->interface,
                                  .congested = (header->traffic_class & ECN_MASK) == ECN_MARKED};
    receiver->wanted = receiver->take(receiver->context, &arrival);
}

/* A sender's socket gives each send the identification 0 if it is not connected, and counts up if it is. */
static void keep_guess(struct udp_guess *guess, uint16_t source_port, uint16_t found)
{
    *guess = (struct udp_guess){.source_port = source_port, .next = found ? (uint16_t)(found + 1) : 0};
}

/* Gives a steady sender a socket of its own, which the kernel finds, with the route, sooner than the socket for all. */
static void note_sender(struct udp_port *port, const struct datagram_route *route, bool wanted)
{
    struct udp_steady *steady = &port->steady;
    bool again = steady->source_port == route->source_port && !memcmp(steady->source, route->source, 16);
    steady->messages = wanted && again ? steady->messages + 1 : 0;
    if (!again) {
        steady->source_port = route->source_port;
        memcpy(steady->source, route->source, 16);
    }
    if (unlikely(steady->messages == STEADY))
        udp_prefer_steady(port, route);
}

/* Datagrams that left in one send have identifications that count up, so the next is the best guess. */
static void take_message(struct udp_port *port, struct receiver *receiver, struct msghdr *message, const uint8_t *bytes,
                         uint32_t length)
{
    struct header header;
    read_header(message, &header);
    struct udp_guess *guess = &port->guesses[header.route.source_port % UDP_GUESSES];
    if (guess->source_port == header.route.source_port)
        header.route.identification = guess->next;
    uint32_t step = header.segment ? header.segment : length;
    if (message->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        udp_receive_refuse(receiver, &header, bytes, length, WIRE_TRUNCATED);
        return;
    }
    for (uint32_t at = 0; at < length || !at; at += step) {
        take_datagram(receiver, &header, bytes + at, length - at < step ? length - at : step);
        if (!at)
            keep_guess(guess, header.route.source_port, header.route.identification);
        header.route.identification++;
        if (!step)
            break;
    }
    note_sender(port, &header.route, receiver->wanted);
}

/* Receives up to `wanted` messages; returns how many there were. */
static int receive_some(struct udp_port *port, int fd, struct receiver *receiver, int wanted)
{
    struct udp_buffers *buffers = port->buffers;
    udp_receive_prepare(buffers, wanted);
    int count = recvmmsg(fd, buffers->messages, (unsigned)wanted, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++)
        take_message(port, receiver, &buffers->messages[i].msg_hdr, buffers->bytes[i], buffers->messages[i].msg_len);
    port->wanted = count < 1 ? 0 : buffers->messages[count - 1].msg_len < FEW_BYTES ? UDP_RECEIVES : 1;
    return count;
}

/* Empties a socket, up to the budget. Long messages are received one by one, as the processor's cache keeps one of
 * them between the kernel's copy and ours. After a call that found nothing, only one message is asked for: a look
 * for a second that is not there costs as much as to receive one, and the next call finds the rest. */
static void receive_from(struct udp_port *port, int fd, struct receiver *receiver, unsigned budget)
{
    int wanted = port->wanted;
    if (!wanted) {
        receive_some(port, fd, receiver, 1);
        return;
    }
    while (receive_some(port, fd, receiver, wanted) == wanted && receiver->done < budget)
        wanted = port->wanted;
}

static void put_out_visitors(int listening)
{
    for (int fd; (fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
        close(fd);
}

/* Asks the kernel which sockets have something, and reads those. */
static void receive_anywhere(struct udp_port *port, struct receiver *receiver, unsigned budget)
{
    struct epoll_event events[SOCKETS_A_ROUND];
    int count = epoll_wait(port->epoll, events, SOCKETS_A_ROUND, 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd < 0) {
            if (events[i].events & EPOLLERR)
                udp_icmp_take_all(&port->icmp);
            udp_flush_stuck(port);
            continue;
        }
        if (events[i].data.fd == port->kept) {
            put_out_visitors(port->kept);
            continue;
        }
        receive_from(port, events[i].data.fd, receiver, budget);
        port->hot = events[i].data.fd;
    }
    port->hot_rounds = 0;
}

void udp_woken(struct udp_port *port)
{
    atomic_store_explicit(&port->woken, true, memory_order_relaxed);
}

/* Returns true if a thread was woken since the last call. */
static bool udp_receive_was_woken(struct udp_port *port)
{
    if (likely(!atomic_load_explicit(&port->woken, memory_order_relaxed)))
        return false;
    atomic_store_explicit(&port->woken, false, memory_order_relaxed);
    return true;
}

/* Most datagrams arrive at the socket of the last one, and a poller saves a system call by looking only there for some
 * rounds. A thread that sleeps on udp_fd is woken for all. */
unsigned udp_receive(struct udp_port *port, udp_take *take, udp_drop *drop, void *context, unsigned budget)
{
    struct receiver receiver = {.take = take, .drop = drop, .context = context, .interface = port->index};
    if (port->abandoned)
        return 0;
    bool woken = udp_receive_was_woken(port), hot = port->hot >= 0 && port->hot_rounds++ < HOT_ROUNDS;
    if (hot)
        receive_from(port, port->hot, &receiver, budget);
    if (!hot || (woken && !receiver.done))
        receive_anywhere(port, &receiver, budget);
    return receiver.done;
}
