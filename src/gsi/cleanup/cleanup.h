/* A program's end reaches its peers on other hosts however it ends: by a signal, by _exit, by exec. A kernel says
 * goodbye for the dead. Here a small process does, the cleanup process: it is started with the first session to another
 * host, reads the message due to each peer from shared memory (cleanup_layout.h), and detects the program's end by a
 * pipe and a pidfd. It ends when there was no session for 5 s, or 5 s after the program.
 *
 * All calls are under the connection manager's lock. */
#ifndef GSI_CLEANUP_CLEANUP_H
#define GSI_CLEANUP_CLEANUP_H

#include "cm/manager.h"
#include "process/process.h"

struct cleanup; /* NULL: no session has led to another host yet */

/* The session has changed. One that leads to another host has a record for as long as its peer needs a message at the
 * end, or may ask for an answer; a cleanup process is started if there is none. A failure to start one is logged. */
void cleanup_note(struct cleanup **, const struct process *, struct session *, nanos now);

/* The session goes, and its record. */
void cleanup_forget(struct cleanup *, struct session *);

/* All sessions have gone: the cleanup process ends. Also for the child of a fork, whose parent's goes on. */
void cleanup_end(struct cleanup **);

#endif
