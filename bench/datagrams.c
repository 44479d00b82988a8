/* The throughput of the kernel alone between two hosts: datagrams of one size from a constant buffer, cut and joined by
 * the kernel (UDP_SEGMENT, UDP_GRO) as the wire's are, with no checksum, header or queue pair of ours. Usage: datagrams
 * receive PORT | datagrams send ADDRESS PORT BYTES SECONDS. The sender prints the 10^9 bytes each second that the
 * receiver took.
 *
 * The receiver reports after each system call how much it has taken, and the sender has at most WINDOW on the way, so
 * that the receiver's buffer never overflows. Datagrams that are lost all the same are given up after LOST
 * milliseconds. The TCP connection on the same port only notifies the receiver of the end. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

enum { SEGMENTS = 64, BATCH = 65000, WINDOW = 1 << 20, ROOM = 4 << 20, LOST = 20 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static struct sockaddr_in parse_address(const char *address, const char *port)
{
    struct sockaddr_in parsed = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, address, &parsed.sin_addr) != 1)
        fail(address);
    return parsed;
}

static int open_socket(int type)
{
    int fd = socket(AF_INET, type, 0), one = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one))
        fail("socket");
    return fd;
}

static int open_receiver(const struct sockaddr_in *own)
{
    int fd = open_socket(SOCK_DGRAM), room = ROOM, one = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *)own, sizeof *own))
        fail("bind");
    return fd;
}

static int accept_one(const struct sockaddr_in *own)
{
    int listener = open_socket(SOCK_STREAM);
    if (bind(listener, (const struct sockaddr *)own, sizeof *own) || listen(listener, 1))
        fail("listen");
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        fail("accept");
    close(listener);
    return fd;
}

/* Takes the datagrams that are there, up to one joined batch, and reports the total to their sender. */
static void take_and_tell(int fd, uint64_t *taken)
{
    static char batch[1 << 16];
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    ssize_t got = recvfrom(fd, batch, sizeof batch, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
    if (got < 0)
        return;
    *taken += (uint64_t)got;
    sendto(fd, taken, sizeof *taken, 0, (struct sockaddr *)&from, length);
}

static int receive(const char *port)
{
    struct sockaddr_in own = parse_address("0.0.0.0", port);
    struct pollfd wait[2] = {{.fd = open_receiver(&own), .events = POLLIN}, {.events = POLLIN}};
    uint64_t taken = 0;
    wait[1].fd = accept_one(&own);
    while (poll(wait, 2, -1) >= 0 && !wait[1].revents)
        take_and_tell(wait[0].fd, &taken);
    return 0;
}

/* Learns what the receiver has taken. Waits while the window is full; false: it has been silent for LOST. */
static bool learn(int fd, bool full, uint64_t *taken)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (full && poll(&wait, 1, LOST) == 0)
        return false;
    uint64_t told;
    while (recv(fd, &told, sizeof told, MSG_DONTWAIT) == sizeof told)
        *taken = told > *taken ? told : *taken;
    return true;
}

static double send_for(int fd, size_t bytes, double seconds)
{
    static char batch[BATCH];
    size_t count = BATCH / bytes < SEGMENTS ? BATCH / bytes : SEGMENTS;
    uint64_t sent = 0, taken = 0, given_up = 0;
    double begin = measure_seconds(), now = begin;
    while (now - begin < seconds) {
        bool full = sent - taken - given_up + count * bytes > WINDOW;
        if (!learn(fd, full, &taken))
            given_up = sent - taken;
        else if (!full && send(fd, batch, count * bytes, 0) > 0)
            sent += count * bytes;
        now = measure_seconds();
    }
    return (double)taken / (now - begin) / 1e9;
}

static int transmit(char **arguments)
{
    struct sockaddr_in peer = parse_address(arguments[0], arguments[1]);
    int bytes = atoi(arguments[2]), control = open_socket(SOCK_STREAM), fd = open_socket(SOCK_DGRAM);
    if (bytes < 1 || bytes > BATCH)
        return 2;
    if (connect(control, (struct sockaddr *)&peer, sizeof peer) || connect(fd, (struct sockaddr *)&peer, sizeof peer))
        fail("connect");
    if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &bytes, sizeof bytes))
        fail("UDP_SEGMENT");
    printf("%f\n", send_for(fd, (size_t)bytes, atof(arguments[3])));
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 3 && !strcmp(arguments[1], "receive"))
        return receive(arguments[2]);
    if (count == 6 && !strcmp(arguments[1], "send"))
        return transmit(arguments + 2);
    fprintf(stderr, "Usage: datagrams receive PORT | datagrams send ADDRESS PORT BYTES SECONDS\n");
    return 2;
}
