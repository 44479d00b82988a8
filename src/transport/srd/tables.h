/* The hash tables of an SRD engine, in memory of the owner that grows with them. Pure. */
#pragma once

#include "transport/srd/srd.h"

/* The next random number of the engine: nobody else knows it. */
uint64_t srd_tables_random(struct srd *);

/* Scatters the bits of a number over all of them. */
uint64_t tables_mix(uint64_t);

/* Makes the table larger if `count` entries fill it. False: there is no table, and no memory for it. */
bool tables_make_room(struct srd *, struct hash *, uint32_t count);
