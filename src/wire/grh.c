#include "wire/grh.h"

#include "wire/bytes.h"
#include "wire/ether.h"

enum { NEXT_UDP = 17, IPV4_AT = GRH_LENGTH - GRH_IPV4_LENGTH, TOTAL_LENGTH = 2, CHECKSUM = 10 };

static void write_ipv4(uint8_t *to, const struct grh_route *route, uint32_t udp_length)
{
    memset(to, 0, GRH_IPV4_LENGTH);
    to[0] = 0x45;
    to[1] = route->traffic_class;
    bytes_put16(to + TOTAL_LENGTH, (uint16_t)(udp_length ? GRH_IPV4_LENGTH + udp_length : 0));
    bytes_put16(to + 4, route->identification);
    bytes_put16(to + 6, route->fragment);
    to[8] = route->hop_limit;
    to[9] = NEXT_UDP;
    memcpy(to + 12, route->source + 12, 4);
    memcpy(to + 16, route->destination + 12, 4);
    bytes_put16(to + CHECKSUM, (uint16_t)~ether_checksum_add(0, to, GRH_IPV4_LENGTH));
}

unsigned grh_write_ip(uint8_t *to, const struct grh_route *route, uint32_t udp_length)
{
    if (grh_is_ipv4(route->destination)) {
        write_ipv4(to, route, udp_length);
        return GRH_IPV4_LENGTH;
    }
    bytes_put32(to, 6u << 28 | (uint32_t)route->traffic_class << 20 | (route->flow_label & 0xfffff));
    bytes_put16(to + 4, (uint16_t)udp_length);
    to[6] = NEXT_UDP;
    to[7] = route->hop_limit;
    memcpy(to + 8, route->source, 16);
    memcpy(to + 24, route->destination, 16);
    return GRH_LENGTH;
}

void grh_write(uint8_t grh[GRH_LENGTH], const struct grh_route *route, uint32_t udp_length)
{
    bool ipv4 = grh_is_ipv4(route->destination);
    memset(grh, 0, ipv4 ? IPV4_AT : 0);
    grh_write_ip(grh + (ipv4 ? IPV4_AT : 0), route, udp_length);
}

/* Updates the IPv4 checksum, which was made with the length 0, in one's complement (RFC 1624). */
void grh_set_length(uint8_t grh[GRH_LENGTH], uint32_t udp_length)
{
    uint8_t *ip = grh + IPV4_AT;
    if (grh[0]) {
        bytes_put16(grh + 4, (uint16_t)udp_length);
        return;
    }
    bytes_put16(ip + TOTAL_LENGTH, (uint16_t)(GRH_IPV4_LENGTH + udp_length));
    uint32_t sum = (~bytes_get16(ip + CHECKSUM) & 0xffffu) + GRH_IPV4_LENGTH + udp_length;
    sum = (sum & 0xffff) + (sum >> 16);
    bytes_put16(ip + CHECKSUM, (uint16_t)~sum);
}

void grh_read(const uint8_t grh[GRH_LENGTH], uint8_t source[16], uint8_t destination[16])
{
    grh_read_source(grh, source);
    if (grh[0] >> 4 == 6)
        memcpy(destination, grh + 24, 16);
    else
        grh_gid_of_ipv4(grh + IPV4_AT + 16, destination);
}
