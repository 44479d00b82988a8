/* Finds the RoCEv2 datagram in a captured packet. */
#ifndef TOOLS_DISSECT_H
#define TOOLS_DISSECT_H

#include "pcap.h"
#include "wire/datagram.h"

enum dissected {
    DISSECTED_ROCE,
    DISSECTED_OTHER, /* not UDP to port 4791, or behind IPv4 options, IPv6 extension headers or in fragments */
    DISSECTED_CUT,   /* the capture does not hold all of it */
};

struct dissection {
    struct datagram_route route;
    const uint8_t *bytes; /* the UDP payload, in the record */
    size_t length;
};

/* Fills the dissection when the answer is DISSECTED_ROCE. */
enum dissected dissect(const struct pcap_record *, struct dissection *);

#endif
