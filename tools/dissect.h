/* Finds the RoCEv2 datagram in a captured packet, or the packet of InfiniBand. */
#pragma once

#include "pcap.h"
#include "wire/datagram.h"
#include "wire/lrh.h"

enum dissected {
    DISSECTED_ROCE,
    DISSECTED_INFINIBAND,
    DISSECTED_OTHER, /* no UDP to port 4791, or UDP in fragments or after IPv4 options or IPv6 extension headers */
    DISSECTED_CUT,   /* the capture does not hold all of it */
};

/* The fields of the IP header, or of InfiniBand's GRH, that do not address. */
struct dissected_ip {
    bool known; /* false: InfiniBand without a GRH */
    uint8_t class, hops;
    uint32_t label; /* of the flow; 0 with IPv4 */
    uint16_t port;  /* the UDP source port; 0: InfiniBand */
};

struct dissection {
    struct dissected_ip ip;
    struct datagram_route route;
    const uint8_t *bytes; /* the UDP payload, in the record; of InfiniBand from the BTH to the ICRC */
    size_t length;
    const uint8_t *lrh; /* where a packet of InfiniBand begins; NULL: the packet is of RoCE */
};

/* Finds the datagram or packet. The dissection has it with DISSECTED_ROCE and DISSECTED_INFINIBAND only. */
enum dissected dissect(const struct pcap_record *, struct dissection *);
