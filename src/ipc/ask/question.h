/* A request of one process to another, as a tool makes it (node_ask), but without waiting, for callers that hold locks.
 * errno stays as it is. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ipc/node.h"

struct question {
    int socket; /* receives the answer; -1: nothing was asked */
};

/* Asks the process, and never waits for it. Returns 0, and question_end must follow; or an errno: EPERM: another user's
 * process, which would not answer; ECONNREFUSED, ENOENT: it has ended; ENOTCONN: this process has left the host;
 * others: there is no descriptor or room. Thread-safe. */
int question_ask(struct node *, const struct peer *, const char *request, struct question *);

/* Takes the answer. EAGAIN: it has not arrived yet. 0: it is in `to`, exactly `size` bytes, which may be nonsense.
 * EPROTO: the answer has another size, or may keep its reader waiting. Another errno: there will be no answer. Never
 * waits. */
int question_look(struct question *, void *to, size_t size);

/* Ends the question: no answer is wanted any more. Nothing happens if nothing was asked. */
void question_end(struct question *);

/* Writes the printable name of the peer's program, and returns its process as this one sees it; 0: it is not visible
 * here. Thread-safe. */
enum { QUESTION_PROGRAM = 32 };
pid_t question_of(struct node *, const struct peer *, char program[QUESTION_PROGRAM]);
