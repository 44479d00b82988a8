/* The responder of SRD: what it knows of the flows of others, and the answers that it owes. Pure. */
#pragma once

#include "transport/srd/srd.h"

void srd_sources_start(struct srd *);

/* Takes a request: answers HELLO at once, executes any other packet once, and owes its answer. */
void srd_sources_receive(struct srd *, const struct packet *);

/* The source that the next answer goes to; NULL: none is owed. */
const struct srd_source *srd_sources_next(const struct srd *);

/* Writes that answer. False: the memory of a READ is gone, and a refusal is owed instead. */
bool srd_sources_transmit(struct srd *, struct packet *out, struct iovec *pieces);

/* Lets the next answer wait until srd_sources_retry, as its link has no room. */
void srd_sources_hold(struct srd *);
void srd_sources_retry(struct srd *);
/* Returns true if answers wait so. */
bool srd_sources_held(const struct srd *);

/* Loses the next answer, which its source asks for again. */
void srd_sources_lose(struct srd *);
