/* The content of a capture's datagrams, and whether softverbs would send the same bytes. */
#pragma once

#include "dissect.h"
#include "wire/packet.h"

enum { DATAGRAMS_LINE = 2048, DATAGRAMS_ADDRESS = 46, DATAGRAMS_IP = 96 };

struct judged {
    bool known; /* its headers could be read: `packet` has them */
    struct packet packet;
    struct iovec piece;               /* its payload, when the verdict is "" */
    char description[DATAGRAMS_LINE]; /* "": its headers can't be read */
    char verdict[DATAGRAMS_LINE];     /* what is wrong with it, or "" */
};

/* The source's and the destination's address, or LIDs on InfiniBand, as text. */
void datagrams_addresses(const struct dissection *, char source[DATAGRAMS_ADDRESS],
                         char destination[DATAGRAMS_ADDRESS]);

/* " | class 0x68, hop limit 64, UDP port 49152", with the flow label of IPv6 if it is not 0; "": InfiniBand without a
 * GRH. */
void datagrams_ip(const struct dissected_ip *, char text[DATAGRAMS_IP]);

/* Describes the datagram; describes the headers also if the rest is bad. */
void datagrams_judge(struct dissection *, struct judged *);

/* Calls `visit` for each packet of a datagram that a host handed to its interface uncut, or once if it is one packet.
 * Returns the number of packets. */
size_t datagrams_each(const struct dissection *whole, void (*visit)(void *context, struct dissection *), void *context);
