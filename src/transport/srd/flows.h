/* The flows of an SRD requester: each to one queue pair of one address. Pure. */
#pragma once

#include "transport/srd/flights.h"

void srd_flows_start(struct srd *);

/* The flow to the receiver of the work, a new one if it is unknown. NULL: no memory, or SRD_PEERS flows have work. */
struct srd_flow *srd_flows_find(struct srd *, const struct send_wqe *);

/* The flow to the receiver of the work; NULL: there is none yet. */
struct srd_flow *srd_flows_known(const struct srd *, const struct send_wqe *);

/* The flow of an answer; NULL: no flow has this epoch. */
struct srd_flow *srd_flows_of_epoch(const struct srd *, uint32_t epoch);

/* Lets the flow begin anew, with another epoch: its receiver does not know it. Nothing of it waits for an answer. */
void srd_flows_renew(struct srd *, struct srd_flow *);

/* The next packet of the flow, with its next number; it waits for nothing yet. NULL: no memory. The flow has a window,
 * and flights are left. */
struct srd_flight *srd_flows_number(struct srd *, struct srd_flow *);
/* Frees a packet that is in no list. */
void srd_flows_drop(struct srd *, struct srd_flight *);

/* The packet with this number that waits for an answer; or NULL. */
struct srd_flight *srd_flows_at(const struct srd_flow *, uint32_t number);

/* Puts the flow among the ready ones if it has a packet that may leave. */
void srd_flows_judge(struct srd *, struct srd_flow *);

/* The next flow whose packet may leave; or NULL. */
static inline struct srd_flow *srd_flows_ready(const struct srd *srd)
{
    struct srd_flow *again = TAILQ_FIRST(&srd->requester->retransmits), *fresh = TAILQ_FIRST(&srd->requester->ready);
    return again || !fresh || !srd_flights_left(srd) ? again : fresh;
}
/* Takes a ready flow out. */
void srd_flows_unready(struct srd *, struct srd_flow *);

/* Work at the end of a list, at its beginning, and anywhere in it (if it is there). */
void srd_flows_append(struct srd *, struct srd_works *, uint32_t position);
uint32_t srd_flows_take(struct srd *, struct srd_works *);
void srd_flows_remove(struct srd *, struct srd_works *, uint32_t position);

/* Returns true if work for the receiver of this work waits for a receive. */
bool srd_flows_are_busy(const struct srd *, const struct send_wqe *);

/* Calls `visit` for each flow. It may change the flow, but remove none. */
void srd_flows_each(struct srd *, void (*visit)(struct srd *, struct srd_flow *, const void *), const void *argument);
