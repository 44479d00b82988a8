/* A request of one process to another without waiting: the one that a tool makes (node_ask), for callers that hold
 * locks. errno stays as it is. */
#ifndef IPC_ASK_QUESTION_H
#define IPC_ASK_QUESTION_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/node.h"

struct question {
    int socket; /* where the answer comes; -1: nothing was asked */
};

/* Asks the process. Never waits for it. 0, or an errno: EPERM, as it is another user's, which would not answer;
 * ECONNREFUSED, ENOENT: it has ended; ENOTCONN: this process has left the host; others: there is no descriptor or room.
 * At 0 question_end follows. Thread-safe. */
int question_ask(struct node *, const struct peer *, const char *request, struct question *);

/* Takes the answer. EAGAIN: it has not come yet. 0: it lies in `to`, and is exactly `size` bytes long; they may be
 * nonsense. EPROTO: the answer is of another size, or may keep its reader waiting. Another errno: none will come. Never
 * waits. */
int question_look(struct question *, void *to, size_t size);

/* No answer is wanted any more. Harmless where nothing was asked. */
void question_end(struct question *);

/* The name of the peer's program, which is printable, and its process as this one sees it; 0: it is not seen here.
 * Thread-safe. */
enum { QUESTION_PROGRAM = 32 };
pid_t question_of(struct node *, const struct peer *, char program[QUESTION_PROGRAM]);

#endif
