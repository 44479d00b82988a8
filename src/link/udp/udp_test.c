#include "link/udp/udp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "link/testing/away.h"
#include "link/testing/udp_room.h"
#include "wire/op.h"

enum { ECN_CAPABLE = 2, ECN_MARKED = 3 };

/* A whole batch of one length, one that ends in a shorter datagram, and single ones of every small length. */
static void send_various(struct link *link, struct room *expected)
{
    static const uint32_t lengths[] = {1024, 1024, 1024, 100, 1024, 0, 1, 2, 3, 4, 5, 4096, 4096, 7};
    for (int batch = 0; batch < 3; batch++) {
        link->operations->begin(link);
        for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            expected->psns[expected->count] = expected->count;
            expected->lengths[expected->count] = lengths[i];
            room_send(link, expected->count++, lengths[i]);
        }
        link->operations->end(link);
    }
}

static void arrives_as_it_was_sent(struct room *room, const uint8_t gid[16])
{
    struct room expected = {.count = 0};
    struct link *link = room_connect(room, gid, 1);
    send_various(link, &expected);
    room_receive(room, expected.count);
    assert_int_equal(room->count, expected.count);
    assert_int_equal(room->drops, 0);
    assert_int_equal(room->wrong, 0);
    assert_memory_equal(room->psns, expected.psns, sizeof room->psns);
    assert_memory_equal(room->lengths, expected.lengths, sizeof room->lengths);
    assert_true(room->source_port >= 0xc000);
    link->operations->close(link);
}

static void a17_9_1_datagrams_arrive_over_ipv4(void **state)
{
    struct room *room = *state;
    arrives_as_it_was_sent(room, ipv4);
    assert_int_equal(room->grh[20], 0x45);
    assert_int_equal(room->grh[21], 0x48 | ECN_CAPABLE);
    assert_int_equal(room->grh[28], 17);
    assert_memory_equal(room->grh + 32, ipv4 + 12, 4);
}

static void a17_9_1_datagrams_arrive_over_ipv6(void **state)
{
    struct room *room = *state;
    arrives_as_it_was_sent(room, ipv6);
    assert_int_equal(room->grh[0], 0x64);
    assert_int_equal(room->grh[1] >> 4, 8 | ECN_CAPABLE);
    assert_int_equal(room->grh[7], 17);
    assert_memory_equal(room->grh + 8, ipv6, 16);
}

/* 64 segments are the most of one send, and 65000 bytes. */
static void more_than_one_send_takes_arrives(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    link->operations->begin(link);
    for (uint32_t i = 0; i < 200; i++)
        room_send(link, i, i % 2 ? 1024 : 1023);
    for (uint32_t i = 200; i < 256; i++)
        room_send(link, i, 4096);
    link->operations->end(link);
    room_receive(room, 256);
    assert_int_equal(room->count, 256);
    assert_int_equal(room->wrong, 0);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(room->psns[i], i);
    link->operations->close(link);
}

/* Two links that share a flow don't mix their routes. */
static void links_of_one_flow_keep_their_addresses(void **state)
{
    struct room *room = *state;
    struct link *one = room_connect(room, ipv4, 3), *other = room_connect(room, ipv4_other, 3);
    for (uint32_t i = 0; i < 4; i++) {
        struct link *link = i % 2 ? other : one;
        link->operations->begin(link);
        room_send(link, i, 64);
        link->operations->end(link);
        room_receive(room, i + 1);
        assert_int_equal(room->grh[39], i % 2 ? 2 : 1);
    }
    one->operations->close(one);
    other->operations->close(other);
}

static void a17_9_2_another_way_has_another_source_port(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 5);
    uint16_t before = 0;
    for (uint32_t i = 0; i < 3; i++) {
        link->operations->begin(link);
        room_send(link, i, 64);
        link->operations->end(link);
        room_receive(room, i + 1);
        assert_int_not_equal(room->source_port, before);
        before = room->source_port;
        udp_reroute(link);
    }
    link->operations->close(link);
}

static uint16_t source_port_of(struct room *room, bool apart, uint32_t flow)
{
    struct udp_route route = {.flow = flow, .apart = apart};
    memcpy(route.source, ipv4, 16);
    memcpy(route.destination, ipv4, 16);
    struct link *link = udp_connect(room->port, &route);
    assert_non_null(link);
    uint16_t number = udp_source_port(link);
    link->operations->close(link);
    return number;
}

static void what_is_apart_shares_its_source_port_with_no_flow(void **state)
{
    struct room *room = *state;
    uint16_t apart = source_port_of(room, true, 0);
    for (uint32_t flow = 0; flow < 64; flow++) {
        assert_int_equal(source_port_of(room, true, flow), apart);
        assert_int_not_equal(source_port_of(room, false, flow), apart);
    }
}

static void a_link_may_have_a_source_port_of_its_own(void **state)
{
    enum { CHOSEN = 55555, OTHER = 55560, PINS = 4 };
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1), *same = room_connect(room, ipv4, 2);
    assert_int_equal(udp_pin(link, CHOSEN), 0);
    assert_int_equal(udp_pin(same, CHOSEN), 0);
    link->operations->begin(link);
    room_send(link, 0, 64);
    link->operations->end(link);
    room_receive(room, 1);
    assert_int_equal(room->source_port, CHOSEN);
    udp_reroute(link);
    assert_int_equal(udp_source_port(link), CHOSEN);
    for (uint16_t i = 0; i < PINS - 1; i++)
        assert_int_equal(udp_pin(same, (uint16_t)(OTHER + i)), 0);
    assert_int_equal(udp_pin(same, OTHER + PINS), EBUSY);
    assert_int_equal(udp_source_port(same), OTHER + PINS - 2);
    link->operations->close(link);
    same->operations->close(same);
}

static void a17_3_3_what_is_no_packet_is_dropped_with_its_fault(void **state)
{
    struct room *room = *state;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(DATAGRAM_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint8_t noise[64] = {4, [20] = 9};
    assert_int_equal(sendto(fd, noise, sizeof noise, 0, (struct sockaddr *)&to, sizeof to), sizeof noise);
    room_receive(room, 1);
    assert_int_equal(room->fault, WIRE_ICRC);
    assert_int_equal(room->refused, sizeof noise);
    assert_memory_equal(room->noise, noise, sizeof noise);
    assert_int_equal(sendto(fd, noise, 3, 0, (struct sockaddr *)&to, sizeof to), 3);
    room_receive(room, 2);
    assert_int_equal(room->fault, WIRE_TRUNCATED);
    assert_int_equal(room->refused, 3);
    assert_int_equal(sendto(fd, noise, 0, 0, (struct sockaddr *)&to, sizeof to), 0);
    room_receive(room, 3);
    assert_int_equal(room->drops, 3);
    assert_int_equal(room->count, 0);
    close(fd);
}

/* A packet from a socket that sets these two bits of the IP header itself. */
static void send_marked(int mark)
{
    struct sockaddr_in from,
        to = {.sin_family = AF_INET, .sin_port = htons(DATAGRAM_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof from;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &length), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_TOS, &mark, sizeof mark), 0);
    struct packet packet = {.opcode = op_code(SERVICE_UC, OPERATION_SEND_ONLY), .destination = 0x1234};
    struct datagram_route route = {
        .source_port = ntohs(from.sin_port), .destination_port = DATAGRAM_PORT, .fragment = DATAGRAM_DONT_FRAGMENT};
    memcpy(route.source, ipv4, 16);
    memcpy(route.destination, ipv4, 16);
    uint8_t bytes[64];
    size_t size = datagram_encode(&route, &packet, bytes, sizeof bytes);
    assert_int_equal(send(fd, bytes, size, 0), size);
    close(fd);
}

/* RoCEv2 annex: routers mark packets that meet congestion, and the receiver is to notify the sender. */
static void a17_9_3_a_mark_of_congestion_is_seen(void **state)
{
    struct room *room = *state;
    send_marked(ECN_MARKED);
    room_receive(room, 1);
    assert_true(room->congested);
    send_marked(ECN_CAPABLE);
    room_receive(room, 2);
    assert_false(room->congested);
    assert_int_equal(room->count, 2);
}

static void an_unusable_interface_is_explained(void **state)
{
    struct udp_port *port;
    char why[256];
    assert_int_equal(udp_open(&port, "no-such-one", why, sizeof why), ENODEV);
    assert_non_null(strstr(why, "no-such-one"));
    assert_int_equal(udp_open(&port, "a-name-that-is-far-too-long", why, sizeof why), ENODEV);
}

static void a_taken_port_is_explained(void **state)
{
    struct udp_port *port;
    char why[256];
    struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_port = htons(DATAGRAM_PORT)};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(udp_open(&port, "lo", why, sizeof why), EADDRINUSE);
    assert_non_null(strstr(why, "4791"));
    close(fd);
}

static void after_a_fork_nothing_is_sent(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    udp_abandon(room->port);
    link->operations->begin(link);
    room_send(link, 0, 64);
    link->operations->end(link);
    assert_int_equal(udp_receive(room->port, room_take, room_drop, room, 64), 0);
    link->operations->close(link);
}

/* More connections than the queue holds; a client that connects and is not closed keeps its place although it has
 * ended. */
static void visitors_of_the_kept_socket_are_put_out(void **state)
{
    struct room *room = *state;
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0softverbs-udp-test"};
    int kept = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(kept, (struct sockaddr *)&name, sizeof name) || listen(kept, 1), 0);
    udp_keep(room->port, kept);
    for (int i = 0; i < 8; i++) {
        struct pollfd readable = {.fd = udp_fd(room->port), .events = POLLIN};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
        close(fd);
        assert_int_equal(poll(&readable, 1, 5000), 1);
        udp_receive(room->port, room_take, room_drop, room, 64);
        assert_int_equal(poll(&readable, 1, 0), 0);
    }
}

static void shout(const uint8_t group[16])
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(DATAGRAM_PORT)};
    struct ip_mreqn loopback = {.imr_ifindex = (int)if_nametoindex("lo")};
    uint8_t noise[64] = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(&to.sin_addr, group + 12, 4);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback), 0);
    assert_int_equal(sendto(fd, noise, sizeof noise, 0, (struct sockaddr *)&to, sizeof to), sizeof noise);
    close(fd);
}

static void a_group_is_heard_while_it_is_joined(void **state)
{
    static const uint8_t group[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 7, [15] = 1},
                         other[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 7, [15] = 2};
    struct room *room = *state;
    for (int twice = 0; twice < 2; twice++)
        assert_int_equal(udp_join(room->port, group), 0);
    shout(other);
    shout(group);
    room_receive_drops(room, 1);
    udp_leave(room->port, group);
    udp_leave(room->port, other);
    shout(group);
    assert_int_equal(udp_receive(room->port, room_take, room_drop, room, 64), 0);
    assert_int_equal(udp_join(room->port, other), 0); /* which ends with the port */
    shout(other);
    room_receive_drops(room, 2);
    assert_int_equal(room->drops, 2);
    assert_int_equal(room->count, 0);
}

/* An ACK timer reroutes a link while a batch of it waits for room in the socket that it had before. */
static void a_batch_that_waits_does_not_outlive_its_link(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1), *other = room_connect(room, ipv4, 1);
    room_sends.no_room = true;
    link->operations->begin(link);
    room_send(link, 1, 100);
    link->operations->end(link);
    udp_reroute(link);
    link->operations->close(link);
    room_sends.no_room = false;
    other->operations->begin(other);
    room_send(other, 2, 100);
    other->operations->end(other);
    room_receive(room, 1);
    assert_int_equal(room->psns[0], 2);
    other->operations->close(other);
}

/* A datagram that does not join the batch, after the sender was informed that there is room: it is longer than the
 * others, or follows a shorter one. The batch can't leave; both do, in order, once there is room. */
static void what_was_promised_room_is_not_lost(void **state)
{
    static const uint32_t lengths[][3] = {{100, 100, 200}, {200, 100, 100}};
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    for (unsigned row = 0; row < 2; row++) {
        link->operations->begin(link);
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(link->operations->ready(link));
            room_sends.no_room = i == 2;
            room_send(link, 3 * row + i, lengths[row][i]);
        }
        assert_false(link->operations->ready(link));
        link->operations->end(link);
        room_sends.no_room = false;
        room_receive(room, 3 * row + 3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(room->psns[3 * row + i], 3 * row + i);
            assert_int_equal(room->lengths[3 * row + i], lengths[row][i]);
        }
    }
    assert_int_equal(room->drops, 0);
    link->operations->close(link);
}

static void push_one(struct link *link, uint32_t psn)
{
    link->operations->begin(link);
    room_push(link, psn, 100);
    link->operations->end(link);
}

/* A datagram that waits after a batch of a closed link leaves all the same; it is forgotten with its own link. */
static void what_waits_behind_a_batch_is_its_own_links(void **state)
{
    struct room *room = *state;
    struct link *first = room_connect(room, ipv4, 1), *second = room_connect(room, ipv4, 1);
    room_sends.no_room = true;
    push_one(first, 1);
    push_one(second, 2);
    room_sends.no_room = false;
    first->operations->close(first);
    room_receive(room, 1);
    assert_int_equal(room->psns[0], 2);
    first = room_connect(room, ipv4, 1);
    room_sends.no_room = true;
    push_one(first, 3);
    push_one(second, 4);
    second->operations->close(second);
    room_sends.no_room = false;
    room_send_one(first, 5);
    room_receive(room, 3);
    assert_int_equal(room->psns[1], 3);
    assert_int_equal(room->psns[2], 5);
    first->operations->close(first);
}

static bool is_readable(const struct room *room)
{
    return poll(&(struct pollfd){.fd = udp_fd(room->port), .events = POLLIN}, 1, 0) == 1;
}

/* A sleeping thread is not woken by every datagram that has left. */
static void a_socket_that_has_room_says_nothing(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    for (uint32_t i = 0; i < 20; i++) {
        room_send_one(link, i);
        room_receive(room, i + 1);
        assert_false(is_readable(room));
    }
    link->operations->close(link);
}

/* The woken thread finds the datagram, though the last one came by another socket. */
static void who_was_woken_finds_what_came(void **state)
{
    struct room *room = *state;
    struct link *one = room_connect(room, ipv4, 1), *other = room_connect(room, ipv6, 1);
    for (uint32_t i = 0; i < 40; i++) {
        room_send_one(i % 2 ? one : other, i);
        assert_true(is_readable(room));
        udp_woken(room->port);
        udp_receive(room->port, room_take, room_drop, room, 64);
        assert_int_equal(room->count, i + 1);
    }
    one->operations->close(one);
    other->operations->close(other);
}

/* A sender that found no room is informed by udp_receive, or earlier by the next sender, each time that it waits. */
static void who_found_no_room_is_told_of_it(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    for (uint32_t i = 0; i < 40; i++) {
        room_sends.no_room = true;
        room_send_one(link, 2 * i);
        room_sends.no_room = false;
        assert_true(is_readable(room));
        if (i % 4 == 3) {
            link->operations->begin(link);
            assert_true(link->operations->ready(link));
            link->operations->end(link);
        }
        room_receive(room, 2 * i + 1);
        room_send_one(link, 2 * i + 1);
        room_receive(room, 2 * i + 2);
    }
    assert_int_equal(room->count, 80);
    link->operations->close(link);
}

/* They are longer than any port's MTU. tests/profiles/efa_test.py has those that an interface fragments. */
static void datagrams_of_an_efa_arrive_in_their_turn(void **state)
{
    static const uint32_t lengths[] = {64, 8928, 8928, 100, 100, 4097, 64};
    enum { COUNT = sizeof lengths / sizeof *lengths };
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    link->operations->begin(link);
    for (uint32_t i = 0; i < COUNT; i++)
        room_send(link, i, lengths[i]);
    link->operations->end(link);
    room_receive(room, COUNT);
    assert_int_equal(room->count, COUNT);
    assert_int_equal(room->wrong, 0);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(room->psns[i], i);
    assert_int_equal(link->unsent, 0);
    link->operations->close(link);
}

/* Such a frame joins no batch: those before and after it arrive. */
static void what_is_too_long_for_a_datagram_is_counted(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    link->operations->begin(link);
    room_send(link, 1, 64);
    room_send(link, 2, LARGEST);
    room_send(link, 3, 64);
    link->operations->end(link);
    assert_int_equal(link->unsent, 1);
    assert_int_equal(link->error, 0);
    room_receive(room, 2);
    assert_int_equal(room->psns[0], 1);
    assert_int_equal(room->psns[1], 3);
    link->operations->close(link);
}

/* The host has no such source address. The next batch is refused or not for itself, and is still one send: it was not
 * the cutting up that was refused. */
static void what_the_kernel_refuses_is_counted(void **state)
{
    static const uint8_t nobodys[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1};
    struct room *room = *state;
    struct link *link = room_connect(room, nobodys, 1), *other = room_connect(room, ipv4, 1);
    link->operations->begin(link);
    for (uint32_t i = 0; i < 3; i++)
        room_send(link, i, 64);
    link->operations->end(link);
    assert_int_equal(link->unsent, 3);
    assert_int_not_equal(link->error, 0);
    assert_int_equal(link->refused, link->error);
    unsigned before = room_sends.count;
    other->operations->begin(other);
    room_send(other, 7, 64);
    room_send(other, 8, 64);
    other->operations->end(other);
    assert_int_equal(room_sends.count - before, 1);
    assert_int_equal(other->unsent, 0);
    assert_int_equal(other->refused, 0);
    room_receive(room, 2);
    assert_int_equal(room->psns[0], 7);
    link->operations->close(link);
    other->operations->close(other);
}

/* Once the interface refuses segments, datagrams leave one by one; of the refused batch the first has left. */
static void an_interface_that_cuts_nothing_up_is_noticed(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    room_sends.no_cutting = true;
    for (uint32_t row = 0; row < 2; row++) {
        link->operations->begin(link);
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(link->operations->ready(link));
            room_send(link, 3 * row + i, 64);
        }
        link->operations->end(link);
        assert_int_equal(link->refused != 0, row == 0);
    }
    room_sends.no_cutting = false;
    assert_int_equal(link->unsent, 2);
    room_receive(room, 4);
    assert_int_equal(room->psns[0], 0);
    for (uint32_t i = 3; i < 6; i++)
        assert_int_equal(room->psns[i - 2], i);
    link->operations->close(link);
}

static void send_over(struct room *room, const uint8_t gid[16], uint32_t flow)
{
    struct link *link = room_connect(room, gid, flow);
    room_send_one(link, flow);
    link->operations->close(link);
}

/* Sends from enough source ports that some datagrams would reach the last port if it shared with another. */
static void send_from_many(struct room *sender, struct room *to)
{
    enum { FLOWS = 32 };
    for (uint32_t flow = 0; flow < FLOWS; flow++)
        send_over(sender, flow % 2 ? ipv6 : ipv4, flow);
    room_receive(to, to->count + FLOWS);
    assert_int_equal(to->count % FLOWS, 0);
}

static void the_last_port_gets_only_what_no_other_takes(void **state)
{
    char why[256];
    struct room *room = *state, last = {.count = 0}, sender = {.count = 0};
    assert_int_equal(udp_open_last(&sender.port, if_nametoindex("lo")), 0);
    assert_int_equal(udp_open_last(&last.port, 0), 0);
    udp_listen_last(last.port);
    send_from_many(&sender, room);
    udp_close(room->port);
    udp_listen_last(last.port);
    send_from_many(&sender, &last);
    assert_int_equal(udp_open(&room->port, "lo", why, sizeof why), 0);
    send_from_many(&sender, room);
    assert_int_equal(room->count, 2 * last.count);
    assert_int_equal(udp_receive(last.port, room_take, room_drop, &last, 64), 0);
    udp_close(last.port);
    udp_close(sender.port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOM_TEST(a17_9_1_datagrams_arrive_over_ipv4),
        ROOM_TEST(a17_9_1_datagrams_arrive_over_ipv6),
        ROOM_TEST(more_than_one_send_takes_arrives),
        ROOM_TEST(links_of_one_flow_keep_their_addresses),
        ROOM_TEST(a17_9_2_another_way_has_another_source_port),
        ROOM_TEST(a_batch_that_waits_does_not_outlive_its_link),
        ROOM_TEST(what_was_promised_room_is_not_lost),
        ROOM_TEST(what_waits_behind_a_batch_is_its_own_links),
        ROOM_TEST(a_socket_that_has_room_says_nothing),
        ROOM_TEST(who_was_woken_finds_what_came),
        ROOM_TEST(who_found_no_room_is_told_of_it),
        ROOM_TEST(datagrams_of_an_efa_arrive_in_their_turn),
        ROOM_TEST(what_is_too_long_for_a_datagram_is_counted),
        ROOM_TEST(what_the_kernel_refuses_is_counted),
        ROOM_TEST(an_interface_that_cuts_nothing_up_is_noticed),
        ROOM_TEST(what_is_apart_shares_its_source_port_with_no_flow),
        ROOM_TEST(a_link_may_have_a_source_port_of_its_own),
        ROOM_TEST(a17_3_3_what_is_no_packet_is_dropped_with_its_fault),
        ROOM_TEST(a17_9_3_a_mark_of_congestion_is_seen),
        ROOM_TEST(after_a_fork_nothing_is_sent),
        ROOM_TEST(visitors_of_the_kept_socket_are_put_out),
        ROOM_TEST(a_group_is_heard_while_it_is_joined),
        ROOM_TEST(the_last_port_gets_only_what_no_other_takes),
        cmocka_unit_test(an_unusable_interface_is_explained),
        cmocka_unit_test(a_taken_port_is_explained),
    };
    if (!away_move()) {
        puts("1..0 # SKIP this machine allows no network namespaces");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
