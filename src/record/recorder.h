/* The recording of this process: the file that SOFTVERBS_RECORD names. Several processes write to one file; each write
 * is the records of one call into one engine, at the file's end. */
#ifndef RECORD_RECORDER_H
#define RECORD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nanos.h"

/* From here on queue pairs that are made are recorded; `path` NULL or "": none is. A file that can't be written is
 * complained of in the log. `now` is the process's clock. True: there is a recording. Further calls change nothing and
 * answer the same. One thread at a time. */
bool recorder_begin(const char *path, nanos now);

/* In the child of a fork: its parent's recording is not its own, and a new one begins with its first device. */
void recorder_inherit(void);

/* Returns true if new queue pairs are recorded. Thread-safe. */
bool recorder_is_on(void);

/* The number of the next queue pair. Thread-safe. */
uint32_t recorder_next_queue(void);

/* Appends whole records. A file that can't be written any more is logged once, and the recording ends there.
 * Thread-safe, under any lock but innermost ones; may wait for the disk. */
void recorder_append(const uint8_t *records, size_t length);

/* For the command, before programs start: empties the file, unless some process is writing to it now. 0 or errno; EEXIST: it holds something else and stays. */
int recorder_empty(const char *path);

#endif
