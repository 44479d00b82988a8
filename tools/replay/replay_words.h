/* A record of a recording in words, for `softverbs replay`. */
#ifndef TOOLS_REPLAY_WORDS_H
#define TOOLS_REPLAY_WORDS_H

#include <stddef.h>

#include "record/record.h"

/* One line without the time and the queue pair, "transmits RC SEND_ONLY qp 0x11 psn 42 ack 8 bytes"; "": it is nothing
 * that a reader misses, as an empty look for something to transmit. Always ends in a NUL. */
void replay_words(const struct record *, char *to, size_t size);

/* Of a completion or the like that says why something failed; 0: none, or it was only flushed. */
unsigned replay_reason(const struct record *);

/* The moment, on the clock of the process, of this and the records of its queue pair behind it; 0: it has none. The
 * time that engines get as "now" may be some milliseconds off. */
uint64_t replay_time(const struct record *);

#endif
