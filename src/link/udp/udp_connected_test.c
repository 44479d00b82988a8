/* Sockets that are connected: the sending one of a link that sends alone, and the receiving one of a steady sender. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/testing/away.h"
#include "link/testing/udp_room.h"
#include "wire/bytes.h"
#include "wire/grh.h"

enum { ENOUGH = 70 }; /* sends in a row, after which a socket is connected */

static int watch_loopback(void)
{
    struct sockaddr_ll here = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = (int)if_nametoindex("lo")};
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
    assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&here, sizeof here));
    return fd;
}

/* The next RoCE datagram on the interface has the ICRC that belongs to its identification. */
static void check_next(int wire)
{
    struct datagram_route route = {.destination_port = DATAGRAM_PORT, .fragment = DATAGRAM_DONT_FRAGMENT};
    struct packet packet;
    struct iovec piece;
    struct sockaddr_ll from = {.sll_pkttype = PACKET_OUTGOING};
    uint8_t bytes[2048];
    ssize_t length = 0;
    while (from.sll_pkttype != PACKET_HOST || bytes_get16(bytes + 22) != DATAGRAM_PORT) {
        socklen_t size = sizeof from;
        assert_int_equal(poll(&(struct pollfd){.fd = wire, .events = POLLIN}, 1, 5000), 1);
        length = recvfrom(wire, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size);
        assert_true(length > 28);
    }
    grh_gid_of_ipv4(bytes + 12, route.source);
    grh_gid_of_ipv4(bytes + 16, route.destination);
    route.source_port = bytes_get16(bytes + 20);
    route.identification = bytes_get16(bytes + 4);
    assert_int_equal(datagram_decode(&route, bytes + 28, (size_t)length - 28, &packet, &piece), WIRE_FINE);
}

/* Sends one datagram by itself, `times` times. */
static void send_alone(struct link *link, struct room *room, unsigned times)
{
    unsigned before = room->count;
    for (unsigned i = 0; i < times; i++)
        room_send_one(link, room->count + i);
    room_receive(room, before + times);
    assert_int_equal(room->count, before + times);
    assert_int_equal(room->wrong, 0);
}

static void send_two(struct link *link, struct room *room)
{
    unsigned before = room->count;
    link->operations->begin(link);
    room_send(link, 1, 100);
    room_send(link, 2, 8);
    link->operations->end(link);
    room_receive(room, before + 2);
    assert_int_equal(room->count, before + 2);
    assert_int_equal(room->drops, 0);
}

/* Checks that the next send has no address. */
static void is_connected(struct link *link, struct room *room, bool expected)
{
    room_sends.addressed = 0;
    send_alone(link, room, 1);
    assert_int_equal(room_sends.addressed, !expected);
}

static void a_link_that_sends_alone_has_a_connected_socket(struct room *room, const uint8_t gid[16])
{
    struct link *link = room_connect(room, gid, 1);
    uint16_t port = udp_source_port(link);
    send_alone(link, room, ENOUGH);
    is_connected(link, room, true);
    send_two(link, room);
    is_connected(link, room, true);
    assert_int_equal(room->source_port, port);
    assert_int_equal(room->grh[0] << 4 | room->grh[1] >> 4, gid == ipv6 ? 0x64a : 0x00);
    link->operations->close(link);
}

static void a_link_alone_has_a_connected_socket_over_ipv4(void **state)
{
    a_link_that_sends_alone_has_a_connected_socket(*state, ipv4);
}

static void a_link_alone_has_a_connected_socket_over_ipv6(void **state)
{
    a_link_that_sends_alone_has_a_connected_socket(*state, ipv6);
}

static void the_icrc_covers_the_identification_that_the_kernel_counts(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    send_alone(link, room, ENOUGH);
    int wire = watch_loopback();
    for (int round = 0; round < 3; round++) {
        is_connected(link, room, true);
        check_next(wire);
        close(wire);
        send_two(link, room); /* counts as one */
        wire = watch_loopback();
    }
    close(wire);
    link->operations->close(link);
}

/* The route and the identification of each are its own. */
static void a_second_link_of_a_flow_ends_the_connection(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1), *other = room_connect(room, ipv4_other, 1);
    send_alone(link, room, ENOUGH);
    is_connected(link, room, true);
    int wire = watch_loopback();
    for (int round = 0; round < 2; round++) {
        is_connected(other, room, false);
        assert_memory_equal(room->grh + 36, ipv4_other + 12, 4);
        check_next(wire);
        is_connected(link, room, false);
        assert_memory_equal(room->grh + 36, ipv4 + 12, 4);
        check_next(wire);
    }
    close(wire);
    send_alone(link, room, ENOUGH);
    is_connected(link, room, false); /* it takes more each time */
    send_alone(link, room, ENOUGH);
    is_connected(link, room, true);
    other->operations->close(other);
    link->operations->close(link);
}

static void after_an_error_the_socket_is_connected_no_more(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    send_alone(link, room, ENOUGH);
    is_connected(link, room, true);
    room_sends.next_error = EPERM;
    room_send_one(link, 7);
    room_receive(room, room->count + 1); /* sent again, as after an answer by ICMP, or lost */
    int wire = watch_loopback();
    is_connected(link, room, false);
    check_next(wire);
    close(wire);
    link->operations->close(link);
}

static void a_link_that_ends_leaves_no_connection(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    send_alone(link, room, ENOUGH);
    is_connected(link, room, true);
    link->operations->close(link);
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    assert_int_equal(getpeername(room_sends.last_used, (struct sockaddr *)&peer, &size), -1);
    link = room_connect(room, ipv4_other, 1); /* most likely where the other was */
    is_connected(link, room, false);
    assert_memory_equal(room->grh + 36, ipv4_other + 12, 4);
    link->operations->close(link);
}

/* The batch is the next send of the connected socket, the datagram that waits is the one after that. */
static void what_waits_behind_a_batch_of_a_connected_socket_has_its_identification(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    send_alone(link, room, ENOUGH);
    int wire = watch_loopback();
    room_sends.no_room = true;
    link->operations->begin(link);
    room_push(link, 1, 100);
    room_push(link, 2, 200);
    link->operations->end(link);
    room_sends.no_room = false;
    link->operations->begin(link);
    assert_true(link->operations->ready(link));
    link->operations->end(link);
    room_receive(room, ENOUGH + 2);
    is_connected(link, room, true);
    for (int i = 0; i < 3; i++)
        check_next(wire);
    close(wire);
    link->operations->close(link);
}

/* The number of the socket belongs to the program then. */
static void after_a_fork_no_socket_is_disconnected(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    struct sockaddr_in other = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof other;
    send_alone(link, room, ENOUGH);
    is_connected(link, room, true);
    udp_abandon(room->port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(!connect(fd, (struct sockaddr *)&other, size) &&
                dup2(fd, room_sends.last_used) == room_sends.last_used);
    link->operations->close(link);
    assert_int_equal(getpeername(fd, (struct sockaddr *)&other, &size), 0);
    close(fd);
    close(room_sends.last_used);
}

static void without_copies_the_socket_is_not_connected(void **state)
{
    struct room *room = *state;
    struct link *link = room_connect(room, ipv4, 1);
    room_sends.no_copies = true;
    send_alone(link, room, ENOUGH);
    int wire = watch_loopback();
    is_connected(link, room, false);
    check_next(wire);
    close(wire);
    room_sends.no_copies = false;
    link->operations->close(link);
}

/* Counts the connected sockets of UDP port 4791 in this namespace. */
static unsigned count_connected(const char *list)
{
    unsigned count = 0, local, remote;
    char line[512];
    FILE *file = fopen(list, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        count +=
            sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%x", &local, &remote) == 2 && local == DATAGRAM_PORT && remote;
    fclose(file);
    return count;
}

/* A socket for the messages of one sender in a row, that are for this process. */
static void a_steady_sender_has_a_socket(struct room *room, const uint8_t gid[16], const char *list)
{
    enum { STEADY = 260 };
    struct link *link = room_connect(room, gid, 1), *other = room_connect(room, gid, 2);
    assert_int_not_equal(udp_source_port(link), udp_source_port(other));
    send_alone(link, room, STEADY);
    assert_int_equal(count_connected(list), 0);
    room->wants = true;
    for (int turn = 0; turn < STEADY; turn++) {
        send_alone(link, room, 1);
        send_alone(other, room, 1);
    }
    assert_int_equal(count_connected(list), 0);
    send_alone(link, room, STEADY);
    assert_int_equal(count_connected(list), 1);
    send_alone(other, room, 1);
    send_alone(link, room, 2 * STEADY);
    assert_int_equal(count_connected(list), 1);
    assert_int_equal(room->drops, 0);
    other->operations->close(other);
    link->operations->close(link);
}

static void a_steady_sender_over_ipv4_has_a_socket(void **state)
{
    a_steady_sender_has_a_socket(*state, ipv4, "/proc/self/net/udp");
}

static void a_steady_sender_over_ipv6_has_a_socket(void **state)
{
    a_steady_sender_has_a_socket(*state, ipv6, "/proc/self/net/udp6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOM_TEST(a_link_alone_has_a_connected_socket_over_ipv4),
        ROOM_TEST(a_link_alone_has_a_connected_socket_over_ipv6),
        ROOM_TEST(the_icrc_covers_the_identification_that_the_kernel_counts),
        ROOM_TEST(a_second_link_of_a_flow_ends_the_connection),
        ROOM_TEST(after_an_error_the_socket_is_connected_no_more),
        ROOM_TEST(a_link_that_ends_leaves_no_connection),
        ROOM_TEST(what_waits_behind_a_batch_of_a_connected_socket_has_its_identification),
        ROOM_TEST(after_a_fork_no_socket_is_disconnected),
        ROOM_TEST(a_steady_sender_over_ipv4_has_a_socket),
        ROOM_TEST(a_steady_sender_over_ipv6_has_a_socket),
        ROOM_TEST(without_copies_the_socket_is_not_connected),
    };
    if (!away_move()) {
        puts("1..0 # SKIP this machine allows no network namespaces");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
