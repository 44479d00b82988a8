/* Runs the engines of a recording again: gives each the calls and the answers that it got, and compares its actions
 * with the recorded ones. Needs no program, no process of softverbs and no network. One thread at a time. */
#pragma once

#include "record/record.h"

struct replay_result {
    enum record_fault fault; /* RECORD_END: the whole recording was read */
    uint32_t version;        /* the file's, if `fault` is RECORD_VERSION */
    size_t at;               /* the byte of the file at which reading ended */
    uint64_t records, doors; /* records read, and doors run */
    unsigned queues;         /* queue pairs that were made */
    bool differs;            /* an engine did something else than when it was recorded */
    char words[512];         /* the difference, or why a recording can't be run; or "" */
};

/* The caller's function for each record, before the engine executes it. False ends the replay. */
typedef bool replay_hears(void *context, const struct record *);

/* Replays a whole file. Total: any input ends with a result. The send queues of a replay take at most
 * REPLAY_MEMORY_MOST bytes. The caller sets the signal handlers for memory that is gone (link/guard.h). */
enum { REPLAY_MEMORY_MOST = 1 << 30 };
void replay_run(const uint8_t *bytes, size_t length, replay_hears *, void *context, struct replay_result *);
