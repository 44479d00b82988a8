/* The work of a simulated engine beyond its own calls. */
#pragma once

#include "transport/testing/simulator/world.h"

bool endpoint_is_reliable(const struct endpoint *); /* also before it has an engine */
bool endpoint_is_flushing(const struct endpoint *); /* failed, or SQE */
void endpoint_start(struct endpoint *, uint32_t expected_psn, uint32_t first_psn);
void endpoint_receive(struct endpoint *, const struct packet *);
bool endpoint_has_output(const struct endpoint *);
bool endpoint_transmit(struct endpoint *, struct packet *, struct iovec *pieces);
void endpoint_recover(struct endpoint *);         /* from SQE */
bool endpoint_refers(const struct endpoint *);    /* some of its begun work is sent by reference */
void endpoint_change_settings(struct endpoint *); /* by chance, at any time */
void endpoint_flush(struct endpoint *);           /* all work that has not failed */
