#include "wire/cm/cm_ip.h"

#include <string.h>

#include "wire/bytes.h"

/* Header version 8 (major and minor, 0) | IP version 4, reserved 4 | source port 16 | source 128 | destination 128 */
enum { IP_VERSION_AT = 1, PORT_AT = 2, SOURCE_AT = 4, DESTINATION_AT = 20 };

void cm_ip_encode(const struct cm_ip *ip, uint8_t *to)
{
    to[0] = 0;
    to[IP_VERSION_AT] = (uint8_t)(ip->version << 4);
    bytes_put16(to + PORT_AT, ip->source_port);
    memcpy(to + SOURCE_AT, ip->source, 16);
    memcpy(to + DESTINATION_AT, ip->destination, 16);
}

enum cm_ip_fault cm_ip_decode(const uint8_t *from, struct cm_ip *ip)
{
    memset(ip, 0, sizeof *ip);
    if (from[0])
        return CM_IP_VERSION;
    ip->version = from[IP_VERSION_AT] >> 4;
    if (ip->version != 4 && ip->version != 6)
        return CM_IP_ABSENT;
    ip->source_port = bytes_get16(from + PORT_AT);
    memcpy(ip->source, from + SOURCE_AT, 16);
    memcpy(ip->destination, from + DESTINATION_AT, 16);
    return CM_IP_FINE;
}
