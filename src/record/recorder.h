/* The recording of this process: the file that SOFTVERBS_RECORD names. Several processes write to one file; each write
 * is the records of one call into one engine, at the file's end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nanos.h"

/* Records all queue pairs that are made later, unless `path` is NULL or "". A file that can't be written is reported in
 * the log. `now` is the time of the process's clock. True: the process is recorded. Further calls change nothing. One
 * thread at a time. */
bool recorder_begin(const char *path, nanos now);

/* Ends the parent's recording in the child of a fork; the child's recording begins with its first device. */
void recorder_inherit(void);

/* Returns true if new queue pairs are recorded. Thread-safe. */
bool recorder_is_on(void);

/* The number of the next queue pair. Thread-safe. */
uint32_t recorder_next_queue(void);

/* Appends whole records. If the file can't be written any more, that is logged once, and the recording ends.
 * Thread-safe, under any lock except innermost ones; may wait for the disk. */
void recorder_append(const uint8_t *records, size_t length);

/* Empties the file, unless a process is writing to it. For the command. 0 or errno; EEXIST: it has other contents. */
int recorder_empty(const char *path);
