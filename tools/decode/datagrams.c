#include "decode/datagrams.h"

#include <stdio.h>
#include <string.h>

#include "events/words.h"
#include "wire/cm/cm.h"
#include "wire/wire.h"

enum { DATAGRAM_ROOM = 65536 };

_Static_assert((int)DATAGRAMS_ADDRESS == (int)WORDS_GID, "room for an address");

static void show_gid(const uint8_t gid[16], char text[DATAGRAMS_ADDRESS])
{
    union ibv_gid copy;
    memcpy(copy.raw, gid, sizeof copy.raw);
    words_gid(&copy, text);
}

void datagrams_addresses(const struct dissection *datagram, char source[DATAGRAMS_ADDRESS],
                         char destination[DATAGRAMS_ADDRESS])
{
    show_gid(datagram->route.source, source);
    show_gid(datagram->route.destination, destination);
    if (datagram->lrh) {
        struct lrh lrh = lrh_read(datagram->lrh);
        snprintf(source, DATAGRAMS_ADDRESS, "LID %u", lrh.source);
        snprintf(destination, DATAGRAMS_ADDRESS, "LID %u", lrh.destination);
    }
}

void datagrams_ip(const struct dissected_ip *ip, char text[DATAGRAMS_IP])
{
    char label[32] = "", port[24] = "";
    if (ip->label)
        snprintf(label, sizeof label, ", flow label 0x%05x", ip->label);
    if (ip->port)
        snprintf(port, sizeof port, ", UDP port %u", ip->port);
    *text = 0;
    if (ip->known)
        snprintf(text, DATAGRAMS_IP, " | class 0x%02x, hop limit %u%s%s", ip->class, ip->hops, label, port);
}

/* The index of the first byte that differs between our encoding of the packet and the capture; -1: no byte does. */
static long find_difference(const struct dissection *datagram, const struct packet *packet)
{
    static uint8_t again[DATAGRAM_ROOM];
    size_t length = datagram_encode(&datagram->route, packet, again, sizeof again);
    if (datagram->lrh && length) /* our ICRC is of RoCEv2; read_packet has judged the capture's */
        memcpy(again + length - LRH_ICRC, datagram->bytes + datagram->length - LRH_ICRC, LRH_ICRC);
    for (size_t i = 0; i < datagram->length; i++)
        if (i >= length || again[i] != datagram->bytes[i])
            return (long)i;
    return length > datagram->length ? (long)datagram->length : -1;
}

/* The index of the first byte that our encoding of the message changes; -1: no byte. */
static long find_message_difference(const struct cm_message *message, const uint8_t bytes[MAD_BYTES])
{
    uint8_t again[MAD_BYTES];
    cm_encode(message, again);
    for (unsigned i = 0; i < MAD_BYTES; i++)
        if (again[i] != bytes[i])
            return (long)i;
    return -1;
}

/* Judges a message of the connection manager, to queue pair 1, whose description follows the packet's own. */
static void judge_message(const struct packet *packet, char *description, char *verdict)
{
    uint8_t bytes[MAD_BYTES];
    struct cm_message message;
    size_t used = strlen(description);
    if (packet->destination != MAD_QP || packet->qkey != MAD_QKEY || packet->payload.length < MAD_BYTES)
        return;
    payload_copy(&packet->payload, 0, &(struct iovec){bytes, sizeof bytes}, 1);
    if (cm_decode(bytes, sizeof bytes, &message) != CM_FINE)
        return;
    snprintf(description + used, DATAGRAMS_LINE - used, " | CM ");
    used = strlen(description);
    cm_describe(&message, description + used, DATAGRAMS_LINE - used);
    long difference = find_message_difference(&message, bytes);
    if (difference >= 0 && !*verdict)
        snprintf(verdict, DATAGRAMS_LINE, "its message encodes differently at byte %ld", difference);
}

static uint32_t get_little(const uint8_t *from, unsigned bytes)
{
    uint32_t value = 0;
    while (bytes--)
        value = value << 8 | from[bytes];
    return value;
}

static enum wire_fault read_packet(struct dissection *datagram, struct packet *packet, struct iovec *piece)
{
    const uint8_t *icrc = datagram->bytes + datagram->length - LRH_ICRC;
    if (!datagram->lrh)
        return datagram_decode(&datagram->route, datagram->bytes, datagram->length, packet, piece);
    if (lrh_icrc(datagram->lrh, (uint32_t)(icrc - datagram->lrh)) != get_little(icrc, LRH_ICRC))
        return WIRE_ICRC;
    return datagram_read(datagram->bytes, datagram->length - LRH_ICRC, packet, piece);
}

static bool vcrc_fits(const struct dissection *datagram)
{
    const uint8_t *vcrc = datagram->bytes + datagram->length;
    return !datagram->lrh || lrh_vcrc(datagram->lrh, (uint32_t)(vcrc - datagram->lrh)) == get_little(vcrc, 2);
}

void datagrams_judge(struct dissection *datagram, struct judged *judged)
{
    struct packet *packet = &judged->packet;
    unsigned headers, pad;
    enum wire_fault fault = read_packet(datagram, packet, &judged->piece);
    *judged->description = *judged->verdict = 0;
    judged->known =
        fault == WIRE_FINE || wire_decode(datagram->bytes, datagram->length, packet, &headers, &pad) == WIRE_FINE;
    if (judged->known)
        wire_describe(packet, judged->description, DATAGRAMS_LINE);
    if (fault != WIRE_FINE) {
        snprintf(judged->verdict, DATAGRAMS_LINE, "%s", wire_fault_text(fault));
        return;
    }
    long difference = find_difference(datagram, packet);
    if (difference >= 0)
        snprintf(judged->verdict, DATAGRAMS_LINE, "encodes differently at byte %ld", difference);
    else if (!vcrc_fits(datagram))
        snprintf(judged->verdict, DATAGRAMS_LINE, "the variant CRC is wrong");
    judge_message(packet, judged->description, judged->verdict);
}

/* -- what a host sends in one piece for its interface to cut (UDP_SEGMENT), and captures show uncut */

enum { SEGMENT_LEAST = 16, SEGMENT_MOST = 4096 + 64 }; /* BTH and ICRC; the largest path MTU with all headers */

static bool is_whole(const struct dissection *datagram, size_t length)
{
    struct packet packet;
    struct iovec piece;
    struct datagram_route route = datagram->route;
    return datagram_decode(&route, datagram->bytes, length, &packet, &piece) != WIRE_ICRC;
}

/* The length of the segments, which the ICRC of the first one shows; the whole length if the datagram is one packet,
 * right or wrong. */
static size_t segment_of(const struct dissection *datagram)
{
    if (datagram->lrh || is_whole(datagram, datagram->length))
        return datagram->length;
    for (size_t length = SEGMENT_LEAST; length < datagram->length && length <= SEGMENT_MOST; length += 4)
        if (is_whole(datagram, length))
            return length;
    return datagram->length;
}

size_t datagrams_each(const struct dissection *whole, void (*visit)(void *context, struct dissection *), void *context)
{
    size_t most = segment_of(whole), left = whole->length, count = 0;
    struct dissection segment = *whole;
    for (; left; left -= segment.length, segment.bytes += segment.length, segment.route.identification++) {
        segment.length = left < most ? left : most;
        visit(context, &segment);
        count++;
        if (!segment.length)
            break;
    }
    return count;
}
