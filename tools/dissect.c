#include "dissect.h"

#include <string.h>

enum { TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd, TYPE_VLAN = 0x8100, TYPE_SERVICE_VLAN = 0x88a8 };
enum { IPV4_LENGTH = 20, IPV6_LENGTH = 40, UDP_LENGTH = 8, UDP_PROTOCOL = 17, FRAGMENT = 0x3fff };

static uint16_t get16(const uint8_t *from)
{
    return (uint16_t)(from[0] << 8 | from[1]);
}

enum { NO_TYPE = 0xff };

static const struct {
    uint32_t link;
    uint8_t length;
    uint8_t type_at; /* the offset of the Ethernet type, which VLAN tags may follow; or NO_TYPE */
} links[] = {
    {PCAP_NULL, 4, NO_TYPE}, {PCAP_ETHERNET, 14, 12}, {PCAP_RAW, 0, NO_TYPE},       {PCAP_LINUX_COOKED, 16, 14},
    {PCAP_IPV4, 0, NO_TYPE}, {PCAP_IPV6, 0, NO_TYPE}, {PCAP_LINUX_COOKED_2, 20, 0},
};

/* Finds where the IP header begins, after the link's header; false: no IP header. */
static bool find_ip(const struct pcap_record *record, size_t *at)
{
    size_t i = 0;
    while (i < sizeof links / sizeof *links && links[i].link != record->link)
        i++;
    if (i == sizeof links / sizeof *links || record->length <= links[i].length)
        return false;
    *at = links[i].length;
    if (links[i].type_at == NO_TYPE)
        return true;
    uint16_t type = get16(record->bytes + links[i].type_at);
    for (; (type == TYPE_VLAN || type == TYPE_SERVICE_VLAN) && record->length > *at + 4; *at += 4)
        type = get16(record->bytes + *at + 2);
    return type == TYPE_IPV4 || type == TYPE_IPV6;
}

static void read_ipv6_fields(const uint8_t *ip, struct dissected_ip *to)
{
    to->known = true;
    to->class = (uint8_t)(get16(ip) >> 4);
    to->label = (uint32_t)(ip[1] & 0xf) << 16 | get16(ip + 2);
    to->hops = ip[7];
}

static enum dissected read_udp(const uint8_t *udp, size_t held, size_t sent, struct dissection *to)
{
    if (sent < UDP_LENGTH)
        return DISSECTED_OTHER;
    if (held < UDP_LENGTH)
        return DISSECTED_CUT;
    size_t length = get16(udp + 4);
    to->ip.port = to->route.source_port = get16(udp);
    to->route.destination_port = get16(udp + 2);
    if (to->route.destination_port != DATAGRAM_PORT || length < UDP_LENGTH || length > sent)
        return DISSECTED_OTHER;
    to->bytes = udp + UDP_LENGTH;
    to->length = length - UDP_LENGTH;
    return length > held ? DISSECTED_CUT : DISSECTED_ROCE;
}

static enum dissected read_ipv4(const uint8_t *ip, size_t held, struct dissection *to)
{
    if (held < IPV4_LENGTH)
        return DISSECTED_CUT;
    size_t total = get16(ip + 2);
    to->ip = (struct dissected_ip){.known = true, .class = ip[1], .hops = ip[8]};
    to->route.identification = get16(ip + 4);
    to->route.fragment = get16(ip + 6);
    if (ip[0] != 0x45 || ip[9] != UDP_PROTOCOL || to->route.fragment & FRAGMENT || total < IPV4_LENGTH)
        return DISSECTED_OTHER;
    to->route.source[10] = to->route.source[11] = 0xff;
    to->route.destination[10] = to->route.destination[11] = 0xff;
    memcpy(to->route.source + 12, ip + 12, 4);
    memcpy(to->route.destination + 12, ip + 16, 4);
    return read_udp(ip + IPV4_LENGTH, held - IPV4_LENGTH, total - IPV4_LENGTH, to);
}

static enum dissected read_ipv6(const uint8_t *ip, size_t held, struct dissection *to)
{
    if (held < IPV6_LENGTH)
        return DISSECTED_CUT;
    if (ip[6] != UDP_PROTOCOL)
        return DISSECTED_OTHER;
    read_ipv6_fields(ip, &to->ip);
    memcpy(to->route.source, ip + 8, 16);
    memcpy(to->route.destination, ip + 24, 16);
    return read_udp(ip + IPV6_LENGTH, held - IPV6_LENGTH, get16(ip + 4), to);
}

/* Reads an ERF record as `softverbs run --link-layer ib --capture` writes it, without extension headers. */
static enum dissected read_erf(const struct pcap_record *record, struct dissection *to)
{
    enum { HEADER = 16, TYPE_AT = 8, INFINIBAND = 21, VCRC = 2 };
    if (record->length < HEADER + LRH_LENGTH || record->bytes[TYPE_AT] != INFINIBAND)
        return DISSECTED_OTHER;
    to->lrh = record->bytes + HEADER;
    size_t length = lrh_packet_length(to->lrh), outer = lrh_read(to->lrh).global ? LRH_GRH_LENGTH : LRH_LENGTH;
    if (!length)
        return DISSECTED_OTHER;
    if (outer == LRH_GRH_LENGTH)
        read_ipv6_fields(to->lrh + LRH_LENGTH, &to->ip);
    to->bytes = to->lrh + outer;
    to->length = length - outer;
    return record->length - HEADER < length + VCRC ? DISSECTED_CUT : DISSECTED_INFINIBAND;
}

enum dissected dissect(const struct pcap_record *record, struct dissection *to)
{
    *to = (struct dissection){0};
    size_t skip;
    if (record->link == PCAP_ERF)
        return read_erf(record, to);
    if (!find_ip(record, &skip))
        return DISSECTED_OTHER;
    const uint8_t *ip = record->bytes + skip;
    size_t held = record->length - skip;
    if (ip[0] >> 4 == 4)
        return read_ipv4(ip, held, to);
    return ip[0] >> 4 == 6 ? read_ipv6(ip, held, to) : DISSECTED_OTHER;
}
