#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "answer.h"
#include "raw.h"
#include "token.h"

enum {
    MARKER_FROM = 600,  /* above the descriptors that programs count on */
    PORTS_FROM = 61000, /* above those that the kernel and chance.c draw */
    PORTS = 4000,
    GENERATIONS = 4, /* a connection is three packets, each the answer to the one before, and data */
    PATIENCE_S = 10, /* with a busy processor */
};

/* A socket that sends to itself: the interface keeps the order, so what was sent before has arrived when its datagram
 * has. */
static struct {
    int descriptor; /* 0: not open */
    in_port_t port;
} marker;

bool network_is(int descriptor)
{
    struct sockaddr_storage name;
    int length = sizeof name;
    return !RAW(getsockname, descriptor, &name, &length) &&
           (name.ss_family == AF_INET || name.ss_family == AF_INET6 || name.ss_family == AF_PACKET);
}

static bool bind_marker(long descriptor, uint16_t port)
{
    struct sockaddr_in self = {.sin_family = AF_INET, .sin_port = (in_port_t)(port << 8 | port >> 8)};
    struct timeval patience = {PATIENCE_S, 0};
    ((uint8_t *)&self.sin_addr)[0] = 127;
    ((uint8_t *)&self.sin_addr)[3] = 1;
    marker.port = self.sin_port;
    return !RAW(bind, descriptor, &self, sizeof self) && !RAW(connect, descriptor, &self, sizeof self) &&
           !RAW(setsockopt, descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

static bool open_marker(void)
{
    long first = RAW(socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    long descriptor = first < 0 ? first : RAW(fcntl, first, F_DUPFD_CLOEXEC, MARKER_FROM);
    if (first >= 0)
        RAW(close, first);
    if (descriptor < 0)
        return false;
    for (unsigned i = 0; i < PORTS; i++)
        if (bind_marker(descriptor, (uint16_t)(PORTS_FROM + ((unsigned)token_process + i) % PORTS))) {
            marker.descriptor = (int)descriptor;
            return true;
        }
    RAW(close, descriptor);
    return false;
}

/* A program may have closed it, and given its number to another file. */
static bool has_marker(void)
{
    struct sockaddr_in name = {0};
    int length = sizeof name;
    return marker.descriptor && !RAW(getsockname, marker.descriptor, &name, &length) && name.sin_family == AF_INET &&
           name.sin_port == marker.port;
}

static bool pass_marker(void)
{
    uint8_t byte = 0;
    return RAW(sendto, marker.descriptor, &byte, 1, MSG_NOSIGNAL) == 1 &&
           RAW(recvfrom, marker.descriptor, &byte, 1, 0) == 1;
}

void network_settle(void)
{
    if (!has_marker() && !open_marker())
        return;
    for (int i = 0; i < GENERATIONS; i++)
        if (!pass_marker())
            return;
}

/* The kernel's stamps are of real time. */
static bool is_time_stamp(long level, long option)
{
    static const int stamps[] = {SO_TIMESTAMP_OLD, SO_TIMESTAMPNS_OLD, SO_TIMESTAMPING_OLD,
                                 SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW, SO_TIMESTAMPING_NEW};
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++)
        if (level == SOL_SOCKET && option == stamps[i])
            return true;
    return false;
}

long answer_setsockopt(struct caught *call)
{
    const long *argument = call->argument;
    if (is_time_stamp(argument[1], argument[2]))
        return -ENOPROTOOPT;
    return RAW(setsockopt, argument[0], argument[1], argument[2], argument[3], argument[4]);
}

void network_hurry(int descriptor)
{
    int yes = 1;
    RAW(setsockopt, descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}
