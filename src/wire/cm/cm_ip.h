/* IP addressing of CM requests (IBA annex A11): the header that requests for IP services have at the front of their
 * private data. Pure and total. */
#pragma once

#include <stdint.h>

enum { CM_IP_BYTES = 36 };

struct cm_ip {
    uint8_t version; /* of the addresses: 4 or 6 */
    uint16_t source_port;
    uint8_t source[16], destination[16]; /* IPv4: in the last four bytes, the others are 0 */
};

enum cm_ip_fault {
    CM_IP_FINE = 0,
    CM_IP_ABSENT,  /* the IP version does not exist: the private data belongs to the program (AF_IB) */
    CM_IP_VERSION, /* a header of another version */
};

/* Writes all CM_IP_BYTES. */
void cm_ip_encode(const struct cm_ip *, uint8_t *to);

/* Reads CM_IP_BYTES. */
enum cm_ip_fault cm_ip_decode(const uint8_t *from, struct cm_ip *);
