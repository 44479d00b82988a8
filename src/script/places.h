/* How often each place of a program makes each call: a table in a file that `softverbs sweep` makes, into which all
 * processes of a program count (the action `places`). Processes of other versions do not count. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "calls/caller.h"

enum { PLACES_VERSION = 1, PLACES_MOST = 4096, PLACES_CALL = 40 };

/* A place of one process. Threads that meet it at once may make two entries of it. */
struct places_entry {
    atomic_uint process; /* 0: free */
    atomic_uint written; /* 1: the members below are written */
    uint32_t order;      /* the number of the entry, in the order in which they were made */
    uint32_t place;
    char call[PLACES_CALL], where[CALLER_WHERE];
    atomic_ullong count;
};

struct places {
    uint32_t version;
    atomic_uint next; /* the order of the next entry */
    atomic_uint lost; /* calls whose place found no free entry */
    struct places_entry entries[PLACES_MOST];
};

/* Makes this process count into the file. Does nothing if it counts already, or if the file is not such a table. */
void places_begin(const char *path);

/* Counts a call. errno is kept. Thread-safe, under any lock, and in a child of a fork. */
void places_count(const char *call, const struct caller *);
