#include "transport/srd/flights.h"

#include "base/likely.h"

enum { FLIGHTS_BLOCK = 64 };

void srd_flights_start(struct srd *srd)
{
    TAILQ_INIT(&srd->requester->free);
    for (unsigned level = 0; level < SRD_LEVELS; level++)
        TAILQ_INIT(&srd->requester->levels[level]);
    srd->requester->watched = NANOS_NEVER;
}

static cold void flights_grow(struct srd *srd)
{
    struct engine_owner *owner = srd->common.owner;
    struct srd_flight *block = srd->requester->flight_count < SRD_FLIGHTS
                                   ? owner->operations->room(owner, FLIGHTS_BLOCK * sizeof *block)
                                   : NULL;
    for (unsigned i = 0; block && i < FLIGHTS_BLOCK; i++)
        TAILQ_INSERT_TAIL(&srd->requester->free, &block[i], entry);
    srd->requester->flight_count += block ? FLIGHTS_BLOCK : 0;
    srd->requester->memory_lacks = !block && srd->requester->flight_count;
}

struct srd_flight *srd_flights_take(struct srd *srd, struct srd_flow *flow)
{
    if (TAILQ_EMPTY(&srd->requester->free))
        flights_grow(srd);
    struct srd_flight *flight = TAILQ_FIRST(&srd->requester->free);
    if (!flight)
        return NULL;
    TAILQ_REMOVE(&srd->requester->free, flight, entry);
    *flight = (struct srd_flight){.flow = flow};
    return flight;
}

void srd_flights_free(struct srd *srd, struct srd_flight *flight)
{
    flight->wait = SRD_FREE;
    srd->requester->memory_lacks = false;
    TAILQ_INSERT_HEAD(&srd->requester->free, flight, entry);
}

/* The list that has the flight, by its wait. */
static struct srd_flights *list_of(struct srd *srd, struct srd_flight *flight)
{
    return flight->wait == SRD_AGAIN ? &flight->flow->again : &srd->requester->levels[flight->level];
}

void srd_flights_wait(struct srd *srd, struct srd_flight *flight, enum srd_wait wait, unsigned level, nanos now)
{
    flight->wait = (uint8_t)wait;
    flight->level = (uint8_t)(level < SRD_LEVELS ? level : SRD_LEVELS - 1);
    flight->deadline = now + ((nanos)SRD_WAIT << flight->level);
    TAILQ_INSERT_TAIL(list_of(srd, flight), flight, entry);
    if (flight->deadline < srd->requester->watched) {
        srd->requester->watched = flight->deadline;
        srd->common.owner->operations->watch(srd->common.owner, flight->deadline);
    }
}

void srd_flights_stop(struct srd *srd, struct srd_flight *flight)
{
    if (flight->wait)
        TAILQ_REMOVE(list_of(srd, flight), flight, entry);
    flight->wait = SRD_FREE;
}

struct srd_flight *srd_flights_due(struct srd *srd, nanos now)
{
    for (unsigned level = 0; level < SRD_LEVELS; level++) {
        struct srd_flight *flight = TAILQ_FIRST(&srd->requester->levels[level]);
        if (flight && flight->deadline <= now) {
            TAILQ_REMOVE(&srd->requester->levels[level], flight, entry);
            return flight;
        }
    }
    return NULL;
}

nanos srd_flights_deadline(const struct srd *srd)
{
    nanos deadline = NANOS_NEVER;
    for (unsigned level = 0; level < SRD_LEVELS; level++) {
        const struct srd_flight *flight = TAILQ_FIRST(&srd->requester->levels[level]);
        if (flight && flight->deadline < deadline)
            deadline = flight->deadline;
    }
    return deadline;
}
