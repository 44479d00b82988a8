/* Writes packets to a pcapng file as Wireshark reads them: Ethernet, IPv4 or IPv6, UDP port 4791, RoCEv2 with its
 * invariant CRC. A packet without such headers (links inside the host) gets them from its GIDs, and the Ethernet
 * addresses, too. Packets of InfiniBand begin with their LRH and end with both CRCs; a file has only one kind. Each
 * packet has its direction, and in a comment the process that wrote it and both queue pairs, as only the receiver's is
 * in the packet: "pid 4711 server; qp 0x11 to 0x12; fault: dropped".
 *
 * Processes may share a file: every block is one write at its end (O_APPEND), and the section's header is written by
 * the process that finds the file empty, under a lock of its first byte; each holds the file's shared lock (flock)
 * while it captures. If a process is killed while it writes, the next one makes the rest of its block readable
 * (capture_mend.h).
 *
 * A packet that an IP header can't announce (payloads by reference are up to LINK_REFERENCE_SEGMENT long) is written
 * with as much of its payload as fits, CAPTURE_PAYLOAD_MAX, with the ICRC of what is written, and a comment that
 * says so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/datagram.h"
#include "wire/lrh.h"

enum { CAPTURE_PAYLOAD_MAX = 65408, CAPTURE_INFINIBAND_MAX = 8064 /* as its length is 11 bits, in words */ };

struct capture;

/* The direction, addresses and comment of a packet. */
struct capture_way {
    bool sent;                   /* false: received */
    bool infiniband;             /* the packet has an LRH; the route has the addresses of its GRH, if any */
    struct lrh lrh;              /* if `infiniband` */
    struct datagram_route route; /* addresses and ports */
    uint8_t traffic_class, hop_limit;
    uint32_t from;    /* number of the queue pair that sent it, for the comment; 0: not known */
    const char *note; /* for the comment; or NULL */
};

/* Copies `name` with every "%p" replaced by this process's id; false: longer than `room`. */
bool capture_name(const char *name, char *to, size_t room);

/* Opens the file, whose name capture_name made, and begins it when it is empty. NULL and a sentence: it can't be
 * written, or has other contents, or another link layer's packets, and is not changed. */
struct capture *capture_open(const char *path, bool infiniband, char *why, size_t why_size);
/* Ends the capture when the file, with all its writers, has about `most` bytes; 0: never. */
void capture_limit(struct capture *, uint64_t most);
void capture_close(struct capture *);

/* Empties the file before the command starts programs, unless some process is writing to it now. 0 or errno; EEXIST:
 * it is not a pcapng file and stays. */
int capture_begin(const char *path);

/* Appends a packet: `headers` are BTH and extension headers. Thread-safe; may wait for the disk. When the file can't be
 * written any more, that is logged once and nothing more is written. */
void capture_roce(struct capture *, const struct capture_way *, const uint8_t *headers, size_t length,
                  const struct payload *);

/* Appends any bytes of a datagram, like capture_roce. */
void capture_datagram(struct capture *, const struct capture_way *, const uint8_t *bytes, size_t length);

/* Appends an Ethernet frame as it is, like capture_roce. */
void capture_ethernet(struct capture *, bool sent, const struct payload *, const char *note);
