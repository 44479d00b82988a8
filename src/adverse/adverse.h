/* The adverse adapter of this process: which behaviours of adverse/adverse.def it shows, how often each was shown, and
 * the dice. A process without SOFTVERBS_ADVERSE shows no behaviour. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adverse/plan.h"
#include "base/likely.h"
#include "base/nanos.h"

/* A bit for each behaviour. Written once, before the first object is made, and when the process ends. */
extern _Atomic uint32_t adverse_on;

static inline bool adverse_shows(enum adverse behaviour)
{
    return unlikely(adverse_on != 0) && adverse_on >> behaviour & 1;
}

/* Makes the process show the behaviours of the list. NULL or "" shows none; an invalid list is logged and shows none.
 * True: the list is valid, so the process is adverse, even if the list leaves no behaviour. Further calls change
 * nothing and return the same. One thread at a time. */
bool adverse_begin(const char *list);

/* Shows no behaviour any more, as the process ends: nothing is held back then. */
void adverse_end(void);

/* The random numbers of one object: the same for the same seed and number of the object, whatever other objects draw.
 * Under the object's lock. */
struct adverse_source {
    uint64_t stream, drawn;
    uint32_t used; /* a bit for each behaviour whose delay was asked for */
};

/* The source of the next object that is made. Thread-safe. */
struct adverse_source adverse_source(void);

/* A number from 0 to `most`. */
uint64_t adverse_draw(struct adverse_source *, uint64_t most);

/* The time multiplied by the scale of the list. */
nanos adverse_scaled(nanos);

/* How long the behaviour lasts this time, up to `most` multiplied by the scale; 0: it is off, or not shown this time. A
 * shown behaviour is noted. The first delay of a source is seldom left out, and often long, as many programs send only
 * a few messages. */
nanos adverse_delay(struct adverse_source *, enum adverse, nanos most);

/* Counts that the behaviour was shown, and logs it the first time. Thread-safe, under any lock. */
void adverse_note(enum adverse);

/* How often the behaviour was noted. */
uint64_t adverse_count(enum adverse);

/* The behaviour's word in the list of the setting. */
const char *adverse_word(enum adverse);
