#include "wire/datagram.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/crc/crc32.h"
#include "wire/grh.h"
#include "wire/op.h"

enum { BTH_LENGTH = 12, IPV4_LENGTH = 20, UDP_LENGTH = 8, UDP_PROTOCOL = 17, MASKED_MAX = 8 + 40 + UDP_LENGTH + 12 };

static bool is_ipv4(const struct datagram_route *route)
{
    return grh_is_ipv4(route->destination);
}

/* Type of service, time to live and header checksum count as ones. */
static uint8_t *put_ipv4(const struct datagram_route *route, uint16_t udp_length, uint8_t *to)
{
    to[0] = 0x45;
    to[1] = 0xff;
    bytes_put16(to + 2, (uint16_t)(IPV4_LENGTH + udp_length));
    bytes_put16(to + 4, route->identification);
    bytes_put16(to + 6, route->fragment);
    to[8] = 0xff;
    to[9] = UDP_PROTOCOL;
    to[10] = to[11] = 0xff;
    memcpy(to + 12, route->source + 12, 4);
    memcpy(to + 16, route->destination + 12, 4);
    return to + IPV4_LENGTH;
}

/* Traffic class, flow label and hop limit count as ones. */
static uint8_t *put_ipv6(const struct datagram_route *route, uint16_t udp_length, uint8_t *to)
{
    to[0] = 0x6f;
    to[1] = to[2] = to[3] = 0xff;
    bytes_put16(to + 4, udp_length);
    to[6] = UDP_PROTOCOL;
    to[7] = 0xff;
    memcpy(to + 8, route->source, 16);
    memcpy(to + 24, route->destination, 16);
    return to + 40;
}

/* The CRC of everything up to the BTH: eight bytes of ones in the place of an InfiniBand local route header, the IP
 * header, the UDP header with a checksum of ones, the BTH with its congestion bits and reserved bits as ones. */
static uint32_t icrc_of_headers(const struct datagram_route *route, const uint8_t *bth, size_t udp_length)
{
    uint8_t masked[MASKED_MAX], *at = masked + 8;
    memset(masked, 0xff, 8);
    at = is_ipv4(route) ? put_ipv4(route, (uint16_t)udp_length, at) : put_ipv6(route, (uint16_t)udp_length, at);
    bytes_put16(at, route->source_port);
    bytes_put16(at + 2, route->destination_port);
    bytes_put16(at + 4, (uint16_t)udp_length);
    at[6] = at[7] = 0xff;
    memcpy(at + 8, bth, BTH_LENGTH);
    at[8 + 4] = 0xff;
    return crc32_go_on(0, masked, (size_t)(at + 8 + BTH_LENGTH - masked));
}

static uint32_t icrc_of_pieces(uint32_t crc, const struct iovec *pieces, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        crc = crc32_go_on(crc, pieces[i].iov_base, pieces[i].iov_len);
    return crc;
}

static size_t sum_lengths(const struct iovec *pieces, uint32_t count)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += pieces[i].iov_len;
    return sum;
}

uint32_t wire_icrc(const struct datagram_route *route, const struct iovec *pieces, uint32_t count)
{
    size_t udp_length = UDP_LENGTH + sum_lengths(pieces, count) + DATAGRAM_ICRC;
    uint32_t crc = icrc_of_headers(route, pieces->iov_base, udp_length);
    struct iovec rest = {(uint8_t *)pieces->iov_base + BTH_LENGTH, pieces->iov_len - BTH_LENGTH};
    return icrc_of_pieces(icrc_of_pieces(crc, &rest, 1), pieces + 1, count - 1);
}

static void put_icrc(uint8_t *to, uint32_t crc)
{
    bytes_put32(to, __builtin_bswap32(crc));
}

static uint32_t get_icrc(const uint8_t *from)
{
    return __builtin_bswap32(bytes_get32(from));
}

size_t datagram_encode(const struct datagram_route *route, const struct packet *packet, uint8_t *to, size_t room)
{
    size_t headers = op_table[packet->opcode].headers, payload = packet->payload.length, pad = -payload & 3;
    size_t covered = headers + payload + pad;
    if (room < covered + DATAGRAM_ICRC)
        return 0;
    uint8_t encoded[WIRE_HEADERS_MAX];
    memcpy(to, encoded, wire_encode(packet, encoded));
    if (!payload_copy(&packet->payload, 0, &(struct iovec){to + headers, payload}, 1))
        return 0;
    memset(to + headers + payload, 0, pad);
    put_icrc(to + covered, wire_icrc(route, &(struct iovec){to, covered}, 1));
    return covered + DATAGRAM_ICRC;
}

/* Polynomials over GF(2) modulo the CRC's, bit 31 the coefficient of x^0, as the CRC's register holds them. */
enum { POLYNOMIAL = 0xedb88320 };

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a; a <<= 1) {
        product ^= b & -(a >> 31);
        b = b >> 1 ^ (POLYNOMIAL & -(b & 1));
    }
    return product;
}

/* Takes `bytes` zero bytes back out of the register: multiplies it by x^(-8 * bytes), a power of two of bytes at a
 * time. The polynomial has a constant term, so x has an inverse. */
static uint32_t rewind_register(uint32_t value, size_t bytes)
{
    static const uint32_t powers[] = {/* x^(-8 * 2^i) */
                                      0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d,
                                      0x5139de12, 0xba340226, 0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8,
                                      0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5, 0x9ea0056d};
    for (unsigned i = 0; i < sizeof(powers) / sizeof(*powers); i++)
        if (bytes >> i & 1)
            value = multiply(powers[i], value);
    return value;
}

/* A CRC is linear: the difference between the ICRC with a guessed identification and the one received is what a
 * register that was 0 before the identification, and got only zeros later, would hold after the difference of the
 * two identifications. Rewound to that place the register is this difference itself, and its upper half is 0;
 * otherwise no identification makes such a difference. */
bool datagram_identify(const struct datagram_route *route, const uint8_t *bytes, size_t length,
                       uint16_t *identification)
{
    if (length < BTH_LENGTH + DATAGRAM_ICRC || length > UINT16_MAX || !is_ipv4(route))
        return false;
    struct iovec covered = {(uint8_t *)bytes, length - DATAGRAM_ICRC};
    uint32_t difference = wire_icrc(route, &covered, 1) ^ get_icrc(bytes + covered.iov_len);
    *identification = route->identification;
    if (difference == 0)
        return true;
    size_t behind = IPV4_LENGTH - 4 + UDP_LENGTH + covered.iov_len; /* bytes from the identification on */
    uint32_t value = rewind_register(difference, behind);
    *identification ^= __builtin_bswap16((uint16_t)value);
    return value <= UINT16_MAX;
}

static bool icrc_fits(struct datagram_route *route, const uint8_t *bytes, size_t length)
{
    if (route->identification_unknown && is_ipv4(route))
        return datagram_identify(route, bytes, length, &route->identification);
    struct iovec covered = {(uint8_t *)bytes, length - DATAGRAM_ICRC};
    return wire_icrc(route, &covered, 1) == get_icrc(bytes + covered.iov_len);
}

/* Finds the payload in the bytes after the headers, which are payload and pad, a multiple of four (IBA 9.2.4). */
static enum wire_fault find_payload(const uint8_t *bytes, size_t length, unsigned pad, struct packet *packet,
                                    struct iovec *piece)
{
    if (length & 3 || pad > length)
        return WIRE_PAD;
    enum wire_fault fault = wire_check_payload(packet, (uint32_t)length - pad);
    if (fault != WIRE_FINE || length == pad)
        return fault;
    *piece = (struct iovec){(uint8_t *)bytes, length - pad};
    packet->payload = (struct payload){.length = (uint32_t)piece->iov_len, .count = 1, .pieces = piece};
    return WIRE_FINE;
}

enum wire_fault datagram_read(const uint8_t *bytes, size_t length, struct packet *packet, struct iovec *piece)
{
    unsigned headers, pad;
    enum wire_fault fault = wire_decode(bytes, length, packet, &headers, &pad);
    return fault ? fault : find_payload(bytes + headers, length - headers, pad, packet, piece);
}

enum wire_fault datagram_decode(struct datagram_route *route, const uint8_t *bytes, size_t length,
                                struct packet *packet, struct iovec *piece)
{
    if (length < BTH_LENGTH + DATAGRAM_ICRC)
        return WIRE_TRUNCATED;
    if (length > UINT16_MAX || !icrc_fits(route, bytes, length))
        return WIRE_ICRC;
    return datagram_read(bytes, length - DATAGRAM_ICRC, packet, piece);
}
