/* A program's end reaches its peers on other hosts however it ends: by a signal, by _exit, by exec. A kernel says
 * goodbye for the dead; here the cleanup process does. It is started with the first session to another host, reads the
 * message due to each peer from shared memory (cleanup_layout.h), and detects the program's end by a pipe and a pidfd.
 * It ends when there was no session for 5 s, or 5 s after the program.
 *
 * All functions are called under the connection manager's lock. */
#pragma once

#include "cm/manager.h"
#include "process/process.h"

struct cleanup; /* NULL: no session has led to another host yet */

/* Updates the record of a changed session. A session with another host has one as long as its peer needs a message at
 * the end, or may ask for an answer; the first one starts a cleanup process, and a failure to start it is logged. */
void cleanup_note(struct cleanup **, const struct process *, struct session *, nanos now);

/* Removes the session's record. */
void cleanup_forget(struct cleanup *, struct session *);

/* Ends the cleanup process after all sessions; in the child of a fork leaves the parent's alone. */
void cleanup_end(struct cleanup **);
