/* The execution of a request of SRD. Pure. */
#pragma once

#include "transport/srd/srd.h"

enum { SRD_LOST = 0xfe }; /* in place of an answer: the payload could not be fetched, so the packet counts as lost */

/* The most bytes of a packet, of either end: of a message, or of a part of a READ or WRITE. */
uint32_t store_longest(const struct srd *);

/* Stores the message or the data; returns enum srd_status, or SRD_LOST. A READ is only checked. */
uint8_t srd_store_execute(struct srd *, const struct packet *);
