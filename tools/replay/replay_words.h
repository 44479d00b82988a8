/* A record of a recording in words, for `softverbs replay`. */
#pragma once

#include <stddef.h>

#include "record/record.h"

/* Writes a line without the time and the queue pair, "transmits RC SEND_ONLY qp 0x11 psn 42 ack 8 bytes"; "": no reader
 * misses the record, for example an empty look for something to transmit. Always ends in a NUL. */
void replay_words(const struct record *, char *to, size_t size);

/* The reason of a completion with an error; 0: another record, no reason, or the work was only flushed. */
unsigned replay_reason(const struct record *);

/* The moment, on the clock of the process, of this record and its queue pair's next records; 0: the record has no time.
 * The time that engines get as "now" may be some milliseconds off. */
uint64_t replay_time(const struct record *);
