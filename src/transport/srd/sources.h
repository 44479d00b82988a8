/* The responder of SRD: what it knows of the flows of others, and the answers that it owes. Pure. */
#pragma once

#include "transport/srd/srd.h"

void srd_sources_start(struct srd *);

/* Takes a request: answers HELLO at once, executes any other packet once, and owes its answer. */
void srd_sources_receive(struct srd *, const struct packet *);

/* The source that the next answer goes to; NULL: none is owed. */
static inline const struct srd_source *srd_sources_next(const struct srd *srd)
{
    const struct srd_read *read = TAILQ_FIRST(&srd->responder->reads);
    return read ? read->source : TAILQ_FIRST(&srd->responder->due);
}

/* Writes that answer. False: the memory of a READ is gone, and a refusal is owed instead. */
bool srd_sources_transmit(struct srd *, struct packet *out, struct iovec *pieces);

/* Lets the next answer wait until srd_sources_retry, as its link has no room. */
void srd_sources_hold(struct srd *);
void srd_sources_retry(struct srd *);
/* Returns true if answers wait so. */
static inline bool srd_sources_held(const struct srd *srd)
{
    return !TAILQ_EMPTY(&srd->responder->held_reads) || !TAILQ_EMPTY(&srd->responder->held);
}

/* Loses the next answer, which its source asks for again. */
void srd_sources_lose(struct srd *);
