/* The packets of an SRD requester that wait, and the times for which they wait: a list for each length of a wait, so
 * each list is in the order of its deadlines. Pure. */
#pragma once

#include "transport/srd/srd.h"

/* Makes the lists empty. */
void srd_flights_start(struct srd *);

/* A flight without a wait; NULL: SRD_FLIGHTS are in use, or there is no memory. */
struct srd_flight *srd_flights_take(struct srd *, struct srd_flow *);
/* Returns true if srd_flights_take would give one. Once memory lacked, one must be freed first; where there is none at
 * all, memory is tried each time. */
static inline bool srd_flights_left(const struct srd *srd)
{
    const struct srd_requester *requester = srd->requester;
    return !TAILQ_EMPTY(&requester->free) || (requester->flight_count < SRD_FLIGHTS && !requester->memory_lacks);
}
void srd_flights_free(struct srd *, struct srd_flight *);

/* Lets it wait, and asks the owner to look in time. It is in no list. */
void srd_flights_wait(struct srd *, struct srd_flight *, enum srd_wait, unsigned level, nanos now);

/* Takes it out of its list if it is in one: of the level of its wait, or of the flow's packets to be sent again. */
void srd_flights_stop(struct srd *, struct srd_flight *);

/* Takes out the first one whose time has come; or NULL. */
struct srd_flight *srd_flights_due(struct srd *, nanos now);

/* The earliest deadline. */
nanos srd_flights_deadline(const struct srd *);
