/* The answers of SRD (struct srd_header of wire/packet.h). Pure. */
#pragma once

#include "wire/packet.h"

/* The answer to a packet: a status of EFA (profile/vendors.def). */
enum srd_status {
    SRD_DONE = 0,
    SRD_NO_ACCESS = 7,
    SRD_STRANGER = 8, /* the receiver does not know the flow, or not any more */
    SRD_NO_QP = 9,
    SRD_NO_RECEIVE = 10,
    SRD_TOO_LONG = 11,
    SRD_NO_ADDRESS = 14,
    SRD_OPEN = 0xff, /* there is no answer yet */
};

/* Writes the answer SRD_NO_QP to a request. False: the packet is no request of SRD. */
bool srd_refusal(const struct packet *request, struct packet *out);
