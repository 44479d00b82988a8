/* RoCEv2 datagrams: struct packet <-> the payload of a UDP datagram to port 4791, with the invariant CRC over it and
 * over those fields of lower headers that no router changes (RoCEv2 annex, A17.3.3). Pure, as wire.h says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/packet.h"
#include "wire/wire.h"

enum {
    DATAGRAM_PORT = 4791,
    DATAGRAM_ICRC = 4,                        /* bytes at the end */
    DATAGRAM_TRAILER_MAX = 3 + DATAGRAM_ICRC, /* pad and ICRC */
    DATAGRAM_DONT_FRAGMENT = 0x4000,
};

/* The fields of the IP and UDP headers that the ICRC covers. Lengths follow from the datagram; IPv4 options and IPv6
 * extension headers are not supported. */
struct datagram_route {
    uint8_t source[16], destination[16]; /* as GIDs: ::ffff:a.b.c.d is IPv4 on the wire, everything else IPv6 */
    uint16_t source_port, destination_port;
    uint16_t fragment;       /* IPv4: flags and fragment offset; sockets that send with IP_PMTUDISC_DO set
                                DATAGRAM_DONT_FRAGMENT, like adapters */
    uint16_t identification; /* IPv4: 0 when an unconnected socket sends with IP_PMTUDISC_DO; the segments of one send
                                with UDP_SEGMENT count up from it */
    bool identification_unknown; /* received through a plain socket, which does not report it */
};

/* The ICRC over the pieces, which have everything from the BTH to the last pad byte; the first piece has the whole BTH.
 * On the wire the ICRC follows them in little-endian order. */
uint32_t wire_icrc(const struct datagram_route *, const struct iovec *pieces, uint32_t count);

/* Writes the whole UDP payload in one block; returns its length, or 0 when `room` is too small or the payload could
 * not be read. The packet's opcode must exist. */
size_t datagram_encode(const struct datagram_route *, const struct packet *, uint8_t *to, size_t room);

/* Decodes a datagram; total, like wire_decode. Checks the ICRC first, so that a corrupted packet is never reported as
 * something else. The payload becomes one piece, *piece, that points into `bytes`; both belong to the
 * caller. With identification_unknown over IPv4, a packet passes when datagram_identify finds its identification,
 * which is then stored in the route; the value there is tried first. *packet and *piece are undefined unless the
 * result is WIRE_FINE. */
enum wire_fault datagram_decode(struct datagram_route *, const uint8_t *bytes, size_t length, struct packet *,
                                struct iovec *piece);

/* Decodes the bytes from the BTH to the last pad byte, which any link carries; looks at no CRC. */
enum wire_fault datagram_read(const uint8_t *bytes, size_t length, struct packet *, struct iovec *piece);

/* Finds the identification of the IPv4 header with which the ICRC at the end of the `length` bytes is right; false:
 * there is no such value. One of 65536 corrupted packets passes. A right guess in route->identification makes this
 * fast. */
bool datagram_identify(const struct datagram_route *, const uint8_t *bytes, size_t length, uint16_t *identification);
