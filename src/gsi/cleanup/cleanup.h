/* Peers on other hosts learn of a program's end however it ends: by a signal, by _exit, by exec. With adapters the
 * kernel sends the last messages of such a program; here the cleanup process does. It is started with the first session
 * to another host, reads the message that is due to each peer from shared memory (cleanup_layout.h), and detects the
 * program's end by a pipe and a pidfd. It ends when there was no session for 5 s, or 5 s after the program.
 *
 * All functions are called under the connection manager's lock. */
#pragma once

#include "cm/manager.h"
#include "process/process.h"

struct cleanup; /* NULL: no session has led to another host yet */

/* Updates the record of a changed session. A session with another host has a record as long as its peer needs a message
 * at the program's end, or may send a DREQ. The first record starts a cleanup process; a failure to start it is
 * logged. */
void cleanup_note(struct cleanup **, const struct process *, struct session *, nanos now);

/* Removes the session's record. */
void cleanup_forget(struct cleanup *, struct session *);

/* Ends the cleanup process, after all sessions have ended. In the child of a fork it leaves the parent's process
 * alone. */
void cleanup_end(struct cleanup **);
