/* The last memory regions and windows of this process that were deregistered or deallocated: a key of one may be
 * refused later, and then it can be named. Nothing here is on the data path. Thread-safe, under any lock above
 * LOCK_SYMBOLS. */
#pragma once

#include "base/nanos.h"
#include "calls/questions.h"
#include "verbs/memory/rkeys.h"

enum { PAST_REGIONS = 64, PAST_WORDS = 224, PAST_PLACE = CALLS_WORDS_OF_PLACE };

struct past_region {
    nanos ended; /* CLOCK_MONOTONIC */
    uint64_t base, length;
    uint32_t key;
    unsigned access;
    bool window;
};

/* Notes that the key of the region has just ended. */
void past_regions_note(const struct region *);

/* Finds the region that had the key; false: it is not among the last. */
bool past_regions_find(uint32_t key, struct past_region *);

/* Sets the checker's function, which writes where the program ended a key, or returns false if it does not know. Called
 * before the program runs. */
void past_regions_set_places(bool (*describe)(uint32_t key, char text[PAST_PLACE]));

/* Writes where the program ended the key, and returns `text`; NULL: it is not known. */
const char *past_regions_place(uint32_t key, char text[PAST_PLACE]);

/* Writes "; " and what the key was (diagnose/diagnose.def), or "" if the key is not among the last. Returns `text`. */
char *past_regions_words(uint32_t key, char text[PAST_WORDS]);

/* Forgets all, in the child of a fork, which has ended no key. */
void past_regions_forget(void);
