/* Answers by ICMP as an error queue has them, made by hand: a kernel's and a forger's. Then answers of the loopback
 * interface of a private network namespace. */
#include "link/udp/udp_icmp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "base/testing/group.h"
#include "link/testing/away.h"
#include "link/udp/udp.h"
#include "wire/op.h"

#include <linux/errqueue.h>

/* A message of an error queue. */
struct message {
    struct msghdr header;
    union {
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } to;
    _Alignas(struct cmsghdr) uint8_t control[128];
};

struct told {
    struct sock_extended_err error;
    union {
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } from;
};

static void make_message(struct message *message, bool ipv6, uint8_t type, uint8_t code, const char *from)
{
    struct told told = {.error = {.ee_origin = ipv6 ? SO_EE_ORIGIN_ICMP6 : SO_EE_ORIGIN_ICMP,
                                  .ee_type = type,
                                  .ee_code = code,
                                  .ee_info = 1400}};
    *message = (struct message){.header = {.msg_name = &message->to,
                                           .msg_control = message->control,
                                           .msg_controllen = CMSG_SPACE(sizeof told)}};
    struct cmsghdr *control = (struct cmsghdr *)message->control;
    *control = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof told),
                                .cmsg_level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP,
                                .cmsg_type = ipv6 ? IPV6_RECVERR : IP_RECVERR};
    if (ipv6) {
        told.from.ipv6.sin6_family = message->to.ipv6.sin6_family = AF_INET6;
        inet_pton(AF_INET6, from, &told.from.ipv6.sin6_addr);
        inet_pton(AF_INET6, "fd92::2", &message->to.ipv6.sin6_addr);
    } else {
        told.from.ipv4.sin_family = message->to.ipv4.sin_family = AF_INET;
        inet_pton(AF_INET, from, &told.from.ipv4.sin_addr);
        inet_pton(AF_INET, "10.92.0.2", &message->to.ipv4.sin_addr);
    }
    message->header.msg_namelen = ipv6 ? sizeof message->to.ipv6 : sizeof message->to.ipv4;
    memcpy(CMSG_DATA(control), &told, sizeof told);
}

static void says(bool ipv6, uint8_t type, uint8_t code, const char *expected)
{
    struct message message;
    struct udp_icmp_error answer;
    char text[UDP_ICMP_TEXT], whole[UDP_ICMP_TEXT];
    const char *from = ipv6 ? "fd91::1" : "10.91.0.1";
    make_message(&message, ipv6, type, code, from);
    assert_true(udp_icmp_read(&message.header, &answer));
    udp_icmp_write(&answer, text);
    snprintf(whole, sizeof whole, "%s answered (ICMP type %u, code %u): %s", from, type, code, expected);
    assert_string_equal(text, whole);
}

static void each_answer_has_its_words(void **state)
{
    static const char *const nobody = "port unreachable, no program there has a device open on this network";
    static const char *const circle = "time exceeded, the hop limit is too small or routers send it in a circle";
    static const char *const small = "fragmentation needed, the path has a smaller MTU (1400 bytes)";
    says(false, 3, 0, "network unreachable");
    says(false, 3, 1, "host unreachable");
    says(false, 3, 3, nobody);
    says(false, 3, 4, small);
    says(false, 3, 13, "forbidden by an administrator");
    says(false, 3, 200, "unreachable");
    says(false, 11, 0, circle);
    says(false, 77, 5, "an error");
    says(true, 1, 0, "network unreachable");
    says(true, 1, 3, "host unreachable");
    says(true, 1, 4, nobody);
    says(true, 2, 0, small);
    says(true, 3, 0, circle);
    says(true, 200, 0, "an error");
}

static void the_destination_is_kept_with_it(void **state)
{
    static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 92, [15] = 2};
    static const uint8_t ipv6[16] = {0xfd, 0x92, [15] = 2};
    struct message message;
    struct udp_icmp_error answer;
    make_message(&message, false, 3, 3, "10.92.0.2");
    assert_true(udp_icmp_read(&message.header, &answer));
    assert_memory_equal(answer.destination, ipv4, 16);
    assert_memory_equal(answer.from, ipv4, 16);
    make_message(&message, true, 1, 4, "fd92::2");
    assert_true(udp_icmp_read(&message.header, &answer));
    assert_memory_equal(answer.destination, ipv6, 16);
}

/* Errors of this host itself, cut in the middle, of the other IP version, of another level, without a destination, and
 * no control message at all. */
static void what_is_no_answer_is_left(void **state)
{
    struct message message;
    struct udp_icmp_error answer;
    struct cmsghdr *control = (struct cmsghdr *)message.control;
    make_message(&message, false, 3, 3, "10.92.0.2");
    ((struct told *)CMSG_DATA(control))->error.ee_origin = SO_EE_ORIGIN_LOCAL;
    assert_false(udp_icmp_read(&message.header, &answer));
    make_message(&message, false, 3, 3, "10.92.0.2");
    for (size_t length = CMSG_LEN(0); length < CMSG_LEN(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in));
         length++) {
        control->cmsg_len = length;
        assert_false(udp_icmp_read(&message.header, &answer));
    }
    make_message(&message, false, 3, 3, "10.92.0.2");
    ((struct told *)CMSG_DATA(control))->from.ipv4.sin_family = AF_INET6;
    assert_false(udp_icmp_read(&message.header, &answer));
    make_message(&message, false, 3, 3, "10.92.0.2");
    control->cmsg_level = SOL_SOCKET;
    assert_false(udp_icmp_read(&message.header, &answer));
    make_message(&message, false, 3, 3, "10.92.0.2");
    message.header.msg_namelen = 0;
    assert_false(udp_icmp_read(&message.header, &answer));
    message.header.msg_controllen = 0;
    assert_false(udp_icmp_read(&message.header, &answer));
}

/* --- what a kernel answers */

static void send_alone(struct link *link, uint32_t psn)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    struct packet packet = {.opcode = op_code(SERVICE_UC, OPERATION_SEND_ONLY), .destination = 0x1234, .psn = psn};
    struct frame frame = {.kind = FRAME_ROCE, .headers = headers};
    frame.headers_length = (uint16_t)wire_encode(&packet, headers);
    link->operations->begin(link);
    assert_true(link->operations->ready(link));
    assert_int_equal(link->operations->send(link, &frame), FRAME_SENT);
    link->operations->end(link);
}

struct heard {
    unsigned count;
    uint32_t psns[8];
};

static bool hear(void *context, const struct udp_arrival *arrival)
{
    struct heard *heard = context;
    heard->psns[heard->count++ % 8] = arrival->packet->psn;
    return false;
}

static void drop(void *context, const struct udp_refusal *refusal)
{
}

static struct link *connect_to(struct udp_port *port, const uint8_t gid[16])
{
    struct udp_route route = {.flow = 1};
    memcpy(route.source, gid, 16);
    memcpy(route.destination, gid, 16);
    return udp_connect(port, &route);
}

/* A program that opens its device there now gets the first datagram. */
static void the_next_arrives(struct link *link)
{
    char why[256];
    struct udp_port *port;
    struct heard heard = {.count = 0};
    assert_int_equal(udp_open(&port, "lo", why, sizeof why), 0);
    send_alone(link, 7);
    struct pollfd readable = {.fd = udp_fd(port), .events = POLLIN};
    while (!heard.count && poll(&readable, 1, 5000) == 1)
        udp_receive(port, hear, drop, &heard, 8);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.psns[0], 7);
    assert_int_equal(link->unsent, 0);
    assert_int_equal(link->refused, 0);
    udp_close(port);
}

/* Nothing receives there, so the kernel answers at once. The answer is in the socket's error queue, where it must
 * neither cost the next datagrams nor wake a sleeper for ever. */
static void an_answer_is_kept_and_costs_no_datagram(void **state)
{
    static const uint8_t gids[2][16] = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, {[15] = 1}};
    static const uint8_t other[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};
    static const char *const words[] = {"127.0.0.1 answered (ICMP type 3, code 3): port unreachable",
                                        "::1 answered (ICMP type 1, code 4): port unreachable"};
    char text[256];
    struct udp_port *port;
    if (!away_move())
        skip();
    assert_int_equal(udp_open_last(&port, if_nametoindex("lo")), 0);
    for (int version = 0; version < 2; version++) {
        nanos begin = read_clock(CLOCK_MONOTONIC);
        struct link *link = connect_to(port, gids[version]);
        assert_false(udp_icmp_describe(port, gids[version], text, sizeof text));
        send_alone(link, 1);
        assert_true(udp_icmp_describe(port, gids[version], text, sizeof text));
        assert_int_equal(strncmp(text, words[version], strlen(words[version])), 0);
        assert_true(udp_icmp_is_closed(port, gids[version], begin));
        assert_false(udp_icmp_is_closed(port, gids[version], read_clock(CLOCK_MONOTONIC) + 1));
        for (uint32_t i = 0; i < 5; i++)
            send_alone(link, i);
        the_next_arrives(link);
        send_alone(link, 9);
        link->operations->close(link);
    }
    struct pollfd told = {.fd = udp_fd(port), .events = POLLIN};
    assert_int_equal(poll(&told, 1, 5000), 1);
    udp_receive(port, hear, drop, NULL, 8);
    assert_int_equal(poll(&told, 1, 0), 0);
    assert_false(udp_icmp_describe(port, other, text, sizeof text));
    udp_close(port);
}

TESTS(each_answer_has_its_words, the_destination_is_kept_with_it, what_is_no_answer_is_left,
      an_answer_is_kept_and_costs_no_datagram)
