/* A descriptor in front of one of the library's, for events that no device has raised, or that the program gets later
 * or never: the field that names the library's names a timer. A thread of this library waits for the library's. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/lock.h"
#include "base/nanos.h"

struct front {
    int *field;
    int real;  /* the library's; it does not block */
    int timer; /* what the program sees: readable from when an event is due */

    /* Of the owner's lock, which nobody holds over a call of the library. */
    unsigned lent;   /* calls of the library that find its own descriptor in the field */
    unsigned taking; /* threads of front.c in such calls: one that ends, and the next */
    bool leaving;    /* they begin none, as the object is about to be destroyed */
    bool failed;     /* the library's can't be read any more, and no thread waits for it */
    nanos due;       /* of the timer */

    /* front.c alone uses the rest. */
    void (*take)(const void *object);
    const void *object;
    unsigned process; /* how many forks are between it and the first process */
    bool watched;
    LIST_ENTRY(front) next;
};

/* Puts a descriptor in front of the one in this field. From then on a thread calls `take` each time that the library's
 * can be read, also after front_close: `take` looks whether the object is there. False: the process has no descriptor
 * or thread left, errno is set, and nothing has changed. The caller may hold locks before LOCK_FRONT. */
bool front_open(struct front *, int *field, void (*take)(const void *object), const void *object);

/* Closes our descriptor; threads that wait for it wake up. The field has the library's, or is gone. Locks as for
 * front_open. */
void front_close(struct front *);

/* True: this process is a child of the one that made it, and gets no events by it. */
bool front_is_inherited(const struct front *);

/* Waits until the program's descriptor can be read; not at all if that does not block. -1: a signal came, errno is
 * EINTR, whatever its handler's flags are. A cancellation point. The caller holds no lock. */
int front_wait(int descriptor);

/* True: the program's descriptor does not block. */
bool front_is_nonblocking(int descriptor);

/* The next event for the program is due then; NANOS_NEVER: there is no event. */
void front_ring(struct front *, nanos due);

/* Between these two the library finds its own descriptor in the field; a program that reads the field meanwhile finds
 * it, too. The caller holds the owner's lock, and releases it for the call. */
void front_lend(struct front *);
void front_return(struct front *);

/* The same for the thread; `lends`: the library reads the field. False: it takes nothing. */
bool front_begin_taking(struct front *, bool lends);
void front_end_taking(struct front *, bool lends);

/* The library's descriptor fails: the program is to ask the library. Under the owner's lock; locks as for front_open.
 */
void front_fail(struct front *);

/* Lends the descriptor to the call that destroys the object, when the thread is in no call; until then it releases the
 * owner's lock. */
void front_leave(struct front *, struct mutex *owner);
/* The object is there still. */
void front_stay(struct front *);

/* The thread's number (gettid(2)); 0: there is no thread in this process. */
pid_t front_thread(void);

/* In a child of a fork, which has no thread. */
void front_forked(void);
