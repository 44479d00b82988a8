/* Half of the round trip of a datagram between two hosts whose programs poll and do nothing else, over sockets like the
 * wire's: the sending one connected, the receiving one connected, with the headers that ICRC and GRH need and with
 * UDP_GRO. `alone`: of BYTES; `acknowledged`: a datagram of ACK bytes follows in the same send, as where each message
 * is acknowledged with the answer to it. No checksum, no queue pair. Usage: datagram_latency answer PORT WAY |
 * datagram_latency ask ADDRESS PORT COUNT WAY. Prints the shortest and the median, in microseconds.
 *
 * The TCP connection on the same port only notifies the one that answers of the end. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "measure.h"

enum { BYTES = 24, ACK = 20, LOOKS = 1 << 16 }; /* BTH, 8 bytes, ICRC; BTH, AETH, ICRC */

struct end {
    int sending, receiving, control;
    size_t bytes; /* of a message */
    struct sockaddr_in from;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void set(int fd, int level, int name, int value)
{
    if (setsockopt(fd, level, name, &value, sizeof value))
        fail("setsockopt");
}

static int open_socket(int type, const struct sockaddr_in *own)
{
    int fd = socket(AF_INET, type, 0);
    if (fd < 0)
        fail("socket");
    set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (own && bind(fd, (const struct sockaddr *)own, sizeof *own))
        fail("bind");
    return fd;
}

static struct end open_end(const struct sockaddr_in *own, bool acknowledged)
{
    struct end end = {.sending = open_socket(SOCK_DGRAM, NULL), .receiving = open_socket(SOCK_DGRAM, own)};
    end.bytes = BYTES + (acknowledged ? ACK : 0);
    set(end.sending, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    if (acknowledged)
        set(end.sending, IPPROTO_UDP, UDP_SEGMENT, BYTES);
    set(end.receiving, IPPROTO_UDP, UDP_GRO, 1);
    set(end.receiving, IPPROTO_IP, IP_PKTINFO, 1);
    set(end.receiving, IPPROTO_IP, IP_RECVTOS, 1);
    set(end.receiving, IPPROTO_IP, IP_RECVTTL, 1);
    return end;
}

static void connect_to(int fd, const struct sockaddr_in *there)
{
    if (connect(fd, (const struct sockaddr *)there, sizeof *there))
        fail("connect");
}

static void send_message(struct end *end)
{
    static const char bytes[BYTES + ACK];
    if (send(end->sending, bytes, end->bytes, MSG_DONTWAIT) < 0 && errno != ECONNREFUSED)
        fail("send");
}

/* A look at the socket, as the wire's: one system call for however many messages. */
static size_t look(struct end *end)
{
    static char bytes[1 << 16];
    static _Alignas(struct cmsghdr) char control[256];
    struct iovec piece = {bytes, sizeof bytes};
    struct mmsghdr message = {.msg_hdr = {.msg_name = &end->from,
                                          .msg_namelen = sizeof end->from,
                                          .msg_iov = &piece,
                                          .msg_iovlen = 1,
                                          .msg_control = control,
                                          .msg_controllen = sizeof control}};
    return recvmmsg(end->receiving, &message, 1, MSG_DONTWAIT, NULL) == 1 ? message.msg_len : 0;
}

static bool is_over(const struct end *end)
{
    char byte;
    return recv(end->control, &byte, 1, MSG_DONTWAIT) == 0;
}

/* False: the other end is gone. */
static bool receive_message(struct end *end)
{
    size_t got = 0;
    for (unsigned looks = 1; got < end->bytes; looks++) {
        got += look(end);
        if (!got && looks % LOOKS == 0 && is_over(end))
            return false;
    }
    return true;
}

static struct sockaddr_in parse_address(const char *address, const char *port)
{
    struct sockaddr_in parsed = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, address, &parsed.sin_addr) != 1)
        fail(address);
    return parsed;
}

static int answer(const char *port, bool acknowledged)
{
    struct sockaddr_in own = parse_address("0.0.0.0", port), there;
    socklen_t size = sizeof there;
    struct end end = open_end(&own, acknowledged);
    int listener = open_socket(SOCK_STREAM, &own);
    if (listen(listener, 1) || (end.control = accept(listener, (struct sockaddr *)&there, &size)) < 0)
        fail("accept");
    there.sin_port = own.sin_port;
    connect_to(end.sending, &there);
    for (bool first = true; receive_message(&end); first = false) {
        if (first)
            connect_to(end.receiving, &end.from);
        send_message(&end);
    }
    return 0;
}

static int ask(char **arguments, bool acknowledged)
{
    struct sockaddr_in peer = parse_address(arguments[0], arguments[1]), own = parse_address("0.0.0.0", arguments[1]);
    struct end end = open_end(&own, acknowledged);
    int count = atoi(arguments[2]);
    double *halves = count > 0 ? calloc((size_t)count, sizeof *halves) : NULL;
    if (!halves)
        return 2;
    end.control = open_socket(SOCK_STREAM, NULL);
    connect_to(end.control, &peer);
    connect_to(end.sending, &peer);
    for (int i = 0; i < count; i++) {
        double start = measure_seconds();
        send_message(&end);
        if (!receive_message(&end))
            return 1;
        halves[i] = (measure_seconds() - start) * 1e6 / 2;
        if (!i)
            connect_to(end.receiving, &end.from);
    }
    double median = measure_median(halves, (size_t)count);
    printf("%.3f %.3f\n", halves[0], median);
    free(halves);
    return 0;
}

int main(int count, char **arguments)
{
    const char *way = arguments[count - 1];
    bool acknowledged = !strcmp(way, "acknowledged");
    if (acknowledged || !strcmp(way, "alone")) {
        if (count == 4 && !strcmp(arguments[1], "answer"))
            return answer(arguments[2], acknowledged);
        if (count == 6 && !strcmp(arguments[1], "ask"))
            return ask(arguments + 2, acknowledged);
    }
    fprintf(stderr, "Usage: datagram_latency answer PORT WAY | datagram_latency ask ADDRESS PORT COUNT WAY\n"
                    "WAY: alone, acknowledged\n");
    return 2;
}
