#include "lab/network/forwarder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "base/text/text.h"
#include "lab/network/rtnetlink.h"

enum { FRAME_MOST = 65600, WAITING_MOST = 1 << 17, BATCH = 64, BUFFER = 8 << 20, ROCE_PORT = 4791 };

/* A frame on its way, and the channels that it still has to pass. */
struct frame {
    int64_t due;
    uint64_t order; /* of two frames that are due at once, the lower order is first */
    struct channel *path[NETWORK_PATH_MOST];
    unsigned at, steps;
    unsigned to;
    bool is_roce;
    uint32_t length;
    uint8_t bytes[];
};

struct forwarder {
    struct network *network;
    int ports[LAB_HOSTS_MOST];
    struct frame **heap; /* the frame that is due next is the first */
    unsigned waiting;
    bool simulated;
    uint64_t orders, random;
};

/* A random number from 0 to 1, without 1. */
static double draw(struct forwarder *forwarder)
{
    forwarder->random ^= forwarder->random << 13;
    forwarder->random ^= forwarder->random >> 7;
    forwarder->random ^= forwarder->random << 17;
    return (double)(forwarder->random >> 11) / (double)(UINT64_C(1) << 53);
}

/* --- what waits: a heap */

static bool goes_before(const struct frame *a, const struct frame *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void push(struct forwarder *forwarder, struct frame *frame)
{
    unsigned at = forwarder->waiting++;
    for (; at && goes_before(frame, forwarder->heap[(at - 1) / 2]); at = (at - 1) / 2)
        forwarder->heap[at] = forwarder->heap[(at - 1) / 2];
    forwarder->heap[at] = frame;
}

static struct frame *pop(struct forwarder *forwarder)
{
    struct frame *first = forwarder->heap[0], *last = forwarder->heap[--forwarder->waiting];
    unsigned at = 0;
    for (unsigned child; (child = 2 * at + 1) < forwarder->waiting; at = child) {
        child += child + 1 < forwarder->waiting && goes_before(forwarder->heap[child + 1], forwarder->heap[child]);
        if (!goes_before(forwarder->heap[child], last))
            break;
        forwarder->heap[at] = forwarder->heap[child];
    }
    forwarder->heap[at] = last;
    return first;
}

/* --- what a channel does */

static uint16_t checksum(const uint8_t *header, size_t length)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i += 2)
        sum += (uint32_t)header[i] << 8 | header[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* Sets CE in an IP packet whose sender understands it. */
static bool mark(struct frame *frame)
{
    uint8_t *ip = frame->bytes + ETH_HLEN;
    unsigned type = (unsigned)frame->bytes[12] << 8 | frame->bytes[13];
    if (type == ETH_P_IP && frame->length >= ETH_HLEN + 20 && ip[1] & 3) {
        size_t header = (size_t)(ip[0] & 15) * 4;
        ip[1] |= 3;
        ip[10] = ip[11] = 0;
        uint16_t sum = header >= 20 && ETH_HLEN + header <= frame->length ? checksum(ip, header) : 0;
        ip[10] = (uint8_t)(sum >> 8), ip[11] = (uint8_t)sum;
        return true;
    }
    if (type == ETH_P_IPV6 && frame->length >= ETH_HLEN + 40 && ip[1] >> 4 & 3) {
        ip[1] |= 3 << 4;
        return true;
    }
    return false;
}

static bool loses(struct forwarder *forwarder, const struct quality *quality, const struct frame *frame)
{
    if (quality->down)
        return true;
    return quality->loss > 0 && (frame->is_roce || !forwarder->simulated) && draw(forwarder) < quality->loss;
}

/* When the frame has passed the channel that it enters at `time`; -1: it is lost. */
static int64_t pass(struct forwarder *forwarder, struct channel *channel, struct frame *frame, int64_t time)
{
    const struct quality *quality = &channel->quality;
    channel->frames++;
    if (loses(forwarder, quality, frame))
        return -1;
    if (quality->rate > 0) {
        double waits = channel->free_at > time ? (double)(channel->free_at - time) * quality->rate / 8e9 : 0;
        if (waits > quality->queue)
            return -1;
        if (quality->ecn > 0 && waits > quality->ecn)
            channel->marked += mark(frame);
        int64_t begin = channel->free_at > time ? channel->free_at : time;
        time = channel->free_at = begin + (int64_t)(frame->length * 8e9 / quality->rate);
    }
    time += quality->delay;
    if (quality->jitter)
        time += (int64_t)((draw(forwarder) * 2 - 1) * (double)quality->jitter);
    if (quality->sockets && !frame->is_roce)
        time += (int64_t)(draw(forwarder) * (double)quality->sockets);
    int64_t *latest = quality->sockets && !frame->is_roce ? &channel->sockets_latest_at : &channel->latest_at;
    *latest = time > *latest ? time : *latest;
    return *latest;
}

static void lose(struct frame *frame, struct channel *channel)
{
    channel->lost++;
    free(frame);
}

/* Moves the frame through its channels until one makes it wait or loses it, or its host gets it. */
static void proceed(struct forwarder *forwarder, struct frame *frame, int64_t time)
{
    while (frame->at < frame->steps) {
        struct channel *channel = frame->path[frame->at++];
        int64_t due = pass(forwarder, channel, frame, time);
        if (due < 0 || (due > time && forwarder->waiting == WAITING_MOST)) {
            lose(frame, channel);
            return;
        }
        if (due > time) {
            frame->due = due;
            frame->order = forwarder->orders++;
            push(forwarder, frame);
            return;
        }
    }
    (void)!send(forwarder->ports[frame->to], frame->bytes, frame->length, MSG_DONTWAIT);
    free(frame);
}

/* --- frames of hosts */

/* A datagram to the port of RoCEv2. */
static bool is_roce(const uint8_t *bytes, size_t length)
{
    enum { IPV6_HEADER = 40, UDP_HEADER = 8 };
    unsigned type = (unsigned)bytes[12] << 8 | bytes[13];
    const uint8_t *ip = bytes + ETH_HLEN;
    size_t header = type == ETH_P_IP ? (size_t)(ip[0] & 15) * 4 : IPV6_HEADER;
    if ((type != ETH_P_IP && type != ETH_P_IPV6) || length < ETH_HLEN + header + UDP_HEADER)
        return false;
    return (type == ETH_P_IP ? ip[9] : ip[6]) == IPPROTO_UDP && ip[header + 2] << 8 == (ROCE_PORT & 0xff00) &&
           ip[header + 3] == (ROCE_PORT & 0xff);
}

static void forward(struct forwarder *forwarder, unsigned from, unsigned to, const uint8_t *bytes, size_t length)
{
    struct frame *frame = malloc(sizeof *frame + length);
    if (!frame)
        return;
    *frame = (struct frame){.to = to, .is_roce = is_roce(bytes, length), .length = (uint32_t)length};
    memcpy(frame->bytes, bytes, length);
    frame->steps = network_path(forwarder->network, from, to, frame->path);
    if (frame->steps)
        proceed(forwarder, frame, (int64_t)read_clock(CLOCK_MONOTONIC));
    else
        free(frame);
}

static void take(struct forwarder *forwarder, unsigned from, const uint8_t *bytes, size_t length)
{
    const struct lab_plan *plan = forwarder->network->plan;
    uint8_t mac[6];
    bool to_all = bytes[0] & 1;
    for (unsigned to = 0; to < plan->count; to++) {
        lab_plan_mac(to, mac);
        if (to != from && (to_all || !memcmp(bytes, mac, sizeof mac)))
            forward(forwarder, from, to, bytes, length);
    }
}

void forwarder_work(struct forwarder *forwarder)
{
    static uint8_t bytes[FRAME_MOST];
    for (unsigned from = 0; from < forwarder->network->plan->count; from++)
        for (int i = 0; i < BATCH; i++) {
            ssize_t length = recv(forwarder->ports[from], bytes, sizeof bytes, MSG_DONTWAIT);
            if (length < 0)
                break;
            if (length >= ETH_HLEN)
                take(forwarder, from, bytes, (size_t)length);
        }
    int64_t time = (int64_t)read_clock(CLOCK_MONOTONIC);
    while (forwarder->waiting && forwarder->heap[0]->due <= time) {
        struct frame *frame = pop(forwarder);
        proceed(forwarder, frame, frame->due);
    }
}

unsigned forwarder_wants(const struct forwarder *forwarder, struct pollfd *wanted)
{
    unsigned count = forwarder->network->plan->count;
    for (unsigned i = 0; i < count; i++)
        wanted[i] = (struct pollfd){.fd = forwarder->ports[i], .events = POLLIN};
    return count;
}

int64_t forwarder_next(const struct forwarder *forwarder)
{
    if (!forwarder->waiting)
        return -1;
    int64_t left = forwarder->heap[0]->due - (int64_t)read_clock(CLOCK_MONOTONIC);
    return left > 0 ? left : 0;
}

/* --- start */

/* Takes only what programs cause: of IPv4 all but IGMP, of IPv6 TCP, UDP and ICMP's echoes and errors. */
static void take_only_programs(int port)
{
    enum { TYPE = 12, PROTOCOL = ETH_HLEN + 9, NEXT = ETH_HLEN + 6, ICMP_TYPE = ETH_HLEN + 40, GROUPS_FROM = 130 };
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, TYPE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 2),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, PROTOCOL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_IGMP, 8, 7),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 7),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, NEXT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMPV6, 0, 3),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ICMP_TYPE),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, GROUPS_FROM, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, FRAME_MOST),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    setsockopt(port, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

static int attach(const char *name, bool simulated)
{
    int yes = 1, size = BUFFER;
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(name)};
    int port = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (simulated)
        take_only_programs(port);
    setsockopt(port, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
    if (setsockopt(port, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size))
        setsockopt(port, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (!bind(port, (struct sockaddr *)&address, sizeof address))
        return port;
    int error = errno;
    close(port);
    errno = error;
    return -1;
}

struct forwarder *forwarder_start(struct network *network, int netlink, bool simulated, char *why, size_t size)
{
    struct forwarder *forwarder = calloc(1, sizeof *forwarder);
    if (forwarder)
        forwarder->heap = calloc(WAITING_MOST, sizeof(struct frame *));
    bool made = forwarder && forwarder->heap;
    for (unsigned i = 0; made && i < network->plan->count; i++) {
        const char *name = network->plan->hosts[i];
        int error = rtnetlink_set_bridge(netlink, name, NULL);
        errno = error;
        forwarder->ports[i] = error ? -1 : attach(name, simulated);
        made = forwarder->ports[i] >= 0;
    }
    if (!made)
        return SAY_AND(NULL, why, size, "The lab's own switch can't be started: %s.", strerror(errno));
    forwarder->network = network;
    forwarder->simulated = simulated;
    (void)!getrandom(&forwarder->random, sizeof forwarder->random, 0);
    forwarder->random |= 1;
    return forwarder;
}
