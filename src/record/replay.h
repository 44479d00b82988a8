/* Runs the engines of a recording again: gives each the calls and the answers that it got, and compares its actions
 * with the recorded ones. Needs no program, no process of softverbs and no network. One thread at a time. */
#ifndef RECORD_REPLAY_H
#define RECORD_REPLAY_H

#include "record/record.h"

struct replay_result {
    enum record_fault fault; /* RECORD_END: the whole recording was read */
    uint32_t version;        /* of the file, where that is RECORD_VERSION */
    size_t at;               /* byte of the file where reading ended */
    uint64_t records, doors; /* that were read, and that were run */
    unsigned queues;         /* queue pairs that were made */
    bool differs;            /* an engine did something else than it did when it was recorded */
    char words[512];         /* the difference; or why a recording can't be run; "": neither */
};

/* The caller's function for each record, before the engine executes it. False ends the replay. */
typedef bool replay_hears(void *context, const struct record *);

/* `bytes` is a whole file. Total: any input ends with a result. The memory that it takes is bounded by
 * REPLAY_MEMORY_MOST. Signal handlers for memory that is gone are the caller's (link/guard.h). */
enum { REPLAY_MEMORY_MOST = 1 << 30 };
void replay_run(const uint8_t *bytes, size_t length, replay_hears *, void *context, struct replay_result *);

#endif
