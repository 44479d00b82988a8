/* The adverse adapter of this process: which of the behaviours of adverse/adverse.def it shows, how often it has, and
 * the dice. A process without SOFTVERBS_ADVERSE shows none. */
#ifndef ADVERSE_ADVERSE_H
#define ADVERSE_ADVERSE_H

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

/* From here on the process shows the behaviours of the list; NULL: none. A list that is none is complained of in the
 * log, and shows nothing. True: the process is adverse, even if the list leaves no behaviour. Further calls change
 * nothing and answer the same. One thread at a time. */
bool adverse_begin(const char *list);

/* The process ends: nothing is held back any more. */
void adverse_end(void);

/* Random numbers of one object: the same for the same seed and number, independent of those that others draw. Under the
 * object's lock. */
struct adverse_source {
    uint64_t stream, drawn;
};

/* Of the next object that is made. Thread-safe. */
struct adverse_source adverse_source(void);

/* A number from 0 to `most`. */
uint64_t adverse_draw(struct adverse_source *, uint64_t most);

/* How long the behaviour lasts this time, up to `most`, which is scaled; 0: it is not shown, or not now. A shown
 * behaviour is noted. */
nanos adverse_delay(struct adverse_source *, enum adverse, nanos most);

/* The behaviour is shown: counts it, and has a line in the log the first time. Thread-safe, under any lock. */
void adverse_note(enum adverse);

/* How often it was. */
uint64_t adverse_count(enum adverse);

/* As in the list of the setting. */
const char *adverse_word(enum adverse);

#endif
