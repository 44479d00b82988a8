/* Files of a simulated program. A call that waits is tried without waiting. As the kernel does, a thread that waits
 * keeps its file when another thread closes the descriptor, or gives its number to another file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether poll(2) shows one of these events, an error or an end. */
bool file_is_ready(int descriptor, short events);

/* Whether a call on it may wait. */
bool file_waits(int descriptor);

bool file_is(int descriptor, mode_t type);

/* When a socket's time-out (SO_RCVTIMEO, SO_SNDTIMEO) ends, if a wait begins now. */
uint64_t file_deadline(int descriptor, int option);

/* Keeps a file for a wait of this thread. Returns a second descriptor, or the same where there is no room for one. */
int file_keep(int descriptor);
/* Ends all that this thread keeps. */
void file_drop_kept(void);
/* In the child of a fork: ends what threads of its parent keep. */
void file_drop_parents(pid_t parent);

/* Waits until the file shows one of these events: 0, -EAGAIN after the deadline, or as signals_ended. */
long file_wait(int descriptor, short events, uint64_t deadline);

/* Sets or clears O_NONBLOCK; returns the flags before. */
long file_set_waiting(int descriptor, bool waits);
void file_set_flags(int descriptor, long flags);
